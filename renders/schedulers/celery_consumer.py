"""A Celery consumer that survives a lost broker and shuts down without delaying polls.

In the settings: `worker_consumer = "renders.schedulers.celery_consumer:Consumer"`.

If Redis goes away while a worker holds delayed messages (as scheduled polls are), Celery 5.7.0
ends the whole worker: its clean-up uses a connection that is closed already. The messages
themselves are safe: the broker delivers them again, or the sweep finds the rows.

On shutdown, this consumer returns delayed messages to the broker at once. Celery returns them only
after the last task: a download of a minute would delay polls that other workers could take.
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
    """Replaces the lost connection. It accepts any error while its resources are closed."""

    connection_errors = (Exception,)
    channel_errors = ()

    def __bool__(self) -> bool:
        return False


class Consumer(CeleryConsumer):
    """Reconnects where Celery 5.7.0 would exit; returns delayed messages at once on shutdown."""

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        try:
            super().on_connection_error_after_connected(exc)
        except AttributeError as error:
            # The old connection is gone, and the messages that were not cleaned up are hints.
            logger.warning("Closing the lost broker connection failed: %s", error)
        self.connection = Lost()

    def stop(self) -> None:
        waiting = tuple(scheduled_requests)
        super().stop()  # no further messages are fetched
        if waiting and self.connection:
            with ignore_errors(self.connection):
                _read_pending_reply(self.task_consumer)
            for request in waiting:
                # Connection errors are logged: then the end of the process returns the message.
                request.message.reject_log_error(logger, self.connection_errors, requeue=True)


def _read_pending_reply(consumer: Any) -> None:
    """Read the reply that Redis still owes, or the first returned message would read it instead."""
    channel = consumer and consumer.channel
    if getattr(channel, "_in_poll", None):
        with suppress(Empty):
            channel._brpop_read()
