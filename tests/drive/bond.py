"""Ends a server that has no bond to this drive, should the drive be killed.

Run as a script: `python -I -S bond.py PID`, its input a pipe from the drive. The pipe closes when
the drive ends, however it ends; a word in it says that the server was looked after.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def bonded(pid: int) -> Iterator[None]:
    """Have the process `pid` end (SIGINT) if this one dies inside."""
    watcher = subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, str(pid)],
        stdin=subprocess.PIPE,
        start_new_session=True,  # whoever kills the drive's group does not kill this
    )
    try:
        yield
    finally:
        watcher.communicate(b"done")


def main(pid: int) -> None:
    """Wait for the drive's end."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if not sys.stdin.read():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGINT)


if __name__ == "__main__":
    main(int(sys.argv[1]))
