"""What the database raises, in words that say what to do."""

from django.db import DatabaseError, InterfaceError

# What whoever works in a loop lives through.
DATABASE_FAILS = (DatabaseError, InterfaceError)
# PostgreSQL: a table, a column that is not there. SQLite says so in words alone.
MISSING_STATES = {"42P01", "42703"}
MISSING_WORDS = ("no such table", "no such column", "has no column named")


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
