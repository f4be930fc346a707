"""The stand-in's time, which can be stopped: what Sume holds then stays as it is."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Clock:
    """Tells Unix seconds, as the sandbox's `clock`."""

    def __init__(self) -> None:
        self._stopped_at: float | None = None
        self._behind = 0.0

    def __call__(self) -> float:
        if self._stopped_at is not None:
            return self._stopped_at
        return time.time() - self._behind

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """No job moves on meanwhile; afterwards each goes on from where it was."""
        self._stopped_at = self()
        try:
            yield
        finally:
            self._behind = time.time() - self._stopped_at
            self._stopped_at = None

    def pass_by(self, seconds: float) -> None:
        """Let that much time pass at once, while it is stopped."""
        assert self._stopped_at is not None
        self._stopped_at += seconds
