import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from renders.demo.exceptions import Interrupted, NotReady
from renders.demo.processes import (
    PORTS,
    Child,
    free_port,
    kill_group,
    port_answers,
    port_is_free,
    stop_all,
    wait_until,
)

STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
time.sleep(60)
"""
WITH_GRANDCHILD = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(child.pid, flush=True)
"""
PARENT = """
import sys, time
from pathlib import Path
from renders.demo.processes import Child
child = Child("sleeper", ["sleep", "60"], log=Path(sys.argv[1]))
print(child.process.pid, flush=True)
time.sleep(60)
"""


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "child.log"


@pytest.fixture
def stubborn(log: Path) -> Iterator[Child]:
    child = Child("stubborn", [sys.executable, "-c", STUBBORN], log=log)
    wait_until(lambda: child.has_written("up"), "it", 10)
    yield child
    kill_group(child)


def test_waiting_ends_at_its_deadline_and_says_for_what() -> None:
    with pytest.raises(NotReady, match=r"The kettle is not ready after 0\.1 s"):
        wait_until(lambda: False, "The kettle", 0.1)


def test_waiting_is_cut_short_by_its_check() -> None:
    def check() -> None:
        raise Interrupted

    with pytest.raises(Interrupted):
        wait_until(lambda: False, "it", 60, check=check)


def test_a_free_port_is_free_and_out_of_the_way_of_outgoing_connections() -> None:
    port = free_port()
    assert port in PORTS
    assert port_is_free(port)
    assert not port_answers(port)


def test_a_port_in_use_is_seen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert not port_is_free(port)
        assert port_answers(port)


def test_a_death_is_told_with_the_end_of_the_log(log: Path) -> None:
    log.write_text("an earlier process wrote this\n")
    script = "import sys; print('first'); sys.exit('no such shelf')"
    child = Child("Librarian", [sys.executable, "-c", script], log=log)
    error = str(child.death())
    assert error.startswith("Librarian ended with status 1. The end of its log:")
    assert "no such shelf" in error
    assert "earlier" not in error


def test_a_death_by_signal_is_named(stubborn: Child) -> None:
    stubborn.process.kill()
    assert "stubborn was ended by signal 9" in str(stubborn.death())


def test_stopping_ends_a_child_that_ignores_sigterm(stubborn: Child) -> None:
    started = time.monotonic()
    stop_all([stubborn], 0.3)
    assert stubborn.process.returncode == -signal.SIGKILL
    assert time.monotonic() - started < 5


def test_a_forced_stop_does_not_wait(stubborn: Child) -> None:
    started = time.monotonic()
    stop_all([stubborn], 60, forced=lambda: True)
    assert time.monotonic() - started < 5


def test_stopping_is_kind_at_first(log: Path) -> None:
    child = Child("sleeper", ["sleep", "60"], log=log)
    stop_all([child], 10)
    assert child.process.returncode == -signal.SIGTERM


def test_what_a_child_left_behind_is_ended_too(log: Path) -> None:
    child = Child("mother", [sys.executable, "-c", WITH_GRANDCHILD], log=log)
    child.process.wait(10)
    grandchild = int(child.output())
    assert is_running(grandchild)
    stop_all([child], 0)
    wait_until(lambda: not is_running(grandchild), "its end", 5)


def test_a_child_has_its_own_session(stubborn: Child) -> None:
    assert os.getsid(stubborn.process.pid) == stubborn.process.pid


@pytest.mark.skipif(sys.platform != "linux", reason="Only Linux has the bond.")
def test_a_child_dies_with_its_parent(log: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(log)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout
        pid = int(parent.stdout.readline())
        assert is_running(pid)
        parent.kill()
    wait_until(lambda: not is_running(pid), "its end", 5)
