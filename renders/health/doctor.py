"""All health checks, for a person who wants to know what is wrong."""

from functools import partial

from renders.conf import conf
from renders.coordination.connections import uses_redis
from renders.health import database, environment, messages, stores, work
from renders.health.findings import HealthPart, Level
from renders.health.probes import Lane, Lanes, Probe

# How long workers may take to answer: they may be busy.
WORKERS_SECONDS = 2.0
# Exit codes of the command; 2 is for wrong usage.
WELL, WRONG, LOOK = 0, 1, 3


def examine(seconds: float, *, offline: bool = False) -> list[HealthPart]:
    """The answers after at most `seconds`; `offline` leaves Sume out."""
    return Lanes(0).ask(questions(offline=offline), seconds)


def status_of(parts: list[HealthPart]) -> int:
    """The exit code: 0 if all is well, 1 if there are errors, 3 if there are only warnings."""
    worst = max((part.level for part in parts), default=Level.OK)
    return {Level.ERROR: WRONG, Level.WARNING: LOOK}.get(worst, WELL)


def questions(*, offline: bool = False) -> list[Lane]:
    """The questions, one lane per server."""
    lanes: list[Lane] = [
        [
            Probe("destination", environment.destinations),
            Probe("settings", environment.settings),
            Probe("versions", environment.versions),
        ],
        _table(),
    ]
    if uses_redis():
        lanes += [
            [
                Probe("redis", stores.answers),
                Probe("beat", stores.beat),
                Probe("redis keeps", stores.keeps),
                Probe("redis clock", stores.clock),
            ],
            [
                Probe("broker", messages.answers),
                Probe("workers", partial(messages.workers, WORKERS_SECONDS)),
                Probe("queues", messages.lengths),
                Probe("broker keeps", messages.keeps),
                Probe("lending", messages.lending),
                Probe("worker clocks", messages.worker_clocks),
                Probe("results", messages.results),
            ],
        ]
    lanes.append([Probe("storage", environment.media), Probe("disks", environment.disks)])
    if not offline:
        lanes.append([Probe("sume", environment.account)])
    return lanes


def _table() -> list[Probe]:
    probes = [
        Probe("database", database.answers),
        Probe("migrations", database.migrations),
        Probe("engine", database.engine),
        Probe("database clock", database.clock),
        Probe("sweep", work.sweep),
        Probe("reads", work.reads),
        Probe("gate", work.gate),
        Probe("budget", work.budgets),
        Probe("sends", work.sends),
        Probe("renders", work.needing_attention),
        Probe("webhooks", work.webhooks),
        Probe("sessions", database.sessions),
    ]
    if conf.SCHEDULER == "database":
        probes.insert(4, Probe("runrenders", work.runrenders))
    elif conf.SCHEDULER == "sortedset" and not conf.TICKS:
        probes.insert(4, Probe("pollrenders", work.pollrenders))
    return probes
