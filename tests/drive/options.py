"""What the drive can be told."""

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.drive.modes import MODES, Mode


@dataclass(frozen=True)
class Options:
    """The arguments of one drive. Times are seconds."""

    mode: str
    switch: str | None
    rolling: bool
    db: str
    renders: int
    workers: int
    kill_every: float
    fault_rate: float
    seed: int
    flush_redis: bool
    restart_redis: bool
    restart_database: bool
    refuse_key: bool
    upgrade: bool = False

    @property
    def main_seconds(self) -> float:
        """How long renders are made and things are broken."""
        return max(16.0, 4 * self.kill_every, 0.4 * self.renders)

    @property
    def patience_seconds(self) -> float:
        """How long all may take to end once nothing is broken any more."""
        return 60.0 + self.renders

    @property
    def modes(self) -> list[Mode]:
        """Those that it runs in, in order."""
        first, *others = [MODES[name] for name in (self.mode, self.switch) if name]
        return [first.before() if self.upgrade else first, *others]

    @property
    def uses_redis(self) -> bool:
        """Whether there is a Redis to be broken."""
        return any(mode.uses_redis for mode in self.modes)

    @property
    def doubles_reads(self) -> bool:
        """Whether modes run side by side that do not know of each other's reads.

        Those with Redis keep leases there, the one without keeps them in the table.
        """
        return self.rolling and len({mode.uses_redis for mode in self.modes}) > 1

    def __str__(self) -> str:
        words = [
            self.mode,
            *[f"in the middle {self.switch}"] * bool(self.switch),
            *["one process after the other"] * self.rolling,
            *["from the previous release to this one"] * self.upgrade,
            self.db,
            f"{self.renders} renders",
            f"{self.workers} workers",
            f"a kill every {self.kill_every:g} s" if self.kill_every else "no kills",
            f"faults {self.fault_rate:.0%}",
            f"seed {self.seed}",
            *["Redis emptied"] * self.flush_redis,
            *["Redis killed"] * self.restart_redis,
            *["PostgreSQL crashed"] * self.restart_database,
            *["key refused"] * self.refuse_key,
        ]
        return ", ".join(words)


def read(arguments: Sequence[str] | None = None) -> Options:
    """Parse the command line; exits with status 2 and a message where it is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.drive",
        description="Make renders while workers are killed and servers go away, then compare the "
        "rows with what the stand-in for Sume has billed.",
        epilog="Ends with status 0 only if nothing was billed twice, lost, wrong or told; 1 if "
        "something was (the logs are kept); 2 if the drive itself could not run.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--mode", choices=list(MODES), default="countdown", help="how the app runs")
    add("--switch", choices=list(MODES), help="go on in this mode, from the middle")
    add("--rolling", action="store_true", help="with --switch: replace one process at a time")
    add(
        "--upgrade",
        action="store_true",
        help="begin with the previous release, and from the middle replace one process at a time; "
        "renders are made by this one",
    )
    add("--db", choices=["sqlite", "postgresql"], default="sqlite", help="kind of database")
    add("--renders", type=_at_least(1, int), default=60, help="how many renders are made")
    add("--workers", type=_at_least(1, int), default=2, help="worker groups of two processes")
    add("--kill-every", type=_at_least(0, float), default=5.0, help="seconds; 0: never")
    add("--fault-rate", type=_share, default=0.1, help="share of API requests that go wrong")
    add("--seed", type=int, default=1, help="of faults, kills and the moments of creation")
    add("--flush-redis", action="store_true", help="empty Redis once")
    add("--restart-redis", action="store_true", help="kill Redis once, back and empty in 3 s")
    add(
        "--restart-database",
        action="store_true",
        help="crash PostgreSQL once: every session ends and the server recovers; only with a "
        "server that the drive starts itself (no DATABASE_URL)",
    )
    add("--refuse-key", action="store_true", help="answer 401 to everything for 8 s")
    given = parser.parse_args(arguments)
    if given.restart_database and given.db != "postgresql":
        parser.error("--restart-database needs --db postgresql: SQLite has no server.")
    if given.restart_database and server_is_given():
        parser.error("--restart-database would crash the server of DATABASE_URL; unset it.")
    if given.upgrade:
        given.switch, given.rolling = given.switch or given.mode, True
    if given.rolling and not given.switch:
        parser.error("--rolling needs --switch: there is nothing to replace.")
    options = Options(**vars(given))
    if (given.flush_redis or given.restart_redis) and not options.uses_redis:
        parser.error(f"--mode {given.mode} has no Redis to break.")
    return options


def server_is_given() -> bool:
    """Whether `DATABASE_URL` names a PostgreSQL, which is then used and left as it is."""
    return os.environ.get("DATABASE_URL", "").startswith("postgres")


def _at_least(least: int, kind: Callable[[str], float]) -> Callable[[str], float]:
    def number(text: str) -> float:
        value = kind(text)
        if not least <= value < 1_000_000:
            raise argparse.ArgumentTypeError(f"must be {least} or more, not {text}")
        return value

    return number


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 0.9:
        raise argparse.ArgumentTypeError(f"must be between 0 and 0.9, not {text}")
    return value
