"""The database, from a thread of its own.

Playwright runs an event loop in the thread that uses it, and there Django refuses to talk to a
database. So a test hands over what it wants to know or store: `database(function, ...)`.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dj_database_url
from django.core.management import call_command
from django.db import connections
from django.db.utils import load_backend


class Database:
    """A migrated SQLite database that is the default one of its thread."""

    def __init__(self, url: str) -> None:
        self._thread = ThreadPoolExecutor(1, "database", _use, (url,))
        self(call_command, "migrate", run_syncdb=True, verbosity=0)

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What the function returns, called in the database's thread. It must not be lazy."""
        return self._thread.submit(function, *args, **kwargs).result()

    def close(self) -> None:
        """End the connection and the thread."""
        self(connections.close_all)
        self._thread.shutdown()


def _use(url: str) -> None:
    """Connections belong to threads: no other one sees this."""
    configured = {**connections.settings["default"], **dj_database_url.parse(url)}
    configured["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
    connections["default"] = load_backend(configured["ENGINE"]).DatabaseWrapper(
        configured, "default"
    )
