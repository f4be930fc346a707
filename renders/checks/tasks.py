"""What Celery is told about tasks: how they are written down, where they go, how long they take."""

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any

from django.core.checks import CheckMessage, Error, Warning

from renders import ticks
from renders.checks.celery_told import told, used
from renders.conf import conf

WRITTEN_BY = ("task_serializer", "result_serializer", "accept_content", "result_accept_content")
# Others (msgpack, a JSON of one's own) hold data alone.
HOLD_CODE = {"pickle", "application/x-python-serialize"}
# A long line of one kind must not hold up the others.
APART = tuple(f"renders.tasks.{name}" for name in ("submit_render", "poll_render", "finish_render"))


def task_faults() -> Iterator[CheckMessage]:
    """Nothing of it matters where there are no tasks."""
    if not used():
        return
    if unsafe := [name for name in WRITTEN_BY if HOLD_CODE & {*_listed(told(name))}]:
        yield Error(
            f"Messages may be pickled ({', '.join(unsafe)}): "
            "whoever reaches the broker has code run in the workers.",
            hint='Set CELERY_TASK_SERIALIZER and CELERY_RESULT_SERIALIZER to "json", '
            'CELERY_ACCEPT_CONTENT and CELERY_RESULT_ACCEPT_CONTENT to ["json"].',
            id="renders.E038",
        )
    if told("task_always_eager"):
        yield Error(
            "Celery runs tasks at once (task_always_eager): each poll would make the next one "
            "without any wait.",
            hint="Take CELERY_TASK_ALWAYS_EAGER out. In settings for tests alone, put renders.E039 "
            "into SILENCED_SYSTEM_CHECKS, and use the fixture of renders.testing.",
            id="renders.E039",
        )
    yield from _queue_faults()
    limit = told("task_soft_time_limit")
    if limit is None or conf.SCHEDULER != "sortedset" or not conf.TICKS:
        return
    if limit <= ticks.longest_seconds():
        yield Error(
            "REQUEST_TIMEOUT_SECONDS reaches Celery's time limit: a tick, which waits for the "
            "last reads it began, would be cut off by it.",
            hint="Raise CELERY_TASK_SOFT_TIME_LIMIT and CELERY_TASK_TIME_LIMIT above "
            f"{ticks.longest_seconds():g} s, or lower RENDERS_REQUEST_TIMEOUT_SECONDS.",
            id="renders.E025",
        )


def _queue_faults() -> Iterator[CheckMessage]:
    """Only a plain table of routes can be read here; who has other routes knows what they do."""
    routes = told("task_routes") or {}
    if not isinstance(routes, dict):
        return
    queues = {name: _queue_of(name, routes) for name in APART}
    usual = told("task_default_queue") or "celery"
    if len({queue or usual for queue in queues.values()}) < len(APART):
        yield Warning(
            "Submits, polls and finishes share a queue: "
            "thousands of waiting polls hold up what could be done now.",
            hint="Give renders.tasks.submit_render, poll_render and finish_render a queue each "
            "in CELERY_TASK_ROUTES, and have workers serve all three (-Q).",
            id="renders.W050",
        )
    known = {str(getattr(queue, "name", queue)) for queue in told("task_queues") or ()}
    lost = sorted({queue for queue in queues.values() if queue} - known) if known else []
    if lost:
        yield Warning(
            f"Tasks go to queues that CELERY_TASK_QUEUES does not hold: {', '.join(lost)}. "
            "A worker that is not told of them by -Q does not serve them.",
            hint="Add them to CELERY_TASK_QUEUES, each with a routing key of its own.",
            id="renders.W051",
        )


def _queue_of(task: str, routes: dict[str, Any]) -> str | None:
    """The queue of its name, or of the first pattern that fits; None: Celery's default one."""
    named = [(task, routes[task])] if task in routes else []
    for pattern, route in [*named, *routes.items()]:
        if fnmatchcase(task, str(pattern)):
            queue = route.get("queue") if isinstance(route, dict) else route
            return str(getattr(queue, "name", queue)) if queue else None
    return None


def _listed(value: Any) -> Iterable[str]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else value
