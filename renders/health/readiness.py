"""What `/readyz` tells: can this web process do its work, and does everything else?"""

from dataclasses import dataclass

from renders.conf import conf
from renders.coordination.connections import uses_redis
from renders.health import database, environment, messages, stores, work
from renders.health.findings import HealthPart
from renders.health.probes import Lane, Lanes, Probe

# A load balancer asks every few seconds and does not wait for long.
SECONDS = 2.5
KEEP_SECONDS = 2.0
# To try the storage writes a file, which costs more than a question.
STORAGE_SECONDS = 30.0
# Without these this process answers no request; everything else, other processes mend.
VITAL = frozenset({"database", "migrations"})

lanes = Lanes(KEEP_SECONDS)


@dataclass(frozen=True)
class Readiness:
    """The parts, and what follows from them."""

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
        """One word."""
        if not self.able:
            return "unavailable"
        return "ok" if self.whole else "degraded"


def look() -> Readiness:
    """Ask all that this site, the way it runs, is made of; within `SECONDS`."""
    return Readiness(lanes.ask(questions(), SECONDS))


def questions() -> list[Lane]:
    """What is asked, by server."""
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
