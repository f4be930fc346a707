"""Database outages: the errors to catch, their log sentences, and a connection with time-outs."""

from typing import Any

from django.db import DEFAULT_DB_ALIAS, DatabaseError, InterfaceError, connections

# A process that works in a loop catches these and goes on.
DATABASE_FAILS = (DatabaseError, InterfaceError)
# PostgreSQL's codes for a missing table or column. SQLite has only words for it.
MISSING_STATES = {"42P01", "42703"}
MISSING_WORDS = ("no such table", "no such column", "has no column named")

# A PostgreSQL connection that is lost silently is noticed after about ten seconds, so that no
# process waits for it forever.
IMPATIENT = {
    "connect_timeout": 3,
    "tcp_user_timeout": 5000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}


def connection() -> Any:
    """This thread's connection; if it is not open yet, it gets time-outs first."""
    own = connections[DEFAULT_DB_ALIAS]
    if own.connection is None and own.vendor == "postgresql":
        options = {**own.settings_dict.get("OPTIONS", {}), **IMPATIENT}
        options.pop("pool", None)  # the pool's connections would have no time-outs
        own.settings_dict = {**own.settings_dict, "OPTIONS": options}
    return own


def is_unmigrated(error: BaseException) -> bool:
    """Whether the database answers but lacks a table or column of this version."""
    state = getattr(error.__cause__, "sqlstate", None)
    return state in MISSING_STATES or any(word in str(error) for word in MISSING_WORDS)


def in_words(error: BaseException) -> str:
    """One sentence for the log: what is wrong, without addresses or values."""
    kind = type(error).__name__
    if is_unmigrated(error):
        return f"The database lacks a table or column ({kind}): run `python manage.py migrate`"
    return f"The database is away ({kind})"
