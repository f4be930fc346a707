"""The invariants: some are checked during a run, all of them at its end."""

from collections import Counter
from itertools import pairwise
from typing import Any

from renders.models import RenderEvent, RenderJob
from renders.states import OUTCOME_UNKNOWN, TERMINAL
from tests.effects.models import Effect

# A read that left so soon after the end of its render was on its way already.
IN_THE_AIR_SECONDS = 2.0
# So long after Redis was lost, or a worker stalled, reads may come twice: leases have to be there
# again, and a chain that lost its token has to end.
UNSETTLED_SECONDS = 150.0
MINUTE, STEP_MARGIN_SECONDS = 60.0, 65.0


class Violation(AssertionError):
    """Something does not hold."""


def check_row(world: Any) -> None:
    """What holds at any time: no bill twice, and no more than the plan and the budget allow."""
    bills = world.sume.ledger.bills
    for key, count in Counter(bill.idempotency_key for bill in bills).items():
        _hold(count == 1, f"{count} bills for {key}")
    _check_budget(world)


def check_end(world: Any) -> None:
    """What holds when all is done. Raises `Violation`."""
    check_row(world)
    rows = list(RenderJob.objects.all())
    for row in rows:
        _check_render(world, row)
    _check_effects(world, rows)
    ledger = world.sume.ledger
    _hold(not ledger.body_conflicts, f"another body under one key: {ledger.body_conflicts}")
    _hold(not ledger.reserialized, f"other bytes under one key: {ledger.reserialized}")
    _hold(not ledger.posts_without_key, "a POST without a key")
    keys = {row.idempotency_key for row in rows}
    strangers = {bill.idempotency_key for bill in ledger.bills} - keys
    _hold(not strangers, f"bills of no row: {strangers}")
    _check_posts(world)
    _check_places(world)
    _check_reads(world, rows)


def _check_render(world: Any, row: RenderJob) -> None:
    name = f"{row.pk} ({row.status}, {row.error_code})"
    _hold(row.is_terminal and row.handled_at is not None, f"{name} never ended")
    if row.error_code == OUTCOME_UNKNOWN and row.retries.exists():
        return  # a person has decided: the retry is another render, and another bill
    bills = [b for b in world.sume.ledger.bills if b.idempotency_key == row.idempotency_key]
    if bills:
        job = bills[0].job_id
        truth = world.sume.word(job)
        _hold(row.sume_job_id == job, f"{name} does not know its job {job}")
        _hold(row.status == truth, f"{name}: at Sume it is {truth}")
        paid = bills[0].amount_usd_micros if truth == "completed" else 0
        _hold(row.cost_usd_micros == paid, f"{name} says it cost {row.cost_usd_micros}: {paid}")
    else:
        _hold(row.status != "completed", f"{name} without a bill")


def _check_effects(world: Any, rows: list[RenderJob]) -> None:
    """Each end has its effect, once."""
    effects = Counter(Effect.objects.values_list("render_id", flat=True))
    handled = Counter(
        RenderEvent.objects.filter(what="handled").values_list("render_id", flat=True)
    )
    _hold(effects == handled, f"effects {effects}, handled {handled}")
    ended = Counter(
        RenderEvent.objects.filter(what__in=TERMINAL).values_list("render_id", flat=True)
    )
    again = Counter(
        RenderEvent.objects.filter(what="sent again").values_list("render_id", flat=True)
    )
    for row in rows:
        ends, most = ended[row.pk], 1 + again[row.pk]
        _hold(ends == most, f"{row.pk} ended {ends} times, sent again {again[row.pk]} times")
        _hold(1 <= effects[row.pk] <= most, f"{effects[row.pk]} effects of {row.pk}")


def _check_posts(world: Any) -> None:
    """No more POSTs in any minute than planned, and not two submits with one key at once."""
    most = world.plan.settings["WRITES_PER_MINUTE"]
    posts = [post for post in world.sume.posts if not post.late and not _stepped(world, post.came)]
    times = sorted(post.came for post in posts)
    for first, last in zip(times, times[most:], strict=False):
        _hold(last - first >= MINUTE, f"{most + 1} POSTs from {first:.1f} to {last:.1f}")
    by_key: dict[str, list[Any]] = {}
    for post in sorted(posts, key=lambda post: post.left):
        if post.submit:
            by_key.setdefault(post.key, []).append(post)
    for key, sent in by_key.items():
        for first, second in pairwise(sent):
            _hold(
                second.left >= first.gone,
                f"two submits with {key} at once, at {first.left:.1f} and {second.left:.1f}",
            )


def _check_places(world: Any) -> None:
    """Never more jobs at Sume than planned."""
    if world.stepped_at or world.resent:
        return
    most = world.plan.settings["MAX_IN_FLIGHT"]
    jobs = world.sume.jobs()
    changes = [(job.accepted_at, 1) for job in jobs]
    changes += [(job.finished_at, -1) for job in jobs if job.finished_at is not None]
    count = 0
    for moment, change in sorted(changes):
        count += change
        _hold(count <= most, f"{count} jobs at Sume at once, {most} planned, at {moment}")


def _check_budget(world: Any) -> None:
    """Bills less refunds never exceed the budget, as long as there is one."""
    budget = round(world.plan.settings["BUDGET_USD"] * 1e6)
    if budget and not world.calm and not world.resent:
        net = world.sume.ledger.net_usd_micros
        _hold(net <= budget, f"{net} spent of {budget}")


def _check_reads(world: Any, rows: list[RenderJob]) -> None:
    """No read before its time, and none after the end but those on their way."""
    if world.stepped_at:
        return
    for early in world.sume.ledger.early_reads:
        since = early.at - world.clock.unix + world.clock.now
        _hold(_unsettled(world, since), f"{early.job_id} was read early, at {since:.1f}")
    ended = {
        row.sume_job_id: row.finished_at.timestamp() - world.clock.unix + world.clock.now
        for row in rows
        if row.sume_job_id and row.finished_at
    }
    for job, left, late in world.sume.reads:
        if not late and job in ended:
            over = left - ended[job]
            _hold(over <= IN_THE_AIR_SECONDS, f"{job} was read {over:.1f} s after its end")


def _stepped(world: Any, moment: float) -> bool:
    return any(abs(moment - at) < STEP_MARGIN_SECONDS for at in world.stepped_at)


def _unsettled(world: Any, moment: float) -> bool:
    return any(0 <= moment - at < UNSETTLED_SECONDS for at in world.unsettled_at)


def _hold(holds: bool, what: str) -> None:
    if not holds:
        raise Violation(what)
