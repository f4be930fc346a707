"""Findings: every problem that a health check can report, with its level and the next step.

`docs/health.md` shows the same table. Values are part of each finding's own text.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple


class Level(IntEnum):
    """How bad a finding is."""

    OK = 0
    """As it should be."""
    INFO = 1
    """Worth knowing; nothing is wrong."""
    WARNING = 2
    """Works, but somebody should look."""
    ERROR = 3
    """Something does not work."""


@dataclass(frozen=True)
class Finding:
    """One observation. `code` is a key of the catalogue, or empty if all is well.

    `said` never holds a password, a key or an address that can hold one.
    """

    said: str
    code: str = ""
    next_step: str = ""
    """What to do, if the catalogue's advice is too general."""
    grave: Level | None = None
    """How bad it is, if that depends on the values."""

    @property
    def level(self) -> Level:
        """How bad it is."""
        if self.grave is not None:
            return self.grave
        return Level[CATALOGUE[self.code].level] if self.code else Level.OK

    @property
    def advice(self) -> str:
        """What to do next; empty if nothing needs to be done."""
        return self.next_step or (CATALOGUE[self.code].advice if self.code else "")


@dataclass(frozen=True)
class HealthPart:
    """The findings about one part of the system, and how long the probe took, in seconds."""

    name: str
    findings: tuple[Finding, ...]
    seconds: float = 0.0

    @property
    def level(self) -> Level:
        """The level of the worst finding."""
        return max((finding.level for finding in self.findings), default=Level.OK)

    @property
    def ok(self) -> bool:
        """Whether no finding is a warning or an error."""
        return self.level < Level.WARNING

    @property
    def detail(self) -> str:
        """All findings in one line."""
        return " ".join(finding.said for finding in self.findings)


class FindingKind(NamedTuple):
    """The level of a kind of finding (a name of `Level`), and the next step."""

    level: str
    advice: str


