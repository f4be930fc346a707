"""The whole system, running: Redis, the stand-in for Sume, worker, beat, web server, Flower."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction
from django.test import Client

from renders import services
from renders.demo.embedded_redis import EmbeddedRedis
from renders.demo.processes import Child, free_port, port_answers, stop_all, wait_until
from renders.models import RenderJob
from renders.sandbox import Sandbox
from tests.browser.clock import Clock
from tests.browser.database import Database

START_SECONDS = 60.0
PATIENCE_SECONDS = 30.0
QUEUED_SECONDS, PROCESSING_SECONDS = 0.1, 0.3
PASSWORD = "a password for tests"
FLOWER_USER, FLOWER_PASSWORD = "flora", "another password for tests"
# Shown by Flower: nothing of this machine.
WORKER = "w1@site"


class Site:
    """What a test drives, and what it asks afterwards."""

    def __init__(
        self, url: str, flower_url: str, database: Database, sandbox: Sandbox, clock: Clock
    ) -> None:
        self.url = url
        self.flower_url = flower_url
        self.database = database
        self.sandbox = sandbox
        self.clock = clock
        self._numbers = count(1)

    def new_user(self, name: str = "", **fields: Any) -> Any:
        """A user with `PASSWORD`; without a name one that nobody else has."""
        name = name or f"person{next(self._numbers)}"
        users = get_user_model().objects
        return self.database(users.create_user, name, password=PASSWORD, **fields)

    def new_admin(self, name: str = "") -> Any:
        """One who may do everything in the admin."""
        return self.new_user(name, is_staff=True, is_superuser=True)

    def session_of(self, user: Any) -> str:
        """The cookie of a browser in which this user has logged in."""

        def log_in() -> str:
            client = Client()
            client.force_login(user)
            return client.cookies[settings.SESSION_COOKIE_NAME].value

        return str(self.database(log_in))

    def create(self, prompt: str, user: Any, **fields: Any) -> RenderJob:
        """A render as another part of the program makes it."""

        def create() -> RenderJob:
            with transaction.atomic():
                return services.create_render(prompt, user=user, **fields)

        render: RenderJob = self.database(create)
        return render

    def cancel(self, render: RenderJob) -> None:
        """Ask for its cancel, as another part of the program does."""
        self.database(services.cancel_render, render)

    def renders(self, **conditions: Any) -> list[RenderJob]:
        """The rows as they are now, oldest first."""
        rows = RenderJob.objects.filter(**conditions).order_by("created_at")
        return list(self.database(list, rows))

    def until(self, condition: Callable[[], Any], what: str) -> None:
        """Wait for the condition, to a deadline."""
        wait_until(lambda: bool(condition()), what, PATIENCE_SECONDS)

    def until_handled(self, **conditions: Any) -> list[RenderJob]:
        """Wait until these renders have ended and all is done with them."""
        self.until(
            lambda: not self.renders(**conditions, handled_at=None), f"A render ({conditions})"
        )
        return self.renders(**conditions)

    def bills_of(self, render: RenderJob) -> int:
        """How often the stand-in has billed it."""
        bills = self.sandbox.ledger.bills
        return sum(bill.idempotency_key == render.idempotency_key for bill in bills)


@contextmanager
def running(folder: Path) -> Iterator[Site]:
    """Start everything with an empty database; end it all when this is left."""
    clock = Clock()
    with ExitStack() as cleanup:
        redis = EmbeddedRedis(port=urlsplit(settings.REDIS_URL).port or 0)
        cleanup.enter_context(redis)
        sandbox = Sandbox(
            clock=clock,
            queued_seconds=QUEUED_SECONDS,
            processing_seconds=PROCESSING_SECONDS,
            poll_seconds=0.5,
            writes_per_minute=None,
        )
        cleanup.enter_context(sandbox)
        url = f"sqlite:///{folder / 'site.sqlite3'}"
        database = Database(url)
        cleanup.callback(database.close)

        web, flower = free_port(), free_port()
        processes = Processes(
            folder,
            {
                "DJANGO_SETTINGS_MODULE": "tests.settings",
                "DJANGO_MEDIA_ROOT": str(folder / "media"),
                "DATABASE_URL": url,
                "CELERY_BROKER_URL": redis.url,
                "SUME_BASE_URL": sandbox.url,
                "RENDERS_PLAN": "pro",
                "RENDERS_WRITES_PER_MINUTE": "300",
                "RENDERS_SWEEP_SECONDS": "5",
                # No test is about these, and the browser keeps the machine busy.
                "RENDERS_REAP_AFTER_SECONDS": "60",
                "RENDERS_REQUEST_TIMEOUT_SECONDS": "10",
                "RENDERS_MEDIA_TIMEOUT_SECONDS": "20",
                "RENDERS_FLOWER_URL": f"http://127.0.0.1:{flower}",
                "RENDERS_PUBLIC_URL": f"http://127.0.0.1:{web}",
                "FLOWER_BASIC_AUTH": f"{FLOWER_USER}:{FLOWER_PASSWORD}",
                "NO_PROXY": "127.0.0.1",
                "no_proxy": "127.0.0.1",
            },
        )
        cleanup.callback(processes.stop)
        processes.start(web, flower)
        site = Site(
            f"http://127.0.0.1:{web}", f"http://127.0.0.1:{flower}", database, sandbox, clock
        )
        yield site


class Processes:
    """The processes of one site, each with a log in the site's folder."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder = folder
        self._environment = {**os.environ, **environment}
        self._children: list[Child] = []

    def start(self, web: int, flower: int) -> None:
        """Start all at once, and return when all are ready."""
        server = self._run("web", "manage.py", "runserver", "--noreload", f"127.0.0.1:{web}")
        quick = ("--without-mingle", "--without-gossip")
        worker = self._celery("worker", "-c2", "-linfo", "-E", "-n", WORKER, *quick)
        self._celery("beat", "-s", str(self._folder / "schedule"), "--pidfile=")
        flowers = self._celery("flower", "--address=127.0.0.1", f"--port={flower}")
        self._wait(server, lambda: port_answers(web))
        self._wait(flowers, lambda: port_answers(flower))
        self._wait(worker, lambda: worker.has_written(" ready."))

    def stop(self) -> None:
        """End them all."""
        stop_all(self._children, 5)

    def _celery(self, what: str, *arguments: str) -> Child:
        return self._run(what, "-m", "celery", "-A", "project", what, *arguments)

    def _run(self, name: str, *arguments: str) -> Child:
        child = Child(
            name,
            [sys.executable, *arguments],
            environment=self._environment,
            log=self._folder / f"{name}.log",
            cwd=settings.BASE_DIR,
        )
        self._children.append(child)
        return child

    @staticmethod
    def _wait(child: Child, ready: Callable[[], bool]) -> None:
        def check() -> None:
            if not child.alive:
                raise child.death()

        wait_until(ready, child.name, START_SECONDS, check=check)
