"""A Celery consumer that outlives its broker: `worker_consumer = "renders.consumer:Consumer"`.

Celery 5.7.0 leaves the whole worker when Redis goes away while it holds messages that wait for
their time (as waiting polls do): its clean-up asks a connection that is closed already. The
messages themselves are safe: the broker delivers them again, or the sweep finds the rows.
"""

import logging

from celery.worker.consumer import Consumer as CeleryConsumer

logger = logging.getLogger(__name__)


class Lost:
    """Stands for the lost connection: closing what belonged to it may fail in any way."""

    connection_errors = (Exception,)
    channel_errors = ()

    def __bool__(self) -> bool:
        return False


class Consumer(CeleryConsumer):
    """Reconnects where Celery 5.7.0 would exit."""

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        try:
            super().on_connection_error_after_connected(exc)
        except AttributeError as error:
            # By now the old connection is gone; what the clean-up had left to do is a hint.
            logger.warning("Closing the lost broker connection failed: %s", error)
        self.connection = Lost()
