"""The broker: an address that Celery knows, and polls that may wait in it."""

from collections.abc import Iterator

from django.core.checks import CheckMessage, Error, Warning

from renders.checks.celery_told import RABBITMQ, REDIS, broker, told, used
from renders.conf import conf
from renders.redis_url import CLUSTER, SENTINEL, kind_of

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
