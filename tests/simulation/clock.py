"""Virtual time: one true time for Sume and Redis, and a clock of ours that can be set wrongly."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from unittest import mock

import time_machine

START = datetime(2027, 3, 9, 12, 0, 7, tzinfo=UTC).timestamp()


class Clock:
    """`now` is the true time, in seconds since the start. It never goes back."""

    def __init__(self) -> None:
        self.now = 0.0
        self.offset = 0.0
        """By how many seconds the machines' clock is ahead of the true time."""

    @property
    def unix(self) -> float:
        """The true time in Unix seconds."""
        return START + self.now

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let `time` and `datetime` show this clock. `time.monotonic` shows the true time."""
        with (
            time_machine.travel(START, tick=False) as self._shown,
            mock.patch.object(time, "monotonic", lambda: 1000.0 + self.now),
        ):
            yield

    def pass_to(self, moment: float) -> None:
        """Let the time until `moment` pass; nothing if it is over."""
        if moment > self.now:
            self.now = moment
            self._show()

    def step(self, seconds: float) -> None:
        """Set the machines' clock forward, or back."""
        self.offset += seconds
        self._show()

    def _show(self) -> None:
        self._shown.move_to(START + self.now + self.offset, tick=False)
