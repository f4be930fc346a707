"""What a person should look into, and why: one definition for the list, its filter and figures."""

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
# What nothing but a person can end stops asking for one after this.
LATELY_DAYS = 7


class Reason(models.TextChoices):
    """Why a render needs attention; of several, the first counts."""

    OVERDUE = "overdue", "Overdue at Sume"
    """Sume should have ended it long ago."""
    UNSURE = "unsure", "Outcome unknown"
    """It was sent and no clear answer came: Sume may hold a job for it."""
    UNREAD = "unread", "Reads keep failing"
    """The last reads of its status failed, one after the other."""
    UNHANDLED = "unhandled", "Ended, not handled"
    """Its result or a receiver of the signals fails again and again."""
    UNSTORED = "unstored", "Picture or clip not stored"
    """Only Sume's link is left, and that runs out."""
    WAITING = "waiting", "Waits after an error"
    """Sume did not take it the last time; it is sent again."""


def needing(renders: RenderQuerySet, why: Reason | None = None) -> RenderQuerySet:
    """Those of the renders that need attention, for this reason or for any."""
    known = _conditions(timezone.now())
    # Each by an index of its own, which one long condition could not use.
    found = [RenderJob.objects.filter(known[name]) for name in ([why] if why else known)]
    pks = [some.order_by().values("pk") for some in found]
    return renders.filter(pk__in=pks[0].union(*pks[1:]) if pks[1:] else pks[0])


def reason(render: RenderJob) -> str:
    """Why this render needs attention; empty if it needs none."""
    return str(with_reason(RenderJob.objects.filter(pk=render.pk)).get().attention)


def with_reason(renders: models.QuerySet[Any]) -> models.QuerySet[Any]:
    """The same renders; each with its `attention`, empty where it needs none."""
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
    # Each of these by an index of its own.
    linked = events.filter(~Exists(stored), what="media not stored").values("render")
    lost = events.filter(~Exists(stored), what="media lost").values("render")
    trying = RenderJob.objects.late_media() if conf.SAVE_MEDIA else RenderJob.objects.none()
    missing = linked.union(lost, trying.order_by().values("pk"))
    return {
        Reason.OVERDUE: late if hours else Q(pk__in=[]),
        Reason.UNSURE: Q(status=Status.PENDING, outcome_unknown_at__isnull=False) | unclear,
        Reason.UNREAD: Q(status=Status.SUBMITTED, failed_reads__gte=FAILED_READS),
        # All unhandled ones have a next step; without that, PostgreSQL takes them for many.
        Reason.UNHANDLED: Q(
            status__in=TERMINAL,
            handled_at__isnull=True,
            next_poll_at__isnull=False,
            finished_at__lte=now - timedelta(minutes=UNHANDLED_MINUTES),
        ),
        Reason.UNSTORED: Q(status=Status.COMPLETED, pk__in=missing),
        Reason.WAITING: standing_in([Status.PENDING]) & ~Q(error_code__in=["", OVER_BUDGET]),
    }
