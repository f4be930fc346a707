"""What all measurements stand on: PostgreSQL, Redis, the stub, an empty database, settings."""

import json
import logging
import os
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import django
import psycopg
import redis
from django.core.management import call_command

from renders.demo.embedded_redis import EmbeddedRedis
from renders.demo.processes import Child, free_port, kill_group, port_answers, wait_until
from tests.benchmarks import certificate
from tests.benchmarks.processes import MEASURED, SERVERS, busy_seconds, cpu_seconds, on_core
from tests.benchmarks.stub import Settings
from tests.servers import postgresql

ROOT = Path(__file__).resolve().parents[2]
NAME = "renders_benchmarks"
START_SECONDS = 30.0
# Neither Sume's limits nor ours shall be what is measured; each measurement says what is else.
SETTINGS = {
    "DJANGO_SETTINGS_MODULE": "project.settings",
    "DJANGO_ENV_FILE": "",
    "DJANGO_DEBUG": "",
    "DJANGO_SECRET_KEY": "measured with, and for nothing else",
    "DJANGO_ALLOWED_HOSTS": "localhost",
    "SUME_API_KEY": "measured-with-and-for-nothing-else",
    "RENDERS_WRITES_PER_MINUTE": "10000000",
    "RENDERS_MAX_IN_FLIGHT": "10000000",
    "RENDERS_MIN_POLL_SECONDS": "0.1",
    "RENDERS_MEDIA_PRIVATE_HOSTS": "127.0.0.1",
    "NO_PROXY": "127.0.0.1",
    "no_proxy": "127.0.0.1",
}


@dataclass
class Used:
    """What was done in a span of time, and the processor's time for it."""

    reads: int
    processor: float
    seconds: float
    others: float = 0.0
    """The share of the measured core's time that went to others, 0 to 1."""

    @property
    def each(self) -> float:
        """The processor's time for one read, in seconds."""
        return self.processor / max(1, self.reads)

    @property
    def rate(self) -> float:
        """Reads per second of the clock."""
        return self.reads / self.seconds


@dataclass
class Scene:
    """The running servers. `https_url` is empty where no certificate could be made."""

    folder: Path
    database: str
    server: EmbeddedRedis
    http_url: str
    https_url: str
    trusted: str
    quick: bool
    _started: list[Child] = field(default_factory=list)

    @property
    def broker(self) -> "redis.Redis":
        """A client of the Redis."""
        return redis.Redis.from_url(self.server.url)

    def lasting(self, full: float, quick: float) -> float:
        """So many seconds, or so many in a quick run."""
        return quick if self.quick else full

    def clear(self) -> None:
        """Empty the tables and Redis, and end whatever a measurement has left running."""
        for child in self._started:
            kill_group(child)
        self._started.clear()
        with psycopg.connect(self.database, autocommit=True) as connection:
            connection.execute("TRUNCATE renders_renderjob, renders_renderevent, renders_gate")
        self.broker.flushall()

    def start(self, name: str, *arguments: str, core: int = MEASURED, **settings: Any) -> Child:
        """Start `python …` on a core of its own, with these settings in the environment."""
        environment = {**os.environ, "SUME_BASE_URL": self.http_url}
        environment |= {key: str(value) for key, value in settings.items()}
        with on_core(core):
            child = Child(
                name,
                [sys.executable, *arguments],
                environment=environment,
                log=self.folder / f"{name}.log",
                cwd=ROOT,
            )
        self._started.append(child)
        return child

    def end(self, *children: Child) -> None:
        """End these at once."""
        for child in children:
            kill_group(child)

    def command(self, name: str, *, ready: str, safe: bool = False, **settings: Any) -> Child:
        """A command of `manage.py` that has written `ready`; `safe`: over https."""
        words = ["manage.py", name]
        if safe:
            settings["SUME_BASE_URL"] = self.https_url
            words = ["-m", "tests.benchmarks.trusting", self.trusted, name]
        child = self.start(name, *words, **settings)
        self.until(child, ready)
        return child

    def worker(self, queue: str, *words: str, **settings: Any) -> Child:
        """A Celery worker of this queue that is ready."""
        before = self._listeners()
        child = self.start(
            f"worker-{queue}",
            *("-m", "celery", "-A", "project", "worker", "-Q", queue, "-n", f"{queue}@bench"),
            *("-lwarning", "--without-mingle", "--without-gossip", *words),
            **settings,
        )
        # At this log level it does not say so itself: it waits for messages.
        wait_until(
            lambda: self._listeners() > before,
            child.name,
            START_SECONDS,
            check=lambda: _alive(child),
        )
        return child

    def until(self, child: Child, text: str) -> None:
        """Wait until the child has written this."""
        wait_until(
            lambda: child.has_written(text), child.name, START_SECONDS, check=lambda: _alive(child)
        )

    def warm(self, reads: int, seconds: float = 60.0) -> None:
        """Wait until so many reads have come: connections are open, threads run."""
        end = time.monotonic() + seconds
        while self.count() < reads and time.monotonic() < end:
            time.sleep(0.1)

    def used(self, seconds: float, *children: Child) -> Used:
        """What these children do in so many seconds from now."""
        start, reads, worked = time.monotonic(), self.count(), busy_seconds(MEASURED)
        before = sum(cpu_seconds(child.process.pid) for child in children)
        time.sleep(seconds)
        own = sum(cpu_seconds(child.process.pid) for child in children) - before
        spent = time.monotonic() - start
        others = max(0.0, busy_seconds(MEASURED) - worked - own) / spent
        return Used(self.count() - reads, own, spent, others)

    def _listeners(self) -> int:
        clients: Any = self.broker.client_list()
        return sum(client["cmd"] == "brpop" for client in clients)

    # --- The stub ---------------------------------------------------------------------------

    def stub(self, **settings: float) -> None:
        """Have the stub forget, and answer like this from now on."""
        self._ask("/control", json.dumps(asdict(Settings(**settings))).encode())

    def count(self) -> int:
        """How many reads have come to the stub."""
        return int(self._ask("/control")["count"])

    def log(self) -> dict[str, Any]:
        """All that the stub remembers: `reads`, `submits`."""
        return self._ask("/log")

    def _ask(self, path: str, body: bytes | None = None) -> dict[str, Any]:
        request = urllib.request.Request(  # noqa: S310 (our own)
            self.http_url + path, body, method="PUT" if body else "GET"
        )
        with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: S310
            data: dict[str, Any] = json.load(reply)["data"]
        return data


