"""What a sandbox can be told when it starts: times, limits, prices, random faults."""

import math
from dataclasses import dataclass

from .values import handle


@dataclass(frozen=True)
class Options:
    """Settings of one sandbox, checked when made. Raises ValueError that names the option."""

    queued_seconds: float = 1.0
    """The least time a job waits before it is processed, in seconds."""
    processing_seconds: float = 3.0
    """How long a job is processed, in seconds."""
    poll_seconds: float = 2.0
    """The greatest `next_poll_after_seconds` that is given; below 1 it makes fast tests."""
    result_seconds: float = 0.0
    """How long a completed job says `result_ready: false`, in seconds."""
    writes_per_minute: int | None = 300
    """POSTs a minute for each API key; reads get 40 times that. None: no limit."""
    processing_limit: int = 4
    """How many jobs are processed at once."""
    queued_limit: int = 20
    """How many jobs may wait at once; the next submit gets 429 `queue_full`."""
    price_usd_micros: int = 90_000
    """The price of one job, in millionths of a dollar."""
    balance_usd_micros: int = 10_000_000_000
    """What the account holds at first, in millionths of a dollar; spent, submits get 402."""
    fault_rate: float = 0.0
    """The share of requests (0 to 1) that meet a fault an able client recovers from."""
    seed: int = 0
    """Where the random choice of those faults starts."""
    avatars: tuple[str, ...] = ("demo",)
    """The handles of avatars that are ready from the start."""
    key: str | None = None
    """The one API key that is let in. None: any that is not empty."""
    webhook_secret: str | None = None
    """What signs the events of jobs submitted with mode `webhook`. None: none are sent."""
    max_body_bytes: int = 1_000_000
    """Longer request bodies get 413."""

    def __post_init__(self) -> None:
        self._check_numbers()
        self._check_texts()

    def _check_numbers(self) -> None:
        for name in ("queued_seconds", "processing_seconds", "result_seconds"):
            value = getattr(self, name)
            if not math.isfinite(value) or value < 0:
                raise ValueError(f"{name} must be a number of seconds, 0 or more, not {value!r}.")
        if not math.isfinite(self.poll_seconds) or self.poll_seconds <= 0:
            raise ValueError(f"poll_seconds must be above 0, not {self.poll_seconds!r}.")
        for name in ("processing_limit", "max_body_bytes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more, not {getattr(self, name)!r}.")
        for name in ("queued_limit", "price_usd_micros", "balance_usd_micros"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be 0 or more, not {getattr(self, name)!r}.")
        if self.writes_per_minute is not None and self.writes_per_minute < 1:
            raise ValueError("writes_per_minute must be 1 or more, or None for no limit.")
        if not 0 <= self.fault_rate <= 1:
            raise ValueError(f"fault_rate must be between 0 and 1, not {self.fault_rate!r}.")

    def _check_texts(self) -> None:
        if isinstance(self.avatars, str):
            raise ValueError(f"avatars must be several handles, not the text {self.avatars!r}.")
        for name in self.avatars:
            for _, message in handle(name, ""):
                raise ValueError(f"avatars: {message} Not {name!r}.")
        if self.key is not None and not self.key.strip():
            raise ValueError("key must not be empty; leave it out to let any key in.")
        if self.webhook_secret is not None and not self.webhook_secret.strip():
            raise ValueError("webhook_secret must not be empty; leave it out to send no events.")
