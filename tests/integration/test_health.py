"""Health with real servers: what is silent holds up nobody, and each part is told apart."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from renders.health import readiness
from renders.health.probes import Lanes
from tests.integration.modes import DatabaseAway, start, use
from tests.integration.stack import Stack

QUICK_SECONDS = readiness.SECONDS + 1.0


@pytest.fixture(autouse=True)
def asked_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "lanes", Lanes(0))


def ask(address: str = "/readyz") -> tuple[int, dict[str, bool], float]:
    """The status, the parts, and how long it took."""
    began = time.monotonic()
    response = Client().get(address)
    took = time.monotonic() - began
    return response.status_code, {one["name"]: one["ok"] for one in response.json()["parts"]}, took


def wrong() -> set[str]:
    """The parts that are not well."""
    return {name for name, ok in ask()[1].items() if not ok}


@contextmanager
def silent(pid: int) -> Iterator[None]:
    """Let a process keep its connections and answer nothing."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_what_is_missing_is_told_apart(stack: Stack) -> None:
    """Beat first, then a worker of half of the queues, then one of the rest."""
    assert wrong() == {"sweep", "beat", "workers"}

    stack.environment["RENDERS_SWEEP_SECONDS"] = "0.2"
    stack.beat()
    stack.until(lambda: wrong() == {"sweep", "workers"})

    first = stack.worker("-Q", "renders.finish,renders.submit")
    stack.until(lambda: wrong() == {"workers"})
    told = [part.detail for part in readiness.look().parts if part.name == "workers"]
    assert told == [
        "No worker serves the queue renders.media. No worker serves the queue renders.poll."
    ]

    second = stack.worker("-Q", "renders.media,renders.poll")
    stack.until(lambda: ask("/readyz?all=1")[0] == 200)

    stack.kill(second)
    stack.until(lambda: wrong() == {"workers"})
    stack.kill(first)
    assert (ask()[0], ask("/readyz?all=1")[0]) == (200, 503)
    stack.redis.halt()
    assert {"redis", "broker"} <= wrong()
    assert ask()[0] == 200


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_redis_that_is_silent_holds_up_nobody(stack: Stack) -> None:
    assert "redis" not in wrong()
    with silent(stack.redis.process.pid):
        status, parts, took = ask()
        assert status == 200 and not parts["redis"] and not parts["broker"]
        assert took < QUICK_SECONDS
    stack.until(lambda: not {"redis", "broker"} & wrong(), seconds=10)


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_database_that_is_silent_or_closed_takes_the_web_process_out(stack: Stack) -> None:
    use(stack, "database")
    assert ask()[0] == 200
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        own = int(cursor.fetchone()[0])
    with open(f"/proc/{own}/stat") as file:
        postmaster = int(file.read().rpartition(")")[2].split()[1])
    with silent(postmaster):
        status, parts, took = ask()
        assert status == 503 and not any(ok for name, ok in parts.items() if name != "storage")
        assert took < QUICK_SECONDS
        assert ask()[2] < 0.5  # who asks again is not made to wait for the same
    stack.until(lambda: ask()[0] == 200)
    with DatabaseAway():
        status, _, took = ask()
        assert status == 503 and took < 1
    assert ask()[0] == 200


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("command", ["runrenders", "pollrenders"])
def test_a_process_that_reads_leaves_signs_of_life(stack: Stack, command: str) -> None:
    use(stack, "database" if command == "runrenders" else "sortedset")
    assert command in wrong()

    child = start(stack, command)
    lacking: Any = set() if command == "runrenders" else {"sweep", "beat", "workers"}
    stack.until(lambda: wrong() == lacking, child=child)
