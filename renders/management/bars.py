"""A bar on the error output while something takes its time: in a terminal, and nowhere else."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.base import OutputWrapper
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


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
