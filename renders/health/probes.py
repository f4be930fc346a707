"""Questions to servers, each lane in a thread, so that one which is silent holds up nobody.

A lane is a row of questions to one server. There is never more than one thread for a lane: who
asks while it is still waiting gets what is known so far, at once.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.db import connections

from renders.health.findings import Finding, HealthPart
from renders.models.outages import DATABASE_FAILS, in_words, is_unmigrated

# What was found is told again for so long: many who ask at once cost one round.
KEEP_SECONDS = 1.0
# After one of these nothing else can be learnt from the same server.
ENDS_A_LANE = {"database-away", "redis-away", "broker-away"}


@dataclass(frozen=True)
class Probe:
    """A question: the part it is about, and who knows the answer."""

    part: str
    ask: Callable[[], list[Finding]]
    keep_seconds: float = 0.0
    """What it found is told again for so long, if that is longer than for others."""


Lane = Sequence[Probe]


class Round:
    """One thread that asks the questions of a lane, one after the other."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._told: dict[str, HealthPart] = {}
        self._asking = lane[0].part
        self.began = time.monotonic()
        self.ended: float | None = None
        self.over = threading.Event()

    def start(self) -> None:
        """Begin. The thread never holds up the end of the process."""
        try:
            threading.Thread(target=self._run, name="health", daemon=True).start()
        except RuntimeError:  # the system allows no more now: a later round may have one
            found = (Finding("No thread was free to ask.", "not-asked"),)
            self._told = {probe.part: HealthPart(probe.part, found) for probe in self._lane}
            self._end()

    def _run(self) -> None:
        try:
            self.ask_all()
        finally:
            connections.close_all()  # this thread's own

    def ask_all(self) -> None:
        """Ask, in the thread that calls this."""
        ended = ""
        for probe in self._lane:
            self._asking, began = probe.part, time.monotonic()
            found = [Finding(f"Not asked: {ended}", "not-asked")] if ended else asked(probe)
            if any(finding.code in ENDS_A_LANE for finding in found):
                ended = found[-1].said
            self._told[probe.part] = HealthPart(probe.part, tuple(found), time.monotonic() - began)
        self._end()

    def _end(self) -> None:
        self.ended = time.monotonic()
        self.over.set()

    def parts(self) -> list[HealthPart]:
        """What is known by now."""
        told, asking = dict(self._told), self._asking
        waited = time.monotonic() - self.began
        silent = Finding(f"No answer within {waited:.1f} s.", "no-answer")
        behind = Finding(f"Not asked: {asking} has not answered.", "not-asked")
        return [
            told.get(probe.part)
            or HealthPart(probe.part, (silent if probe.part == asking else behind,), waited)
            for probe in self._lane
        ]


def asked(probe: Probe) -> list[Finding]:
    """What the probe found; a failure of its own is a finding too."""
    try:
        return probe.ask()
    except DATABASE_FAILS as error:
        code = "tables-missing" if is_unmigrated(error) else "database-away"
        return [Finding(f"{in_words(error)}.", code)]
    except Exception as error:  # noqa: BLE001 (whatever a driver raises; its text may hold secrets)
        return [Finding(f"The question failed ({type(error).__name__}).", "probe-failed")]


class Lanes:
    """Asks lanes, all at once."""

    def __init__(self, keep_seconds: float = KEEP_SECONDS) -> None:
        self._keep_seconds = keep_seconds
        self._rounds: dict[tuple[str, ...], Round] = {}
        self._lock = threading.Lock()

    def ask(self, lanes: Sequence[Lane], seconds: float) -> list[HealthPart]:
        """What is found within so many seconds, in the order of the questions."""
        rounds = [self._round(lane) for lane in lanes]
        for one in rounds:
            # One that waits for longer already is not waited for again.
            one.over.wait(max(0.0, one.began + seconds - time.monotonic()))
        return [part for one in rounds for part in one.parts()]

    def _round(self, lane: Lane) -> Round:
        key = tuple(probe.part for probe in lane)
        with self._lock:
            one = self._rounds.get(key)
            keep = max(self._keep_seconds, *(probe.keep_seconds for probe in lane))
            if one and (one.ended is None or time.monotonic() - one.ended < keep):
                return one
            one = self._rounds[key] = Round(lane)
        one.start()
        return one
