"""The parts that the demo starts, in their order."""

import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from renders.conf import Conf, destination
from renders.demo.embedded_redis import EmbeddedRedis
from renders.demo.environment import (
    child_environment,
    redis_environment,
    sandbox_environment,
    why_unreachable,
)
from renders.demo.exceptions import DemoError
from renders.demo.processes import free_port, port_is_free
from renders.demo.state import StateFolder
from renders.demo.supervisor import PORTS_TO_TRY, Server, StopRequests, Supervisor

USER = "admin"
PASSWORD = "admin-password"  # noqa: S105  (the name it is stored under)
WORKER_READY = " ready."  # in the worker's log
USER_EXISTS = "already taken"  # in createsuperuser's output


@dataclass(frozen=True)
class Site:
    """The project of the demo: its folder, package and settings."""

    folder: Path
    package: str
    settings_module: str


class Stack:
    """The demo's parts: Redis and the sandbox if needed, Celery, Flower, web server, admin user."""

    def __init__(
        self,
        site: Site,
        state: StateFolder,
        requests: StopRequests,
        *,
        environment: Mapping[str, str],
        say: Callable[[str, str], None],
    ) -> None:
        """`environment` is the user's; `say(what, how)` is called for each part as it starts."""
        self.admin_password = ""
        self.flower_password = secrets.token_urlsafe(12)
        self.uses_sandbox = not environment.get("SUME_API_KEY", "").strip()
        self._site = site
        self._state = state
        self._own = environment
        self._say = say
        self._redis: EmbeddedRedis | None = None
        self._supervisor = Supervisor(
            requests,
            cwd=site.folder,
            logs=state.logs,
            on_restart=lambda name: say(name, "ended by itself and was started again"),
        )

    def start(self, port: int = 0) -> None:
        """Start everything, with the web server on `port`, or on a free port if it is 0.

        Raises `DemoError`.
        """
        if port and not port_is_free(port):
            raise DemoError(f"Port {port} is in use. Choose another with --port, or leave it out.")
        own = dict(self._own)
        if self.uses_sandbox:
            own.pop("DATABASE_URL", None)  # real renders wait there; the stand-in must not get them
        self._supervisor.environment = child_environment(
            own, self._state, self._site.settings_module
        )
        self._start_redis()
        sandbox = self._start_sandbox() if self.uses_sandbox else None
        self._migrate()
        self._settle_sume(sandbox)
        worker = self._celery("worker", "--concurrency=4", "--loglevel=info", "-E")
        started = self._supervisor.start("Worker", worker, restart=True)
        schedule = self._state.path / "beat-schedule"
        # Without a pid file none can be left over to forbid the next start.
        beat = self._celery("beat", "--loglevel=info", f"--schedule={schedule}", "--pidfile=")
        self._supervisor.start("Beat", beat)
        # Each links to the other.
        flower_port = free_port()
        self._web = self._start_web(port, flower_port)
        self._flower = self._start_flower(flower_port)
        self._create_admin()
        self._supervisor.wait(lambda: started.has_written(WORKER_READY), "The worker")
        self._web.wait()
        self._flower.wait()
        self._say("Started", "worker, beat, web server, Flower")

    def follow(self, prompts: list[str]) -> int:
        """Create renders, show them until they end, and return the command's exit status."""
        command = ["render", "--user", USER]
        if self.uses_sandbox:
            command.append("--expect-sandbox-failures")
        command = self._manage(*command, "--", *prompts)
        return self._supervisor.run("The command render", command, terminal=True).process.wait()

    def links(self) -> list[tuple[str, str, str]]:
        """The name, the address and the login of each page."""
        site = f"http://127.0.0.1:{self._web.port}"
        admin = f"user {USER}, password {self.admin_password}"
        flower = f"user {USER}, password {self.flower_password}"
        return [
            ("Gallery", f"{site}/renders/", "as for the admin"),
            ("Admin", f"{site}/admin/", admin),
            ("Flower", f"http://127.0.0.1:{self._flower.port}/", flower),
        ]

    def check(self) -> None:
        """Raise `Interrupted` if requested, or `ChildDied` if a process has ended."""
        self._supervisor.check()

    def stop(self) -> None:
        """Stop everything, Redis last."""
        self._supervisor.stop()
        if self._redis:
            self._redis.stop()

    def _start_redis(self) -> None:
        url = self._own.get("REDIS_URL", "")
        problem = why_unreachable(url) if url else ""
        if url and not problem:
            self._say("Redis", "the one that REDIS_URL names")
            return
        if problem:
            self._say("Redis", f"the one that REDIS_URL names cannot be used: {problem}")
        self._redis = EmbeddedRedis(
            directory=self._state.path / "redis", append_only=self._state.keep
        ).start()
        # Redis is stopped last: the worker returns its waiting polls to it.
        self._supervisor.watch(self._redis.child)
        self._supervisor.environment |= redis_environment(self._redis.url)
        self._say("Redis", f"a server of its own on port {self._redis.port}")

    def _start_sandbox(self) -> Server:
        return Server(
            self._supervisor,
            "Sandbox",
            lambda port: self._manage("sumesandbox", "--port", str(port)),
        )

    def _settle_sume(self, sandbox: Server | None) -> None:
        address = self._own.get("SUME_BASE_URL", "")
        if not sandbox:
            where = destination.at(address or Conf.BASE_URL.default).words
            self._say("Sume", f"{where} (SUME_API_KEY is set)")
            return
        sandbox.wait()
        key = f"sandbox-{secrets.token_urlsafe(16)}"
        self._supervisor.environment |= sandbox_environment(self._own, sandbox.port, key)
        aside = " (SUME_BASE_URL is left aside: SUME_API_KEY is not set)" if address else ""
        self._say("Sume", f"a stand-in on port {sandbox.port}: nothing is billed{aside}")

    def _migrate(self) -> None:
        child = self._supervisor.run("Migrate", self._manage("migrate", "--noinput"))
        if child.process.returncode:
            raise child.death()
        if not self._own.get("DATABASE_URL"):
            self._say("Database", "SQLite")
        elif self.uses_sandbox:
            self._say("Database", "SQLite (DATABASE_URL is left aside: SUME_API_KEY is not set)")
        else:
            self._say("Database", "the one that DATABASE_URL names")
            self._say("", "renders that wait in it go to Sume, too")

    def _start_web(self, port: int, flower_port: int) -> Server:
        return Server(
            self._supervisor,
            "Web server",
            lambda port: self._manage("runserver", "--noreload", f"127.0.0.1:{port}"),
            port=port,
            secrets={"RENDERS_FLOWER_URL": f"http://127.0.0.1:{flower_port}"},
        )

    def _start_flower(self, port: int) -> Server:
        # In the environment, because every user of the machine can see arguments.
        access = {"FLOWER_BASIC_AUTH": f"{USER}:{self.flower_password}"}
        site = {"RENDERS_PUBLIC_URL": f"http://127.0.0.1:{self._web.port}"}
        return Server(
            self._supervisor,
            "Flower",
            lambda port: self._celery("flower", "--address=127.0.0.1", f"--port={port}"),
            port=port,
            ports_to_try=PORTS_TO_TRY,
            secrets=access | site,
        )

    def _create_admin(self) -> None:
        stored = self._state.recall(PASSWORD)
        password = stored or secrets.token_urlsafe(12)
        child = self._supervisor.run(
            "Create admin",
            self._manage("createsuperuser", "--noinput"),
            secrets={
                "DJANGO_SUPERUSER_USERNAME": USER,
                "DJANGO_SUPERUSER_EMAIL": "",
                "DJANGO_SUPERUSER_PASSWORD": password,
            },
        )
        if not child.process.returncode:
            self._state.remember(PASSWORD, password)
            self.admin_password = password
        elif USER_EXISTS in child.output():
            self.admin_password = stored or "unchanged (the user was there before)"
        else:
            raise child.death()

    def _manage(self, *arguments: str) -> list[str]:
        return [sys.executable, str(self._site.folder / "manage.py"), *arguments]

    def _celery(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "celery", "-A", self._site.package, *arguments]
