"""gunicorn as systemd starts it: on a socket that outlives it, so that nobody is turned away."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
import requests
from django.conf import settings

from renders.demo.processes import wait_until

pytestmark = pytest.mark.slow
SITE = """
import os, time

def application(environ, start_response):
    if environ["PATH_INFO"] == "/slow":
        open("begun", "w").close()
        time.sleep(2)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{environ['wsgi.url_scheme']} {os.getppid()}".encode()]
"""


class Unit:
    """renders-web.socket, and renders-web.service as often as it is started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "site_of_test.py").write_text(textwrap.dedent(SITE))
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.socket.set_inheritable(True)
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notices.bind(str(folder / "notify"))
        self.notices.settimeout(20)
        self.children: list[subprocess.Popen[bytes]] = []

    def start(self) -> "subprocess.Popen[bytes]":
        """Start the server as systemd would: the socket is its descriptor 3."""
        file = self.socket.fileno()
        configuration = settings.BASE_DIR / "deploy/gunicorn.conf.py"
        server = f"{Path(sys.executable).parent}/gunicorn -c {configuration}"
        line = f"exec 3<&{file}; LISTEN_FDS=1 LISTEN_PID=$$ exec {server} site_of_test:application"
        child = subprocess.Popen(
            ["bash", "-c", line],
            pass_fds=[file],
            cwd=self.folder,
            env={
                **os.environ,
                "PYTHONPATH": str(self.folder),
                "NOTIFY_SOCKET": str(self.folder / "notify"),
            },
            start_new_session=True,
        )
        self.children.append(child)
        return child

    def get(self, path: str = "/") -> list[str]:
        """The scheme that the site saw, and the process that answered."""
        with requests.Session() as session:
            session.trust_env = False
            reply = session.get(self.url + path, timeout=50, headers={"X-Forwarded-Proto": "https"})
        assert reply.status_code == 200
        return reply.text.split()


@pytest.fixture
def unit(tmp_path: Path) -> Iterator[Unit]:
    unit = Unit(tmp_path)
    yield unit
    for child in unit.children:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    unit.socket.close()
    unit.notices.close()


def test_requests_go_on_and_wait_while_the_web_server_is_replaced(unit: Unit) -> None:
    old = unit.start()
    assert b"READY=1" in unit.notices.recv(1000)  # what Type=notify waits for
    assert unit.get() == ["https", str(old.pid)]

    with ThreadPoolExecutor(10) as people:
        slow = people.submit(unit.get, "/slow")
        wait_until((unit.folder / "begun").exists, "The slow request", 10)
        old.terminate()
        waiting = [people.submit(unit.get) for _ in range(4)]  # while it ends the slow one
        assert old.wait(50) == 0
        # The server is away.
        waiting += [people.submit(unit.get) for _ in range(4)]
        new = unit.start()
        answers = [request.result(50) for request in waiting]

    assert slow.result() == ["https", str(old.pid)]
    assert {tuple(answer) for answer in answers[4:]} == {("https", str(new.pid))}
