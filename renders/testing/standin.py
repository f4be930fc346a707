"""Sume for one test, and the settings that lead there."""

import logging
import tempfile
import time
from contextlib import ExitStack
from types import TracebackType
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

# Nobody listens here. The app does without Redis, and a refused connection costs no time.
NO_REDIS = "redis://127.0.0.1:9/0"
WARN_OF_REDIS = (
    "renders.limits.gate",
    "renders.limits.read_quota",
    "renders.lifecycle.polling",
    "renders.coordination.leases",
)
NO_LIMIT = 1_000_000


class StandIn:
    """A stand-in for Sume that never lets anybody wait; the settings lead to it meanwhile.

    with StandIn() as sume:
        render = sume.run_to_end(create_render("A boat"))

    Finished media go to a temporary folder that is the default storage. What would be told to
    Celery is kept in `messages` and goes nowhere. `options` are those of the sandbox.
    """

    def __init__(self, **options: Any) -> None:
        self.messages: list[Step] = []
        """What the app would have told Celery, in order."""
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
        """The sandbox itself; `sandbox.faults.add` orders a fault of the network."""
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
                logger.addFilter(_tells_more)
                cleanup.callback(logger.removeFilter, _tells_more)
            self._cleanup = cleanup.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._cleanup.close()

    def run_to_end(self, render: RenderJob) -> RenderJob:
        """Send it, read it until Sume has ended it, finish it: now, in this process.

        Returns the fresh row. What the receivers left to `transaction.on_commit` is done as
        well, also inside a test's own transaction. Raises `NotEnded`, with the exception of a
        receiver as its cause.
        """
        return self._drive([render])[0]

    def run_all_to_end(self) -> list[RenderJob]:
        """The same for all renders that are not handled yet, in the order they were made."""
        return self._drive(list(RenderJob.objects.filter(handled_at=None).order_by("created_at")))

    @property
    def bills(self) -> list[Bill]:
        """What was billed: once for each render that Sume took."""
        return self.sandbox.ledger.bills

    @property
    def refunds(self) -> list[Refund]:
        """What was given back, for renders that failed or were canceled."""
        return self.sandbox.ledger.refunds

    def next_fails(self, code: str = "generation_failed") -> None:
        """The next render that is sent will be taken, and fail."""
        self.sandbox.faults.add("job_fails", on="submit", argument=code)

    def next_is_refused(self, code: str = "prompt_rejected") -> None:
        """The next render that is sent will not be taken, so it fails and is not billed."""
        self.sandbox.faults.add("rejected", on="submit", argument=code)

    def next_takes(self, seconds: float) -> None:
        """The next render that is sent will be processed for so long, and read several times.

        No test waits for it: `run_to_end` turns the clocks on.
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
            # Every account is a stand-in: no key of the project's is left.
            "WORKSPACES": dict.fromkeys(workspaces.names()[1:], self._account()),
            "SECRETS_FILE": "",
            "BUDGET_USD": 0,
            "USER_BUDGET_USD": 0,
            "REDIS_URL": NO_REDIS,
            "WRITES_PER_MINUTE": NO_LIMIT,
            "MAX_IN_FLIGHT": NO_LIMIT,
            "API_REQUESTS_PER_MINUTE": 0,  # nor is the missing Redis noted, which others may have
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


def _tells_more(record: logging.LogRecord) -> bool:
    """Whether this is about more than the Redis that a test does not have."""
    return not record.msg.startswith("Redis unreachable")
