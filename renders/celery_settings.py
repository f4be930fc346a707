"""What Celery must be told for renders, for the settings of any project.

The broker is Redis, a Redis that sentinels look after, or RabbitMQ. Your own queues, routes and
schedule stand beside these: see docs/own-project.md.
"""

import math
from typing import Any
from urllib.parse import quote

from celery.schedules import crontab
from kombu import Queue

from renders.conf.redis_url import SENTINEL, RedisUrl, kind_of, read
from renders.coordination.clients import account
from renders.redaction import Hidden

# A view that enqueues into a silent broker waits for twice this (a try and its one retry),
# or three times where RabbitMQ falls silent on an open connection.
BROKER_TIMEOUT_SECONDS = 3

QUEUES = ("renders.submit", "renders.poll", "renders.finish", "renders.media")
# The first pattern that fits counts.
TASK_ROUTES = {
    "renders.tasks.poll_render": {"queue": "renders.poll"},
    "renders.tasks.poll_due": {"queue": "renders.poll"},
    "renders.tasks.submit_render": {"queue": "renders.submit"},
    "renders.tasks.save_media": {"queue": "renders.media"},
    "renders.tasks.*": {"queue": "renders.finish"},
}
# A view that enqueues while the broker is down must not hang: one short retry, then the sweep.
PUBLISH_RETRY_POLICY = {
    "max_retries": 1,
    "interval_start": 0.1,
    "interval_step": 0.1,
    "interval_max": 0.2,
}
# Above the time-outs of `RENDERS`; a system check compares them.
SOFT_TIME_LIMIT_SECONDS = 150
TIME_LIMIT_SECONDS = 180
# Without it, Celery 5.7.0 ends a worker whose Redis goes away while polls wait in it.
WORKER_CONSUMER = "renders.schedulers.celery_consumer:Consumer"
SWEEP_TASK = "renders.tasks.sweep_renders"


def queues(*own: str) -> list[Queue]:
    """Yours, and those of renders.

    Each has a routing key of its own: queues that share one each get a copy of every message.
    """
    return [Queue(name, routing_key=name) for name in (*own, *QUEUES)]


def beat_schedule(sweep_seconds: object = 30) -> dict[str, dict[str, Any]]:
    """The sweep, every so many seconds (a number, or the text of an environment variable), and
    once a day the pruning of what is kept for so many days and no longer.

    What is no number above 0 counts as 30; a system check names it.
    """
    try:
        seconds = float(str(sweep_seconds))
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        seconds = 30.0
    return {
        "sweep-renders": {
            "task": SWEEP_TASK,
            "schedule": seconds,
            # A sweep that waited longer than its period is worth nothing.
            "options": {"expires": seconds},
        },
        "prune-renders": {
            "task": "renders.tasks.prune_renders",
            "schedule": crontab(hour="3", minute="30"),
            "options": {"expires": 3600},
        },
    }


def broker_url(url: str) -> str:
    """The address in Celery's own words: it spells that of sentinels differently."""
    watched = _watched(url)
    if watched is None:
        return url
    account = f"{_quoted(watched.username)}:{_quoted(watched.password)}@".removeprefix(":@")
    hosts = (
        f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in watched.hosts
    )
    return Hidden(";".join(f"sentinel://{account}{host}/{watched.db}" for host in hosts))


def broker_options(url: str) -> dict[str, Any]:
    """What the transport of this broker understands: Redis, or RabbitMQ (`amqp`)."""
    if url.startswith(("amqp", "pyamqp")):
        return {"read_timeout": BROKER_TIMEOUT_SECONDS, "write_timeout": BROKER_TIMEOUT_SECONDS}
    options: dict[str, Any] = {
        # Above every countdown (RENDERS_MAX_POLL_SECONDS), or waiting polls are delivered twice.
        "visibility_timeout": 1800,
        "socket_timeout": BROKER_TIMEOUT_SECONDS,
        "socket_connect_timeout": BROKER_TIMEOUT_SECONDS,
        "socket_keepalive": True,
        "health_check_interval": 25,
    }
    if watched := _watched(url):
        options |= {"master_name": watched.service, "sentinel_kwargs": _sentinels(watched)}
    return options


def broker_tls(url: str) -> dict[str, object]:
    """What Celery is told of TLS beside the address: only that of sentinels cannot say it."""
    watched = _watched(url)
    return {name: value for name, value in watched.tls.items() if name != "ssl"} if watched else {}


def _sentinels(watched: RedisUrl) -> dict[str, object]:
    """How the sentinels are asked: one after the other, so each for a part of the time."""
    seconds = max(0.5, BROKER_TIMEOUT_SECONDS / len(watched.hosts))
    return {
        **account(watched.sentinel_username, watched.sentinel_password),
        "socket_timeout": seconds,
        "socket_connect_timeout": seconds,
        "retry": None,  # left out, redis-py asks one that is away ten times
        **watched.tls,
    }


def _watched(url: str) -> RedisUrl | None:
    """The address of sentinels, read; None for any other, and for one that a check refuses."""
    try:
        return read(url) if kind_of(url) == SENTINEL else None
    except ValueError:
        return None


def _quoted(text: str | None) -> str:
    return quote(text or "", safe="")
