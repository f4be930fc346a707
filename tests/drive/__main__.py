"""`python -m tests.drive`: the order of a drive, from its arguments to its exit status."""

import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from renders.demo.exceptions import DemoError
from tests.drive import options as arguments
from tests.drive.options import Options
from tests.drive.stack import Broken, running

NO_DRIVE = 2


def main() -> int:
    """Drive, judge, clean up."""
    options = arguments.read()
    console = Console(width=100, soft_wrap=True)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    folder = Path(tempfile.mkdtemp(prefix="renders-drive-"))
    sound = False
    try:
        sound = drive(options, folder, console)
    except (Broken, DemoError, pytest.skip.Exception, pytest.fail.Exception) as error:
        console.print(str(error), style="bold red", markup=False)
        return NO_DRIVE
    finally:
        if sound:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            console.print(f"Logs and database: {folder}", highlight=False)
    return 0 if sound else 1


def drive(options: Options, folder: Path, console: Console) -> bool:
    """Whether all invariants hold."""
    started = time.monotonic()
    with running(options, folder) as stack:
        # Only now: they need Django's settings.
        from tests.drive.checks import Accounts, Line
        from tests.drive.mayhem import Mayhem
        from tests.drive.table import show

        diary = Mayhem(options, stack, console).run()
        recovery = f"not within {options.patience_seconds:g} s"
        if diary.ended_at:
            recovery = f"{diary.ended_at - diary.calm_at:.1f} s"
        lines = Accounts(stack, diary).lines()
        lines.append(Line("recovery time", recovery, diary.ended_at is not None))
        lines.append(Line("wall time", f"{time.monotonic() - started:.0f} s"))
        return show(console, f"Drive: {options}", lines)


def _leave(number: int, frame: Any) -> None:
    """End as after Ctrl-C: with everything cleaned up."""
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
