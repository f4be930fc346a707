"""Two-stage Ctrl-C: the first request ends the demo cleanly, the second at once."""

import signal
from types import FrameType, TracebackType

from renders.demo.exceptions import Interrupted

STOP_SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


class StopRequests:
    """Counts the requests to end, from Ctrl-C, SIGTERM or a closed terminal.

    A context manager. The handlers only count, so nothing is cut off half-way: the loops that
    wait call `check()`.
    """

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> "StopRequests":
        self._before = {number: signal.signal(number, self._note) for number in STOP_SIGNALS}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Raises `Interrupted` once there was a request."""
        if self.count:
            raise Interrupted("Stopped.")

    @property
    def forced(self) -> bool:
        """Whether there was a second request."""
        return self.count > 1

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
