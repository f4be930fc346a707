"""Takes away what an ended render holds, in steps that whoever dies leaves to be gone on with.

Rows are marked, then their files deleted, then the names of these forgotten: a row that is still
marked is found by `marked`. Only rows that are over are touched, each by a conditional statement.
"""

import logging
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.core.files.storage import FileSystemStorage
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q, Value
from django.db.models.functions import Coalesce
from django.utils import timezone

from renders.conf import conf
from renders.limits import spending
from renders.media import storing
from renders.media.storage import storage
from renders.models import RenderEvent, RenderJob
from renders.models.querysets import OVER, RenderQuerySet
from renders.redaction import fingerprint, is_erased
from renders.states import WRITES

logger = logging.getLogger(__name__)

# What is remembered of a file whose time was up.
FACTS = ("type", "content_type", "sha256", "bytes")


@dataclass
class Cleared:
    """What became of the files of some renders."""

    pks: list[UUID] = field(default_factory=list)
    """Those that hold no file any more."""
    media: int = 0
    files: int = 0
    bytes: int = 0
    failed: list[UUID] = field(default_factory=list)
    """Those whose files the storage did not delete: they stay marked."""


def marked() -> RenderQuerySet:
    """Those whose files somebody began to delete."""
    return RenderJob.objects.filter(removing_at__isnull=False)


def clear(pks: Iterable[UUID]) -> Cleared:
    """Delete the files of these renders, where they are over, and forget their names."""
    done = Cleared()
    over = RenderJob.objects.filter(OVER, pk__in=list(pks))
    with transaction.atomic():
        # Nobody stores a file while they are deleted: a try under way comes first, or is dead.
        since = timezone.now() - timedelta(seconds=conf.media_seconds)
        saving = Q(media_due_at__isnull=False, taken_at__gt=since)
        unmarked = over.filter(~saving, result__isnull=False, removing_at=None)
        free = list(_locked(unmarked).values_list("pk", flat=True))
        RenderJob.objects.filter(pk__in=free).update(removing_at=timezone.now(), media_due_at=None)
    held = Q(result__isnull=False, removing_at=None)  # by somebody else just now
    for render in over.filter(~held).only("pk", "result", "removing_at"):
        try:
            files = files_of(render)
            for name in files:
                storage().delete(name)
        except Exception as error:  # noqa: BLE001 (a storage may raise anything)
            logger.warning("Files of render %s stay (%s).", render.pk, type(error).__name__)
            done.failed.append(render.pk)
            continue
        if files:
            _remove_folder(render)
        done.files += len(files)
        done.bytes += sum(files.values())
        done.pks.append(render.pk)
        if render.removing_at and _forget(render):
            done.media += bool(files)
    return done


def files_of(render: RenderJob) -> dict[str, int]:
    """The names of all its files in the storage, each with its bytes.

    Those that the row names, and what a killed try to store them has left beside. Raises what the
    storage raises.
    """
    if render.result is None:
        return {}
    folder = f"renders/{render.pk}"
    artifacts = render.result.get("artifacts", [])
    names = {name for artifact in artifacts for name in storing.names_of(artifact)}
    with suppress(NotImplementedError, FileNotFoundError):
        names |= {f"{folder}/{name}" for name in storage().listdir(folder)[1]}
    sizes = {}
    for name in sorted(names):
        with suppress(FileNotFoundError):
            sizes[name] = _size(name)
    return sizes


