"""Output for terminals (colours, live tables, progress bars), and plain lines for pipes."""

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
    stdout.ending = ""  # else Django ends every partial line with a newline
    raw: Any = getattr(stdout, "_out", stdout)
    if hasattr(raw, "reconfigure"):
        raw.reconfigure(errors="replace")  # a prompt may have characters that the terminal lacks
    return Console(
        file=cast(IO[str], stdout),
        force_terminal=stdout.isatty(),
        no_color=no_color or None,
        highlight=False,
        emoji=False,
    )


@contextmanager
def bar_on(stderr: OutputWrapper, what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on stderr, if it is a terminal; yields the function that advances it."""
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


def one_line(text: str, longest: int = 0) -> str:
    """Foreign text made safe to show: no control characters, one line, at most `longest` long.

    `longest` 0 means any length.
    """
    clean = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return clean[: longest - 1] + "…" if longest and len(clean) > longest else clean


@contextmanager
def exit_on_sigterm() -> Iterator[None]:
    """Have SIGTERM raise `SystemExit` in the block, so that the terminal is restored."""
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
