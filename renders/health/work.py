"""Whether work goes on: sweep, polls, sends, gates, budgets, webhooks; read from the database."""

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

# A periodic task counts as missed after three periods plus this.
SLACK_SECONDS = 15.0
# Shorter pauses are routine: Sume asks for them often.
LONG_PAUSE_SECONDS = 60.0
# The findings for gates that are closed by something other than a reply from Sume.
GATE_CODES = {"budget_spent": "budget-spent", "unknown_workspace": "workspace-unknown"}
ATTENTION_CODES = {
    Reason.OVERDUE: "renders-overdue",
    Reason.UNSURE: "renders-unsure",
    Reason.UNREAD: "renders-unread",
    Reason.UNHANDLED: "renders-unhandled",
    Reason.UNSTORED: "media-failing",
    Reason.WAITING: "renders-waiting",
}
# Fewer jobs that ended without a webhook may be chance.
FEW = 3
# Webhooks of this period count.
LATELY = timedelta(days=1)


def patience() -> float:
    """Seconds without a sweep until it counts as missed."""
    return 3 * conf.SWEEP_SECONDS + SLACK_SECONDS


def sweep() -> list[Finding]:
    """Whether the sweep runs."""
    return sign(heartbeats.SWEEP, patience())


def pollrenders() -> list[Finding]:
    """Whether a `pollrenders` process runs."""
    return sign(heartbeats.POLLRENDERS, heartbeats.BEAT_SECONDS + SLACK_SECONDS)


def runrenders() -> list[Finding]:
    """Whether a `runrenders` process runs."""
    return sign(heartbeats.RUNRENDERS, heartbeats.BEAT_SECONDS + SLACK_SECONDS)


def sign(name: str, longest: float) -> list[Finding]:
    """Whether this heartbeat is at most `longest` seconds old, by the database's own clock."""
    heartbeats_of_name: Any = Heartbeat.objects.filter(pk=name).annotate(
        age=ExpressionWrapper(Now() - F("stored_at"), output_field=DurationField())
    )
    row = heartbeats_of_name.first()
    if row is None:
        return [Finding(f"Never seen: {name}.", f"{name}-silent")]
    said = f"Last seen {ago(row.age.total_seconds())}: {name}, on {row.host or 'a machine'}."
    return [Finding(said, f"{name}-silent" if row.age.total_seconds() > longest else "")]


def reads() -> list[Finding]:
    """Whether due polls happen. While reads are paused, nothing counts as late."""
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
    """The workspaces with paused reads."""
    return [
        name
        for name, gates in standing.all_gates().items()
        if any(gate.closed for gate in gates if gate.sort == RequestType.READS)
    ]


def overdue() -> list[Finding]:
    """Whether Sume has jobs that should have ended long ago."""
    count = standing.overdue(RenderJob.objects.all()).count()
    said = f"{counted(count, 'job')} at Sume for more than {conf.OVERDUE_HOURS:g} h."
    return [Finding(said, "renders-overdue" if count else "")]


def gate() -> list[Finding]:
    """Whether requests to Sume may be sent. A short pause that Sume asked for is no fault."""
    now = timezone.now()
    by_workspace = standing.all_gates()
    several = len(by_workspace) > 1
    findings = [
        _of_gate(f"{name}, {row.sort.label}" if several else row.sort.label, row, now)
        for name, gates in by_workspace.items()
        for row in gates
        if row.closed or row.trying
    ]
    return findings or [Finding("Open.")]


def _of_gate(name: str, row: GateStanding, now: datetime) -> Finding:
    if row.held:
        return Finding(f"{name}: paused by a person.", "gate-held")
    why = row.reason.rstrip(".") + (f" ({row.code})" if row.code else "")
    until = f" until {row.until:%H:%M:%S} UTC" if row.until else ""
    if row.refusals:
        tries = "one request tries" if row.trying else f"paused{until}"
        return Finding(
            f"{name}: {tries} after {counted(row.refusals, 'refusal')}. {why}.", "gate-refused"
        )
    if row.code in GATE_CODES:
        return Finding(f"{name}: {why}.", GATE_CODES[row.code])
    short = row.until is not None and row.until - now < timedelta(seconds=LONG_PAUSE_SECONDS)
    grave = Level.INFO if short else None
    return Finding(f"{name}: paused{until}. {why}.", "gate-paused", grave=grave)


def budgets() -> list[Finding]:
    """The workspaces that have spent most or all of this month's budget."""
    now, findings = timezone.now(), []
    limited = [workspace for workspace in workspaces.every() if workspace.budget_usd_micros]
    for workspace in limited:
        left = spending.about_left(workspace, now) or 0
        if spending.is_low(left, workspace.budget_usd_micros):
            prefix = f"{workspace.name}: " if workspaces.several() else ""
            rest = f"{spending.usd(left)} of {spending.usd(workspace.budget_usd_micros)}"
            findings.append(Finding(f"{prefix}{rest} is left this month.", "budget-low"))
    return findings or [Finding("Enough is left." if limited else "There is none.")]


def needing_attention() -> list[Finding]:
    """The renders that need attention, counted as by the admin's filter of that name."""
    findings = []
    for reason, code in ATTENTION_CODES.items():
        number = attention.needing(RenderJob.objects.all(), reason).count()
        if number:
            why = str(reason.label)
            said = f"{counted(number, 'render')}: {why[0].lower()}{why[1:]}."
            findings.append(Finding(said, code))
    return findings or [Finding("No render needs attention.")]


def sends() -> list[Finding]:
    """Whether waiting renders are sent while nothing prevents it, for each workspace."""
    now = timezone.now()
    gates = standing.all_gates()
    findings = [_sends(name, writes, now) for name, (writes, *_) in gates.items()]
    if len(gates) > 1:
        named = zip(gates, findings, strict=True)
        return [replace(finding, said=f"{name}: {finding.said}") for name, finding in named]
    return findings


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
    """Whether webhooks arrive for the jobs that asked for them."""
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


def counted(number: int, name: str) -> str:
    """A count with its noun, in the plural unless it is 1."""
    return f"{number} {name}{'s' * (number != 1)}"


def ago(seconds: float) -> str:
    """How long ago something was, for people."""
    return f"{span(seconds)} ago" if seconds >= 1 else "just now"


def span(seconds: float) -> str:
    """A duration in its largest unit, for people."""
    for size, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{max(0.0, seconds):.0f} s"
