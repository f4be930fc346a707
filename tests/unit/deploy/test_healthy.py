"""deploy/healthy.py: exit status 0 only for a site that answers and has its database."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

from renders.demo.processes import free_port
from tests.unit.deploy.support import DEPLOY


@contextmanager
def site(status: int) -> Iterator[tuple[int, list[str]]]:
    """A web server that answers with this status; its port, and what it was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_port, asked
        finally:
            server.shutdown()
            thread.join()


def healthy(bind: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "WEB_BIND": bind}
    command = [sys.executable, "-I", DEPLOY / "healthy.py"]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def test_it_asks_whether_the_site_is_ready():
    with site(200) as (port, asked):
        done = healthy(f"0.0.0.0:{port}")

    assert (done.returncode, done.stderr) == (0, "")
    assert asked == ["/readyz"]


def test_a_site_without_its_database_is_not_healthy():
    with site(503) as (port, _):
        done = healthy(f"127.0.0.1:{port}")

    assert (done.returncode, done.stderr) == (1, f"127.0.0.1:{port} answers with 503\n")


def test_nor_is_one_that_does_not_answer():
    done = healthy(f"127.0.0.1:{free_port()}")

    assert done.returncode == 1
    assert "does not answer" in done.stderr and "Traceback" not in done.stderr
