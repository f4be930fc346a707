"""Chooses the workspace of a render, and checks which ones a person may name."""

from collections.abc import Callable, Mapping
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from renders.conf import conf, workspaces
from renders.exceptions import InvalidRender
from renders.limits.prices import default_model, estimated
from renders.models import UserWorkspace
from renders.states import Kind

PERMISSION = "renders.choose_workspace"


def choose(user: Any) -> str:
    """The workspace of a render that names none, for this person (None: a program).

    The first match wins: `WORKSPACE_FOR`, the person's own, the default one. Raises `InvalidRender`
    if that one is not configured: any other would bill another account.
    """
    name = _from_setting(user) or _own(user) or workspaces.DEFAULT
    if workspaces.missing(name):
        raise InvalidRender(
            "workspace",
            f"Your workspace is {name}, which is not configured. Ask whoever runs this site.",
        )
    return name


def remembering() -> Callable[[Any], str]:
    """As `choose`, for many renders at once: each person is looked up once."""
    cache: dict[Any, str] = {}

    def chosen(user: Any) -> str:
        key = getattr(user, "pk", None)
        if key not in cache:
            cache[key] = choose(user)
        return cache[key]

    return chosen


def may_choose(user: Any, name: str) -> bool:
    """True if this person may name this workspace: it is their own, or they have the permission."""
    if user is None or user.has_perm(PERMISSION):
        return True
    try:
        return choose(user) == name
    except InvalidRender:
        return False


def choices(user: Any) -> list[str]:
    """The workspaces that this person may name, their own first; empty if there is only one."""
    if not workspaces.several() or not user.has_perm(PERMISSION):
        return []
    try:
        own = [choose(user)]
    except InvalidRender:
        own = []
    return [*own, *(name for name in workspaces.names() if name not in own)]


def prices(user: Any) -> Mapping[str, int]:
    """The estimated price of each kind for this person, in millionths of a dollar.

    It is for the default model of forms. Kinds without a known price are left out.
    """
    try:
        own = workspaces.find(choose(user))
    except InvalidRender:
        own = None
    if own is None:
        return {}
    estimates = {kind.value: estimated(own, kind, default_model()) for kind in Kind}
    return {kind: micros for kind, micros in estimates.items() if micros is not None}


def refuse(user: Any, name: Any) -> None:
    """Raise `InvalidRender` if this person may not name this workspace."""
    if isinstance(name, str) and name and not may_choose(user, name):
        raise InvalidRender("workspace", "You may not choose this workspace; leave it out.")


def _from_setting(user: Any) -> str | None:
    path = conf.WORKSPACE_FOR
    if not path:
        return None
    try:
        chooser = import_string(path)
    except ImportError:
        raise ImproperlyConfigured(f"WORKSPACE_FOR: there is no {path}.") from None
    name = chooser(user)
    return str(name) if name else None


def _own(user: Any) -> str | None:
    if user is None or not getattr(user, "pk", None):
        return None
    # Looked up even if there is one workspace only: the person's own may have been removed.
    rows = UserWorkspace.objects.filter(user=user.pk)
    return rows.values_list("workspace", flat=True).first()
