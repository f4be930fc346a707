"""The Celery app of the project, whatever its name and the namespace of its settings.

What Celery is told, by whatever name the project calls it.

The broker: an address that Celery knows, and polls that may wait in it.

What Celery is told about tasks: how they are written down, where they go, how long they take.
"""

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any

from celery import current_app
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning

from renders.conf import conf
from renders.conf.redis_url import CLUSTER, SENTINEL, kind_of
from renders.schedulers import ticks


def loaded() -> bool:
    """Whether the project has one: else Celery falls back on one that is not configured."""
    return bool(current_app.fixups) or current_app.main != "default"


def name_of(setting: str) -> str:
    """How Django's settings call Celery's setting: `task_routes` is `CELERY_TASK_ROUTES`."""
    namespace = current_app.namespace if loaded() else "CELERY"
    return f"{namespace}_{setting}".upper() if namespace else setting


def value_of(setting: str) -> Any:
    """What Celery is told: by Django's settings as they are now, else by its own configuration."""
    missing = object()
    found = getattr(settings, name_of(setting), missing)
    if found is not missing:
        return found
    return current_app.conf.get(setting) if loaded() else None


REDIS = ("redis://", "rediss://", "redis+socket://", "sentinel://")
RABBITMQ = ("amqp://", "amqps://", "pyamqp://")


def told(name: str) -> Any:
    """Celery's setting of this name (`broker_url`); None where it is left to Celery."""
    return value_of(name)


def broker() -> str:
    """The address of the broker; without one, Celery takes a RabbitMQ on this machine."""
    return str(told("broker_url") or "amqp://")


def used() -> bool:
    """Whether messages are sent at all."""
    return conf.SCHEDULER != "database"


# Celery's own for a Redis that is told of none.
USUAL_VISIBILITY_SECONDS = 3600
# RabbitMQ's own: it takes a message back from a worker that holds it for longer.
USUAL_CONSUMER_SECONDS = 1800


def broker_faults() -> Iterator[CheckMessage]:
    """Whether messages arrive, and once."""
    kind = kind_of(broker())
    if kind == CLUSTER:
        yield Error(
            "A Redis Cluster cannot carry Celery's messages.",
            hint="Set CELERY_BROKER_URL to one Redis (redis://…, redis+sentinel://…) "
            "or to RabbitMQ (amqp://…); leases and pauses can stay in the cluster.",
            id="renders.E012",
        )
    if kind == SENTINEL:
        yield Error(
            "Celery spells the address of sentinels differently.",
            hint="Set CELERY_BROKER_URL to sentinel://host:26379;sentinel://host:26379 and "
            'CELERY_BROKER_TRANSPORT_OPTIONS["master_name"] to the service\'s name.',
            id="renders.E013",
        )
    visibility = _visibility_timeout()
    if visibility is not None and visibility <= conf.MAX_POLL_SECONDS:
        yield Error(
            "MAX_POLL_SECONDS reaches the broker's visibility time-out: "
            "waiting polls would be delivered twice.",
            hint="Lower RENDERS_MAX_POLL_SECONDS or raise visibility_timeout in "
            "CELERY_BROKER_TRANSPORT_OPTIONS.",
            id="renders.E004",
        )
    waits_there = used() and broker().startswith(RABBITMQ)
    if waits_there and conf.MAX_POLL_SECONDS >= USUAL_CONSUMER_SECONDS:
        yield Warning(
            "MAX_POLL_SECONDS reaches RabbitMQ's consumer_timeout, 30 minutes if nobody changed "
            "it: it would close the connection of a worker in which polls wait.",
            hint="Lower RENDERS_MAX_POLL_SECONDS, or raise consumer_timeout in RabbitMQ and "
            "silence this.",
            id="renders.W052",
        )


def _visibility_timeout() -> float | None:
    """How long a Redis leaves a message to a worker, in seconds; None for another broker."""
    options = told("broker_transport_options") or {}
    usual = USUAL_VISIBILITY_SECONDS if used() and broker().startswith(REDIS) else None
    visibility: float | None = options.get("visibility_timeout", usual)
    return visibility


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
