"""Create once: a request that is sent again with its key never makes a second paid render.

The row of the key and the renders are stored in one transaction. Of two equal requests at the
same time the second waits for that row, and then finds the renders of the first.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from renders import services
from renders.bodies import canonical
from renders.exceptions import KeyReused
from renders.hiding import ERASED, fingerprint
from renders.models import ApiRequest, RenderJob
from renders.references import door


@dataclass(frozen=True)
class Created:
    """The renders of a request, in its order; `replayed` where an earlier one made them."""

    renders: list[RenderJob]
    replayed: bool = False


def create_once(
    requests: Sequence[Mapping[str, Any]], *, user: Any, key: str = "", body: Any = None
) -> Created:
    """Create the renders, or return those that this user's key has made before.

    `body` is the whole request as it came: what a repeated one must equal. Raises `KeyReused`,
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
                raise KeyReused  # what it made was erased since
            renders = _create(requests, user)
            request.render_ids = [str(render.pk) for render in renders]
            request.save(update_fields=["render_ids"])
            return Created(renders)
    if request.body_hash != body_hash:
        raise KeyReused
    known = {str(pk): render for pk, render in _found(request.render_ids).items()}
    return Created([known[pk] for pk in request.render_ids if pk in known], replayed=True)


def _create(requests: Sequence[Mapping[str, Any]], user: Any) -> list[RenderJob]:
    return [render for render, _is_new in services.create(requests, user, door(user))]


def _found(ids: list[str]) -> dict[Any, RenderJob]:
    return RenderJob.objects.defer("request_body").in_bulk(ids)
