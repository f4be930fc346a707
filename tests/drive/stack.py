"""What the drive runs and breaks: Redis, a database, the stand-in for Sume, workers, beat."""

import os
import random
import secrets
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import django
import psycopg
from django.core.management import call_command

from renders.demo.embedded_redis import EmbeddedRedis
from renders.demo.processes import Child, kill_group
from renders.sandbox import Sandbox
from tests.drive.answers import Answers
from tests.drive.bond import bonded
from tests.drive.options import Options, server_is_given
from tests.servers import postgresql

ROOT = Path(__file__).resolve().parents[2]
POLL_SECONDS = 0.5
# An outage may still be felt by requests that began in it.
AFTERMATH_SECONDS = 3.0


class Broken(Exception):
    """A server ended that nobody had killed: nothing can be learned from this drive."""


class Stack:
    """The running system, with a handle on each part that shall be broken."""

    def __init__(
        self, folder: Path, redis: EmbeddedRedis, sandbox: Sandbox, database: str, key: str
    ) -> None:
        self.redis = redis
        self.sandbox = sandbox
        self.database = database
        self.key = key
        self.answers = Answers()
        self.workers = 0
        self.kills = 0
        self.own_deaths: list[str] = []
        self._folder = folder
        self._running: dict[str, Child] = {}
        self._redis_is_down = False

    @property
    def logs(self) -> list[Path]:
        """What each process has written; this one's is among them."""
        return sorted(self._folder.glob("*.log"))

    def start(self, workers: int) -> None:
        """Start the workers and beat."""
        self.workers = workers
        for number in range(workers):
            self._start(f"worker{number}")
        self._start("beat")

    def kill_a_worker(self, chance: random.Random) -> None:
        """SIGKILL one worker with all of its processes, and start another in its place."""
        # One that is still starting holds nothing yet.
        ready = [name for name, child in self._workers() if child.has_written(" ready.")]
        if ready:
            name = chance.choice(sorted(ready))
            kill_group(self._running[name])
            self.kills += 1
            self._start(name)

    def supervise(self) -> None:
        """Replace what ended by itself, and note it. Raises `Broken`."""
        for name, child in list(self._running.items()):
            if not child.alive:
                self.own_deaths.append(str(child.death()))
                kill_group(child)
                self._start(name)
        if not self._redis_is_down and not (self.redis.child and self.redis.child.alive):
            raise Broken("Redis ended by itself.")

    def kill_redis(self) -> None:
        """SIGKILL Redis; it keeps nothing."""
        self._redis_is_down = True
        if self.redis.child:
            kill_group(self.redis.child)

    def start_redis(self) -> None:
        """Start Redis again on the same port, empty."""
        self.redis.start()
        self._redis_is_down = False

    def crash_database(self) -> None:
        """SIGKILL one session: PostgreSQL then ends all others, recovers and starts anew."""
        with psycopg.connect(self.database) as connection:
            os.kill(connection.info.backend_pid, signal.SIGKILL)
            connection.close()

    def stop(self) -> None:
        """End workers and beat at once."""
        for child in self._running.values():
            kill_group(child)
        self._running.clear()

    def _workers(self) -> list[tuple[str, Child]]:
        return [pair for pair in self._running.items() if pair[0] != "beat"]

    def _start(self, name: str) -> None:
        if name == "beat":
            words = ["beat", "--schedule", str(self._folder / "schedule"), "--pidfile="]
        else:
            words = ["worker", "-c2", "-n", f"{name}@drive", "--without-mingle", "--without-gossip"]
        self._running[name] = Child(
            name,
            [sys.executable, "-m", "celery", "-A", "project", *words, "-linfo"],
            environment=os.environ,
            log=self._folder / f"{name}.log",
            cwd=ROOT,
        )


@contextmanager
def running(options: Options, folder: Path) -> Iterator[Stack]:
    """The system with an empty database, and Django set up in this process; no worker yet.

    Whatever was started has ended when this is left.
    """
    key = f"canary-{secrets.token_hex(16)}"
    with ExitStack() as cleanup:
        redis = cleanup.enter_context(EmbeddedRedis())
        # No limit of writes in it: every 429 that no fault explains is then `queue_full`.
        sandbox = cleanup.enter_context(
            Sandbox(
                key=key,
                fault_rate=options.fault_rate,
                seed=options.seed,
                writes_per_minute=None,
                queued_seconds=0.3,
                processing_seconds=1.0,
                poll_seconds=POLL_SECONDS,
            )
        )
        database = f"sqlite:///{folder / 'drive.sqlite3'}"
        if options.db == "postgresql":
            server = cleanup.enter_context(postgresql())
            if not server_is_given():
                cleanup.enter_context(bonded(_process_of(server)))
            database = _emptied(server)
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "DJANGO_STATE_DIR": str(folder / "state"),
            "DJANGO_MEDIA_ROOT": str(folder / "media"),
            "DATABASE_URL": database,
            # The stand-in's places; and what POSTs are counted against.
            # After a kill in mid-download, the next try comes that much later.
            "RENDERS_MEDIA_TIMEOUT_SECONDS": "4",
            "RENDERS_PLAN": "pro",
            "RENDERS_WRITES_PER_MINUTE": "300",
            "TESTS_REDIS_URL": redis.url,
            "CELERY_BROKER_URL": redis.url,
            "SUME_API_KEY": key,
            "SUME_BASE_URL": sandbox.url,
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }
        django.setup()
        call_command("migrate", run_syncdb=True, verbosity=0)
        stack = Stack(folder, redis, sandbox, database, key)
        stack.answers.listen(folder / "drive.log")
        cleanup.callback(stack.stop)
        yield stack


def _process_of(server: str) -> int:
    """The process id of a PostgreSQL server on this machine."""
    with psycopg.connect(f"{server}/postgres") as connection:
        row = connection.execute("SHOW data_directory").fetchone()
    assert row is not None
    return int(Path(row[0], "postmaster.pid").read_text().split()[0])


def _emptied(server: str) -> str:
    name = "renders_drive"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {name}")
    return f"{server}/{name}"
