"""Hear from PostgreSQL that there is something to do; other databases say nothing."""

import logging
import threading
import time
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections

from renders.schedulers.dispatch import CHANNEL

logger = logging.getLogger(__name__)

REST_SECONDS = 5.0


class Listener:
    """Listens in a thread of its own, which ends with the process."""

    def __init__(self) -> None:
        self._heard = threading.Event()

    def start(self) -> None:
        """Begin to listen, where the database can tell."""
        if connections[DEFAULT_DB_ALIAS].vendor == "postgresql":
            threading.Thread(target=self._run, name="listen", daemon=True).start()

    def heard(self) -> bool:
        """Whether somebody has told since this was asked last."""
        told = self._heard.is_set()
        self._heard.clear()
        return told

    def _run(self) -> None:
        while True:
            connection: Any = connections.create_connection(DEFAULT_DB_ALIAS)
            if connection.vendor != "postgresql":
                return
            try:
                with connection.cursor() as cursor:
                    cursor.execute(f"LISTEN {CHANNEL}")
                for _ in connection.connection.notifies():
                    self._heard.set()
            except Exception as error:  # noqa: BLE001 (whatever it is, the table is looked at)
                logger.info("Not listening (%s): the table is looked at.", type(error).__name__)
            finally:
                connection.close()
            time.sleep(REST_SECONDS)
