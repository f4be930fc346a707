"""The database: whether it answers, has this version's tables, and agrees on the time.

Clocks are compared here for all servers.
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

# Missing migrations that a finding names.
SHOWN = 5
# Sessions that expired this long ago are old; more than this many are reported.
OLD_DAYS, MANY = 30, 10_000
# Clocks may differ by this much: all workers count Sume's quota per minute by their own clocks.
MOST_SECONDS = 1.0


def answers() -> list[Finding]:
    """Whether the database answers at all."""
    own = connection()
    with own.cursor() as cursor:
        cursor.execute("SELECT 1")
        cursor.fetchone()
    return [Finding(f"{own.display_name} answers.")]


def migrations() -> list[Finding]:
    """Whether this version's migrations are applied; additional ones come from a later version."""
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
    """The installed apps' migrations, each with the migrations that it replaces."""
    loader = MigrationLoader(None, ignore_no_migrations=True)
    return {key: set(migration.replaces) for key, migration in loader.disk_migrations.items()}


def engine() -> list[Finding]:
    """Which database it is. Whether it suits many processes is a system check's question."""
    return [Finding(f"The database is {connection().display_name}.")]


def clock() -> list[Finding]:
    """Whether the database's clock agrees with this machine's, and with each heartbeat's host."""
    findings = []
    if connection().vendor == "postgresql":
        asked = time.time()
        with connection().cursor() as cursor:
            cursor.execute("SELECT EXTRACT(EPOCH FROM clock_timestamp())")
            answer = float(cursor.fetchone()[0])
        findings.append(compared("the database", answer, asked, time.time()))
    for beat in Heartbeat.objects.all():
        ahead = (beat.at - beat.stored_at).total_seconds()
        if abs(ahead) > MOST_SECONDS:
            owner = f"{beat.host or 'the machine'} ({beat.name})"
            findings.append(apart(owner, ahead, "the database's"))
    return findings or [Finding("The database has this machine's clock.")]


def sessions() -> list[Finding]:
    """Whether expired sessions pile up."""
    if not apps.is_installed("django.contrib.sessions"):
        return [Finding("No sessions in the database.")]
    from django.contrib.sessions.models import Session

    old = timezone.now() - timedelta(days=OLD_DAYS)
    number = Session.objects.filter(expire_date__lt=old)[: MANY + 1].count()
    if number > MANY:
        said = f"More than {MANY:,} sessions ended more than {OLD_DAYS} days ago."
        return [Finding(said, "sessions-old")]
    return [Finding("Few old sessions.")]


def compared(
    whose: str, told: float, asked: float, answered: float, *, grain: float = 0.0
) -> Finding:
    """Whether another clock agrees with this machine's. All times are Unix seconds.

    The other clock was read (`told`) between two times of this machine, `asked` and `answered`.
    `grain` is the resolution of the other clock.
    """
    ahead = max(0.0, told - answered) or min(0.0, told + grain - asked)
    if abs(ahead) <= MOST_SECONDS:
        return Finding(f"The clock of {whose} agrees with this machine's.")
    return apart(whose, ahead, "this machine's")


def apart(whose: str, ahead: float, other: str) -> Finding:
    """The finding for a clock that is `ahead` seconds ahead of another; negative means behind."""
    word = "ahead of" if ahead > 0 else "behind"
    return Finding(f"The clock of {whose} is {abs(ahead):.1f} s {word} {other}.", "clocks-apart")
