"""Starts the demo's processes, watches and restarts them, and stops them all."""

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from renders.demo.exceptions import DemoError
from renders.demo.processes import Child, free_port, port_answers, stop_all, wait_until

READY_SECONDS = 60.0
STOP_SECONDS = 12.0
RESTARTS = 5  # in RESTART_WINDOW seconds; more means a fault that restarting cannot fix
RESTART_WINDOW = 60.0
PORTS_TO_TRY = 3
PORT_IN_USE = "in use"


class StopRequests(Protocol):
    """Requests to end the demo, by Ctrl-C or a signal."""

    @property
    def forced(self) -> bool:
        """Whether there were two requests: everything must end at once."""

    def check(self) -> None:
        """Raise `Interrupted` if there was a request."""


class Supervisor:
    """Starts, watches and stops processes. Use it from one thread: children die with it."""

    def __init__(
        self,
        requests: StopRequests,
        *,
        cwd: Path,
        logs: Path,
        on_restart: Callable[[str], None] = lambda name: None,
    ) -> None:
        self.environment: dict[str, str] = {}
        self._requests = requests
        self._cwd = cwd
        self._logs = logs
        self._on_restart = on_restart
        self._children: list[Child] = []
        self._watched: list[Child] = []
        self._restartable: dict[str, tuple[list[str], deque[float]]] = {}

    def start(
        self,
        name: str,
        command: Sequence[str],
        *,
        secrets: Mapping[str, str] | None = None,
        restart: bool = False,
    ) -> Child:
        """Start a process that runs until `stop()`; with `restart`, it is restarted if it exits.

        `secrets` are environment variables for this process alone.
        """
        if restart:
            self._restartable[name] = (list(command), deque(maxlen=RESTARTS))
        child = self._spawn(name, command, secrets)
        self._children.append(child)
        return child

    def watch(self, child: Child | None) -> None:
        """Watch a process that is started and stopped elsewhere."""
        if child:
            self._watched.append(child)

    def forget(self, child: Child) -> None:
        """Stop watching a process that has ended."""
        self._children.remove(child)

    def run(
        self,
        name: str,
        command: Sequence[str],
        *,
        secrets: Mapping[str, str] | None = None,
        terminal: bool = False,
    ) -> Child:
        """Run a command to its end. Its output goes to a log; with `terminal`, to the terminal."""
        child = self._spawn(name, command, secrets, terminal=terminal)
        try:
            while child.alive:
                self.check()
                time.sleep(0.05)
        finally:
            stop_all([child], 3, forced=lambda: self._requests.forced)
        return child

    def wait(self, ready: Callable[[], bool], what: str) -> None:
        """Wait until `ready()`. Raises `NotReady`, or what `check` raises."""
        wait_until(ready, what, READY_SECONDS, check=self.check)

    def check(self) -> None:
        """Restart ended processes that allow it; raise `ChildDied` for others, or `Interrupted`."""
        self._requests.check()
        for child in self._watched:
            if not child.alive:
                raise child.death()
        for position, child in enumerate(self._children):
            if child.alive:
                continue
            command, restarts = self._restartable.get(child.name, ([], deque()))
            now = time.monotonic()
            too_often = len(restarts) == RESTARTS and now - restarts[0] < RESTART_WINDOW
            if not command or too_often:
                raise child.death()
            stop_all([child], 0)  # its remaining process group
            restarts.append(now)
            self._on_restart(child.name)
            self._children[position] = self._spawn(child.name, command)

    def stop(self) -> None:
        """Stop all processes started here: gracefully, or at once on a second Ctrl-C."""
        stop_all(self._children, STOP_SECONDS, forced=lambda: self._requests.forced)
        self._children.clear()

    def _spawn(
        self,
        name: str,
        command: Sequence[str],
        secrets: Mapping[str, str] | None = None,
        *,
        terminal: bool = False,
    ) -> Child:
        self._requests.check()
        log = None if terminal else self._logs / f"{name.lower().replace(' ', '-')}.log"
        environment = {**self.environment, **(secrets or {})}
        return Child(name, command, environment=environment, log=log, cwd=self._cwd)


class Server:
    """A process that listens on a given or free port of 127.0.0.1."""

    def __init__(
        self,
        supervisor: Supervisor,
        name: str,
        command: Callable[[int], Sequence[str]],
        *,
        port: int = 0,
        ports_to_try: int | None = None,
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        """Start `command(port)`. By default, no other port is tried if one is given."""
        self._supervisor = supervisor
        self._name = name
        self._command = command
        self._secrets = secrets
        self._ports_left = ports_to_try or (1 if port else PORTS_TO_TRY)
        self._start(port or free_port())

    def wait(self) -> None:
        """Wait until it answers; tries another port if another process took the port first.

        Raises `NotReady`, or what `Supervisor.check` raises.
        """
        while True:
            try:
                self._supervisor.wait(self._answers, self._name)
            except DemoError:
                taken = not self._child.alive and PORT_IN_USE in self._child.output().lower()
                if not taken or not self._ports_left:
                    raise
                self._supervisor.forget(self._child)
                self._start(free_port())
            else:
                return

    def _start(self, port: int) -> None:
        self.port = port
        self._ports_left -= 1
        self._child = self._supervisor.start(self._name, self._command(port), secrets=self._secrets)

    def _answers(self) -> bool:
        return self._child.alive and port_answers(self.port)
