"""Questions to servers, asked in threads, so that a silent server delays nothing else.

A lane is a row of questions to one server. Each lane has at most one thread. A caller that comes
while the thread still waits gets the answers so far.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.db import connections

from renders.health.findings import Finding, HealthPart
from renders.models.outages import DATABASE_FAILS, in_words, is_unmigrated

# Results are cached for this long: many simultaneous callers cost one round.
KEEP_SECONDS = 1.0
# After one of these, further questions to the same server are pointless.
ENDS_A_LANE = {"database-away", "redis-away", "broker-away"}


@dataclass(frozen=True)
class Probe:
    """A question about one part of the system, and the function that answers it."""

    part: str
    ask: Callable[[], list[Finding]]
    keep_seconds: float = 0.0
    """Cache the answer for this long, if that is longer than for the other probes."""


Lane = Sequence[Probe]


class Round:
    """One thread that asks the questions of a lane, one after the other."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._answers: dict[str, HealthPart] = {}
        self._asking = lane[0].part
        self.began = time.monotonic()
        self.ended: float | None = None
        self.over = threading.Event()

    def start(self) -> None:
        """Start the thread. It is a daemon: it never delays the end of the process."""
        try:
            threading.Thread(target=self._run, name="health", daemon=True).start()
        except RuntimeError:  # the system allows no more threads now; a later round may get one
            findings = (Finding("No thread was free to ask.", "not-asked"),)
            self._answers = {probe.part: HealthPart(probe.part, findings) for probe in self._lane}
            self._end()

    def _run(self) -> None:
        try:
            self.ask_all()
        finally:
            connections.close_all()  # this thread's own

    def ask_all(self) -> None:
        """Ask all questions in the calling thread."""
        ended = ""
        for probe in self._lane:
            self._asking, began = probe.part, time.monotonic()
            findings = [Finding(f"Not asked: {ended}", "not-asked")] if ended else asked(probe)
            if any(finding.code in ENDS_A_LANE for finding in findings):
                ended = findings[-1].said
            seconds = time.monotonic() - began
            self._answers[probe.part] = HealthPart(probe.part, tuple(findings), seconds)
        self._end()

    def _end(self) -> None:
        self.ended = time.monotonic()
        self.over.set()

    def parts(self) -> list[HealthPart]:
        """The answers so far; a probe without one gets a finding that says why."""
        answers, asking = dict(self._answers), self._asking
        waited = time.monotonic() - self.began
        silent = Finding(f"No answer within {waited:.1f} s.", "no-answer")
        behind = Finding(f"Not asked: {asking} has not answered.", "not-asked")
        return [
            answers.get(probe.part)
            or HealthPart(probe.part, (silent if probe.part == asking else behind,), waited)
            for probe in self._lane
        ]


def asked(probe: Probe) -> list[Finding]:
    """The probe's findings; if the probe itself fails, that is a finding too."""
    try:
        return probe.ask()
    except DATABASE_FAILS as error:
        code = "tables-missing" if is_unmigrated(error) else "database-away"
        return [Finding(f"{in_words(error)}.", code)]
    except Exception as error:  # noqa: BLE001 (drivers raise anything; texts may hold secrets)
        return [Finding(f"The question failed ({type(error).__name__}).", "probe-failed")]


class Lanes:
    """Asks several lanes at the same time."""

    def __init__(self, keep_seconds: float = KEEP_SECONDS) -> None:
        self._keep_seconds = keep_seconds
        self._rounds: dict[tuple[str, ...], Round] = {}
        self._lock = threading.Lock()

    def ask(self, lanes: Sequence[Lane], seconds: float) -> list[HealthPart]:
        """The answers after at most `seconds`, in the order of the questions."""
        rounds = [self._round(lane) for lane in lanes]
        for running in rounds:
            # A round that has already run for longer is not waited for.
            running.over.wait(max(0.0, running.began + seconds - time.monotonic()))
        return [part for finished in rounds for part in finished.parts()]

    def _round(self, lane: Lane) -> Round:
        key = tuple(probe.part for probe in lane)
        with self._lock:
            current = self._rounds.get(key)
            keep = max(self._keep_seconds, *(probe.keep_seconds for probe in lane))
            if current and (current.ended is None or time.monotonic() - current.ended < keep):
                return current
            current = self._rounds[key] = Round(lane)
        current.start()
        return current
