"""Shows renders while they are made: a live table in a terminal, else a line per change."""

import time
from types import TracebackType
from uuid import UUID

from django.utils import timezone
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from renders.demo.following import Following, has_ended
from renders.demo.terminal import one_line
from renders.models import RenderJob
from renders.states import Status
from renders.titles import title_of

STYLES = {
    Status.PENDING: "dim",
    Status.SUBMITTING: "cyan",
    Status.SUBMITTED: "cyan",
    Status.COMPLETED: "green",
    Status.FAILED: "red",
    Status.CANCELED: "yellow",
}
AROUND_THE_ROWS = 7  # lines of the screen that head, borders and bar take


class Lines:
    """A line per change of a render's status, for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._started = time.monotonic()
        self._shown: dict[UUID, tuple[str, str]] = {}

    def __enter__(self) -> "Lines":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        pass

    def show(self, following: Following) -> None:
        """Print what is new."""
        for render in following.renders:
            state = (render.status, one_line(render.error_message))
            if self._shown.get(render.pk) == state:
                continue
            self._shown[render.pk] = state
            seconds = time.monotonic() - self._started
            line = f"{seconds:6.1f} s  {render.status:<10}  {one_line(title_of(render), 60)}"
            if render.error_message:
                line += f"  ({state[1]})"
            self._console.print(Text(line), soft_wrap=True)


class Board:
    """A table that is drawn anew in place, with a bar over all renders."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, vertical_overflow="crop")
        self._bar = Progress(
            TextColumn("ended"), BarColumn(bar_width=40), MofNCompleteColumn(), console=console
        )
        self._task = self._bar.add_task("renders")

    def __enter__(self) -> "Board":
        self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._live.__exit__(kind, error, traceback)

    def show(self, following: Following) -> None:
        """Draw the renders as they are now."""
        ended = len(following.renders) - len(following.open)
        self._bar.update(self._task, total=len(following.renders), completed=ended)
        parts: list[Table | Text | Progress] = [self._table(following)]
        if not following.database_answers:
            parts.append(Text("The database does not answer; trying again.", style="red"))
        self._live.update(Group(*parts, self._bar), refresh=True)

    def _table(self, following: Following) -> Table:
        room = max(1, self._console.height - AROUND_THE_ROWS)
        renders = following.renders
        if len(renders) > room:  # those that still move come first
            renders = (following.open + [r for r in renders if has_ended(r)])[:room]
        left_out = len(following.renders) - len(renders)
        table = Table(
            expand=True, caption=f"and {left_out} more" if left_out else None, header_style="bold"
        )
        table.add_column("Status", width=10)
        table.add_column("Kind", width=12)
        table.add_column("Prompt", ratio=2, no_wrap=True, overflow="ellipsis")
        table.add_column("Age", width=6, justify="right")
        table.add_column("What happens", ratio=1, no_wrap=True, overflow="ellipsis")
        for render in renders:
            table.add_row(
                Text(render.status, style=STYLES[Status(render.status)]),
                Text(render.get_kind_display()),
                Text(one_line(title_of(render), 200)),
                Text(age(render)),
                Text(what_happens(render)),
            )
        return table


def board_on(console: Console) -> Board | Lines:
    """The way to show renders that suits the console."""
    if console.is_terminal and not console.is_dumb_terminal:
        return Board(console)
    return Lines(console)


def age(render: RenderJob) -> str:
    """How long it has taken so far, or took."""
    seconds = int(((render.finished_at or timezone.now()) - render.created_at).total_seconds())
    if seconds < 100:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 6_000 else f"{seconds // 3600} h"


def what_happens(render: RenderJob) -> str:
    """The present step in a few words."""
    if render.error_message:
        return one_line(render.error_message, 200)
    if render.is_terminal and not render.handled_at:
        return "storing the result"
    if has_ended(render):
        return "done"
    if render.status == Status.SUBMITTED:
        return f"{render.sume_status or 'accepted'} at Sume"
    return "being sent" if render.status == Status.SUBMITTING else "waits to be sent"
