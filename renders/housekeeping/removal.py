"""Removes an ended render's files, contents or row, in steps that continue after a crash.

A row is marked, then its files are deleted, then their names are removed from the row. `marked`
returns rows that are still marked. Only rows that are over are touched, each by a conditional
statement.
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

# The facts that are kept of a deleted file.
FACTS = ("type", "content_type", "sha256", "bytes")


@dataclass
class Cleared:
    """The outcome of deleting the files of some renders."""

    pks: list[UUID] = field(default_factory=list)
    """Renders that have no file left."""
    media: int = 0
    files: int = 0
    bytes: int = 0
    failed: list[UUID] = field(default_factory=list)
    """Renders with files that the storage did not delete: they remain marked."""


def marked() -> RenderQuerySet:
    """Renders with files that a process began to delete."""
    return RenderJob.objects.filter(removing_at__isnull=False)


def clear(pks: Iterable[UUID]) -> Cleared:
    """Delete the files of these renders, if they are over, and remove the names from the rows."""
    done = Cleared()
    over = RenderJob.objects.filter(OVER, pk__in=list(pks))
    with transaction.atomic():
        # No file may be stored meanwhile: a running try goes first, until it counts as dead.
        since = timezone.now() - timedelta(seconds=conf.media_seconds)
        saving = Q(media_due_at__isnull=False, taken_at__gt=since)
        unmarked = over.filter(~saving, result__isnull=False, removing_at=None)
        free = list(_locked(unmarked).values_list("pk", flat=True))
        RenderJob.objects.filter(pk__in=free).update(removing_at=timezone.now(), media_due_at=None)
    held = Q(result__isnull=False, removing_at=None)  # locked by another process just now
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
    """The names of all its files in the storage, each with its size in bytes.

    These are the files that the row names, and files left by a killed try to store them. Raises
    what the storage raises.
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
    """Reduce these renders to a line of the bill; returns those that were stripped.

    The reference is kept, so that the same request is not billed again. If the renders are erased
    with their owner (`names`), only its fingerprint is kept.
    """
    with transaction.atomic():
        rows = _locked(RenderJob.objects.filter(OVER, pk__in=list(pks), removing_at=None))
        references = dict(rows.values_list("pk", "reference"))
        erased: dict[str, Any] = {
            "prompt": "",
            "params": {},
            "request_body": "",
            "result": None,
            "media_due_at": None,
            "error_message": "",
            "erased_at": Coalesce("erased_at", Value(now)),
        }
        RenderJob.objects.filter(pk__in=references).update(**erased)
        events = RenderEvent.objects.filter(render__in=references)
        if names:
            # The detail of a POST is the workspace that it counts against: nothing personal.
            events.exclude(what__in=WRITES).exclude(detail="").update(detail="")
            for pk, reference in references.items():
                if reference and not is_erased(reference):
                    renamed = fingerprint(reference)
                    RenderJob.objects.filter(pk=pk).update(reference=renamed)
        else:
            events.delete()
    return list(references)


def deletable(renders: RenderQuerySet) -> RenderQuerySet:
    """Renders that can be deleted: nothing refers to them, and no second bill can follow.

    A row with a reference, or a retry, is kept, since it prevents a second render. Rows that tables
    of the project point to are kept too, and those that count against a month's budget.
    """
    return renders.filter(unmissed(), reference=None, retry_of=None)


def unmissed() -> Q:
    """A condition: no table of the project points to the render, and no budget counts its cost."""
    where = ~spending.counted(timezone.now())
    for relation in RenderJob._meta.get_fields(include_hidden=True):
        others: Any = relation.related_model
        if not relation.auto_created or relation.concrete or others in {RenderJob, RenderEvent}:
            continue
        key: Any = getattr(relation, "field")  # noqa: B009 (unknown to the type)
        if getattr(relation, "many_to_many", False):
            continue  # its through table is a relation of its own
        pointing = {key.name: OuterRef(key.target_field.name)}  # `to_field` may not be the id
        where &= ~Q(Exists(others._base_manager.filter(**pointing)))
    return where


def delete(pks: Iterable[UUID]) -> tuple[int, int]:
    """Delete these renders, if still allowed; returns the numbers of rows and timeline entries."""
    with transaction.atomic():
        rows = RenderJob.objects.filter(OVER, pk__in=list(pks), removing_at=None)
        locked = list(_locked(rows).values_list("pk", flat=True))
        # Deleting a row updates its retries: if one of these is locked, its original is kept.
        retries = RenderJob.objects.filter(retry_of__in=locked)
        free = list(_locked(retries, no_key=True).values_list("pk", flat=True))
        held = set(retries.exclude(pk__in=free).values_list("retry_of", flat=True))
        # Checked under the lock: no new row can point to one of these.
        rest = RenderJob.objects.filter(pk__in=[pk for pk in locked if pk not in held])
        gone = deletable(rest).pks(len(locked))
        events = RenderEvent.objects.filter(render__in=gone).delete()[0]
        RenderJob.objects.filter(pk__in=gone).delete()  # sets `retry_of` of their retries to NULL
    return len(gone), events


def _locked(renders: RenderQuerySet, *, no_key: bool = False) -> Any:
    """Lock the rows that are free: waiting for others while holding some could deadlock."""
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
    """Remove the empty folder, in a storage that has real folders."""
    if isinstance(storage(), FileSystemStorage):
        with suppress(OSError):
            storage().delete(f"renders/{render.pk}")
