"""Ctrl-C in two stages: the first lets what is under way end, the second ends all of it.

Two-stage Ctrl-C: the first request ends the demo cleanly, the second at once.
"""

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType

from renders.demo.exceptions import Interrupted

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopping:
    """While it is entered, SIGINT and SIGTERM set `asked`; the second one raises `SystemExit`.

    `say` is called at the first.
    """

    def __init__(self, say: Callable[[], object]) -> None:
        self.asked = False
        self._say = say
        self._before: dict[int, object] = {}

    def __enter__(self) -> "Stopping":
        if threading.current_thread() is threading.main_thread():
            # SIGINT too: a shell that starts us in the background lets it be ignored.
            self._before = {number: signal.signal(number, self._on) for number in SIGNALS}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _on(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise SystemExit(128 + number)
        self.asked = True
        self._say()


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
