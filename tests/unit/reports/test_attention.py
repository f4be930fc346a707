"""What needs attention, and why: the filter, the badge and the figures say the same."""

from datetime import timedelta

import pytest
from django.utils import timezone

from renders import transitions
from renders.models import RenderJob
from renders.reports import attention, standing
from renders.reports.attention import Reason
from renders.services import cancel_render, create_render, retry_render
from renders.states import Status

pytestmark = pytest.mark.django_db
RENDERS = RenderJob.objects


def sent(**fields):
    row = create_render("A boat")
    now = timezone.now()
    transitions.claim(row.pk, now, "default")
    transitions.record_submitted(
        row.pk, now, job_id="job-1", sume_status="processing", hit=False, next_poll_at=now
    )
    RENDERS.filter(pk=row.pk).update(**fields)
    return row


def ended(status, ago, *, code="", handled=True):
    row = sent()
    then = timezone.now() - ago
    transitions.end(row.pk, 0, then, status, sume_status=status, code=code)
    if handled:
        transitions.mark_handled(row.pk, then)
    return row


def put_back(unknown_at=None):
    row = create_render("A boat")
    now = timezone.now()
    transitions.claim(row.pk, now, "default")
    transitions.release(
        row.pk, now, not_before=now, code="queue_full", message="Full.", unknown_at=unknown_at
    )
    return row


def unstored(ago, *more, **fields):
    row = ended(Status.COMPLETED, ago)
    for what in ("media not stored", *more):
        transitions.log(row.pk, what)
    row.events.update(at=timezone.now() - ago)
    RENDERS.filter(pk=row.pk).update(**fields)
    return row


MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
CASES = {
    "waits for its turn": (lambda: create_render("A boat"), ""),
    "at Sume": (sent, ""),
    "at Sume for too long": (
        lambda: sent(submitted_at=timezone.now() - 7 * HOUR),
        Reason.OVERDUE,
    ),
    "two reads failed": (lambda: sent(failed_reads=2), ""),
    "three reads failed": (lambda: sent(failed_reads=3), Reason.UNREAD),
    "overdue, and reads fail": (
        lambda: sent(failed_reads=3, submitted_at=timezone.now() - 7 * HOUR),
        Reason.OVERDUE,
    ),
    "put back": (put_back, Reason.WAITING),
    "put back, perhaps sent": (lambda: put_back(timezone.now()), Reason.UNSURE),
    "ended and handled": (lambda: ended(Status.COMPLETED, DAY), ""),
    "failed and handled": (lambda: ended(Status.FAILED, DAY, code="bad_prompt"), ""),
    "just ended": (lambda: ended(Status.COMPLETED, MINUTE, handled=False), ""),
    "unhandled for an hour": (
        lambda: ended(Status.FAILED, HOUR, handled=False),
        Reason.UNHANDLED,
    ),
    "given up, perhaps made": (
        lambda: ended(Status.FAILED, DAY, code="submit_outcome_unknown"),
        Reason.UNSURE,
    ),
    "given up long ago": (
        lambda: ended(Status.FAILED, 8 * DAY, code="submit_outcome_unknown"),
        "",
    ),
    "linked only": (lambda: unstored(DAY), Reason.UNSTORED),
    "linked only, a late try is due": (
        lambda: unstored(8 * DAY, media_due_at=timezone.now()),
        Reason.UNSTORED,
    ),
    "stored late": (lambda: unstored(DAY, "media stored"), ""),
    "lost": (lambda: unstored(DAY, "media lost"), Reason.UNSTORED),
    "lost long ago": (lambda: unstored(8 * DAY, "media lost"), ""),
    "linked only, long ago": (lambda: unstored(8 * DAY), ""),
}


@pytest.mark.parametrize(("make", "reason"), CASES.values(), ids=CASES)
def test_the_reason_and_the_search_agree(make, reason):
    row = make()
    create_render("Another")

    assert attention.reason(row) == reason
    found = attention.needing(RENDERS.all())
    assert list(found) == ([row] if reason else [])
    if reason:
        assert list(attention.needing(RENDERS.all(), reason)) == [row]


def test_every_reason_has_a_case():
    assert {reason for _, reason in CASES.values()} == {"", *Reason}


def test_what_was_retried_needs_no_more_attention():
    row = ended(Status.FAILED, DAY, code="submit_outcome_unknown")
    retry_render(row)

    assert not attention.needing(RENDERS.filter(pk=row.pk)).exists()


@pytest.mark.parametrize("hours", [0, 1, 6])
def test_overdue_means_the_same_everywhere(settings, hours):
    settings.RENDERS = {"OVERDUE_HOURS": hours}
    for ago in (MINUTE, 2 * HOUR, 7 * HOUR):
        sent(submitted_at=timezone.now() - ago)
    cancel_render(sent())
    everything = RENDERS.all()

    overdue = set(standing.overdue(everything))
    assert set(attention.needing(everything, Reason.OVERDUE)) == overdue
