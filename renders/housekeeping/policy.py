"""How long what has ended is kept, and what is older than that. Reads; deletes nothing."""

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

# Long after an event's signature has become too old to come again.
KEEP_WEBHOOKS = timedelta(days=30)
NOTHING = Q(pk__in=[])


@dataclass(frozen=True)
class Ages:
    """Days after which each is deleted; 0: never."""

    completed: int = 0
    failed: int = 0
    canceled: int = 0
    media: int = 0
    events: int = 0
    task_results: int = 0

    @classmethod
    def as_set(cls) -> "Ages":
        """Those of the settings."""
        return cls(
            conf.KEEP_COMPLETED_DAYS,
            conf.KEEP_FAILED_DAYS,
            conf.KEEP_CANCELED_DAYS,
            conf.KEEP_MEDIA_DAYS,
            conf.KEEP_EVENTS_DAYS,
        )

    @property
    def any(self) -> bool:
        """Whether there is anything that is not kept for ever."""
        return self != Ages()


class Old:
    """What is older than it shall be, at one moment."""

    def __init__(self, ages: Ages, now: datetime | None = None) -> None:
        self.ages = ages
        self.now = now or timezone.now()
        by_status = {
            Status.COMPLETED: ages.completed,
            Status.FAILED: ages.failed,
            Status.CANCELED: ages.canceled,
        }
        # One for each status: so each is found by the index of the ends.
        self.parts = [
            OVER & Q(status=status, finished_at__lt=self.before(days))
            for status, days in by_status.items()
            if days
        ]

    def renders(self) -> RenderQuerySet:
        """All whose time is up."""
        where = NOTHING
        for part in self.parts:
            where |= part
        return RenderJob.objects.filter(where).order_by()

    def deletable(self) -> list[RenderQuerySet]:
        """Those of them that can go, a level of retries in each: once the originals are deleted,
        their retries are retries no longer."""
        levels: list[RenderQuerySet] = []
        level = deletable(self.renders())
        while level.exists():
            levels.append(level)
            found = self.renders().filter(unmissed(), reference=None)
            level = found.filter(retry_of__in=level.values("pk"))
        return levels

    def to_strip(self) -> RenderQuerySet:
        """Of the others, those that are more than a line of the bill."""
        rest = self.renders().filter(erased_at=None)
        for level in self.deletable():
            rest = rest.filter(~is_in(level))
        return rest

    def with_media(self) -> RenderQuerySet:
        """Kept, but not their pictures and clips."""
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
        """Lines of the timelines of renders that are over."""
        if not self.ages.events:
            return RenderEvent.objects.none()
        over = RenderJob.objects.filter(OVER).values("pk")
        before = self.before(self.ages.events)
        return RenderEvent.objects.filter(at__lt=before, render__in=over).order_by()

    def webhooks(self) -> "models.QuerySet[WebhookEvent]":
        """Webhooks too old to come again."""
        return WebhookEvent.objects.filter(received_at__lt=self.now - KEEP_WEBHOOKS)

    def keys(self) -> "models.QuerySet[ApiRequest]":
        """The API's idempotency keys that are remembered no longer."""
        if not conf.IDEMPOTENCY_HOURS:
            return ApiRequest.objects.none()
        hours = timedelta(hours=conf.IDEMPOTENCY_HOURS)
        return ApiRequest.objects.filter(created_at__lt=self.now - hours)

    def drafts(self) -> "models.QuerySet[Draft]":
        """Lists that were previewed, and not added for long."""
        return Draft.objects.filter(created_at__lt=self.now - KEPT)

    def task_results(self) -> "models.QuerySet[Any]":
        """Celery's results, where they are kept in this database."""
        if not apps.is_installed("django_celery_results"):
            return RenderJob.objects.none()
        model: Any = apps.get_model("django_celery_results", "TaskResult")
        if not self.ages.task_results:
            return model._default_manager.none()
        return model._default_manager.filter(date_done__lt=self.before(self.ages.task_results))

    def before(self, days: int) -> datetime:
        """The moment so many days ago."""
        return self.now - timedelta(days=days)


def is_in(renders: RenderQuerySet, key: str = "pk") -> Exists:
    """Whether a row's render is among these: as a join, however many they are."""
    return Exists(renders.filter(pk=OuterRef(key)))


def walk(renders: RenderQuerySet, batch: int, by: str = "finished_at") -> Iterator[list[UUID]]:
    """The keys of these, the oldest first, batch by batch; what is left behind is not met again."""
    rest = renders.order_by(by, "pk")
    while found := list(rest.values_list(by, "pk")[:batch]):
        yield [pk for _, pk in found]
        at, last = found[-1]
        here = Q(**{f"{by}__gt": at}) | Q(**{by: at, "pk__gt": last})
        rest = renders.filter(here, **{f"{by}__gte": at}).order_by(by, "pk")
