"""Becomes the given command, once it is sure to die with the process that started it.

Run as a script: `python -I -S launch.py PARENT_PID COMMAND...`. The process id stays the same.
Doing this after the fork but in a fresh interpreter keeps it safe in programs with threads.
On systems other than Linux there is no such bond; the command is only started.
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
        if os.getppid() != parent:  # it died before the bond was made
            sys.exit(1)
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it; commands expect it
    os.execvp(command[0], command)  # noqa: S606  (no shell is wanted)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
