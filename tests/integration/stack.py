"""The whole system around a test: database, Redis, sandbox, worker processes."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings

from renders import services
from renders.demo.embedded_redis import EmbeddedRedis
from renders.demo.processes import Child, kill_group
from renders.lifecycle.sweep import sweep
from renders.models import RenderJob
from renders.sandbox import Sandbox
from renders.schedulers import dispatch
from tests.effects.models import Effect

PATIENCE_SECONDS = 60


class Stack:
    """What a test drives. `sandbox.ledger` says what was billed and read.

    What a test writes into `environment` holds for the processes that it starts afterwards, and
    so does the folder of code in `tree`.
    """

    def __init__(
        self, folder: Path, database_url: str, redis: EmbeddedRedis, sandbox: Sandbox
    ) -> None:
        self.redis = redis
        self.sandbox = sandbox
        self.marker = folder / "marker"
        self.tree = Path(settings.BASE_DIR)
        self._folder = folder
        self.environment = {
            **os.environ,
            "PYTHONUNBUFFERED": "1",
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "DATABASE_URL": database_url,
            "REDIS_URL": redis.url,
            "SUME_BASE_URL": sandbox.url,
            "DJANGO_MEDIA_ROOT": str(settings.MEDIA_ROOT),
            "EFFECTS_MARKER": str(self.marker),
        }
        self._workers: list[Child] = []

    def worker(self, *options: str) -> Child:
        """Start a worker process (prefork, two children) and return once it takes work."""
        name = f"w{len(self._workers)}@test"
        child = self.run(
            name,
            "-m",
            "celery",
            "-A",
            "project",
            "worker",
            "-c2",
            "-linfo",
            "-n",
            name,
            # Nobody to meet: saves a second for each test.
            "--without-mingle",
            "--without-gossip",
            *options,
        )
        self.until(lambda: child.has_written("ready."), child=child)
        return child

    def run(self, name: str, *arguments: str) -> Child:
        """Start `python ...` within this stack's environment."""
        child = Child(
            name,
            [sys.executable, *arguments],
            environment=self.environment,
            log=self._folder / f"{name}.log",
            cwd=self.tree,
        )
        self._workers.append(child)
        return child

    def beat(self) -> Child:
        """Start beat, which sweeps every `SWEEP_SECONDS`."""
        schedule = str(self._folder / "schedule")
        return self.run("beat", "-m", "celery", "-A", "project", "beat", "-s", schedule)

    def command(self, *words: str) -> None:
        """Run a command of `manage.py` as a person would, with the stack's own broker."""
        command = self.run(words[0], "manage.py", *words)
        self.until(lambda: not command.alive)
        assert command.process.returncode == 0, command.output()

    def kill(self, worker: Child) -> None:
        """SIGKILL the worker and all of its processes."""
        kill_group(worker)

    def stop(self) -> None:
        """End what this stack has started, at once."""
        for child in self._workers:
            kill_group(child)

    def logs(self) -> str:
        """Everything that the processes have written."""
        return "\n".join(path.read_text(errors="replace") for path in self._folder.glob("*.log"))

    def sweep(self) -> None:
        """What beat does every `SWEEP_SECONDS`."""
        dispatch.follow(sweep())

    def create(self, *prompts: str, **fields: Any) -> list[RenderJob]:
        """Create one render for each prompt."""
        return [services.create_render(prompt, **fields) for prompt in prompts]

    def until(
        self,
        condition: Callable[[], Any],
        *,
        child: Child | None = None,
        seconds: float = PATIENCE_SECONDS,
    ) -> None:
        """Wait for the condition, to a deadline."""
        deadline = time.monotonic() + seconds
        while not condition():
            if child is not None and not child.alive:
                raise child.death()
            if time.monotonic() > deadline:
                raise AssertionError(f"Not in {seconds} s.\n{self.report()}\n{self.logs()[-6000:]}")
            time.sleep(0.05)

    def until_handled(self, *, sweeping: bool = True) -> None:
        """Wait until every render has ended and is handled."""
        swept = time.monotonic()

        def handled() -> bool:
            nonlocal swept
            if sweeping and time.monotonic() - swept > 1:
                self.sweep()
                swept = time.monotonic()
            return not RenderJob.objects.filter(handled_at__isnull=True).exists()

        self.until(handled)

    def report(self) -> str:
        """The renders and their timelines, for a failed test's message."""
        return "\n".join(
            f"{render} {render.error_code} {[str(event) for event in render.events.all()]}"
            for render in RenderJob.objects.all()
        )

    def assert_sound(self) -> None:
        """One bill, one handling, no read before its time: what holds after every test."""
        ledger = self.sandbox.ledger
        bills = [bill.idempotency_key for bill in ledger.bills]
        assert len(bills) == len(set(bills)), "a render was billed twice"
        assert not ledger.body_conflicts
        assert not ledger.early_reads
        assert not ledger.posts_without_key
        handled = {str(r.pk) for r in RenderJob.objects.filter(handled_at__isnull=False)}
        effects = [str(effect.render_id) for effect in Effect.objects.all()]
        assert sorted(effects) == sorted(handled), "a signal's effect did not happen exactly once"
        assert settings.RENDERS["API_KEY"] not in self.logs()
