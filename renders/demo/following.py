"""Follows renders in the database until they have ended. Shows nothing, changes nothing."""

import time
from collections.abc import Callable, Iterable
from datetime import datetime
from enum import Enum

from django.db import InterfaceError, OperationalError, connection
from django.utils import timezone

from renders.models import RenderJob
from renders.states import Status

INTERVAL_SECONDS = 0.3
PATIENCE_SECONDS = 60.0
# How the stand-in is asked for a render that fails.
FAILING_PROMPTS = ("FAIL", "REJECT")


class End(Enum):
    """Why following ended."""

    ENDED = "ended"
    """All renders have ended and were handled."""
    TIMED_OUT = "timed out"
    """The time given is over."""
    STALLED = "stalled"
    """Nothing has moved for longer than any render should wait."""


class Following:
    """A set of renders and what is known of them. `rows` keeps the order they were given in."""

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
        """Those that have not ended yet."""
        return [render for render in self.renders if not has_ended(render)]

    def read(self) -> None:
        """Read those that are still open again; an outage of the database leaves them as known."""
        wanted = [render.pk for render in self.open]
        try:
            found = RenderJob.objects.defer("request_body").in_bulk(wanted)
        except (OperationalError, InterfaceError):
            connection.close()
            self.database_answers = False
            return
        self.database_answers = True
        for pk in wanted:
            if pk in found:
                self.rows[pk] = found[pk]
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
        """Read again and again, `show` each time, and say why it is over."""
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
        """The latest time at which something was to happen: until then, waiting is right."""
        times = [moved_at]
        for render in self.open:
            times += [at for at in (render.next_poll_at, render.not_before) if at]
        return max(times)


def has_ended(render: RenderJob) -> bool:
    """Whether nothing more will happen to this render."""
    return render.is_terminal and render.handled_at is not None


def did_as_asked(render: RenderJob, *, sandbox: bool = False) -> bool:
    """Whether the render came out right; in the sandbox some prompts ask for a failure."""
    if sandbox and render.prompt.startswith(FAILING_PROMPTS):
        return render.status == Status.FAILED
    return render.status == Status.COMPLETED


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
