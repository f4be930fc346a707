"""Child processes: each in its own session, with its own log, ended when their parent ends."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from renders.demo.exceptions import ChildDied, NotReady

LAUNCHER = Path(__file__).with_name("launch.py")
TAIL_BYTES = 8_192
PORTS = range(20_000, 32_000)


class Child:
    """A started command. Start it from a thread that keeps running: it dies with the thread."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        log: Path | None = None,
        cwd: Path | None = None,
    ) -> None:
        """Start `command`. Its output goes to the file `log`, or to the terminal without one."""
        self.name = name
        self.log = log
        self._log_start = log.stat().st_size if log and log.exists() else 0
        bonded = [sys.executable, "-I", "-S", str(LAUNCHER), str(os.getpid()), *command]
        if log:
            with log.open("ab") as output:
                self.process = subprocess.Popen(  # noqa: S603  (a list, no shell)
                    bonded,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    env=environment,
                    cwd=cwd,
                )
        else:
            self.process = subprocess.Popen(  # noqa: S603  (a list, no shell)
                bonded, start_new_session=True, env=environment, cwd=cwd
            )

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self.process.poll() is None

    def output(self) -> str:
        """The end of this process's own output in its log."""
        if not self.log or not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(self._log_start, size - TAIL_BYTES))
            return log.read().decode(errors="replace")

    def has_written(self, text: str) -> bool:
        """Whether this process has ever written `text` to its log."""
        if not self.log or not self.log.exists():
            return False
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            return text.encode() in log.read()

    def death(self) -> ChildDied:
        """The error for its end, with its exit status and the last lines of its log."""
        code = self.process.wait()
        how = f"was ended by signal {-code}" if code < 0 else f"ended with status {code}"
        lines = self.output().strip().splitlines()[-15:]
        shown = "".join(f"\n    {line}" for line in lines) or "\n    (nothing)"
        return ChildDied(f"{self.name} {how}. The end of its log:{shown}")


def stop_all(
    children: Iterable[Child], seconds: float, *, forced: Callable[[], bool] = lambda: False
) -> None:
    """Terminate all children (SIGTERM); after `seconds`, or once `forced()`, kill them (SIGKILL).

    Remaining processes in the children's process groups are killed too.
    """
    children = list(children)
    for child in children:
        if child.alive:
            child.process.terminate()
    deadline = time.monotonic() + seconds
    while any(child.alive for child in children):
        if forced() or time.monotonic() >= deadline:
            break
        time.sleep(0.05)
    for child in children:
        kill_group(child)


def kill_group(child: Child) -> None:
    """Kill the child and all of its process group at once, and reap it."""
    # Both errors mean that all are gone: on macOS, signalling a zombie is "not permitted".
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.process.pid, signal.SIGKILL)
    child.process.wait()


def wait_until(
    ready: Callable[[], bool],
    what: str,
    seconds: float,
    *,
    check: Callable[[], None] = lambda: None,
    interval: float = 0.05,
) -> None:
    """Wait until `ready()`, calling `check()` repeatedly, which may raise.

    Raises `NotReady` after `seconds`.
    """
    deadline = time.monotonic() + seconds
    while not ready():
        check()
        if time.monotonic() >= deadline:
            raise NotReady(f"{what} is not ready after {seconds:g} s.")
        time.sleep(interval)


def free_port() -> int:
    """A port of 127.0.0.1 that is free now.

    It is below the systems' range for outgoing connections. In that range, a client's connection
    could take a server's port while the server is down.
    """
    while True:
        port = secrets.choice(PORTS)
        if port_is_free(port):
            return port


def port_is_free(port: int) -> bool:
    """Whether a server could listen on this port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def port_answers(port: int) -> bool:
    """Whether a server listens on this port of 127.0.0.1."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
