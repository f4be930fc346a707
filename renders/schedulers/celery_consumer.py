"""A Celery consumer that outlives its broker.

In the settings: `worker_consumer = "renders.schedulers.celery_consumer:Consumer"`.

Celery 5.7.0 leaves the whole worker when Redis goes away while it holds messages that wait for
their time (as waiting polls do): its clean-up asks a connection that is closed already. The
messages themselves are safe: the broker delivers them again, or the sweep finds the rows.

And one that, asked to end, gives back at once what waits for its time. Celery does so when the
last task has ended: a download of a minute would hold up polls that others could read.
"""

import logging
from contextlib import suppress
from queue import Empty
from typing import Any

from celery.worker.consumer import Consumer as CeleryConsumer
from celery.worker.state import scheduled_requests
from kombu.common import ignore_errors

logger = logging.getLogger(__name__)


class Lost:
    """Stands for the lost connection: closing what belonged to it may fail in any way."""

    connection_errors = (Exception,)
    channel_errors = ()

    def __bool__(self) -> bool:
        return False


class Consumer(CeleryConsumer):
    """Reconnects where Celery 5.7.0 would exit; ends without holding anything up."""

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        try:
            super().on_connection_error_after_connected(exc)
        except AttributeError as error:
            # By now the old connection is gone; what the clean-up had left to do is a hint.
            logger.warning("Closing the lost broker connection failed: %s", error)
        self.connection = Lost()

    def stop(self) -> None:
        waiting = tuple(scheduled_requests)
        super().stop()  # nothing is asked for any more
        if waiting and self.connection:
            with ignore_errors(self.connection):
                _read_last_answer(self.task_consumer)
            for request in waiting:
                # Errors of the connection are logged: then the end of the process gives it back.
                request.message.reject_log_error(logger, self.connection_errors, requeue=True)


def _read_last_answer(consumer: Any) -> None:
    """Let Redis answer what was asked last, or that answer would be what is given back first."""
    channel = consumer and consumer.channel
    if getattr(channel, "_in_poll", None):
        with suppress(Empty):
            channel._brpop_read()
