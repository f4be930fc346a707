"""Readiness for `/readyz`: whether this web process can work, and whether the rest is well."""

from dataclasses import dataclass

from renders.conf import conf
from renders.coordination.connections import uses_redis
from renders.health import database, environment, messages, stores, work
from renders.health.findings import HealthPart
from renders.health.probes import Lane, Lanes, Probe

# Load balancers ask every few seconds, with short time-outs.
SECONDS = 2.5
KEEP_SECONDS = 2.0
# Probing the storage writes a file, so its answer is cached for longer.
STORAGE_SECONDS = 30.0
# Without these, this process can answer no request. The rest is repaired by other processes.
VITAL = frozenset({"database", "migrations"})

lanes = Lanes(KEEP_SECONDS)


@dataclass(frozen=True)
class Readiness:
    """The health of each part, and the verdict for the process and the system."""

    parts: list[HealthPart]

    @property
    def able(self) -> bool:
        """Whether this process can do its own work."""
        return all(part.ok for part in self.parts if part.name in VITAL)

    @property
    def whole(self) -> bool:
        """Whether all parts are as they should be."""
        return all(part.ok for part in self.parts)

    @property
    def status(self) -> str:
        """The verdict: `ok`, `degraded` or `unavailable`."""
        if not self.able:
            return "unavailable"
        return "ok" if self.whole else "degraded"


def look() -> Readiness:
    """The readiness of every part that this site uses, after at most `SECONDS`."""
    return Readiness(lanes.ask(questions(), SECONDS))


def questions() -> list[Lane]:
    """The questions, one lane per server."""
    table = [
        Probe("database", database.answers),
        Probe("migrations", database.migrations),
        Probe("sweep", work.sweep),
        Probe("reads", work.reads),
        Probe("overdue", work.overdue),
        Probe("gate", work.gate),
        Probe("budget", work.budgets),
    ]
    if conf.SCHEDULER == "database":
        table.append(Probe("runrenders", work.runrenders))
    elif conf.SCHEDULER == "sortedset" and not conf.TICKS:
        table.append(Probe("pollrenders", work.pollrenders))
    storage = [Probe("storage", environment.media, STORAGE_SECONDS)]
    if not uses_redis():
        return [table, storage]
    return [
        table,
        storage,
        [Probe("redis", stores.answers), Probe("beat", stores.beat)],
        [Probe("broker", messages.answers), Probe("workers", messages.workers)],
    ]
