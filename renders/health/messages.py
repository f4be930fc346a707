"""The broker, and the workers that listen to it.

How messages are kept: how many wait, how long they are lent; and whose clock is wrong.
"""

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
# Left to itself, kombu waits for two seconds before it says that nobody is there.
AT_ONCE = {"interval_start": 0, "interval_step": 0, "interval_max": 0}

# How many workers answered the last time this process asked.
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


def needed() -> list[str]:
    """The names of the queues that some worker must listen to, the way this site runs."""
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


def listening(seconds: float = ANSWER_SECONDS, first: int | None = None) -> dict[str, set[str]]:
    """The workers that answer within so many seconds, each with its queues.

    With `first`, no longer than until so many have answered.
    """
    with current_app.connection_for_write() as connection:
        inspect = current_app.control.inspect(timeout=seconds, connection=connection, limit=first)
        replies = inspect.active_queues() or {}
    return {
        worker: {queue["name"] for queue in queues if isinstance(queue, dict)}
        for worker, queues in replies.items()
        if isinstance(queues, list)
    }


def workers(seconds: float = ANSWER_SECONDS) -> list[Finding]:
    """Whether each queue has a worker."""
    try:
        found = _listening_as_before(seconds)
    except Exception as error:  # noqa: BLE001 (as above)
        return [Finding(f"The broker does not answer ({type(error).__name__}).", "broker-away")]
    return judged(found, needed())


def _listening_as_before(seconds: float) -> dict[str, set[str]]:
    """As `listening`; where as many answer as the last time, nobody waits for more of them."""
    found = listening(seconds, _before["workers"]) if _before["workers"] else {}
    if not found or any(one.code for one in judged(found, needed())):
        found = listening(seconds)  # others may have come in their place
    _before["workers"] = len(found)
    return found


def judged(found: dict[str, set[str]], queues: Iterable[str]) -> list[Finding]:
    """What is missing, where these workers listen and these queues are needed."""
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


LONG = 1000
# Celery's own, where nobody sets it.
VISIBILITY_SECONDS = 3600.0


def lengths() -> list[Finding]:
    """How many messages wait in each queue."""
    told = {}
    with current_app.connection_for_write() as connection:
        for queue in needed():
            told[queue] = length(connection, queue)
    long = {queue: number for queue, number in told.items() if number > LONG}
    words = ", ".join(f"{queue} {number:,}" for queue, number in (long or told).items())
    return [Finding(f"Messages that wait: {words}.", "queue-long" if long else "")]


def length(connection: Any, queue: str) -> int:
    """The messages in a queue; none in one that nobody has made."""
    channel = connection.channel()  # one that is told of a queue that is not there, is closed
    try:
        return int(channel.queue_declare(queue=queue, passive=True).message_count)
    except (*connection.channel_errors, KeyError):
        return 0
    finally:
        channel.close()


def lending() -> list[Finding]:
    """Whether a message comes again while its task still runs or waits (Redis alone lends)."""
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
    """Whether a broker that is Redis keeps messages, where it is another than the app's."""
    with current_app.connection_for_write() as connection:
        if connection.transport.driver_type != "redis":
            return [Finding(f"The broker is {connection.transport.driver_name}.")]
        if str(current_app.conf.broker_url) == str(conf.REDIS_URL):
            return [Finding("The broker is the same Redis.")]
        return stores.judged(connection.default_channel.client.info(), "The broker's Redis")


def results() -> list[Finding]:
    """Whether the place where Celery keeps results answers."""
    backend = current_app.backend
    name = type(backend).__name__
    if not hasattr(backend, "client"):
        return [Finding(f"Results: {name}.")]
    try:
        backend.client.ping()
    except Exception as error:  # noqa: BLE001 (whatever its driver raises)
        return [Finding(f"{name} does not answer ({type(error).__name__}).", "results-away")]
    return [Finding(f"{name} answers.")]


def worker_clocks(seconds: float = ANSWER_SECONDS) -> list[Finding]:
    """Whether the workers and this machine agree on the time."""
    came: list[tuple[dict[str, Any], float]] = []
    asked = time.time()
    with current_app.connection_for_write() as connection:
        current_app.control.broadcast(
            celery_signs.COMMAND,
            reply=True,
            timeout=seconds,
            connection=connection,
            callback=lambda reply: came.append((reply, time.time())),
        )
    told = [
        database.compared(worker, when, asked, answered)
        for reply, answered in came
        for worker, when in reply.items()
        if isinstance(when, float)
    ]
    wrong = [finding for finding in told if finding.code]
    return wrong or [Finding(f"Asked for the time: {counted(len(told), 'worker')}.")]