def strip(pks: Iterable[UUID], now: datetime, *, names: bool) -> list[UUID]:
    """Leave of these no more than a line of the bill, and the reference, so that it makes no
    second one: of an erased person's (`names`), its fingerprint. Returns those that were stripped.
    """
    with transaction.atomic():
        rows = _locked(RenderJob.objects.filter(OVER, pk__in=list(pks), removing_at=None))
        found = dict(rows.values_list("pk", "reference"))
        erased: dict[str, Any] = {
            "prompt": "",
            "params": {},
            "request_body": "",
            "result": None,
            "media_due_at": None,
            "error_message": "",
            "erased_at": Coalesce("erased_at", Value(now)),
        }
        RenderJob.objects.filter(pk__in=found).update(**erased)
        events = RenderEvent.objects.filter(render__in=found)
        if names:
            # Beside a POST stands whose minute it counts against, and nothing of a person's.
            events.exclude(what__in=WRITES).exclude(detail="").update(detail="")
            for pk, reference in found.items():
                if reference and not is_erased(reference):
                    renamed = fingerprint(reference)
                    RenderJob.objects.filter(pk=pk).update(reference=renamed)
        else:
            events.delete()
    return list(found)


def deletable(renders: RenderQuerySet) -> RenderQuerySet:
    """Those that nothing needs: without them, nothing is billed twice and nobody misses them.

    A reference, and a retry, keeps a second render from being made. What the tables of a project
    point to stays as well, and a month's bill where a budget limits it.
    """
    return renders.filter(unmissed(), reference=None, retry_of=None)


def unmissed() -> Q:
    """No table of the project points to it, and no budget counts what it cost."""
    where = ~spending.counted(timezone.now())
    for relation in RenderJob._meta.get_fields(include_hidden=True):
        others: Any = relation.related_model
        if not relation.auto_created or relation.concrete or others in {RenderJob, RenderEvent}:
            continue
        key: Any = getattr(relation, "field")  # noqa: B009 (unknown to the type)
        if getattr(relation, "many_to_many", False):
            continue  # its own table comes by itself
        theirs = {key.name: OuterRef(key.target_field.name)}  # with `to_field`, not the id
        where &= ~Q(Exists(others._base_manager.filter(**theirs)))
    return where


def delete(pks: Iterable[UUID]) -> tuple[int, int]:
    """Delete these, where they still may be, with their timelines: rows, and events."""
    with transaction.atomic():
        rows = RenderJob.objects.filter(OVER, pk__in=list(pks), removing_at=None)
        locked = list(_locked(rows).values_list("pk", flat=True))
        # Their retries are written to as well: one that somebody holds keeps its original.
        retries = RenderJob.objects.filter(retry_of__in=locked)
        free = list(_locked(retries, no_key=True).values_list("pk", flat=True))
        held = set(retries.exclude(pk__in=free).values_list("retry_of", flat=True))
        # Asked once they are locked: nobody can point to one any more.
        rest = RenderJob.objects.filter(pk__in=[pk for pk in locked if pk not in held])
        gone = deletable(rest).pks(len(locked))
        events = RenderEvent.objects.filter(render__in=gone).delete()[0]
        RenderJob.objects.filter(pk__in=gone).delete()  # their retries are none any more
    return len(gone), events


def _locked(renders: RenderQuerySet, *, no_key: bool = False) -> Any:
    """Those that nobody holds: whoever waits, with others in hand, can end in a deadlock."""
    skips = connection.features.has_select_for_update_skip_locked
    return renders.order_by().select_for_update(skip_locked=skips, no_key=no_key and skips)


def _forget(render: RenderJob) -> int:
    removed = [
        {name: artifact[name] for name in FACTS if artifact.get(name)}
        for artifact in (render.result or {}).get("artifacts", [])
    ]
    return (
        marked()
        .filter(OVER, pk=render.pk)
        .update(
            result={"artifacts": [], "removed": removed},
            media_removed_at=Coalesce("media_removed_at", Value(timezone.now())),
            removing_at=None,
        )
    )


def _size(name: str) -> int:
    try:
        return storage().size(name)
    except NotImplementedError:
        return 0


def _remove_folder(render: RenderJob) -> None:
    """Where folders are real, an empty one stays."""
    if isinstance(storage(), FileSystemStorage):
        with suppress(OSError):
            storage().delete(f"renders/{render.pk}")
