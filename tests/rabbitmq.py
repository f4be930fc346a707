"""A real RabbitMQ node for the tests, with folders, a cookie and an epmd of its own.

It meets no other node of the machine: every port is free and on 127.0.0.1, and its home is the
folder it is given.
"""

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from renders.demo.processes import Child, free_port, kill_group, port_answers, wait_until

# The first is where packages keep the script itself, the others hold wrappers that would change
# the user, and are on the PATH of root only.
PLACES = "/usr/lib/rabbitmq/bin", os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"
START_SECONDS = 60.0


class RabbitMQ:
    """One node without plugins. A context manager; skips the test where there is no server."""

    def __init__(self, folder: Path) -> None:
        server = shutil.which("rabbitmq-server", path=os.pathsep.join(PLACES))
        if server is None or shutil.which("epmd") is None:
            pytest.skip("No RabbitMQ: apt-get install rabbitmq-server.")
        self._server = server
        self._folder = folder
        self._port, self._epmd_port, self._nodes_port = free_port(), free_port(), free_port()
        self._epmd: Child | None = None
        self._node: Child | None = None

    @property
    def url(self) -> str:
        """The address for `CELERY_BROKER_URL`; the same after a restart."""
        return f"amqp://guest:guest@127.0.0.1:{self._port}//"

    @property
    def alive(self) -> bool:
        """Whether the node runs."""
        return self._node is not None and self._node.alive

    def start(self) -> None:
        """Start the node and return once clients can connect; it has what it stored before."""
        # Left to the node, epmd would become a daemon that outlives everybody.
        if self._epmd is None:
            command = ["epmd", "-port", str(self._epmd_port), "-address", "127.0.0.1"]
            self._epmd = Child("epmd", command, log=self._folder / "epmd.log")
            self._wait(self._epmd, self._epmd_port)
        self._node = Child(
            "RabbitMQ",
            [self._server, "-noinput"],
            environment=self._environment(),
            log=self._folder / "rabbitmq.log",
            cwd=self._folder,
        )
        self._wait(self._node, self._port)

    def kill(self) -> None:
        """SIGKILL the node, without a goodbye to its clients; its data stay."""
        if self._node is not None:
            kill_group(self._node)

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Let the node keep its connections and answer nothing."""
        assert self._node is not None
        self._node.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._node.process.send_signal(signal.SIGCONT)

    def __enter__(self) -> "RabbitMQ":
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()
        if self._epmd is not None:
            kill_group(self._epmd)

    def _environment(self) -> dict[str, str]:
        folder = self._folder
        return {
            "PATH": os.environ.get("PATH", ""),
            "LANG": "C.UTF-8",
            "HOME": str(folder),  # the cookie is kept there
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"renders{self._port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self._port),
            "RABBITMQ_DIST_PORT": str(self._nodes_port),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder / "logs"),
            "RABBITMQ_LOGS": "-",
            # None of these files exists: neither plugins nor the machine's own configuration.
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "environment"),
            # The script then becomes the node, instead of a shell that watches over it.
            "RABBITMQ_ALLOW_INPUT": "1",
        }

    @staticmethod
    def _wait(child: Child, port: int) -> None:
        def check() -> None:
            if not child.alive:
                raise child.death()

        wait_until(lambda: port_answers(port), child.name, START_SECONDS, check=check)
