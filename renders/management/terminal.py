"""Output that suits where it goes: colours and a live table in a terminal, else plain lines.

A bar on the error output while something takes its time: in a terminal, and nowhere else.
"""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import IO, Any, cast

from django.core.management.base import OutputWrapper
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


def console_on(stdout: OutputWrapper, *, no_color: bool = False) -> Console:
    """A console that writes to a command's `stdout`; no control codes unless it is a terminal."""
    stdout.ending = ""  # else Django ends every piece of a line with a line end
    raw: Any = getattr(stdout, "_out", stdout)
    if hasattr(raw, "reconfigure"):
        raw.reconfigure(errors="replace")  # a prompt may hold what the terminal cannot show
    return Console(
        file=cast(IO[str], stdout),
        force_terminal=stdout.isatty(),
        no_color=no_color or None,
        highlight=False,
        emoji=False,
    )


def one_line(text: str, longest: int = 0) -> str:
    """Text from outside made safe to show: no control characters, no line ends, not too long."""
    clean = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return clean[: longest - 1] + "…" if longest and len(clean) > longest else clean


@contextmanager
def exit_on_sigterm() -> Iterator[None]:
    """Let SIGTERM end the block as an exception does, so that the terminal is put in order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _exit(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


@contextmanager
def bar_on(stderr: OutputWrapper, what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yields what is called with how many more are done."""
    raw: Any = getattr(stderr, "_out", stderr)
    if not stderr.isatty():
        yield lambda more: None
        return
    bar = Progress(
        TextColumn(what),
        BarColumn(bar_width=40),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(file=raw, force_terminal=True),
        transient=True,
    )
    with bar:
        task = bar.add_task(what, total=total)
        yield lambda more: bar.advance(task, more)
