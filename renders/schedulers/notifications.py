"""Listens for PostgreSQL notifications of new work. Other databases send none."""

import logging
import threading
import time
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections

from renders.schedulers.dispatch import CHANNEL

logger = logging.getLogger(__name__)

# Wait before a reconnect.
REST_SECONDS = 5.0


class Listener:
    """Listens in its own thread, which ends with the process."""

    def __init__(self) -> None:
        self._notified = threading.Event()

    def start(self) -> None:
        """Start to listen, if the database sends notifications."""
        if connections[DEFAULT_DB_ALIAS].vendor == "postgresql":
            threading.Thread(target=self._run, name="listen", daemon=True).start()

    def heard(self) -> bool:
        """True if a notification came since the last call."""
        notified = self._notified.is_set()
        self._notified.clear()
        return notified

    def _run(self) -> None:
        while True:
            connection: Any = connections.create_connection(DEFAULT_DB_ALIAS)
            if connection.vendor != "postgresql":
                return
            try:
                with connection.cursor() as cursor:
                    cursor.execute(f"LISTEN {CHANNEL}")
                for _ in connection.connection.notifies():
                    self._notified.set()
            except Exception as error:  # noqa: BLE001 (after any error, the table is polled)
                logger.info("Not listening (%s): the table is looked at.", type(error).__name__)
            finally:
                connection.close()
            time.sleep(REST_SECONDS)
