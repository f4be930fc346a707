"""Runs a function once a day in a background thread: for `runrenders`, which has no beat."""

import logging
import threading
from collections.abc import Callable

from django.db import close_old_connections

logger = logging.getLogger(__name__)

DAY_SECONDS = 24 * 3600.0
# Wait after the start, so that a process that restarts often does not run it each time.
FIRST_SECONDS = 600.0


class Daily:
    """A context in which `work` is called daily, with a function that returns True to stop it."""

    def __init__(self, work: Callable[[Callable[[], bool]], object]) -> None:
        self._work = work
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="daily", daemon=True)

    def __enter__(self) -> "Daily":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join(1.0)

    def _run(self) -> None:
        wait = FIRST_SECONDS
        while not self._ended.wait(wait):
            wait = DAY_SECONDS
            try:
                close_old_connections()
                self._work(self._ended.is_set)
            except Exception:
                logger.exception("The daily work failed; again tomorrow.")
            finally:
                close_old_connections()
