"""Ctrl-C in two stages: the first lets running work end, the second ends everything at once.

`Stopping` serves the commands, `StopRequests` the demo.
"""

import signal
import threading
from collections.abc import Callable
from types import FrameType

from renders.demo.exceptions import Interrupted

# Signals that end a command.
SIGNALS = (signal.SIGINT, signal.SIGTERM)
# Signals that end the demo: a closed terminal sends SIGHUP. Windows has none.
STOP_SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


class Stopping:
    """A context in which the first SIGINT or SIGTERM sets `asked`, and calls `say`.

    The second one raises `SystemExit`. The command's loop looks at `asked`.
    """

    def __init__(self, say: Callable[[], object]) -> None:
        self.asked = False
        self._say = say
        self._before: dict[int, object] = {}

    def __enter__(self) -> "Stopping":
        if threading.current_thread() is threading.main_thread():
            # SIGINT too: shells start background processes with SIGINT ignored.
            self._before = {number: signal.signal(number, self._on) for number in SIGNALS}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _on(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise SystemExit(128 + number)
        self.asked = True
        self._say()


class StopRequests:
    """A context in which requests to end the demo are counted: Ctrl-C, SIGTERM, closed terminal.

    The handlers only count, so nothing is cut off half-way. Loops that wait call `check()`.
    """

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> "StopRequests":
        self._before = {number: signal.signal(number, self._note) for number in STOP_SIGNALS}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Raise `Interrupted` if there was a request."""
        if self.count:
            raise Interrupted("Stopped.")

    @property
    def forced(self) -> bool:
        """Whether there was a second request."""
        return self.count > 1

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
