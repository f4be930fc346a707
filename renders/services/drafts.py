"""Adds many renders at once: a preview is stored as a draft, and added exactly as it was shown.

A draft is identified by its form's token. Double clicks, reloads, the back button and a second tab
are harmless: the one transaction that sets `added_at` makes the renders.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from django.db import transaction
from django.utils import timezone

from renders import services
from renders.conf import workspaces
from renders.exceptions import InvalidRender, RendersError
from renders.limits import prices
from renders.models import Draft, RenderJob
from renders.models.drafts import KEPT
from renders.services import BATCH, avatars, permissions, workspace_choice
from renders.services.import_files import Layout, LineError, Sheet, fault_of, read
from renders.services.references import door


class Faulty(RendersError):
    """The draft cannot be added, and nothing was. `faults` say why."""

    def __init__(self, faults: list[LineError]) -> None:
        super().__init__(f"{len(faults)} faults")
        self.faults = faults


def keep(user: Any, token: str, text: str, layout: Layout, common: dict[str, Any]) -> Draft | None:
    """Store a preview as a draft, so that a tab adds what it shows.

    None if the token belongs to another user. If the same form comes back with other contents, it
    is a new draft: one for each of its contents.
    """
    now = timezone.now()
    Draft.objects.filter(created_at__lt=now - KEPT).delete()
    fields = {"text": text, "layout": layout, "common": common, "created_by": user}
    draft, _ = Draft.objects.get_or_create(token=token, defaults=fields)
    if draft.created_by_id != user.pk:
        return None
    if (draft.text, draft.layout, draft.common) != (text, layout, common):
        filling = json.dumps([token, text, layout, common], sort_keys=True)
        token = hashlib.sha256(filling.encode()).hexdigest()
        draft, _ = Draft.objects.get_or_create(token=token, defaults=fields)
    Draft.objects.filter(pk=draft.pk, added_at=None).update(created_at=now)
    return draft


def check(text: str, layout: Layout, common: dict[str, Any], user: Any) -> Sheet:
    """Read all lines and check them for this person.

    Checks that references are free, that the person may use the workspaces and avatars, that models
    and budgets allow the renders, that priorities are allowed and that they fit into the limit.
    """
    sheet = read(text, layout, common)
    lines = {request["reference"]: line for line, request in sheet.requests}
    lines.pop(None, None)
    message = "Another render has this reference. Choose another one."
    sheet.faults += [LineError(lines[name], message, "reference") for name in _taken(lines, user)]
    sheet.faults += _refused(sheet, user)
    requests = [request for _line, request in sheet.requests]
    sheet.faults += [
        fault_of(sheet.requests[index][0], error) for index, error in avatars.faults(user, requests)
    ]
    sheet.faults += _too_dear(sheet, user)
    sheet.faults += [
        fault_of(line, error)
        for line, request in sheet.requests
        if (error := permissions.priority_fault(user, request["priority"]))
    ]
    if too_many := permissions.too_many_at_once(user, len(requests)):
        sheet.faults.append(LineError(0, too_many.message))
    sheet.faults.sort(key=lambda fault: fault.line)
    return sheet


def estimate(sheet: Sheet, user: Any) -> int | None:
    """The estimated cost of all, in millionths of a dollar; None if a price is unknown."""
    counts: dict[str, Counter[tuple[str, str]]] = {}
    choose = workspace_choice.remembering()
    for _line, request in sheet.requests:
        name = request.get("workspace") or choose(user)
        counts.setdefault(name, Counter())[request["kind"], request["model"]] += 1
    estimates = [prices.estimate(workspaces.get(name), number) for name, number in counts.items()]
    priced = [micros for micros in estimates if micros is not None]
    return sum(priced) if priced and len(priced) == len(estimates) else None


def added_before(draft: Draft) -> Draft | None:
    """Another draft of this person with the same text, added since yesterday; None otherwise."""
    same = Draft.objects.filter(created_by=draft.created_by_id, text=draft.text)
    added = same.filter(added_at__isnull=False).exclude(pk=draft.pk)
    return added.defer("text").order_by("-added_at").first()


def add(draft: Draft, user: Any) -> tuple[list[RenderJob], bool]:
    """Make a draft's renders, all or none, once; returns also whether this call made them.

    Raises `Faulty`, or `LineFull` if it does not fit now; nothing is stored then.
    """
    try:
        renders = [] if draft.added_at else _renders(draft, user)
    except Faulty:
        # After the first of two clicks, its own references are taken.
        if Draft.objects.filter(pk=draft.pk, added_at__isnull=False).exists():
            return [], False
        raise
    with transaction.atomic():
        # The lock makes the second of two clicks wait, and see that the draft was added.
        row = Draft.objects.select_for_update().defer("text").get(pk=draft.pk)
        if row.added_at:
            return [], False
        stored = services.store_for(user, renders)
        if any(render is not kept for render, kept in zip(renders, stored, strict=True)):
            taken = LineError(0, "A reference was taken meanwhile. Look at the list again.")
            raise Faulty([taken])
        Draft.objects.filter(pk=row.pk).update(added_at=timezone.now())
    return renders, True


def _renders(draft: Draft, user: Any) -> list[RenderJob]:
    sheet = check(draft.text, Layout(draft.layout), draft.common, user)
    if sheet.faults:
        raise Faulty(sheet.faults)
    renders, choose = [], workspace_choice.remembering()
    for number, (_line, request) in enumerate(sheet.requests, 1):
        request["reference"] = request["reference"] or f"{draft.prefix}{number}"
        if "workspace" not in request:
            request["workspace"] = choose(user)
        renders.append(RenderJob(**request, created_by=user, reference_scope=door(user)))
    return renders


def _refused(sheet: Sheet, user: Any) -> list[LineError]:
    """Faults of workspaces: not allowed for this person, or the person's own is missing."""
    first: dict[str | None, int] = {}
    for line, request in sheet.requests:
        first.setdefault(request.get("workspace"), line)
    faults = []
    for name, line in first.items():
        try:
            workspace_choice.refuse(user, name) if name else workspace_choice.choose(user)
        except InvalidRender as error:
            faults.append(LineError(line if name else 0, error.message, "workspace"))
    return faults


def _too_dear(sheet: Sheet, user: Any) -> list[LineError]:
    """Faults of models that are not allowed or that a budget forbids: the first line of each."""
    own = ""
    with suppress(InvalidRender):  # `_refused` reports it
        own = workspace_choice.choose(user)
    first: dict[tuple[str, str, str], int] = {}
    for line, request in sheet.requests:
        workspace = request.get("workspace") or own
        first.setdefault((workspace, request["kind"], request["model"]), line)
    errors = {facts: prices.refusal(*facts, owned=True) for facts in first if facts[0]}
    return [fault_of(first[facts], error) for facts, error in errors.items() if error]


def _taken(references: Iterable[str], user: Any) -> set[str]:
    """The references that this user has used already."""
    names = list(references)
    taken: set[str] = set()
    for start in range(0, len(names), BATCH):
        batch = names[start : start + BATCH]
        taken |= RenderJob.objects.of_references(door(user), user.pk, batch).keys()
    return taken
