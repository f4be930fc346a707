"""Follows renders until they end and shows them: a live table in a terminal, else lines.

Following only reads the database and changes nothing.
"""

import time
from collections.abc import Callable, Iterable
from datetime import datetime
from enum import Enum
from pathlib import Path
from types import TracebackType
from uuid import UUID

from django.core.files.storage import default_storage
from django.db import InterfaceError, OperationalError, connection
from django.utils import timezone
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from renders.management.terminal import one_line
from renders.models import RenderJob
from renders.presentation.titles import title_of
from renders.states import Status

INTERVAL_SECONDS = 0.3
PATIENCE_SECONDS = 60.0
# Prompts that begin so make the sandbox fail a render.
FAILING_PROMPTS = ("FAIL", "REJECT")
STYLES = {
    Status.PENDING: "dim",
    Status.SUBMITTING: "cyan",
    Status.SUBMITTED: "cyan",
    Status.COMPLETED: "green",
    Status.FAILED: "red",
    Status.CANCELED: "yellow",
}
AROUND_THE_ROWS = 7  # screen lines for the table's head, its borders and the bar


class End(Enum):
    """Why following ended."""

    ENDED = "ended"
    """All renders have ended and were handled."""
    TIMED_OUT = "timed out"
    """The given time-out has passed."""
    STALLED = "stalled"
    """Nothing has changed for longer than any render should wait."""


class Following:
    """A set of renders, as last read from the database. `rows` keeps the given order."""

    def __init__(self, renders: Iterable[RenderJob]) -> None:
        self.rows = {render.pk: render for render in renders}
        self.deleted = 0
        self.database_answers = True

    @property
    def renders(self) -> list[RenderJob]:
        """The renders as last read."""
        return list(self.rows.values())

    @property
    def open(self) -> list[RenderJob]:
        """The renders that have not ended yet."""
        return [render for render in self.renders if not has_ended(render)]

    def read(self) -> None:
        """Read the open renders again. If the database is down, the rows stay as last read."""
        wanted = [render.pk for render in self.open]
        try:
            fresh = RenderJob.objects.defer("request_body").in_bulk(wanted)
        except (OperationalError, InterfaceError):
            connection.close()
            self.database_answers = False
            return
        self.database_answers = True
        for pk in wanted:
            if pk in fresh:
                self.rows[pk] = fresh[pk]
            else:
                del self.rows[pk]
                self.deleted += 1

    def until_end(
        self,
        show: Callable[["Following"], None],
        *,
        timeout: float | None = None,
        patience: float = PATIENCE_SECONDS,
        interval: float = INTERVAL_SECONDS,
    ) -> End:
        """Read and `show` repeatedly until an `End` is reached. Times are in seconds."""
        started = time.monotonic()
        moved_at, last_seen = timezone.now(), None
        while True:
            self.read()
            show(self)
            if not self.open:
                return End.ENDED
            if timeout is not None and time.monotonic() - started >= timeout:
                return End.TIMED_OUT
            seen = [_state(render) for render in self.open]
            now = timezone.now()
            if seen != last_seen:
                moved_at, last_seen = now, seen
            if (now - self._due(moved_at)).total_seconds() > patience:
                return End.STALLED
            time.sleep(interval)

    def _due(self, moved_at: datetime) -> datetime:
        """The latest time at which a step is due: until then, waiting is no stall."""
        times = [moved_at]
        for render in self.open:
            times += [at for at in (render.next_poll_at, render.not_before) if at]
        return max(times)


def _state(render: RenderJob) -> tuple[object, ...]:
    return (
        render.pk,
        render.status,
        render.submit_attempts,
        render.poll_count,
        render.failed_reads,
        render.next_poll_at,
        render.not_before,
    )


def has_ended(render: RenderJob) -> bool:
    """Whether nothing more will happen to this render."""
    return render.is_terminal and render.handled_at is not None


def did_as_asked(render: RenderJob, *, sandbox: bool = False) -> bool:
    """Whether the render ended as its prompt asks; in the sandbox, some ask for a failure."""
    if sandbox and render.prompt.startswith(FAILING_PROMPTS):
        return render.status == Status.FAILED
    return render.status == Status.COMPLETED


class Board:
    """A table that is redrawn in place, with a progress bar for all renders."""

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
        if len(renders) > room:  # open renders come first
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


class Lines:
    """Prints a line per change of a render's status, for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._started = time.monotonic()
        self._shown: dict[UUID, tuple[str, str]] = {}

    def __enter__(self) -> "Lines":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def show(self, following: Following) -> None:
        """Print the changes since the last call."""
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


def board_on(console: Console) -> Board | Lines:
    """A `Board` for terminals, else `Lines`."""
    if console.is_terminal and not console.is_dumb_terminal:
        return Board(console)
    return Lines(console)


def age(render: RenderJob) -> str:
    """The time from creation until the end, or until now."""
    seconds = int(((render.finished_at or timezone.now()) - render.created_at).total_seconds())
    if seconds < 100:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 6_000 else f"{seconds // 3600} h"


def what_happens(render: RenderJob) -> str:
    """The current step in a few words."""
    if render.error_message:
        return one_line(render.error_message, 200)
    if render.is_terminal and not render.handled_at:
        return "storing the result"
    if has_ended(render):
        return "done"
    if render.status == Status.SUBMITTED:
        return f"{render.sume_status or 'accepted'} at Sume"
    return "being sent" if render.status == Status.SUBMITTING else "waits to be sent"


def outcome(render: RenderJob) -> str:
    """Where the media are, or why there are none."""
    if render.status == Status.COMPLETED:
        return where_it_is(render)
    words = [render.error_code, one_line(render.error_message)]
    reason = ": ".join(dict.fromkeys(word for word in words if word))
    return reason or render.get_absolute_url()


def where_it_is(render: RenderJob) -> str:
    """The paths of the saved files, else the address of the render's page.

    Sume's links are never shown: they may be signed.
    """
    files = [artifact["file"] for artifact in render.artifacts if artifact.get("file")]
    return ", ".join(_path(name) for name in files) or render.get_absolute_url()


def _path(name: str) -> str:
    try:
        path = Path(default_storage.path(name))
    except NotImplementedError:  # a storage that is not a folder
        return name
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def total_cost(renders: list[RenderJob]) -> str:
    """The sum of the known costs, in dollars."""
    costs = [r.cost_usd_micros for r in renders if r.cost_usd_micros is not None]
    if not costs:
        return "Cost: not stated"
    text = f"Cost: ${sum(costs) / 1_000_000:.4f}"
    unknown = len(renders) - len(costs)
    return f"{text} (not stated for {unknown} of {len(renders)})" if unknown else text
