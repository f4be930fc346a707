"""What must go on by itself, and what it gets done, as the database tells.

Renders that a person should look into, and webhooks that do not come.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import DurationField, ExpressionWrapper, F
from django.db.models.functions import Now
from django.utils import timezone

from renders.conf import conf, workspaces
from renders.health.findings import Finding, Level
from renders.lifecycle import claims
from renders.limits import spending
from renders.models import Heartbeat, RenderEvent, RenderJob, WebhookEvent
from renders.reports import attention, standing
from renders.reports.attention import Reason
from renders.reports.standing import GateStanding
from renders.states import RequestType
from renders.telemetry import heartbeats

# What comes back every so often is missed after three times that, and this.
SLACK_SECONDS = 15.0
# Sume asks for shorter pauses all the time.
LONG_PAUSE_SECONDS = 60.0
# Of a gate that is closed by something else than an answer of Sume's.
GATE_CODES = {"budget_spent": "budget-spent", "unknown_workspace": "workspace-unknown"}


def patience() -> float:
    """Seconds without a sweep until it is missed."""
    return 3 * conf.SWEEP_SECONDS + SLACK_SECONDS


def sign(name: str, longest: float) -> list[Finding]:
    """Whether this was done within the last `longest` seconds, by the database's own clock."""
    found: Any = Heartbeat.objects.filter(pk=name).annotate(
        age=ExpressionWrapper(Now() - F("stored_at"), output_field=DurationField())
    )
    row = found.first()
    if row is None:
        return [Finding(f"Never seen: {name}.", f"{name}-silent")]
    said = f"Last seen {ago(row.age.total_seconds())}: {name}, on {row.host or 'a machine'}."
    return [Finding(said, f"{name}-silent" if row.age.total_seconds() > longest else "")]


def sweep() -> list[Finding]:
    """Whether the repair runs."""
    return sign(heartbeats.SWEEP, patience())


def pollrenders() -> list[Finding]:
    """Whether one of them runs."""
    return sign(heartbeats.POLLRENDERS, heartbeats.BEAT_SECONDS + SLACK_SECONDS)


def runrenders() -> list[Finding]:
    """Whether one of them runs."""
    return sign(heartbeats.RUNRENDERS, heartbeats.BEAT_SECONDS + SLACK_SECONDS)


def reads() -> list[Finding]:
    """Whether what is due is read; in a pause nobody reads, and that is not late."""
    now = timezone.now()
    longest = conf.grace_seconds + patience()
    late: Any = RenderJob.objects.late(now, longest).order_by("next_poll_at")
    if not late.exists():
        return [Finding("No read is late.")]
    late = late.exclude(workspace__in=_unread())
    oldest = late.values_list("next_poll_at", flat=True).first()
    if oldest is None:
        return [Finding("Reads are paused.")]
    since = (now - oldest).total_seconds()
    return [Finding(f"{counted(late.count(), 'late read')}, by up to {span(since)}.", "reads-late")]


def _unread() -> list[str]:
    """The workspaces whose reads are paused."""
    return [
        name
        for name, gates in standing.all_gates().items()
        if any(gate.closed for gate in gates if gate.sort == RequestType.READS)
    ]


def overdue() -> list[Finding]:
    """Whether Sume has jobs that it should have ended long ago."""
    count = standing.overdue(RenderJob.objects.all()).count()
    said = f"{counted(count, 'job')} at Sume for more than {conf.OVERDUE_HOURS:g} h."
    return [Finding(said, "renders-overdue" if count else "")]


def gate() -> list[Finding]:
    """Whether Sume may be asked. A short pause at Sume's wish is no fault."""
    now = timezone.now()
    all_of_them = standing.all_gates()
    found = [
        _of_gate(f"{name}, {one.sort.label}" if len(all_of_them) > 1 else one.sort.label, one, now)
        for name, gates in all_of_them.items()
        for one in gates
        if one.closed or one.trying
    ]
    return found or [Finding("Open.")]


def budgets() -> list[Finding]:
    """Which workspaces have spent most of this month's budget, or all of it."""
    now, found = timezone.now(), []
    limited = [one for one in workspaces.every() if one.budget_usd_micros]
    for one in limited:
        left = spending.about_left(one, now) or 0
        if spending.is_low(left, one.budget_usd_micros):
            whose = f"{one.name}: " if workspaces.several() else ""
            rest = f"{spending.usd(left)} of {spending.usd(one.budget_usd_micros)}"
            found.append(Finding(f"{whose}{rest} is left this month.", "budget-low"))
    return found or [Finding("Enough is left." if limited else "There is none.")]


