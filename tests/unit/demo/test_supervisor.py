import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from renders.demo import supervisor as module
from renders.demo.exceptions import ChildDied, Interrupted
from renders.demo.processes import wait_until
from renders.demo.supervisor import Server, Supervisor
from renders.management.stopping import StopRequests

QUICK_END = [sys.executable, "-c", "print('that was all')"]
LONG = ["sleep", "60"]


@pytest.fixture
def requests() -> Iterator[StopRequests]:
    with StopRequests() as requests:
        yield requests


@pytest.fixture
def restarts() -> list[str]:
    return []


@pytest.fixture
def supervisor(requests: StopRequests, restarts: list[str], tmp_path: Path) -> Iterator[Supervisor]:
    supervisor = Supervisor(requests, cwd=tmp_path, logs=tmp_path, on_restart=restarts.append)
    supervisor.environment = dict(os.environ)
    yield supervisor
    supervisor.stop()


def listen_on(port: int) -> list[str]:
    return [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(port)]


def test_a_child_that_ends_is_noticed(supervisor: Supervisor) -> None:
    child = supervisor.start("Clock", QUICK_END)
    child.process.wait(10)
    with pytest.raises(ChildDied, match=r"(?s)Clock ended with status 0.*that was all"):
        supervisor.check()


def test_a_watched_child_is_noticed_but_not_ended(supervisor: Supervisor) -> None:
    other = Supervisor(StopRequests(), cwd=Path.cwd(), logs=supervisor._logs)
    other.environment = dict(os.environ)
    child = other.start("Redis", LONG)
    supervisor.watch(child)
    supervisor.stop()
    assert child.alive
    other.stop()
    with pytest.raises(ChildDied, match="Redis"):
        supervisor.check()


def test_a_supervised_child_is_started_again(supervisor: Supervisor, restarts: list[str]) -> None:
    child = supervisor.start("Worker", LONG, restart=True)
    child.process.kill()
    child.process.wait(10)
    supervisor.check()
    assert restarts == ["Worker"]
    supervisor.check()
    assert restarts == ["Worker"]


def test_restarting_gives_up_when_it_does_not_help(
    supervisor: Supervisor, restarts: list[str]
) -> None:
    supervisor.start("Worker", QUICK_END, restart=True)
    with pytest.raises(ChildDied, match="Worker"):
        supervisor.wait(lambda: False, "it")
    assert len(restarts) == module.RESTARTS


def test_a_server_moves_when_its_port_was_taken(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # taken, but nobody answers there
        ports = iter([taken.getsockname()[1], module.free_port()])
        monkeypatch.setattr(module, "free_port", lambda: next(ports))
        server = Server(supervisor, "Web server", listen_on)
        server.wait()
        assert server.port != taken.getsockname()[1]
    supervisor.check()


def test_a_server_stays_on_the_port_it_was_given(supervisor: Supervisor) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        server = Server(supervisor, "Web server", listen_on, port=taken.getsockname()[1])
        with pytest.raises(ChildDied, match=r"(?s)Web server.*in use"):
            server.wait()


def test_only_one_process_is_told_a_secret(supervisor: Supervisor) -> None:
    show = [sys.executable, "-c", "import os; print(os.environ.get('WORD'))"]
    assert supervisor.run("told", show, secrets={"WORD": "sesame"}).output() == "sesame\n"
    assert supervisor.run("not told", show).output() == "None\n"


def test_a_request_to_end_interrupts_a_command(
    supervisor: Supervisor, requests: StopRequests
) -> None:
    requests.count = 1
    with pytest.raises(Interrupted):
        supervisor.run("Nap", LONG)


def test_signals_are_only_counted() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with StopRequests() as requests:
        assert not requests.count
        requests.check()
        os.kill(os.getpid(), signal.SIGINT)
        wait_until(lambda: requests.count == 1, "the signal", 5)
        assert not requests.forced
        with pytest.raises(Interrupted):
            requests.check()
        os.kill(os.getpid(), signal.SIGTERM)
        wait_until(lambda: requests.forced, "the second signal", 5)
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_second_request_ends_stubborn_children_at_once(
    supervisor: Supervisor, requests: StopRequests
) -> None:
    script = "import signal,time; signal.signal(15, signal.SIG_IGN); print('up'); time.sleep(60)"
    child = supervisor.start("Mule", [sys.executable, "-u", "-c", script])
    wait_until(lambda: child.has_written("up"), "it", 10)
    requests.count = 2
    started = time.monotonic()
    supervisor.stop()
    assert not child.alive
    assert time.monotonic() - started < 5