@contextmanager
def running(folder: Path, *, quick: bool) -> Iterator[Scene]:
    """The servers, and Django set up in this process; all is ended when this is left."""
    with ExitStack() as cleanup:
        cleanup.enter_context(on_core(SERVERS))
        broker = cleanup.enter_context(EmbeddedRedis())
        server = cleanup.enter_context(postgresql())
        own, trusted = certificate.make(folder)
        port, safe_port = free_port(), free_port()
        # The bundles would go before what the loops name; of ours, only what is said here counts.
        ours = [name for name in os.environ if name.startswith("RENDERS_")]
        for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", *ours):
            os.environ.pop(name, None)
        os.environ.update(
            SETTINGS,
            DATABASE_URL=f"{server}/{NAME}",
            REDIS_URL=broker.url,
            CELERY_BROKER_URL=broker.url,
            SUME_BASE_URL=f"http://127.0.0.1:{port}",
            DJANGO_STATE_DIR=str(folder / "state"),
            DJANGO_MEDIA_ROOT=str(folder / "media"),
        )
        with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {NAME} WITH (FORCE)")
            connection.execute(f"CREATE DATABASE {NAME}")
        django.setup()
        logging.getLogger("renders").setLevel(logging.ERROR)
        call_command("migrate", verbosity=0)
        words = [str(port), *([str(safe_port), own] if own else [])]
        stub = Child(
            "stub",
            [sys.executable, "-m", "tests.benchmarks.stub", *words],
            log=folder / "stub.log",
            cwd=ROOT,
        )
        cleanup.callback(kill_group, stub)
        wait_until(lambda: port_answers(port), "stub", START_SECONDS, check=lambda: _alive(stub))
        scene = Scene(
            folder,
            f"{server}/{NAME}",
            broker,
            f"http://127.0.0.1:{port}",
            f"https://127.0.0.1:{safe_port}" if own else "",
            trusted,
            quick,
        )
        cleanup.callback(scene.clear)
        yield scene


def _alive(child: Child) -> None:
    if not child.alive:
        raise child.death()
