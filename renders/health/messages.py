"""The broker, and the workers that listen to it."""

from collections.abc import Iterable

from celery import current_app

from renders.conf import conf
from renders.health.findings import Finding
from renders.health.work import counted

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
