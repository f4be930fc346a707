"""Makes each request once, identified by a caller's reference or the API's idempotency key.

A reference is the caller's own name for a request. It belongs to a scope: the site's own code, or
the user who gave it through the API, a page or the admin. The id of a row with a reference, and so
its idempotency key at Sume, follows from the installation, the scope and the reference. So if the
same request comes again after a backup was restored, its key is the same, and Sume answers with
the job that it has.

An idempotency key is stored in one transaction with its renders. If two equal requests arrive at
the same time, the second waits for the key's row and then returns the renders of the first.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid5

from django.db import IntegrityError, transaction

from renders import services
from renders.conf import conf
from renders.exceptions import KeyReused
from renders.models import ApiRequest, Installation, RenderJob
from renders.redaction import ERASED, fingerprint
from renders.states import takes_model
from renders.sume.bodies import canonical

# Most rows, or values, in one statement: SQLite has a limit.
ROWS = 2_000


@dataclass(frozen=True)
class Created:
    """The renders of a request, in its order; `replayed` if an earlier request made them."""

    renders: list[RenderJob]
    replayed: bool = False


def create_once(
    requests: Sequence[Mapping[str, Any]], *, user: Any, key: str = "", body: Any = None
) -> Created:
    """Create the renders, or return those that an earlier request with this user's key made.

    `body` is the whole request as received: a repeated one must equal it. Raises `KeyReused`,
    `ReferenceTaken` or `InvalidRender`; nothing is stored then.
    """
    with transaction.atomic():
        if not key:
            return Created(_create(requests, user))
        if key.startswith(ERASED):
            raise KeyReused
        body_hash = hashlib.sha256(canonical(body).encode()).hexdigest()
        request, new = ApiRequest.objects.get_or_create(
            user=user, key=key, defaults={"body_hash": body_hash}
        )
        if new:
            if ApiRequest.objects.filter(user=user, key=fingerprint(key)).exists():
                raise KeyReused  # its renders were erased since
            renders = _create(requests, user)
            request.render_ids = [str(render.pk) for render in renders]
            request.save(update_fields=["render_ids"])
            return Created(renders)
    if request.body_hash != body_hash:
        raise KeyReused
    renders_by_id = RenderJob.objects.defer("request_body").in_bulk(request.render_ids)
    left = {str(pk): render for pk, render in renders_by_id.items()}
    return Created([left[pk] for pk in request.render_ids if pk in left], replayed=True)


def door(user: Any) -> str:
    """The scope of the references that this user gives through the API, a page or the admin."""
    return f"door:{user.pk}"


def installation_id() -> UUID:
    """The installation's id: `INSTALLATION_ID`, else the random id stored in the database."""
    if conf.INSTALLATION_ID:
        return UUID(conf.INSTALLATION_ID)
    kept = Installation.objects.first()
    if kept is None:  # `migrate` stores it, but a database can be flushed
        Installation.objects.bulk_create([Installation()], ignore_conflicts=True)
        kept = Installation.objects.get()
    return kept.uuid


def insert(renders: Sequence[RenderJob]) -> list[RenderJob]:
    """Insert renders and return their rows in order; for a known reference, the stored row.

    A row was inserted by this call if it is the object that was passed. Call it in a transaction.
    """
    derived = [render for render in renders if render.reference or render.retry_of_id]
    if derived:
        _name(derived)
    first: dict[UUID, RenderJob] = {}
    for render in derived:
        first.setdefault(render.pk, render)
    RenderJob.objects.bulk_create(
        [render for render in renders if render.pk not in first], batch_size=ROWS
    )
    # Sorted, so that two concurrent callers cannot deadlock.
    named = sorted(first.values(), key=lambda row: (row.reference or "", row.pk))
    for start in range(0, len(named), ROWS):
        batch = named[start : start + ROWS]
        first |= zip([row.pk for row in batch], _insert_named(batch), strict=True)
    return [first.get(row.pk, row) for row in renders]


def asks_for(render: RenderJob, request: Mapping[str, Any], user: Any) -> bool:
    """True if this user's cleaned request is the one that made the row.

    A pruned or erased row counts as the same: its request is no longer stored.
    """
    if render.erased_at:
        return True
    fields = ["prompt", "kind", "params", *(["workspace"] if "workspace" in request else [])]
    if takes_model(request["kind"]):
        fields.append("model")
    asked = {name: request[name] for name in fields}
    same = canonical({name: getattr(render, name) for name in fields}) == canonical(asked)
    owner = getattr(user, "pk", None)
    # Compared as text: a caller may pass the id as a string.
    return same and str(render.created_by_id) == str(owner)


def _create(requests: Sequence[Mapping[str, Any]], user: Any) -> list[RenderJob]:
    return [render for render, _is_new in services.create(requests, user, door(user))]


def _name(renders: Iterable[RenderJob]) -> None:
    """Set the ids of rows with a reference, and of retries: they are derived from these."""
    installation = installation_id()
    for render in renders:
        if render.reference:
            facts = [render.reference_scope, render.reference]
        else:
            facts = ["retry", str(render.retry_of_id)]
        render.id = uuid5(installation, json.dumps(facts))


def _insert_named(renders: list[RenderJob]) -> list[RenderJob]:
    """As `insert`, for rows with derived ids, no two of them the same."""
    while True:
        stored = _stored_rows(renders)
        try:
            with transaction.atomic():
                RenderJob.objects.bulk_create([row for row in renders if row.pk not in stored])
        except IntegrityError:
            if _stored_rows(renders).keys() <= stored.keys():
                raise  # another error: no concurrent caller has stored one of them
        else:
            return [stored.get(row.pk, row) for row in renders]


def _stored_rows(renders: Iterable[RenderJob]) -> dict[UUID, RenderJob]:
    """Stored rows with the same references or ids as these renders, by the renders' ids."""
    renders = list(renders)
    retries = [render.pk for render in renders if not render.reference]
    callers: dict[tuple[str, Any], dict[str, UUID]] = {}
    for render in (render for render in renders if render.reference):
        of_caller = callers.setdefault((render.reference_scope, render.created_by_id), {})
        of_caller[str(render.reference)] = render.pk
    rows = RenderJob.objects.in_bulk(retries) if retries else {}
    for (scope, owner), pks in callers.items():
        stored = RenderJob.objects.of_references(scope, owner, list(pks))
        rows |= {pks[name]: row for name, row in stored.items()}
    return rows
