"""Do all machines agree on the time? Compared in Unix seconds.

The database: does it answer, and has it the tables of this version?
"""

import time
from datetime import timedelta
from functools import lru_cache

from django.apps import apps
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from renders.health.findings import Finding
from renders.models import Heartbeat
from renders.models.outages import connection

# The minute of Sume's plan is counted by the clocks of all workers.
MOST_SECONDS = 1.0


def compared(
    whose: str, told: float, asked: float, answered: float, *, grain: float = 0.0
) -> Finding:
    """What a clock says between two moments of ours; `grain` is how coarsely it tells the time."""
    ahead = max(0.0, told - answered) or min(0.0, told + grain - asked)
    if abs(ahead) <= MOST_SECONDS:
        return Finding(f"The clock of {whose} agrees with this machine's.")
    return apart(whose, ahead, "this machine's")


def apart(whose: str, ahead: float, other: str) -> Finding:
    """A clock that is so many seconds ahead of another, or behind it (below 0)."""
    word = "ahead of" if ahead > 0 else "behind"
    return Finding(f"The clock of {whose} is {abs(ahead):.1f} s {word} {other}.", "clocks-apart")


SHOWN = 5
# Sessions that ended so long ago, and how many of them are worth a word.
OLD_DAYS, MANY = 30, 10_000


def answers() -> list[Finding]:
    """Whether it answers at all."""
    own = connection()
    with own.cursor() as cursor:
        cursor.execute("SELECT 1")
        cursor.fetchone()
    return [Finding(f"{own.display_name} answers.")]


def migrations() -> list[Finding]:
    """Whether the migrations of this version are applied; further ones are a later version's."""
    applied = set(MigrationRecorder(connection()).applied_migrations())
    missing = sorted(
        f"{app}.{name}"
        for (app, name), replaced in known().items()
        if (app, name) not in applied and not (replaced and replaced <= applied)
    )
    if not missing:
        return [Finding("All migrations are applied.")]
    more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
    return [Finding(f"Not applied: {', '.join(missing[:SHOWN])}{more}.", "migrations-missing")]


@lru_cache(maxsize=1)
def known() -> dict[tuple[str, str], set[tuple[str, str]]]:
    """The migrations of the installed apps, each with those that it replaces."""
    loader = MigrationLoader(None, ignore_no_migrations=True)
    return {key: set(one.replaces) for key, one in loader.disk_migrations.items()}


def engine() -> list[Finding]:
    """Which it is; whether that is one for many processes, the checks say."""
    return [Finding(f"The database is {connection().display_name}.")]


def clock() -> list[Finding]:
    """Whether the database's clock agrees with ours, and those who leave signs with its."""
    found = []
    if connection().vendor == "postgresql":
        asked = time.time()
        with connection().cursor() as cursor:
            cursor.execute("SELECT EXTRACT(EPOCH FROM clock_timestamp())")
            told = float(cursor.fetchone()[0])
        found.append(compared("the database", told, asked, time.time()))
    for beat in Heartbeat.objects.all():
        ahead = (beat.at - beat.stored_at).total_seconds()
        if abs(ahead) > MOST_SECONDS:
            whose = f"{beat.host or 'the machine'} ({beat.name})"
            found.append(apart(whose, ahead, "the database's"))
    return found or [Finding("The database has this machine's clock.")]


def sessions() -> list[Finding]:
    """Whether old logins pile up."""
    if not apps.is_installed("django.contrib.sessions"):
        return [Finding("No sessions in the database.")]
    from django.contrib.sessions.models import Session

    old = timezone.now() - timedelta(days=OLD_DAYS)
    number = Session.objects.filter(expire_date__lt=old)[: MANY + 1].count()
    if number > MANY:
        said = f"More than {MANY:,} sessions ended more than {OLD_DAYS} days ago."
        return [Finding(said, "sessions-old")]
    return [Finding("Few old sessions.")]
