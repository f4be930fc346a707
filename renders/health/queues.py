"""How messages are kept: how many wait, how long they are lent; and whose clock is wrong."""

import time
from typing import Any

from celery import current_app

from renders import worker_clock
from renders.conf import conf
from renders.health import clocks, messages, stores
from renders.health.findings import Finding
from renders.health.work import counted

LONG = 1000
# Celery's own, where nobody sets it.
VISIBILITY_SECONDS = 3600.0


def lengths() -> list[Finding]:
    """How many messages wait in each queue."""
    told = {}
    with current_app.connection_for_write() as connection:
        for queue in messages.needed():
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


def worker_clocks(seconds: float = messages.ANSWER_SECONDS) -> list[Finding]:
    """Whether the workers and this machine agree on the time."""
    came: list[tuple[dict[str, Any], float]] = []
    asked = time.time()
    with current_app.connection_for_write() as connection:
        current_app.control.broadcast(
            worker_clock.COMMAND,
            reply=True,
            timeout=seconds,
            connection=connection,
            callback=lambda reply: came.append((reply, time.time())),
        )
    told = [
        clocks.compared(worker, when, asked, answered)
        for reply, answered in came
        for worker, when in reply.items()
        if isinstance(when, float)
    ]
    wrong = [finding for finding in told if finding.code]
    return wrong or [Finding(f"Asked for the time: {counted(len(told), 'worker')}.")]
