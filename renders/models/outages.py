"""What the database raises, in words that say what to do; and a connection that does not wait for
it for ever.
"""

from typing import Any

from django.db import DEFAULT_DB_ALIAS, DatabaseError, InterfaceError, connections

# What whoever works in a loop lives through.
DATABASE_FAILS = (DatabaseError, InterfaceError)
# PostgreSQL: a table, a column that is not there. SQLite says so in words alone.
MISSING_STATES = {"42P01", "42703"}
MISSING_WORDS = ("no such table", "no such column", "has no column named")

# A connection to PostgreSQL that is lost without a word is noticed after some ten seconds, so
# that whoever waits for it does not wait for ever.
IMPATIENT = {
    "connect_timeout": 3,
    "tcp_user_timeout": 5000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}


def connection() -> Any:
    """This thread's connection; one that is still to be made will not wait for ever."""
    own = connections[DEFAULT_DB_ALIAS]
    if own.connection is None and own.vendor == "postgresql":
        options = {**own.settings_dict.get("OPTIONS", {}), **IMPATIENT}
        options.pop("pool", None)  # its connections would be as patient as the others
        own.settings_dict = {**own.settings_dict, "OPTIONS": options}
    return own


def is_unmigrated(error: BaseException) -> bool:
    """Whether the database answers, and lacks a table or a column of this version."""
    state = getattr(error.__cause__, "sqlstate", None)
    return state in MISSING_STATES or any(word in str(error) for word in MISSING_WORDS)


def in_words(error: BaseException) -> str:
    """One sentence for a log: what is wrong, without addresses or values."""
    kind = type(error).__name__
    if is_unmigrated(error):
        return f"The database lacks a table or column ({kind}): run `python manage.py migrate`"
    return f"The database is away ({kind})"
