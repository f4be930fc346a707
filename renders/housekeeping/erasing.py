"""Erases a person's data; of each of their renders, only a line of the bill is left.

What is left prevents a second bill: a reference and an idempotency key are recognized by their
fingerprints. Renders that are not over are not touched.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.apps import apps
from django.db.models import Q
from django.utils import timezone

from renders.exceptions import RendersError
from renders.housekeeping import removal
from renders.housekeeping.policy import walk
from renders.models import ApiRequest, ApiToken, Avatar, Draft, RenderJob
from renders.models.querysets import OVER, RenderQuerySet
from renders.redaction import ERASED, fingerprint
from renders.states import TERMINAL

BATCH = 200
CHUNK = 1_000
RENDER_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
# A pruned row has `erased_at`, but still the reference itself.
UNERASED = Q(erased_at=None) | (Q(reference__isnull=False) & ~Q(reference__startswith=ERASED))


class NotOver(RendersError):
    """Some renders are not over yet, so nothing was erased."""

    def __init__(self, count: int) -> None:
        super().__init__(f"{count} are not over yet.")
        self.count = count


@dataclass
class Erased:
    """How many of each were erased, or would be erased."""

    renders: int = 0
    files: int = 0
    bytes: int = 0
    drafts: int = 0
    tokens: int = 0
    keys: int = 0
    task_results: int = 0
    failed: int = 0
    """Renders with files that the storage did not delete: the next call tries them again."""
    left: int = 0
    """Renders that are not over: they were made meanwhile."""
    rest: int = 0
    """Renders that are over and still to be erased."""


def erase(
    user: Any,
    *,
    told: Callable[[int], object] = lambda rows: None,
    stop: Callable[[], bool] = lambda: False,
) -> Erased:
    """Erase the data of this user; for None, the renders that have no owner.

    `told` is called with the number of renders after each batch, `stop` before each batch. Raises
    `NotOver` if a render waits, runs or is not handled yet; nothing is erased then.
    """
    if count := open_renders(user).count():
        raise NotOver(count)
    done = Erased()
    if user is not None:  # first of all, revoke access
        done.tokens = ApiToken.objects.filter(user=user).revoke(timezone.now())
        done.drafts = Draft.objects.filter(created_by=user).delete()[0]
        Avatar.objects.filter(owner=user).delete()  # from now on, only staff may use these faces
        done.keys = _rename_keys(user)
    done.task_results = _delete_results(user)
    for pks in walk(to_erase(user), BATCH, by="created_at"):
        if stop():
            break
        cleared = removal.clear(pks)
        erased = removal.strip(cleared.pks, timezone.now(), names=True)
        done.renders += len(erased)
        done.files += cleared.files
        done.bytes += cleared.bytes
        done.failed += len(cleared.failed)
        told(len(pks))
    done.left, done.rest = open_renders(user).count(), to_erase(user).count()
    return done


def foresee(user: Any) -> Erased:
    """Count what would be erased now. Changes nothing."""
    renders = to_erase(user)
    count = Erased(renders=renders.count(), left=open_renders(user).count())
    if user is not None:
        count.tokens = ApiToken.objects.filter(user=user, revoked_at=None).count()
        count.drafts = Draft.objects.filter(created_by=user).count()
        count.keys = _keys(user).count()
    count.task_results = sum(map(len, _results(user)))
    holding = renders.filter(result__isnull=False).only("pk", "result")
    for render in holding.iterator(chunk_size=BATCH):
        sizes = removal.files_of(render).values()
        count.files += len(sizes)
        count.bytes += sum(sizes)
    return count


def open_renders(user: Any) -> RenderQuerySet:
    """The user's renders that are not over: not ended, or not handled."""
    waiting = ~Q(status__in=TERMINAL) | Q(handled_at=None)
    return RenderJob.objects.filter(waiting, created_by=user)


def to_erase(user: Any) -> RenderQuerySet:
    """The user's renders that are over and hold more than a line of the bill."""
    return RenderJob.objects.filter(OVER, UNERASED, created_by=user).order_by()


def _keys(user: Any) -> Any:
    return ApiRequest.objects.filter(user=user).exclude(body_hash="")


def _rename_keys(user: Any) -> int:
    requests = list(_keys(user))
    for request in requests:
        request.key = fingerprint(request.key)
        request.body_hash, request.render_ids = "", []
    fields = ["key", "body_hash", "render_ids"]
    ApiRequest.objects.bulk_update(requests, fields, batch_size=BATCH)
    return len(requests)


def _delete_results(user: Any) -> int:
    deleted = 0
    for pks in _results(user):
        model: Any = apps.get_model("django_celery_results", "TaskResult")
        deleted += model._default_manager.filter(pk__in=pks).delete()[0]
    return deleted


def _results(user: Any) -> Iterable[list[int]]:
    """Ids of the task results that name one of the user's renders, a chunk at a time."""
    if not apps.is_installed("django_celery_results"):
        return
    model: Any = apps.get_model("django_celery_results", "TaskResult")
    rows = model._default_manager.filter(task_name__startswith="renders.").order_by("pk")
    last = 0
    while chunk := list(
        rows.filter(pk__gt=last).values_list("pk", "task_args", "task_kwargs")[:CHUNK]
    ):
        last = chunk[-1][0]
        named = {pk: _render_ids(f"{args} {kwargs}") for pk, args, kwargs in chunk}
        render_ids = {render_id for ids in named.values() for render_id in ids}
        renders = RenderJob.objects.filter(pk__in=render_ids, created_by=user)
        owned = set(renders.pks(len(render_ids)))
        yield [pk for pk, ids in named.items() if ids & owned]


def _render_ids(text: str) -> set[UUID]:
    return {UUID(match) for match in RENDER_ID.findall(text)}
