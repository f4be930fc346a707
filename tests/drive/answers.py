"""What the stand-in answered to each POST, as its log tells; and this process's own log."""

import logging
from pathlib import Path

SANDBOX = "renders.sandbox"


class Answers(logging.Handler):
    """Counts the answers to POSTs."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.posts: list[float] = []
        self.queue_full = 0

    def listen(self, log: Path) -> None:
        """Count from now on; what else this process logs goes to the file, not to the terminal."""
        root = logging.getLogger()
        for handler in list(root.handlers):
            root.removeHandler(handler)
        root.addHandler(logging.FileHandler(log))
        sandbox = logging.getLogger(SANDBOX)
        sandbox.setLevel(logging.INFO)
        sandbox.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Note one answer: its arguments are method, operation, status, fault."""
        if not isinstance(record.args, tuple) or len(record.args) != 4:
            return
        _, operation, status, fault = record.args
        if operation in {"submit", "cancel"}:
            self.posts.append(record.created)
            self.queue_full += status == 429 and fault == "none"

    def busiest_minute(self) -> int:
        """The most POSTs in any 60 seconds."""
        most = first = 0
        times = sorted(self.posts)
        for last, at in enumerate(times):
            while times[first] <= at - 60:
                first += 1
            most = max(most, last - first + 1)
        return most
