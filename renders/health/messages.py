"""Celery: whether the broker, queues, workers and result backend answer and are healthy."""

import time
from collections.abc import Iterable
from typing import Any

from celery import current_app

from renders.conf import conf
from renders.health import database, stores
from renders.health.findings import Finding
from renders.health.work import counted
from renders.telemetry import celery_signs

ANSWER_SECONDS = 1.0
# By default, kombu waits two seconds before it reports that the broker is down.
AT_ONCE = {"interval_start": 0, "interval_step": 0, "interval_max": 0}
# More messages in a queue are reported.
LONG = 1000
# Celery's default.
VISIBILITY_SECONDS = 3600.0
# How many workers answered the last time that this process asked.
_before = {"workers": 0}


def answers() -> list[Finding]:
    """Whether the broker takes connections."""
    try:
        with current_app.connection_for_write() as connection:
            connection.ensure_connection(max_retries=1, **AT_ONCE)
            connection.default_channel.close()
    except Exception as error:  # noqa: BLE001 (each transport has its own; texts can hold addresses)
        return [Finding(f"The broker does not answer ({type(error).__name__}).", "broker-away")]
    return [Finding("The broker answers.")]


def workers(seconds: float = ANSWER_SECONDS) -> list[Finding]:
    """Whether each queue has a worker."""
    try:
        answered = _listening_as_before(seconds)
    except Exception as error:  # noqa: BLE001 (as above)
        return [Finding(f"The broker does not answer ({type(error).__name__}).", "broker-away")]
    return judged(answered, needed())


def _listening_as_before(seconds: float) -> dict[str, set[str]]:
    """As `listening`, but waiting ends once as many workers answer as the last time."""
    answered = listening(seconds, _before["workers"]) if _before["workers"] else {}
    if not answered or any(finding.code for finding in judged(answered, needed())):
        answered = listening(seconds)  # other workers may have replaced them
    _before["workers"] = len(answered)
    return answered


def listening(seconds: float = ANSWER_SECONDS, first: int | None = None) -> dict[str, set[str]]:
    """The workers that answer within `seconds`, each with its queues.

    With `first`, waiting ends once that many have answered.
    """
    with current_app.connection_for_write() as connection:
        inspect = current_app.control.inspect(timeout=seconds, connection=connection, limit=first)
        replies = inspect.active_queues() or {}
    return {
        worker: {queue["name"] for queue in queues if isinstance(queue, dict)}
        for worker, queues in replies.items()
        if isinstance(queues, list)
    }


def judged(found: dict[str, set[str]], queues: Iterable[str]) -> list[Finding]:
    """The needed queues that have no worker; `found` are the workers with their queues."""
    if not found:
        return [Finding("No worker answers.", "workers-none")]
    served = set().union(*found.values())
    unserved = [queue for queue in queues if queue not in served]
    if unserved:
        return [
            Finding(
                f"No worker serves the queue {queue}.",
                "queue-unserved",
                f"Start one: `celery -A {current_app.main or 'project'} worker -Q {queue}`.",
            )
            for queue in unserved
        ]
    return [Finding(f"Every queue is served: {counted(len(found), 'worker')}.")]


def needed() -> list[str]:
    """The names of the queues that need a worker, with this site's settings."""
    if conf.SCHEDULER == "database":
        return []
    tasks = ["submit_render", "finish_render", "cancel_render", "sweep_renders"]
    if conf.SCHEDULER == "countdown":
        tasks.append("poll_render")
    elif conf.TICKS:
        tasks.append("poll_due")
    if conf.SAVE_MEDIA:
        tasks.append("save_media")
    route = current_app.amqp.router.route
    return sorted({route({}, f"renders.tasks.{task}")["queue"].name for task in tasks})


def lengths() -> list[Finding]:
    """How many messages wait in each queue."""
    numbers = {}
    with current_app.connection_for_write() as connection:
        for queue in needed():
            numbers[queue] = length(connection, queue)
    long = {queue: number for queue, number in numbers.items() if number > LONG}
    words = ", ".join(f"{queue} {number:,}" for queue, number in (long or numbers).items())
    return [Finding(f"Messages that wait: {words}.", "queue-long" if long else "")]


def length(connection: Any, queue: str) -> int:
    """The number of messages in a queue; 0 if the queue does not exist."""
    channel = connection.channel()  # of its own: asking for a missing queue closes the channel
    try:
        return int(channel.queue_declare(queue=queue, passive=True).message_count)
    except (*connection.channel_errors, KeyError):
        return 0
    finally:
        channel.close()


def lending() -> list[Finding]:
    """Whether the broker redelivers a message while its task still runs or waits.

    Only Redis does so, after its visibility time-out.
    """
    with current_app.connection_for_write() as connection:
        if connection.transport.driver_type != "redis":
            return [Finding("The broker lends no messages.")]
    options = current_app.conf.broker_transport_options or {}
    lent = float(options.get("visibility_timeout") or VISIBILITY_SECONDS)
    waits = conf.MAX_POLL_SECONDS if conf.SCHEDULER == "countdown" else 0.0
    runs = float(current_app.conf.task_time_limit or 0.0)
    longest = max(waits, runs)
    if lent > longest:
        return [Finding(f"Messages are lent for {lent:g} s.")]
    said = f"Messages are lent for {lent:g} s, and a task waits or runs up to {longest:g} s."
    return [Finding(said, "visibility-short")]


def keeps() -> list[Finding]:
    """Whether a Redis broker keeps its messages; skipped if it is the app's own Redis."""
    with current_app.connection_for_write() as connection:
        if connection.transport.driver_type != "redis":
            return [Finding(f"The broker is {connection.transport.driver_name}.")]
        if str(current_app.conf.broker_url) == str(conf.REDIS_URL):
            return [Finding("The broker is the same Redis.")]
        return stores.judged(connection.default_channel.client.info(), "The broker's Redis")


def results() -> list[Finding]:
    """Whether Celery's result backend answers."""
    backend = current_app.backend
    name = type(backend).__name__
    if not hasattr(backend, "client"):
        return [Finding(f"Results: {name}.")]
    try:
        backend.client.ping()
    except Exception as error:  # noqa: BLE001 (each driver has its own errors)
        return [Finding(f"{name} does not answer ({type(error).__name__}).", "results-away")]
    return [Finding(f"{name} answers.")]


def worker_clocks(seconds: float = ANSWER_SECONDS) -> list[Finding]:
    """Whether the workers and this machine agree on the time."""
    replies: list[tuple[dict[str, Any], float]] = []
    asked = time.time()
    with current_app.connection_for_write() as connection:
        current_app.control.broadcast(
            celery_signs.COMMAND,
            reply=True,
            timeout=seconds,
            connection=connection,
            callback=lambda reply: replies.append((reply, time.time())),
        )
    findings = [
        database.compared(worker, when, asked, answered)
        for reply, answered in replies
        for worker, when in reply.items()
        if isinstance(when, float)
    ]
    wrong = [finding for finding in findings if finding.code]
    return wrong or [Finding(f"Asked for the time: {counted(len(findings), 'worker')}.")]
