"""Template filters that describe a render: state, times and cost in short words."""

import json
from datetime import datetime, timedelta
from typing import Any

from django import template
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone

from renders.conf import conf, destination, workspaces
from renders.conf.destination import Destination
from renders.media.storing import lacking
from renders.models import RenderJob
from renders.presentation.media_links import media
from renders.presentation.titles import title_of
from renders.services.permissions import may_add
from renders.states import OUTCOME_UNKNOWN, Status

register = template.Library()
register.filter(media)
register.filter(may_add)
register.filter("headline", title_of)

EVENT_TITLES = {
    "created": "Added",
    "sending": "Sending to Sume",
    "submitted": "Accepted by Sume",
    "sent again": "Sent again",
    "put back": "Put back in the queue",
    "put aside": "Put aside until the budget has room",
    "back in line": "Back in line",
    "held": "Held",
    "released": "Released",
    "asking Sume to cancel": "Asking Sume to cancel",
    "cancel requested": "Cancel requested",
    "cancel answered": "Sume answered the cancel request",
    "completed": "Completed",
    "failed": "Failed",
    "canceled": "Canceled",
    "sume status": "Sume says",
    "late answer": "Sume answered late",
    "media limited": "Not all files are stored",
    "media postponed": "Picture or clip downloaded later",
    "media not stored": "Not stored yet; only Sume's link is left",
    "media asked for": "Asked to store its media again",
    "media stored": "All of its media are stored",
    "media lost": "Not stored: Sume no longer has it",
    "finish postponed": "Finished later",
    "handled": "All done",
}


@register.simple_tag
def destinations() -> list[Destination]:
    """Where renders go; empty if the settings are invalid, so that error pages still work."""
    try:
        return destination.destinations()
    except ImproperlyConfigured:
        return []


@register.filter
def changes_soon(render: RenderJob) -> bool:
    """Whether a page with this render should poll: it runs, or its result or media are due soon."""
    if not render.is_terminal:
        return True
    if render.media_due_at and conf.SAVE_MEDIA:
        return render.media_due_at - timezone.now() < timedelta(minutes=5)
    if render.handled_at or not render.finished_at:
        return False
    return timezone.now() - render.finished_at < timedelta(minutes=10)


@register.filter
def in_words(render: RenderJob) -> str:
    """The render's state in one sentence."""
    if render.erased_at:
        return "Erased: what was asked for and what was made is no longer kept."
    if render.cancel_requested_at and not render.is_terminal:
        return "Cancel requested; Sume decides whether it still can."
    match render.status:
        case Status.PENDING:
            return _pending_in_words(render)
        case Status.SUBMITTING:
            return "Being sent to Sume."
        case Status.SUBMITTED if is_overdue(render):
            return "Sume has not ended it for long; it is asked now and then until it does."
        case Status.SUBMITTED if render.sume_status:
            return f"Sume is at work on it ({render.sume_status})."
        case Status.SUBMITTED:
            return "Sume is at work on it."
        case Status.COMPLETED:
            return _completed_in_words(render)
        case Status.FAILED:
            return "It could not be made."
        case _:
            return "It was canceled."


def _pending_in_words(render: RenderJob) -> str:
    if render.held_at:
        return "Held: it is not sent until somebody releases it."
    if render.awaits_budget:
        return f"Waits for the budget: {render.error_message}"
    return (
        "Waiting to be sent to Sume again." if render.submit_attempts else "Waiting for its turn."
    )


def _completed_in_words(render: RenderJob) -> str:
    if render.artifacts:
        late = "; the cancel came too late" * bool(render.cancel_requested_at)
        return f"It is ready{late}."
    if render.handled_at is None:
        return "It is ready; the result is on its way."
    if render.removing_at or (render.result or {}).get("removed"):
        return "It was made; its pictures and clips are no longer kept."
    return "It is ready, but Sume gave no picture or clip for it."


@register.filter("overdue")
def is_overdue(render: RenderJob) -> bool:
    """Whether it has been at Sume for too long (`OVERDUE_HOURS`)."""
    late = timedelta(hours=conf.OVERDUE_HOURS)
    at_sume = render.status == Status.SUBMITTED and render.submitted_at
    return bool(late and at_sume and timezone.now() - at_sume > late)


