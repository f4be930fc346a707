"""Checks of Celery's settings: the broker, and how tasks are serialized, routed and limited.

The project's Celery app may have any name and any namespace of settings, so settings are read
through `value_of`.
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

REDIS = ("redis://", "rediss://", "redis+socket://", "sentinel://")
RABBITMQ = ("amqp://", "amqps://", "pyamqp://")
# Celery's default visibility time-out for Redis.
USUAL_VISIBILITY_SECONDS = 3600
# RabbitMQ's default consumer_timeout: it takes back a message that a worker holds for longer.
USUAL_CONSUMER_SECONDS = 1800
# The settings that choose how messages are serialized.
SERIALIZER_SETTINGS = (
    "task_serializer",
    "result_serializer",
    "accept_content",
    "result_accept_content",
)
# Serializers that can carry code. Others (msgpack, custom JSON) carry only data.
UNSAFE_SERIALIZERS = {"pickle", "application/x-python-serialize"}
# Tasks that need a queue each: a backlog of one kind must not delay the others.
SEPARATE_TASKS = tuple(
    f"renders.tasks.{name}" for name in ("submit_render", "poll_render", "finish_render")
)


def broker_faults() -> Iterator[CheckMessage]:
    """Brokers that Celery cannot use, and waits so long that brokers deliver messages twice."""
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
    """Seconds after which Redis redelivers an unacknowledged message; None for other brokers."""
    options = value_of("broker_transport_options") or {}
    usual = USUAL_VISIBILITY_SECONDS if used() and broker().startswith(REDIS) else None
    visibility: float | None = options.get("visibility_timeout", usual)
    return visibility


def task_faults() -> Iterator[CheckMessage]:
    """Faults of serialization, eager mode, queues and time limits; none if no tasks are used."""
    if not used():
        return
    if unsafe := [
        name for name in SERIALIZER_SETTINGS if UNSAFE_SERIALIZERS & {*_listed(value_of(name))}
    ]:
        yield Error(
            f"Messages may be pickled ({', '.join(unsafe)}): "
            "whoever reaches the broker has code run in the workers.",
            hint='Set CELERY_TASK_SERIALIZER and CELERY_RESULT_SERIALIZER to "json", '
            'CELERY_ACCEPT_CONTENT and CELERY_RESULT_ACCEPT_CONTENT to ["json"].',
            id="renders.E038",
        )
    if value_of("task_always_eager"):
        yield Error(
            "Celery runs tasks at once (task_always_eager): each poll would make the next one "
            "without any wait.",
            hint="Take CELERY_TASK_ALWAYS_EAGER out. In settings for tests alone, put renders.E039 "
            "into SILENCED_SYSTEM_CHECKS, and use the fixture of renders.testing.",
            id="renders.E039",
        )
    yield from _queue_faults()
    limit = value_of("task_soft_time_limit")
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
    """Warnings about shared and unserved queues. Routes other than a plain dict are not checked."""
    routes = value_of("task_routes") or {}
    if not isinstance(routes, dict):
        return
    queues = {name: _queue_of(name, routes) for name in SEPARATE_TASKS}
    usual = value_of("task_default_queue") or "celery"
    if len({queue or usual for queue in queues.values()}) < len(SEPARATE_TASKS):
        yield Warning(
            "Submits, polls and finishes share a queue: "
            "thousands of waiting polls hold up what could be done now.",
            hint="Give renders.tasks.submit_render, poll_render and finish_render a queue each "
            "in CELERY_TASK_ROUTES, and have workers serve all three (-Q).",
            id="renders.W050",
        )
    declared = {str(getattr(queue, "name", queue)) for queue in value_of("task_queues") or ()}
    routed = {queue for queue in queues.values() if queue}
    lost = sorted(routed - declared) if declared else []
    if lost:
        yield Warning(
            f"Tasks go to queues that CELERY_TASK_QUEUES does not hold: {', '.join(lost)}. "
            "A worker that is not told of them by -Q does not serve them.",
            hint="Add them to CELERY_TASK_QUEUES, each with a routing key of its own.",
            id="renders.W051",
        )


def _queue_of(task: str, routes: dict[str, Any]) -> str | None:
    """The queue of the task's own route, else of the first matching pattern.

    None means Celery's default queue.
    """
    named = [(task, routes[task])] if task in routes else []
    for pattern, route in [*named, *routes.items()]:
        if fnmatchcase(task, str(pattern)):
            queue = route.get("queue") if isinstance(route, dict) else route
            return str(getattr(queue, "name", queue)) if queue else None
    return None


def _listed(value: Any) -> Iterable[str]:
    """A setting's values: several, a single text or none."""
    if value is None:
        return []
    return [value] if isinstance(value, str) else value


def used() -> bool:
    """Whether this site uses Celery's messages at all."""
    return conf.SCHEDULER != "database"


def broker() -> str:
    """The address of the broker; by default, Celery uses RabbitMQ on this machine."""
    return str(value_of("broker_url") or "amqp://")


def loaded() -> bool:
    """Whether the project has a Celery app; otherwise Celery uses an unconfigured default app."""
    return bool(current_app.fixups) or current_app.main != "default"


def name_of(setting: str) -> str:
    """The Django setting for a Celery setting: `CELERY_TASK_ROUTES` for `task_routes`.

    The prefix is the namespace of the project's Celery app.
    """
    namespace = current_app.namespace if loaded() else "CELERY"
    return f"{namespace}_{setting}".upper() if namespace else setting


def value_of(setting: str) -> Any:
    """The value of a Celery setting (`broker_url`); None if it is left to Celery.

    Django's current settings come first, then Celery's own configuration.
    """
    missing = object()
    value = getattr(settings, name_of(setting), missing)
    if value is not missing:
        return value
    return current_app.conf.get(setting) if loaded() else None
