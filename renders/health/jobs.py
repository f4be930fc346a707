"""Renders that a person should look into, and webhooks that do not come."""

from dataclasses import replace
from datetime import datetime, timedelta

from django.utils import timezone

from renders import attention, claims, standing, workspaces
from renders.attention import Reason
from renders.conf import conf
from renders.health.findings import Finding
from renders.health.work import counted, patience
from renders.models import RenderEvent, RenderJob, WebhookEvent
from renders.standing import GateStanding

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
