"""The current state as figures for machines: waiting and running renders, their ages, the limits.

Each statement uses an index of waiting or running rows and never scans the table. Ended renders are
counted from time to time.
"""

import logging
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.core.cache import cache
from django.db import DatabaseError, OperationalError, connection, connections, transaction
from django.db.models import Count, Min, Q
from django.utils import timezone

from renders.conf import conf
from renders.models import RenderJob, outages
from renders.reports.attention import FAILED_READS
from renders.reports.standing import Figures, GateStanding, all_gates, figures
from renders.states import TERMINAL, Status

logger = logging.getLogger(__name__)

# A database that takes longer counts as down.
LONGEST_SECONDS = 5.0
# Longest time to count the ended renders; if it takes longer, the count is left out for a while.
COUNT_SECONDS = 1.0
CACHE_SECONDS, REST_SECONDS = 60, 600
CACHE_KEY = "renders:ended"

_asking = threading.Lock()
LIMIT = "SELECT set_config('statement_timeout', %s, true)"

STATES = ("pending", "over_budget", "held", "submitting", "submitted", "unhandled")


@dataclass(frozen=True)
class Standing:
    """The state of the database now. Ages are in seconds, 0 if there are no such renders."""

    jobs: dict[tuple[str, str, str], int]
    """By workspace, state (of `STATES`) and kind; counts of 0 are missing."""
    ages: dict[tuple[str, str], float]
    """By workspace and state: the age of the oldest such render."""
    failing_reads: dict[str, int]
    """By workspace; counts of 0 are missing."""
    ended: dict[str, int] | None
    """By status; None if counting takes too long."""
    accounts: dict[str, tuple[list[GateStanding], Figures]]
    """By workspace: both gates, and what counts against its limits."""
    media_waiting: dict[str, int] = field(default_factory=dict)
    """By workspace: handled renders with media to store late; counts of 0 are missing."""
    at: datetime = field(default_factory=timezone.now)


def standing_in_time() -> Standing:
    """As `standing`, but raises `OperationalError` if the server does not answer at all.

    The database's own time-out ends long statements. For a server that is stopped or silently gone,
    a thread does the waiting.
    """
    if connection.vendor != "postgresql" or connection.in_atomic_block:
        return standing()  # SQLite; or an open transaction, which no other thread sees
    return within(LONGEST_SECONDS + 1, standing)


def within(seconds: float, ask: Callable[[], Standing]) -> Standing:
    """What `ask` returns or raises, if it ends in time. Only one such thread runs at a time."""
    late = OperationalError("The database has not answered in time.")
    if not _asking.acquire(timeout=seconds):
        raise late  # the thread of an earlier scrape still waits
    answers: queue.SimpleQueue[Standing | Exception] = queue.SimpleQueue()

    def work() -> None:
        try:
            outages.connection()  # a connection that does not hang if the server is silent
            answers.put(ask())
        except Exception as error:  # noqa: BLE001 (the waiting thread raises it)
            answers.put(error)
        finally:
            connections.close_all()
            _asking.release()

    try:
        threading.Thread(target=work, name="scrape", daemon=True).start()
    except RuntimeError:  # the system allows no further thread now
        _asking.release()
        raise OperationalError("No thread was free to ask the database.") from None
    try:
        answer = answers.get(timeout=seconds)
    except queue.Empty:
        raise late from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def standing() -> Standing:
    """The current state. Raises what the database raises, also if it takes too long."""
    now = timezone.now()
    with _at_most(LONGEST_SECONDS):
        jobs, ages, failing = _jobs(now)
        accounts = {name: (gates, figures(name)) for name, gates in all_gates().items()}
        waiting = _media_waiting()
        return Standing(
            jobs,
            ages,
            failing,
            media_waiting=waiting,
            ended=_ended(),
            accounts=accounts,
            at=now,
        )


def _jobs(
    now: datetime,
) -> tuple[dict[tuple[str, str, str], int], dict[tuple[str, str], float], dict[str, int]]:
    renders = RenderJob.objects
    jobs: dict[tuple[str, str, str], int] = {}
    ages: dict[tuple[str, str], float] = {}

    def look(state: str, rows: Any, oldest: str, **more: Any) -> list[dict[str, Any]]:
        by_kind = rows.order_by().values("workspace", "kind")
        counts = list(by_kind.annotate(number=Count("pk"), first=Min(oldest), **more))
        for row in counts:
            jobs[row["workspace"], state, row["kind"]] = row["number"]
            age = (now - row["first"]).total_seconds() if row["first"] else 0.0
            place = row["workspace"], state
            ages[place] = max(0.0, age, ages.get(place, 0.0))
        return counts

    look("pending", renders.in_line(), "created_at")
    look("over_budget", renders.over_budget(), "created_at")
    look("held", renders.filter(status=Status.PENDING, held_at__isnull=False), "held_at")
    look("submitting", renders.filter(status=Status.SUBMITTING), "claimed_at")
    look("unhandled", renders.unhandled(), "finished_at")
    submitted = look(
        "submitted",
        renders.filter(status=Status.SUBMITTED),
        "next_poll_at",
        failing=Count("pk", filter=Q(failed_reads__gte=FAILED_READS)),
    )
    failing: dict[str, int] = {}
    for row in submitted:
        failing[row["workspace"]] = failing.get(row["workspace"], 0) + row["failing"]
    return jobs, ages, failing


def _media_waiting() -> dict[str, int]:
    if not conf.SAVE_MEDIA:
        return {}
    rows = RenderJob.objects.late_media().order_by().values("workspace")
    return dict(rows.annotate(number=Count("pk")).values_list("workspace", "number"))


def _ended() -> dict[str, int] | None:
    try:
        return _ended_lately()
    except DatabaseError:
        raise
    except Exception as error:  # noqa: BLE001 (each cache has its own)
        logger.warning("The cache does not answer (%s).", type(error).__name__)
        return None  # without the cache, each scrape would count all of them


def _ended_lately() -> dict[str, int] | None:
    cached = cache.get(CACHE_KEY)
    if cached is not None:
        return cached or None
    try:
        with _at_most(COUNT_SECONDS):
            counts = _count_ended()
    except DatabaseError:
        cache.set(CACHE_KEY, {}, REST_SECONDS)
        return None
    ended = {str(status): counts.get(status, 0) for status in TERMINAL}
    cache.set(CACHE_KEY, ended, CACHE_SECONDS)
    return ended


def _count_ended() -> dict[str, int]:
    rows = RenderJob.objects.filter(finished_at__isnull=False).order_by().values("status")
    return dict(rows.annotate(number=Count("status")).values_list("status", "number"))


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Limit each statement to this time, on PostgreSQL. SQLite is a local file: no limit."""
    with transaction.atomic():
        if connection.vendor != "postgresql":
            yield
            return
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('statement_timeout')")
            before = cursor.fetchone()[0]
            cursor.execute(LIMIT, [f"{seconds:g}s"])
            yield
            cursor.execute(LIMIT, [before])  # for the rest of this transaction
