"""What of a workspace is on its way, and what it has sent in the last minute: what limits it."""

from datetime import UTC, datetime, timedelta
from typing import Any

from renders import admission, gate
from renders.admission import Load
from renders.conf import conf
from renders.models import RenderEvent, RenderJob
from renders.states import Status
from renders.workspaces import Workspace


def load(limits: Workspace, now: datetime) -> Load:
    """What is on its way, as far as it matters; call it under the lock of the gate."""
    places = limits.max_in_flight or 0
    posts = writes(limits, now)
    most = admission.most_sent(limits)
    sent = count(posts, limits.writes_per_minute)
    # The newest so many fill the minute: it has room again when the first of these is old.
    full = posts.values_list("at", flat=True)[most - 1 : most] if sent >= most else []
    return Load(
        in_flight=in_flight(limits.name, now, places),
        unsure=count(RenderJob.objects.filter(workspace=limits.name).unsure(), places),
        writes=sent,
        full_since=next(iter(full), None),
    )


def in_flight(workspace: str, now: datetime, most: int | None = None) -> int:
    """How many of a workspace have a place at Sume; counting ends at `most`."""
    renders = RenderJob.objects.filter(workspace=workspace)
    # What is overdue may never end: from then on, Sume itself says when it is full.
    hours = conf.OVERDUE_HOURS
    sent_after = now - timedelta(hours=hours) if hours else datetime.min.replace(tzinfo=UTC)
    # Each status has an index of its own.
    submitting = count(renders.filter(status=Status.SUBMITTING), most)
    submitted = renders.filter(status=Status.SUBMITTED, submitted_at__gt=sent_after)
    return submitting + count(submitted, None if most is None else most - submitting)


def minute_is_full(limits: Workspace, now: datetime) -> bool:
    """Whether no POST may be sent just now."""
    return writes_left(limits, now) <= 0


def writes_left(limits: Workspace, now: datetime) -> int:
    """How many POSTs may be sent just now."""
    most = limits.writes_per_minute
    return most - count(writes(limits, now), most)


def writes(limits: Workspace, now: datetime) -> Any:
    """The workspace's POSTs that count now, the newest first."""
    return RenderEvent.objects.writes_around(now, gate.WINDOW_SECONDS, limits.name)


def count(rows: Any, most: int | None) -> int:
    """How many there are; counting ends at `most`."""
    return 0 if most == 0 else rows.order_by()[:most].count()