def _of_gate(name: str, one: standing.GateStanding, now: datetime) -> Finding:
    if one.held:
        return Finding(f"{name}: paused by a person.", "gate-held")
    why = one.reason.rstrip(".") + (f" ({one.code})" if one.code else "")
    until = f" until {one.until:%H:%M:%S} UTC" if one.until else ""
    if one.refusals:
        tries = "one request tries" if one.trying else f"paused{until}"
        return Finding(
            f"{name}: {tries} after {counted(one.refusals, 'refusal')}. {why}.", "gate-refused"
        )
    if one.code in GATE_CODES:
        return Finding(f"{name}: {why}.", GATE_CODES[one.code])
    short = one.until is not None and one.until - now < timedelta(seconds=LONG_PAUSE_SECONDS)
    grave = Level.INFO if short else None
    return Finding(f"{name}: paused{until}. {why}.", "gate-paused", grave=grave)


def counted(number: int, name: str) -> str:
    """A number of things, in words."""
    return f"{number} {name}{'s' * (number != 1)}"


def ago(seconds: float) -> str:
    """A moment in the past, for people."""
    return f"{span(seconds)} ago" if seconds >= 1 else "just now"


def span(seconds: float) -> str:
    """A length of time, for people."""
    for size, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{max(0.0, seconds):.0f} s"


ATTENTION_CODES = {
    Reason.OVERDUE: "renders-overdue",
    Reason.UNSURE: "renders-unsure",
    Reason.UNREAD: "renders-unread",
    Reason.UNHANDLED: "renders-unhandled",
    Reason.UNSTORED: "media-failing",
    Reason.WAITING: "renders-waiting",
}
# So many jobs that ended without a word are no chance.
FEW = 3
LATELY = timedelta(days=1)


def needing_attention() -> list[Finding]:
    """As the admin's filter of that name counts them."""
    found = []
    for reason, code in ATTENTION_CODES.items():
        number = attention.needing(RenderJob.objects.all(), reason).count()
        if number:
            why = str(reason.label)
            said = f"{counted(number, 'render')}: {why[0].lower()}{why[1:]}."
            found.append(Finding(said, code))
    return found or [Finding("No render needs attention.")]


def sends() -> list[Finding]:
    """Whether what waits is sent, where nothing is in its way; of each workspace."""
    now = timezone.now()
    gates = standing.all_gates()
    found = [_sends(name, one, now) for name, both in gates.items() for one in both[:1]]
    if len(gates) > 1:
        named = zip(gates, found, strict=True)
        return [replace(told, said=f"{name}: {told.said}") for name, told in named]
    return found


def _sends(workspace: str, writes: GateStanding, now: datetime) -> Finding:
    longest = conf.grace_seconds + patience()
    figures = standing.figures(workspace)
    full = figures.max_in_flight is not None and figures.in_flight >= figures.max_in_flight
    since = now - timedelta(seconds=longest)
    waiting = 0 if writes.closed else claims.line(workspace, now).waiting_since(since).count()
    if not waiting or full or figures.capacity == 0:
        return Finding(f"{counted(figures.waiting, 'render')} to be sent.")
    if RenderEvent.objects.writes_around(now, longest, workspace).exists():
        return Finding(f"{counted(figures.waiting, 'render')} to be sent, one after the other.")
    said = f"{counted(waiting, 'render')} could be sent, and for {longest:.0f} s nothing was."
    return Finding(said, "sends-nothing")


def webhooks() -> list[Finding]:
    """Whether Sume tells of what it was asked to tell of."""
    if not any(workspaces.get(name).webhooks_wanted for name in workspaces.names()):
        return [Finding("Off.")]
    since = timezone.now() - LATELY
    if WebhookEvent.objects.filter(received_at__gt=since).exists():
        return [Finding("They come.")]
    ended = RenderJob.objects.terminal().filter(by_webhook=True, finished_at__gt=since)
    number = ended.exclude(sume_job_id="").count()
    if number < FEW:
        return [Finding("Nothing to tell of lately.")]
    return [Finding(f"{counted(number, 'job')} ended in a day, and none came.", "webhooks-silent")]
