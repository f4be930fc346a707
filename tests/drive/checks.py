"""The accounts after a drive: each row against what the stand-in holds, and what must not be."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from renders.conf import workspaces
from renders.models import RenderJob
from renders.states import OUTCOME_UNKNOWN, Status
from tests.drive.mayhem import Diary
from tests.drive.stack import POLL_SECONDS, Stack
from tests.effects.models import Effect

SIGNED = "signature="
REFUSED = {"prompt_rejected", "http_422"}


@dataclass(frozen=True)
class Line:
    """One line of the table. `holds` is None for a figure that is no invariant."""

    name: str
    value: object
    holds: bool | None = None
    details: list[str] = field(default_factory=list)


class Accounts:
    """Both sides of a drive that is over, read once."""

    def __init__(self, stack: Stack, diary: Diary) -> None:
        self._stack = stack
        self._diary = diary
        self._ledger = stack.sandbox.ledger
        self._rows = list(RenderJob.objects.order_by("created_at"))
        self._jobs = {job["id"]: job for job in stack.sandbox.rules.jobs(1_000_000)["jobs"]}
        self._billed: dict[str, list[str]] = {}
        for bill in self._ledger.bills:
            self._billed.setdefault(str(bill.idempotency_key), []).append(bill.job_id)

    def lines(self) -> list[Line]:
        """All that the table shows, apart from times."""
        ledger = self._ledger
        states = Counter(row.status for row in self._rows)
        return [
            Line("renders", f"{len(self._rows)} {dict(states)}"),
            Line("bills", len(ledger.bills)),
            none("duplicate bills", self._duplicate_bills()),
            none("lost", self._lost()),
            none("wrong states", self._wrong_states()),
            none("body conflicts", map(str, ledger.body_conflicts)),
            none("bodies in other bytes", map(str, ledger.reserialized)),
            none("POSTs without a key", ["one"] * ledger.posts_without_key),
            none("effects not exactly once", self._wrong_effects()),
            *self._reads(),
            *self._submits(),
            Line("processes killed", self._stack.kills),
            none("processes that ended by themselves", self._stack.own_deaths),
            none("processes that did not end well when asked", self._stack.bad_ends),
            none("secrets in logs", self._secrets()),
            self._tracebacks(),
        ]

    def _duplicate_bills(self) -> Iterable[str]:
        keys = {row.idempotency_key for row in self._rows}
        for key, jobs in self._billed.items():
            if len(jobs) > 1:
                yield f"{key} was billed as {', '.join(jobs)}"
            if key not in keys:
                yield f"{key} was billed and no row has it"
        for reference in self._diary.twins:
            yield f"{reference} got two renders"

    def _lost(self) -> Iterable[str]:
        known = {row.pk for row in self._rows}
        for reference, pk in self._diary.made.items():
            if pk not in known:
                yield f"{reference}: its row is gone"
        for row in self._rows:
            if not row.is_terminal or not row.handled_at:
                yield (
                    f"{row.pk} is {row.status}, handled {row.handled_at}, "
                    f"submits {row.submit_attempts}, reads {row.poll_count}, {row.error_code}, "
                    f"due {row.next_poll_at or row.not_before}"
                )

    def _wrong_states(self) -> Iterable[str]:
        for row in self._rows:
            jobs = self._billed.get(row.idempotency_key)
            if row.is_terminal:
                job = self._jobs[jobs[0]] if jobs else None
                wrong = _difference(row, job) if job else self._without_job(row)
                if wrong:
                    yield f"{row.pk}: {wrong}"

    def _without_job(self, row: RenderJob) -> str:
        if row.status == Status.CANCELED and row.pk in self._diary.canceled:
            return ""
        if row.prompt.startswith("REJECT") and row.status == Status.FAILED:
            if row.error_code == OUTCOME_UNKNOWN and row.outcome_unknown_at:
                return ""  # an earlier try got no clear answer: nobody can know
            # The second is all that is known where a fault has spoilt the refusal's body.
            return "" if row.error_code in REFUSED else f"failed as {row.error_code}, not refused"
        return f"{row.status} ({row.error_code}), and Sume never had it"

    def _wrong_effects(self) -> Iterable[str]:
        found = Counter((effect.render_id, effect.signal) for effect in Effect.objects.all())
        expected = Counter((row.pk, row.status) for row in self._rows if row.handled_at)
        for pk in {pk for pk, _ in (found - expected) + (expected - found)}:
            yield f"{pk}: {[(signal, n) for (render, signal), n in found.items() if render == pk]}"

    def _reads(self) -> Iterable[Line]:
        unexcused, excuses = [], Counter()
        known = {"without Redis": self._diary.redis_away, "side by side": self._diary.side_by_side}
        for read in self._ledger.early_reads:
            for why, spans in known.items():
                if any(start <= read.at <= end for start, end in spans):
                    excuses[why] += 1
                    break
            else:
                unexcused.append(f"{read.job_id} was read {read.due - read.at:.2f} s too early")
        more = "".join(f", {count} more {why}" for why, count in excuses.items())
        yield none(f"early reads{more}", unexcused)
        reads = needless = asked = 0
        for job_id, job in self._jobs.items():
            times = [r.at for r in self._ledger.reads.get(job_id, []) if r.what == "status"]
            start, end = _life(job)
            reads += len(times)
            needless += max(0, sum(at > end for at in times) - 1)
            asked += max(1, math.ceil((end - start) / POLL_SECONDS))
        jobs = max(1, len(self._jobs))
        yield Line(
            "status reads per render",
            f"{reads / jobs:.2f} (exactly as asked, never late: {asked / jobs:.2f})",
        )
        # Not an invariant: a reply can be lost, or its reader killed.
        yield Line("reads again after the end, per render", f"{needless / jobs:.2f}")

    def _submits(self) -> Iterable[Line]:
        answers = self._stack.answers
        total, busiest = len(answers.posts), answers.busiest_minute()
        most = workspaces.get(workspaces.DEFAULT).writes_per_minute
        yield Line("POSTs", total)
        yield Line("POSTs in the busiest minute", f"{busiest} of {most}", busiest <= most)
        share = answers.queue_full / max(1, total)
        yield Line("queue_full share of POSTs", f"{share:.1%}", share < 0.01)
        yield from self._refused_calls()

    def _refused_calls(self) -> Iterable[Line]:
        for start, end in self._diary.key_refused:
            met = Counter(
                "writes" if note.on in {"submit", "cancel"} else "reads"
                for note in self._ledger.faults
                if note.fault == "unauthorized" and start <= note.at <= end
            )
            # Each process may have one of each sort on its way, and one at a time tries later.
            most = 2 * (2 * self._stack.workers + 2 * math.ceil(math.log2(2 * (end - start))))
            # One that reads many at once may have all that Sume holds on its way.
            limits = workspaces.get(workspaces.DEFAULT)
            most += limits.max_in_flight or 0 if self._diary.reads_many else 0
            words = f"{dict(met)} in {end - start:.0f} s, at most {most}"
            yield Line("calls with the refused key", words, met.total() <= most)

    def _secrets(self) -> Iterable[str]:
        for log in self._stack.logs:
            for number, line in enumerate(log.read_text(errors="replace").splitlines(), start=1):
                if self._stack.key in line or SIGNED in line:
                    yield f"{log.name}:{number}"

    def _tracebacks(self) -> Line:
        counts = {log.name: log.read_text(errors="replace") for log in self._stack.logs}
        found = {name: text.count("Traceback (most") for name, text in counts.items()}
        return Line("tracebacks in logs", {name: n for name, n in found.items() if n} or 0)


def none(name: str, found: Iterable[str]) -> Line:
    """The line for what must not be found at all."""
    details = list(found)
    return Line(name, len(details), not details, details)


def _difference(row: RenderJob, job: dict[str, Any]) -> str:
    """How a terminal row tells another story than Sume's job, if it does."""
    if row.status != job["status"]:
        return f"{row.status} ({row.error_code}), at Sume {job['status']}"
    if row.sume_job_id != job["id"]:
        return f"names the job {row.sume_job_id or '(none)'}, Sume's is {job['id']}"
    if row.cost_usd_micros != job["usage"]["billable_amount_usd_micros"]:
        return f"costs {row.cost_usd_micros}, at Sume {job['usage']}"
    if row.status == Status.COMPLETED and job["id"] not in str(row.result):
        return "completed without its result"
    if row.status == Status.FAILED and row.error_code != job["error"]["code"]:
        return f"failed as {row.error_code}, at Sume {job['error']['code']}"
    return ""


def _life(job: dict[str, Any]) -> tuple[float, float]:
    """When a job was accepted and when it ended."""
    created, finished = (job[name] for name in ("created_at", "finished_at"))
    start = datetime.fromisoformat(created).timestamp()
    return start, datetime.fromisoformat(finished).timestamp() if finished else start
