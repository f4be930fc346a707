"""Runs the given command so that it dies with the process that started it.

Run as a script: `python -I -S launch.py PARENT_PID COMMAND...`. The process id stays the same.
A fresh interpreter after the fork keeps this safe in programs with threads. On systems other than
Linux, the command does not die with its parent.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> None:
    """Replace this process by `command`."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:  # it died before prctl took effect
            sys.exit(1)
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it; commands expect it
    os.execvp(command[0], command)  # noqa: S606  (no shell is needed)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
