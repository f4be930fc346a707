"""Which renders need a person's attention, and why: one definition for list, filter and figures."""

from datetime import datetime, timedelta
from typing import Any

from django.db import models
from django.db.models import Case, Exists, OuterRef, Q, Value, When
from django.utils import timezone

from renders.conf import conf
from renders.models import RenderEvent, RenderJob
from renders.models.querysets import RenderQuerySet, standing_in
from renders.states import OUTCOME_UNKNOWN, OVER_BUDGET, TERMINAL, Status

UNHANDLED_MINUTES = 15
FAILED_READS = 3
# Problems that only a person can solve are shown for this long.
LATELY_DAYS = 7


class Reason(models.TextChoices):
    """Why a render needs attention. If several reasons apply, the first one counts."""

    OVERDUE = "overdue", "Overdue at Sume"
    """Sume should have ended it long ago."""
    UNSURE = "unsure", "Outcome unknown"
    """It was sent, and the outcome is unknown: Sume may hold a job for it."""
    UNREAD = "unread", "Reads keep failing"
    """Its last status polls failed, several in a row."""
    UNHANDLED = "unhandled", "Ended, not handled"
    """Fetching its result, or a receiver of its signals, fails repeatedly."""
    UNSTORED = "unstored", "Picture or clip not stored"
    """Only Sume's link is left, which expires."""
    WAITING = "waiting", "Waits after an error"
    """Sume did not accept it the last time; it is sent again."""


def needing(renders: RenderQuerySet, why: Reason | None = None) -> RenderQuerySet:
    """The renders that need attention, for this reason or for any."""
    conditions = _conditions(timezone.now())
    # One query for each reason, so that each uses its own index: a long OR could not.
    matches = [
        RenderJob.objects.filter(conditions[name]) for name in ([why] if why else conditions)
    ]
    pks = [rows.order_by().values("pk") for rows in matches]
    return renders.filter(pk__in=pks[0].union(*pks[1:]) if pks[1:] else pks[0])


def reason(render: RenderJob) -> str:
    """Why this render needs attention; empty if it needs none."""
    return str(with_reason(RenderJob.objects.filter(pk=render.pk)).get().attention)


def with_reason(renders: models.QuerySet[Any]) -> models.QuerySet[Any]:
    """The same renders, each with its reason as `attention`; empty if it needs none."""
    cases = [When(wanted, then=Value(name)) for name, wanted in _conditions(timezone.now()).items()]
    return renders.annotate(
        attention=Case(*cases, default=Value(""), output_field=models.CharField())
    )


def _conditions(now: datetime) -> dict[Reason, Q]:
    lately = now - timedelta(days=LATELY_DAYS)
    hours = conf.OVERDUE_HOURS
    late = Q(status=Status.SUBMITTED, submitted_at__lte=now - timedelta(hours=hours))
    unclear = Q(
        ~Exists(RenderJob.objects.filter(retry_of=OuterRef("pk"))),
        status=Status.FAILED,
        error_code=OUTCOME_UNKNOWN,
        finished_at__gt=lately,
    )
    events = RenderEvent.objects.filter(at__gt=lately).order_by()
    stored = RenderEvent.objects.filter(what="media stored", render=OuterRef("render"))
    # Separate queries, so that each uses its own index.
    linked = events.filter(~Exists(stored), what="media not stored").values("render")
    lost = events.filter(~Exists(stored), what="media lost").values("render")
    trying = RenderJob.objects.late_media() if conf.SAVE_MEDIA else RenderJob.objects.none()
    missing = linked.union(lost, trying.order_by().values("pk"))
    return {
        Reason.OVERDUE: late if hours else Q(pk__in=[]),
        Reason.UNSURE: Q(status=Status.PENDING, outcome_unknown_at__isnull=False) | unclear,
        Reason.UNREAD: Q(status=Status.SUBMITTED, failed_reads__gte=FAILED_READS),
        # Every unhandled render has `next_poll_at`; without it, PostgreSQL expects too many rows.
        Reason.UNHANDLED: Q(
            status__in=TERMINAL,
            handled_at__isnull=True,
            next_poll_at__isnull=False,
            finished_at__lte=now - timedelta(minutes=UNHANDLED_MINUTES),
        ),
        Reason.UNSTORED: Q(status=Status.COMPLETED, pk__in=missing),
        Reason.WAITING: standing_in([Status.PENDING]) & ~Q(error_code__in=["", OVER_BUDGET]),
    }
