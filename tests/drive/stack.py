"""What the drive runs and breaks: Redis, a database, the stand-in for Sume, workers, beat."""

import os
import random
import secrets
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import django
import psycopg
from django.conf import settings
from django.core.management import call_command
from redis import Redis

from renders.demo.embedded_redis import EmbeddedRedis
from renders.demo.processes import Child, kill_group
from renders.sandbox import Sandbox
from tests import releases
from tests.drive import modes
from tests.drive.answers import Answers
from tests.drive.bond import bonded
from tests.drive.modes import NOWHERE, Mode
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
        self,
        options: Options,
        folder: Path,
        redis: EmbeddedRedis | None,
        sandbox: Sandbox,
        database: str,
        key: str,
    ) -> None:
        self.redis = redis
        self.redis_url = redis.url if redis else NOWHERE
        self.mode = options.modes[0]
        self.db = options.db
        self.workers = options.workers
        self.sandbox = sandbox
        self.database = database
        self.key = key
        self.answers = Answers()
        self.kills = 0
        self.own_deaths: list[str] = []
        self.bad_ends: list[str] = []
        self.running: dict[str, Child] = {}
        self._folder = folder
        self._before = releases.previous(folder / "before") if options.upgrade else ROOT
        self._aside: list[Child] = []
        self._redis_is_down = False

    @property
    def logs(self) -> list[Path]:
        """What each process has written; this one's is among them."""
        return sorted(self._folder.glob("*.log"))

    def start(self) -> None:
        """Start all processes of the mode."""
        self.be(self.mode)
        for name in self.names():
            self.start_one(name)

    def names(self) -> list[str]:
        """The processes that the mode wants."""
        return self.mode.processes(self.workers, self.db)

    def be(self, mode: Mode) -> None:
        """Let this process, which makes and cancels renders, be a web server of that mode."""
        self.mode = mode
        settings.RENDERS = {**settings.RENDERS, **mode.settings(self.redis_url)}

    def start_one(self, name: str) -> None:
        """Start the process of this name."""
        tree = self._before if name.startswith(modes.BEFORE) else ROOT
        self.running[name] = modes.start(name, self.redis_url, self._folder, tree)

    def set_aside(self, name: str) -> Child:
        """Have a process replaced by nobody when it ends."""
        child = self.running.pop(name)
        self._aside.append(child)
        return child

    def kill_a_worker(self, chance: random.Random) -> None:
        """SIGKILL one process, not beat, with its children, and start another in its place."""
        ready = [
            name
            for name, child in self.running.items()
            if modes.sort_of(name) != "beat" and modes.is_ready(name, child)
        ]
        if ready:
            name = chance.choice(sorted(ready))
            kill_group(self.running[name])
            self.kills += 1
            self.start_one(name)

    def supervise(self) -> None:
        """Replace what ended by itself, and note it. Raises `Broken`."""
        for name, child in list(self.running.items()):
            if not child.alive:
                self.own_deaths.append(str(child.death()))
                kill_group(child)
                self.start_one(name)
        redis = self.redis
        if redis and not self._redis_is_down and not (redis.child and redis.child.alive):
            raise Broken("Redis ended by itself.")

    def flush_redis(self) -> None:
        """Empty Redis."""
        with Redis.from_url(self.redis_url) as client:
            client.flushall()

    def kill_redis(self) -> None:
        """SIGKILL Redis; it keeps nothing."""
        self._redis_is_down = True
        if self.redis and self.redis.child:
            kill_group(self.redis.child)

    def start_redis(self) -> None:
        """Start Redis again on the same port, empty."""
        if self.redis:
            self.redis.start()
        self._redis_is_down = False

    def crash_database(self) -> None:
        """SIGKILL one session: PostgreSQL then ends all others, recovers and starts anew."""
        with psycopg.connect(self.database) as connection:
            os.kill(connection.info.backend_pid, signal.SIGKILL)
            connection.close()

    def stop(self) -> None:
        """End all processes at once."""
        for child in [*self.running.values(), *self._aside]:
            kill_group(child)
        self.running.clear()


@contextmanager
def running(options: Options, folder: Path) -> Iterator[Stack]:
    """The system with an empty database, and Django set up in this process; no worker yet.

    Whatever was started has ended when this is left.
    """
    key = f"canary-{secrets.token_hex(16)}"
    with ExitStack() as cleanup:
        redis = cleanup.enter_context(EmbeddedRedis()) if options.uses_redis else None
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
            "TESTS_REDIS_URL": redis.url if redis else NOWHERE,
            "CELERY_BROKER_URL": redis.url if redis else NOWHERE,
            "SUME_API_KEY": key,
            "SUME_BASE_URL": sandbox.url,
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }
        django.setup()
        call_command("migrate", run_syncdb=True, verbosity=0)
        stack = Stack(options, folder, redis, sandbox, database, key)
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
