"""The doctor before real servers: what is broken is found, and nothing else."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from celery import current_app
from django.conf import settings
from django.db import connection

from renders.coordination.connections import redis_client
from renders.health import database, doctor, environment, messages, stores
from renders.models import RenderJob
from tests.integration.modes import start, use
from tests.integration.stack import Stack
from tests.rabbitmq import RabbitMQ
from tests.redis_servers import Cluster, Watched

one_database = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
KEY = "sk-canary-of-the-doctor"


def examine(stack: Stack, *options: str) -> tuple[int, list[dict[str, str]], str]:
    """Run the command as a person would; its status, findings, and all that it wrote."""
    done = subprocess.run(
        [sys.executable, "manage.py", "rendersdoctor", "--json", *options],
        env=stack.environment,
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, json.loads(done.stdout)["findings"], done.stdout + done.stderr


def codes(findings: list[dict[str, str]], *but: str) -> set[str]:
    """What is not well, but for these, and for what a bare Redis of the tests is known for."""
    return {one["code"] for one in findings if one["code"]} - {*but, "redis-forgets"}


@pytest.mark.slow
@one_database
def test_a_site_is_followed_from_nothing_to_well(stack: Stack) -> None:
    stack.environment |= {"SUME_API_KEY": KEY, "RENDERS_SWEEP_SECONDS": "0.3"}
    status, findings, told = examine(stack)
    assert status == 1
    assert codes(findings, "setting") == {"workers-none", "beat-silent", "sweep-silent"}
    assert KEY not in told

    stack.beat()
    worker = stack.worker()
    stack.until(lambda: worker.has_written("sweep_renders"), child=worker)
    status, findings, _ = examine(stack)
    assert codes(findings, "setting") == set()
    assert (status, {one["level"] for one in findings if one["code"] == "setting"}) in [
        (0, set()),
        (3, {"warning"}),
    ]
    said = {one["part"]: one["said"] for one in findings}
    assert said["worker clocks"] == "Asked for the time: 1 worker."
    assert said["workers"] == "Every queue is served: 1 worker."

    stack.environment["SUME_BASE_URL"] = "http://127.0.0.1:9"
    assert codes(examine(stack)[1], "setting") == {"sume-away"}
    assert codes(examine(stack, "--offline")[1], "setting") == set()
    stack.redis.halt()
    _, findings, told = examine(stack, "--offline")
    assert codes(findings, "setting", "not-asked") == {"redis-away", "broker-away"}
    assert KEY not in told


@one_database
def test_a_redis_that_may_forget_is_found(stack: Stack) -> None:
    def found() -> set[str]:
        return {one.code for one in stores.keeps()} - {""}

    client = redis_client()
    assert found() == {"redis-forgets"}
    try:
        client.config_set("maxmemory-policy", "allkeys-lru")
        assert found() == {"redis-forgets", "redis-may-evict"}
        client.config_set("maxmemory", client.info("memory")["used_memory"] + 100_000)
        for number in range(300):
            client.set(f"filler-{number}", b"x" * 10_000)
        assert found() == {"redis-forgets", "redis-may-evict", "redis-evicted", "redis-full"}
    finally:
        client.config_set("maxmemory", 0)
        client.config_set("maxmemory-policy", "noeviction")
        client.config_resetstat()
    assert found() == {"redis-forgets"}
    assert stores.clock()[0].code == ""


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Cluster, Watched])
def test_other_kinds_of_redis_are_asked_too(settings: Any, kind: Any) -> None:
    with kind() as servers:
        settings.RENDERS = {**settings.RENDERS, "REDIS_URL": servers.url}
        assert stores.answers()[0].code == ""
        assert {one.code for one in stores.keeps()} == {"redis-forgets"}
        assert stores.clock()[0].code == ""
        for server in servers.servers[:1]:
            server.client.config_set("maxmemory-policy", "allkeys-lru")
        assert "redis-may-evict" in {one.code for one in stores.keeps()}


@pytest.mark.slow
@pytest.mark.thorough
@one_database
def test_rabbitmq_is_asked_for_its_queues(
    stack: Stack, rabbitmq: RabbitMQ, monkeypatch: Any
) -> None:
    monkeypatch.setenv("CELERY_BROKER_WRITE_URL", rabbitmq.url)
    app = current_app._get_current_object()  # no later test shall send there
    monkeypatch.setattr(app, "_pool", None)
    monkeypatch.setattr(app.amqp, "_producer_pool", None)
    assert messages.answers()[0].code == ""
    assert messages.workers()[0].code == "workers-none"
    assert messages.lengths()[0].said.endswith("renders.submit 0.")

    stack.command("render", "a fox", "a cat", "--no-follow")
    assert "renders.submit 2." in messages.lengths()[0].said
    assert messages.lending()[0].said == "The broker lends no messages."
    assert messages.keeps()[0].said == "The broker is py-amqp."

    stack.worker()
    stack.until_handled(sweeping=False)
    served = "Every queue is served: 1 worker."
    stack.until(lambda: messages.workers()[0].said == served)  # a busy machine answers late
    assert messages.worker_clocks()[0].said == "Asked for the time: 1 worker."


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_the_clock_of_postgresql_is_compared(stack: Stack, monkeypatch: Any) -> None:
    assert {one.code for one in database_clock()} == {""}

    real = database.time.time
    monkeypatch.setattr(database, "time", type("Clock", (), {"time": lambda: real() + 60}))

    [found] = database_clock()
    assert found.code == "clocks-apart"
    assert found.said.startswith("The clock of the database is 60.0 s behind")


database_clock = database.clock


@contextmanager
def without_table(name: str) -> Iterator[None]:
    """As before `migrate`: a table is not there."""
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {name} RENAME TO {name}_gone")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {name}_gone RENAME TO {name}")


@pytest.mark.slow
@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
@pytest.mark.parametrize("command", ["runrenders", "pollrenders"])
def test_a_process_without_its_tables_says_to_migrate_and_goes_on(
    stack: Stack, command: str
) -> None:
    use(stack, "database" if command == "runrenders" else "sortedset")
    [render] = stack.create("a red fox")
    RenderJob.objects.filter(pk=render.pk).update(not_before=None)
    with without_table("renders_heartbeat"), without_table("renders_renderjob"):
        child = start(stack, command)
        stack.until(lambda: child.has_written("run `python manage.py migrate`"), child=child)
        assert not child.has_written("The database is away")
        found = {one.code for part in doctor.examine(5, offline=True) for one in part.findings}
        assert "tables-missing" in found
    if command == "runrenders":
        stack.until_handled(sweeping=False)
    else:
        RenderJob.objects.all().delete()


@one_database
def test_the_key_is_tried_with_a_free_read(stack: Stack, settings: Any) -> None:
    assert environment.account()[0].code == ""
    assert "balance" not in str(stack.sandbox.ledger.bills)
    stack.sandbox.faults.add("unauthorized", on="any")
    assert environment.account()[0].code == "key-refused"
    assert os.environ["SUME_API_KEY"] not in environment.account()[0].said