CATALOGUE = {
    # --- Any server
    "no-answer": FindingKind(
        "ERROR", "Look whether that server runs and is reachable from here (network, load)."
    ),
    "not-asked": FindingKind("WARNING", "Mend what is named; then ask again."),
    "probe-failed": FindingKind(
        "ERROR", "A fault of this question itself, or a server of a kind that it does not know."
    ),
    # --- Database
    "database-away": FindingKind("ERROR", "Start the database, or correct `DATABASE_URL`."),
    "tables-missing": FindingKind("ERROR", "Run `python manage.py migrate`."),
    "migrations-missing": FindingKind("ERROR", "Run `python manage.py migrate`."),
    "clocks-apart": FindingKind(
        "ERROR", "Have NTP set the clocks of all machines: they must agree within a second."
    ),
    "sessions-old": FindingKind("INFO", "Run `python manage.py clearsessions` now and then."),
    # --- What must go on
    "sweep-silent": FindingKind(
        "ERROR",
        "If `beat-silent` is found too, start beat; if `queue-unserved` names the sweep's queue, "
        "start a worker for it; with `database`, start `python manage.py runrenders`. Else the "
        "worker's log says why the sweep fails.",
    ),
    "beat-silent": FindingKind("ERROR", "Start one beat: `celery -A project beat`."),
    "pollrenders-silent": FindingKind("ERROR", "Start `python manage.py pollrenders`."),
    "runrenders-silent": FindingKind("ERROR", "Start `python manage.py runrenders`."),
    # --- Renders
    "reads-late": FindingKind(
        "ERROR", "Look whether what reads runs (workers of the polls' queue, `pollrenders`, …)."
    ),
    "sends-nothing": FindingKind(
        "ERROR", "Look whether a worker serves the submits' queue, and into its log."
    ),
    "gate-refused": FindingKind(
        "ERROR", "See what Sume says: correct `SUME_API_KEY` and restart, or pay in at Sume."
    ),
    "gate-held": FindingKind("INFO", "Resume on the gate's page in the admin when it is time."),
    "budget-spent": FindingKind(
        "INFO", "Raise the workspace's budget, or wait for the next month; nothing is lost."
    ),
    "budget-low": FindingKind(
        "INFO", "Raise the workspace's budget if it will not last; what does not fit waits."
    ),
    "workspace-unknown": FindingKind(
        "ERROR", "Put the workspace back into the settings, or cancel its renders."
    ),
    "gate-paused": FindingKind(
        "WARNING", "Nothing: it goes on by itself. Send less if it stays so."
    ),
    "renders-overdue": FindingKind(
        "WARNING", "See the filter “needs attention” in the admin; ask Sume about these jobs."
    ),
    "renders-unsure": FindingKind(
        "WARNING", "They are sent again with the same key; of a failed one, look into your account."
    ),
    "renders-unread": FindingKind("WARNING", "The worker's log says why the reads fail."),
    "renders-unhandled": FindingKind(
        "WARNING", "A receiver of yours or the result fails: its traceback is in the worker's log."
    ),
    "media-failing": FindingKind(
        "WARNING",
        "See the timeline of these renders; check the storage and its room. What is missing is "
        "fetched again by itself, or at once by “Store media again”.",
    ),
    "renders-waiting": FindingKind(
        "INFO", "Sume did not take them; each page says why and when next."
    ),
    "webhooks-silent": FindingKind(
        "WARNING", "Let Sume reach `RENDERS_PUBLIC_URL`; look for “Webhook refused” in the web log."
    ),
    # --- Redis
    "redis-away": FindingKind("ERROR", "Start Redis, or correct `REDIS_URL`."),
    "redis-may-evict": FindingKind(
        "ERROR", "Run Redis with `--maxmemory-policy noeviction`: it may forget messages."
    ),
    "redis-evicted": FindingKind(
        "ERROR", "Give Redis more memory and `--maxmemory-policy noeviction`; the sweep repairs."
    ),
    "redis-full": FindingKind("WARNING", "Give Redis more memory before it refuses writes."),
    "redis-forgets": FindingKind(
        "INFO", "Run Redis with `--appendonly yes`; without, a restart loses what waits in it."
    ),
    # --- Messages
    "broker-away": FindingKind("ERROR", "Start the broker, or correct `CELERY_BROKER_URL`."),
    "workers-none": FindingKind("ERROR", "Start workers: `celery -A project worker`."),
    "queue-unserved": FindingKind("ERROR", "Start a worker with `-Q` and the name of the queue."),
    "queue-long": FindingKind(
        "WARNING", "Start more workers for that queue, or find what holds them up."
    ),
    "visibility-short": FindingKind(
        "ERROR", "Raise `visibility_timeout` in `CELERY_BROKER_TRANSPORT_OPTIONS`."
    ),
    "results-away": FindingKind(
        "WARNING", "Start what `CELERY_RESULT_BACKEND` names, or correct it."
    ),
    # --- Sume
    "key-missing": FindingKind("ERROR", "Set `SUME_API_KEY`."),
    "key-refused": FindingKind(
        "ERROR", "Make a key in your Sume account, set `SUME_API_KEY`, restart."
    ),
    "no-credit": FindingKind("ERROR", "Pay in at Sume; renders wait meanwhile."),
    "sume-away": FindingKind(
        "WARNING", "Look at Sume's own state, `SUME_BASE_URL` and your network."
    ),
    "sume-busy": FindingKind("WARNING", "Sume asks for a pause: wait, and ask again."),
    # --- This machine
    "storage-fails": FindingKind(
        "ERROR", "Let this user write there, or correct `DJANGO_MEDIA_ROOT` or `STORAGES`."
    ),
    "disk-full": FindingKind("ERROR", "Make room on that disk."),
    "disk-low": FindingKind("WARNING", "Make room on that disk soon."),
    "celery-old": FindingKind("ERROR", "Run `pip install -r requirements.txt`."),
    "setting": FindingKind("WARNING", "See the hint of the check."),
}