@register.filter
def can_cancel(render: RenderJob) -> bool:
    """Whether it has not ended and no cancellation was requested."""
    return not render.is_terminal and render.cancel_requested_at is None


@register.filter
def can_retry(render: RenderJob) -> bool:
    """Whether it failed or was canceled, and is not erased."""
    return render.status in {Status.FAILED, Status.CANCELED} and not render.erased_at


@register.filter
def can_resend(render: RenderJob) -> bool:
    """True if its outcome at Sume is unknown: it can be sent again with its own key."""
    unknown = render.status == Status.FAILED and render.error_code == OUTCOME_UNKNOWN
    return unknown and bool(render.request_body) and not render.erased_at


@register.filter
def is_over(moment: datetime) -> bool:
    """Whether this moment has passed."""
    return moment <= timezone.now()


@register.filter
def lacks_media(render: RenderJob) -> bool:
    """Whether it was completed and handled, but some of its media are not stored."""
    if not conf.SAVE_MEDIA or render.status != Status.COMPLETED or not render.handled_at:
        return False
    kept = not (render.erased_at or render.media_removed_at or render.removing_at)
    return kept and lacking(render.artifacts) is not None


@register.filter
def short(span: timedelta | None) -> str:
    """A time span in its largest unit: 8 s, 3 min, 2 h, 5 d."""
    if span is None:
        return "-"
    seconds = max(0, int(span.total_seconds()))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


@register.filter
def age(moment: datetime | None) -> str:
    """The time since then, in its largest unit."""
    return short(timezone.now() - moment) if moment else "-"


@register.filter
def ago(moment: datetime) -> str:
    """The time since then in words that rarely change: just now, 3 min ago."""
    span = timezone.now() - moment
    return "just now" if span < timedelta(minutes=1) else f"{short(span)} ago"


@register.filter
def exact(span: timedelta) -> str:
    """A time span in its two largest units: 8 s, 3 min 5 s, 2 h 10 min."""
    return seconds_in_words(int(span.total_seconds()))


@register.filter
def seconds_in_words(seconds: float) -> str:
    """As `exact`, but with a decimal for fractions below 10 s."""
    if 0 < seconds < 10 and seconds != int(seconds):
        return f"{seconds:.1f} s"
    whole = max(0, round(seconds))
    units = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
    parts = []
    for size, unit in units:
        if whole >= size:
            parts.append(f"{whole // size} {unit}")
            whole %= size
        elif parts:
            break
    return " ".join(parts[:2]) or "0 s"


@register.filter
def took(render: RenderJob) -> str:
    """The time from creation to the end, or until now."""
    return short((render.finished_at or timezone.now()) - render.created_at)


@register.filter
def waited(render: RenderJob) -> str:
    """The time from creation until Sume accepted it, or until it ended, or until now."""
    return short((render.submitted_at or render.finished_at or timezone.now()) - render.created_at)


@register.filter
def rendered(render: RenderJob) -> str:
    """The time at Sume, until the end or until now."""
    if render.submitted_at is None:
        return "-"
    return short((render.finished_at or timezone.now()) - render.submitted_at)


@register.filter
def since(moment: datetime, start: datetime) -> str:
    """The time after the start, like +3 min."""
    return f"+{short(moment - start)}"


@register.filter
def usd(micros: int | None) -> str:
    """Millionths of a dollar as dollars, at least two decimals."""
    if micros is None:
        return "-"
    amount = f"{micros / 1_000_000:.6f}".rstrip("0")
    whole, _, decimals = amount.partition(".")
    return f"${whole}.{decimals:0<2}"


@register.filter
def account(render: RenderJob) -> str:
    """Its workspace; empty for the default one if there are no others."""
    several = workspaces.several() or render.workspace != workspaces.DEFAULT
    return render.workspace if several else ""


@register.filter
def event_title(what: str) -> str:
    """The title of a timeline entry."""
    return EVENT_TITLES.get(what, what.capitalize())


@register.filter
def pretty_json(value: Any) -> str:
    """Indented JSON; empty for nothing."""
    return json.dumps(value, indent=2, ensure_ascii=False) if value else ""
