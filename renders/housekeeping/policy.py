"""How long ended renders and other rows are kept, and which are older. Deletes nothing."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.apps import apps
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from renders.conf import conf
from renders.housekeeping.removal import deletable, unmissed
from renders.models import ApiRequest, Draft, RenderEvent, RenderJob, WebhookEvent
from renders.models.drafts import KEPT
from renders.models.querysets import OVER, RenderQuerySet
from renders.states import Status

# By then, an event's signature is far too old for a repeated delivery.
KEEP_WEBHOOKS = timedelta(days=30)
NOTHING = Q(pk__in=[])


@dataclass(frozen=True)
class Ages:
    """Days after which each is deleted; 0 means never."""

    completed: int = 0
    failed: int = 0
    canceled: int = 0
    media: int = 0
    events: int = 0
    task_results: int = 0

    @classmethod
    def as_set(cls) -> "Ages":
        """The ages from the settings."""
        return cls(
            conf.KEEP_COMPLETED_DAYS,
            conf.KEEP_FAILED_DAYS,
            conf.KEEP_CANCELED_DAYS,
            conf.KEEP_MEDIA_DAYS,
            conf.KEEP_EVENTS_DAYS,
        )

    @property
    def any(self) -> bool:
        """True if anything is ever deleted."""
        return self != Ages()


class Old:
    """Queries for rows that are too old at one moment."""

    def __init__(self, ages: Ages, now: datetime | None = None) -> None:
        self.ages = ages
        self.now = now or timezone.now()
        by_status = {
            Status.COMPLETED: ages.completed,
            Status.FAILED: ages.failed,
            Status.CANCELED: ages.canceled,
        }
        # One for each status, so that each query uses the index on `finished_at`.
        self.parts = [
            OVER & Q(status=status, finished_at__lt=self.before(days))
            for status, days in by_status.items()
            if days
        ]

    def renders(self) -> RenderQuerySet:
        """All renders that are too old."""
        where = NOTHING
        for part in self.parts:
            where |= part
        return RenderJob.objects.filter(where).order_by()

    def deletable(self) -> list[RenderQuerySet]:
        """Renders that can be deleted, as levels of retries.

        Once an original is deleted, its retries no longer count as retries and can be deleted too.
        """
        levels: list[RenderQuerySet] = []
        level = deletable(self.renders())
        while level.exists():
            levels.append(level)
            unneeded = self.renders().filter(unmissed(), reference=None)
            level = unneeded.filter(retry_of__in=level.values("pk"))
        return levels

    def to_strip(self) -> RenderQuerySet:
        """The other old renders, if they hold more than a line of the bill."""
        rest = self.renders().filter(erased_at=None)
        for level in self.deletable():
            rest = rest.filter(~is_in(level))
        return rest

    def with_media(self) -> RenderQuerySet:
        """Completed renders with media that are too old. Their rows are kept."""
        if not self.ages.media:
            return RenderJob.objects.none()
        return RenderJob.objects.filter(
            OVER,
            status=Status.COMPLETED,
            finished_at__lt=self.before(self.ages.media),
            result__isnull=False,
            media_removed_at=None,
        ).order_by()

    def events(self) -> "models.QuerySet[RenderEvent]":
        """Old timeline entries of renders that are over."""
        if not self.ages.events:
            return RenderEvent.objects.none()
        over = RenderJob.objects.filter(OVER).values("pk")
        before = self.before(self.ages.events)
        return RenderEvent.objects.filter(at__lt=before, render__in=over).order_by()

    def webhooks(self) -> "models.QuerySet[WebhookEvent]":
        """Webhook events too old to be delivered again."""
        return WebhookEvent.objects.filter(received_at__lt=self.now - KEEP_WEBHOOKS)

    def keys(self) -> "models.QuerySet[ApiRequest]":
        """Expired idempotency keys of the API."""
        if not conf.IDEMPOTENCY_HOURS:
            return ApiRequest.objects.none()
        hours = timedelta(hours=conf.IDEMPOTENCY_HOURS)
        return ApiRequest.objects.filter(created_at__lt=self.now - hours)

    def drafts(self) -> "models.QuerySet[Draft]":
        """Previewed lists that have expired."""
        return Draft.objects.filter(created_at__lt=self.now - KEPT)

    def task_results(self) -> "models.QuerySet[Any]":
        """Old Celery task results, if they are stored in this database."""
        if not apps.is_installed("django_celery_results"):
            return RenderJob.objects.none()
        model: Any = apps.get_model("django_celery_results", "TaskResult")
        if not self.ages.task_results:
            return model._default_manager.none()
        return model._default_manager.filter(date_done__lt=self.before(self.ages.task_results))

    def before(self, days: int) -> datetime:
        """The moment this many days ago."""
        return self.now - timedelta(days=days)


def is_in(renders: RenderQuerySet, key: str = "pk") -> Exists:
    """A condition: the row's render is one of these. A join, however many there are."""
    return Exists(renders.filter(pk=OuterRef(key)))


def walk(renders: RenderQuerySet, batch: int, by: str = "finished_at") -> Iterator[list[UUID]]:
    """Ids of these renders in batches, the oldest first. A skipped render is not returned again."""
    rest = renders.order_by(by, "pk")
    while rows := list(rest.values_list(by, "pk")[:batch]):
        yield [pk for _, pk in rows]
        at, last = rows[-1]
        later = Q(**{f"{by}__gt": at}) | Q(**{by: at, "pk__gt": last})
        rest = renders.filter(later, **{f"{by}__gte": at}).order_by(by, "pk")
