"""Which avatars a user may use in avatar videos: a face is personal.

An avatar made on this site belongs to its owner. Staff may use every avatar, and release one to
everybody. The site's own code is not checked.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from renders.conf import workspaces
from renders.exceptions import InvalidRender, SumeError
from renders.limits import read_quota
from renders.models import Avatar
from renders.models.querysets import sees_all
from renders.services import workspace_choice
from renders.states import Kind
from renders.sume.client import SumeClient

FIELD = "params.avatar_handle"
# The time-out of Sume's list, and how long it is cached.
TIMEOUT_SECONDS = 3.0
KEPT_SECONDS = 60.0
MOST = 100

_listed: dict[str, tuple[float, list[str] | None]] = {}


def faults(user: Any, requests: Sequence[Mapping[str, Any]]) -> list[tuple[int, InvalidRender]]:
    """Errors of cleaned requests, by index: an avatar this user may not use, or a taken handle."""
    speaking = [
        (index, request)
        for index, request in enumerate(requests)
        if request["kind"] in {Kind.AVATAR, Kind.AVATAR_VIDEO}
    ]
    if not speaking:
        return []
    own = ""
    if any(not request.get("workspace") for _, request in speaking):
        with suppress(InvalidRender):  # another check reports the missing workspace
            own = workspace_choice.choose(user)
    wanted = [
        (index, request["kind"], workspace, request["params"]["avatar_handle"])
        for index, request in speaking
        if (workspace := request.get("workspace") or own)
    ]
    rows = Avatar.objects.filter(handle__in={handle for *_, handle in wanted})
    avatars = {(row.workspace, row.handle): row for row in rows}
    trusted = sees_all(user)
    errors = []
    for index, kind, workspace, handle in wanted:
        row = avatars.get((workspace, handle))
        owned = row is not None and row.owner_id == user.pk
        if kind == Kind.AVATAR and row is not None and not owned:
            words = f"The handle {handle} is taken. Choose another one."
        elif kind == Kind.AVATAR_VIDEO and not (trusted or owned or (row and row.released)):
            words = (
                f"You cannot use the avatar {handle}: it is neither yours nor released to "
                "everybody, or the handle is wrong. Use one of your own, or ask staff for it."
            )
        else:
            continue
        errors.append((index, InvalidRender(FIELD, words, index=index)))
    return errors


def choices(
    user: Any, clients: Callable[[Any], SumeClient] | None = None, *, ask: bool = True
) -> list[str]:
    """The handles of ready avatars that this person may use, as far as known.

    Without `ask`, Sume is not asked: a list from the last minute is used.
    """
    try:
        workspace = workspace_choice.choose(user)
    except InvalidRender:
        return []
    ready = _ready(workspace, clients or _client, ask=ask)
    rows = Avatar.objects.filter(workspace=workspace)
    if not sees_all(user):
        rows = rows.filter(owner=user) | rows.filter(released=True)
        allowed = set(rows.values_list("handle", flat=True))
        return sorted(allowed if ready is None else allowed.intersection(ready))
    return sorted(rows.values_list("handle", flat=True) if ready is None else ready)


def forget() -> None:
    """Clear the cached lists: for tests."""
    _listed.clear()


def _ready(workspace: str, clients: Callable[[Any], SumeClient], *, ask: bool) -> list[str] | None:
    """The handles that Sume lists as ready; None if the list is not available now."""
    now = time.monotonic()
    until, kept = _listed.get(workspace, (float("-inf"), None))
    if until <= now:
        if not ask:
            return None
        kept = _asked(workspace, clients)
        _listed[workspace] = now + KEPT_SECONDS, kept
    return kept


def _asked(workspace: str, clients: Callable[[Any], SumeClient]) -> list[str] | None:
    account = workspaces.find(workspace)
    if account is None or not account.api_key:
        return None
    try:
        return read_quota.read(workspace, lambda: clients(account).ready_avatars(MOST))
    except SumeError:
        return None


def _client(account: workspaces.Workspace) -> SumeClient:
    return SumeClient(account.api_key, account.base_url, timeout=TIMEOUT_SECONDS, pool_size=1)
