"""Real servers for the tests: Redis, SQLite and PostgreSQL, the sandbox, workers."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dj_database_url
import kombu.pools
import psycopg
import pytest
from celery import current_app
from django.conf import settings as django_settings
from django.core.management import call_command
from django.db import connections

from renders.coordination.connections import REDIS_DOWN, redis_client
from renders.demo.embedded_redis import EmbeddedRedis
from renders.sandbox import Sandbox
from tests.integration.stack import Stack
from tests.rabbitmq import RabbitMQ
from tests.servers import postgresql

# What takes its time, and is of one kind on both databases: on the other one, too, only in a
# thorough run.
ON_ONE_DATABASE = {
    "test_canceling": "sqlite",
    "test_crash_points": "postgresql",
    "test_crash_points_of_batches": "postgresql",
    "test_crashes": "sqlite",
    "test_finishing": "sqlite",
    "test_housekeeping": "sqlite",
    "test_hostile_replies": "sqlite",
    "test_metrics": "sqlite",
    "test_other_project": "sqlite",
    "test_pollrenders": "sqlite",
    "test_renders": "sqlite",
    "test_runrenders": "sqlite",
    "test_webhooks": "sqlite",
    "test_workspaces": "sqlite",
}
OTHER = {"sqlite": "postgresql", "postgresql": "sqlite"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what has a twin on the other database."""
    known = {item.nodeid for item in items}
    for item in items:
        spared = ON_ONE_DATABASE.get(item.path.stem, "")
        here = spared and spared in item.nodeid.partition("[")[2]
        if here and item.nodeid.replace(spared, OTHER[spared]) in known:
            item.add_marker(pytest.mark.thorough)


class Databases:
    """Migrated databases, one for each test, copied from one that was migrated once."""

    def __init__(self, folder: Path, cleanup: ExitStack) -> None:
        self._folder = folder
        self._cleanup = cleanup
        self._templates: dict[str, str] = {}
        self._server = ""
        self._count = 0

    def fresh(self, engine: str) -> str:
        """The address of an empty, migrated database of `sqlite` or `postgresql`."""
        self._count += 1
        if engine not in self._templates:
            template = self._make(engine, "template")
            with using_database(template):
                call_command("migrate", run_syncdb=True, verbosity=0)
            self._templates[engine] = template
        return self._make(engine, f"test{self._count}", self._templates[engine])

    def empty(self, engine: str) -> str:
        """The address of a database of `sqlite` or `postgresql` without any table."""
        self._count += 1
        return self._make(engine, f"empty{self._count}")

    def drop(self, url: str) -> None:
        """Give back the room of a database that nobody needs any more."""
        if url.startswith("sqlite"):
            for path in self._folder.glob(f"{Path(url).name}*"):
                path.unlink()
            return
        with psycopg.connect(f"{self._server}/postgres", autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {url.rpartition('/')[2]} WITH (FORCE)")

    def _make(self, engine: str, name: str, template: str = "") -> str:
        if engine == "sqlite":
            path = self._folder / f"{name}.sqlite3"
            if template:
                shutil.copy(template.removeprefix("sqlite:///"), path)
            return f"sqlite:///{path}"
        if not self._server:
            self._server = self._cleanup.enter_context(postgresql())
        name = f"renders_{name}"
        with psycopg.connect(f"{self._server}/postgres", autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            source = f"TEMPLATE {template.rpartition('/')[2]}" if template else ""
            connection.execute(f"CREATE DATABASE {name} {source}")
        return f"{self._server}/{name}"


class using_database:
    """Make a database this process's default one."""

    def __init__(self, url: str) -> None:
        self._new = {**connections.settings["default"], **dj_database_url.parse(url)}
        if url.startswith("sqlite"):
            self._new["OPTIONS"] = {
                "transaction_mode": "IMMEDIATE",
                "timeout": 20,
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
            }
        else:
            self._new["OPTIONS"] = {}

    def __enter__(self) -> None:
        # The connection in use is put aside, not closed: a database in memory lives with it.
        self._old = connections.settings["default"], connections["default"]
        connections.settings["default"] = self._new
        connections["default"] = connections.create_connection("default")

    def __exit__(self, *error: object) -> None:
        connections["default"].close()
        connections.settings["default"], connections["default"] = self._old


@pytest.fixture(scope="session")
def databases(
    tmp_path_factory: pytest.TempPathFactory, django_db_blocker: Any
) -> Iterator[Databases]:
    with ExitStack() as cleanup:
        yield Databases(tmp_path_factory.mktemp("databases"), cleanup)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(
    request: pytest.FixtureRequest, databases: Databases, django_db_blocker: Any
) -> Iterator[str]:
    """A fresh database that is this process's default one; gives its address."""
    with django_db_blocker.unblock():
        url = databases.fresh(request.param)
        with using_database(url):
            yield url
        databases.drop(url)


@pytest.fixture(scope="session")
def redis_of_session() -> Iterator[EmbeddedRedis]:
    server = EmbeddedRedis()
    server.port = urlsplit(django_settings.REDIS_URL).port or 0
    with server:
        yield server


@pytest.fixture
def own_broker() -> Iterator[None]:
    """Publish where the settings say, wherever other tests of this process are connected."""
    # Not by the test's own `monkeypatch`: a test that undoes its patches undid this as well.
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CELERY_BROKER_WRITE_URL", raising=False)
        _forget_connections()
        yield
    _forget_connections()


def _forget_connections() -> None:
    app = current_app._get_current_object()
    app._pool = app.amqp._producer_pool = None
    kombu.pools.reset()


@pytest.fixture
def redis(redis_of_session: EmbeddedRedis, own_broker: None) -> Iterator[EmbeddedRedis]:
    """A real, empty Redis, running where the settings say; it is left empty as well."""
    if not (redis_of_session.child and redis_of_session.child.alive):
        redis_of_session.restart()
    redis_client().flushall()
    yield redis_of_session
    with suppress(REDIS_DOWN):
        redis_client().flushall()


@pytest.fixture
def sandbox(settings: Any) -> Iterator[Sandbox]:
    """A fast sandbox that the settings point to."""
    with Sandbox(
        queued_seconds=0.1, processing_seconds=0.4, poll_seconds=0.5, writes_per_minute=None
    ) as sandbox:
        settings.RENDERS = {**settings.RENDERS, "BASE_URL": sandbox.url}
        yield sandbox


@pytest.fixture
def stack(
    database: str, redis: EmbeddedRedis, sandbox: Sandbox, settings: Any, tmp_path: Path
) -> Iterator[Stack]:
    settings.MEDIA_ROOT = tmp_path / "media"
    stack = Stack(tmp_path, database, redis, sandbox)
    yield stack
    stack.stop()
    stack.assert_sound()


@pytest.fixture(scope="session")
def rabbitmq_of_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMQ]:
    with RabbitMQ(tmp_path_factory.mktemp("rabbitmq")) as node:
        yield node


@pytest.fixture
def rabbitmq(rabbitmq_of_session: RabbitMQ, stack: Stack) -> RabbitMQ:
    """A running node that is the broker of whatever the stack starts."""
    if not rabbitmq_of_session.alive:
        rabbitmq_of_session.start()
    stack.environment["CELERY_BROKER_URL"] = rabbitmq_of_session.url
    return rabbitmq_of_session
