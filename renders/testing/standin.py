"""A stand-in for Sume in tests, and the settings that use it."""

import logging
import tempfile
import time
from contextlib import ExitStack
from typing import Any
from unittest import mock

from django.conf import settings
from django.test import override_settings

from renders.conf import workspaces
from renders.lifecycle.steps import Step
from renders.models import RenderJob
from renders.sandbox import Sandbox
from renders.sandbox.ledger import Bill, Refund
from renders.testing.driving import drive

# No server listens here: the app works without Redis, and a refused connection costs no time.
NO_REDIS = "redis://127.0.0.1:9/0"
WARN_OF_REDIS = (
    "renders.limits.gate",
    "renders.limits.read_quota",
    "renders.lifecycle.polling",
    "renders.coordination.leases",
)
NO_LIMIT = 1_000_000


class StandIn:
    """A stand-in for Sume that needs no waiting, and the settings that use it. A context manager.

    with StandIn() as sume:
        render = sume.run_to_end(create_render("A boat"))

    Finished media go to a temporary folder, as the default storage. Messages for Celery are kept
    in `messages` and never sent. `options` are those of the sandbox.
    """

    def __init__(self, **options: Any) -> None:
        self.messages: list[Step] = []
        """The steps that the app would have sent to Celery, in order."""
        self._now = time.time()
        self.sandbox = Sandbox(
            clock=lambda: self._now,
            **{
                "queued_seconds": 0,
                "processing_seconds": 0,
                "poll_seconds": 30,
                "writes_per_minute": None,
                "processing_limit": NO_LIMIT,
                "queued_limit": NO_LIMIT,
                **options,
            },
        )
        """The sandbox itself; `sandbox.faults.add` schedules network faults."""
        self._cleanup = ExitStack()

    def __enter__(self) -> "StandIn":
        with ExitStack() as cleanup:
            cleanup.enter_context(self.sandbox)
            media = cleanup.enter_context(tempfile.TemporaryDirectory(prefix="renders-media-"))
            cleanup.enter_context(override_settings(**self._settings(media)))
            cleanup.enter_context(
                mock.patch("renders.schedulers.dispatch.follow", self.messages.extend)
            )
            for name in WARN_OF_REDIS:
                logger = logging.getLogger(name)
                logger.addFilter(_is_not_about_redis)
                cleanup.callback(logger.removeFilter, _is_not_about_redis)
            self._cleanup = cleanup.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._cleanup.close()

    def run_to_end(self, render: RenderJob) -> RenderJob:
        """Submit, poll and finish a render in this process; returns the fresh row.

        Callbacks of `transaction.on_commit` run too, even inside a test's own transaction.
        Raises `NotEnded`, with the exception of a receiver as its cause.
        """
        return self._drive([render])[0]

    def run_all_to_end(self) -> list[RenderJob]:
        """Run all renders that are not handled yet, in order of creation; returns the rows."""
        return self._drive(list(RenderJob.objects.filter(handled_at=None).order_by("created_at")))

    @property
    def bills(self) -> list[Bill]:
        """The bills: one for each render that Sume accepted."""
        return self.sandbox.ledger.bills

    @property
    def refunds(self) -> list[Refund]:
        """The refunds, for renders that failed or were canceled."""
        return self.sandbox.ledger.refunds

    def next_fails(self, code: str = "generation_failed") -> None:
        """Let Sume accept the next render and then fail it with this code."""
        self.sandbox.faults.add("job_fails", on="submit", argument=code)

    def next_is_refused(self, code: str = "prompt_rejected") -> None:
        """Let Sume refuse the next render, so it fails and is not billed."""
        self.sandbox.faults.add("rejected", on="submit", argument=code)

    def next_takes(self, seconds: float) -> None:
        """Let Sume process the next render for this long, so it is polled several times.

        No test waits for that: `run_to_end` advances the clocks.
        """
        self.sandbox.faults.add("job_takes", on="submit", argument=seconds)

    def _drive(self, renders: list[RenderJob]) -> list[RenderJob]:
        return drive(renders, self.messages, self._turn_on)

    def _turn_on(self, seconds: float) -> None:
        self._now += seconds

    def _settings(self, media: str) -> dict[str, Any]:
        storage = {"BACKEND": "django.core.files.storage.FileSystemStorage"}
        ours = {
            "API_KEY": "test-key",
            "BASE_URL": self.sandbox.url,
            # Every account uses the stand-in: no key of the project remains.
            "WORKSPACES": dict.fromkeys(workspaces.names()[1:], self._account()),
            "SECRETS_FILE": "",
            "BUDGET_USD": 0,
            "USER_BUDGET_USD": 0,
            "REDIS_URL": NO_REDIS,
            "WRITES_PER_MINUTE": NO_LIMIT,
            "MAX_IN_FLIGHT": NO_LIMIT,
            "API_REQUESTS_PER_MINUTE": 0,  # off: it would note for all tests that Redis is down
            "FAIR": True,
            "MEDIA_STORAGE": "default",
            "MEDIA_PRIVATE_HOSTS": "127.0.0.1",
        }
        return {
            "RENDERS": {**getattr(settings, "RENDERS", {}), **ours},
            "MEDIA_ROOT": media,
            "STORAGES": {**settings.STORAGES, "default": storage},
        }

    def _account(self) -> dict[str, Any]:
        limits = {"WRITES_PER_MINUTE": NO_LIMIT, "MAX_IN_FLIGHT": NO_LIMIT}
        return {"API_KEY": "test-key", "BASE_URL": self.sandbox.url, **limits}


def _is_not_about_redis(record: logging.LogRecord) -> bool:
    """Whether a log record is about something other than the missing Redis."""
    return not record.msg.startswith("Redis unreachable")
