"""The modes that a drive runs in: which processes, and by which settings."""

import os
import signal
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from renders.demo.processes import Child

# Begins the names of a mode whose processes run the previous release.
BEFORE = "before-"
# Nothing listens here.
NOWHERE = "redis://127.0.0.1:9/0"
CELERY = (sys.executable, "-m", "celery", "-A", "project")
# What each sort of process writes once it has something to lose.
READY = {
    "worker": " ready.",
    "beat": "beat: Starting",
    "pollrenders": "Reading what is due",
    "runrenders": "Sending, reading",
}
# A reader with Sume's answers to wait for, a tick and what it leaves, and the same once more.
GRACE_SECONDS = 30.0


@dataclass(frozen=True)
class Mode:
    """One way to run the app."""

    name: str
    scheduler: str
    ticks: int = 1

    def before(self) -> "Mode":
        """The same with the previous release."""
        return replace(self, name=f"{BEFORE}{self.name}")

    @property
    def uses_redis(self) -> bool:
        """Whether there is a Redis, and Celery with it."""
        return self.scheduler != "database"

    def processes(self, workers: int, db: str) -> list[str]:
        """Their names: the mode, the sort of process, and a number."""
        if not self.uses_redis:
            # SQLite has one writer at a time.
            names = [f"runrenders{number}" for number in range(workers if db != "sqlite" else 1)]
        else:
            # Readers first: where processes are replaced in this order, somebody always reads.
            readers = workers if not self.ticks else 0
            names = [f"pollrenders{number}" for number in range(readers)]
            names += [*(f"worker{number}" for number in range(workers)), "beat"]
        return [f"{self.name}.{name}" for name in names]

    def environment(self, redis_url: str) -> dict[str, str]:
        """What these processes, and the web server beside them, are told."""
        url = redis_url if self.uses_redis else NOWHERE
        return {
            "RENDERS_SCHEDULER": self.scheduler,
            "RENDERS_TICKS": str(self.ticks),
            "TESTS_REDIS_URL": url,
            "CELERY_BROKER_URL": url,
        }

    def settings(self, redis_url: str) -> dict[str, Any]:
        """The same for a process that runs already, as entries of `RENDERS`."""
        url = redis_url if self.uses_redis else NOWHERE
        return {"SCHEDULER": self.scheduler, "TICKS": self.ticks, "REDIS_URL": url}


MODES = {
    mode.name: mode
    for mode in (
        Mode("countdown", "countdown"),
        Mode("ticks", "sortedset"),
        Mode("pollrenders", "sortedset", ticks=0),
        Mode("runrenders", "database"),
    )
}


def start(name: str, redis_url: str, folder: Path, cwd: Path) -> Child:
    """Start one process of a mode; what it writes goes to a log of its name."""
    mode, sort = MODES[name.partition(".")[0].removeprefix(BEFORE)], sort_of(name)
    environment = {**os.environ, **mode.environment(redis_url)}
    command = [sys.executable, "manage.py", sort]
    if sort == "beat":
        command = [*CELERY, "beat", "--schedule", str(folder / name), "--pidfile=", "-linfo"]
    elif sort == "worker":
        command = [*CELERY, "worker", "-c2", "-n", f"{name}@drive", "-linfo"]
        command += ["--without-mingle", "--without-gossip"]
    return Child(name, command, environment=environment, log=folder / f"{name}.log", cwd=cwd)


def sort_of(name: str) -> str:
    """What sort of process has this name."""
    return name.partition(".")[2].rstrip("0123456789")


def is_ready(name: str, child: Child) -> bool:
    """Whether it is at work; one that is still starting holds nothing yet."""
    return child.has_written(READY[sort_of(name)])


def ended_well(child: Child) -> bool:
    """Whether a process that was asked to end did so by itself; beat dies of the signal."""
    good = {0, -signal.SIGTERM} if sort_of(child.name) == "beat" else {0}
    return child.process.poll() in good
