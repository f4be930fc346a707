"""Adds many renders at once: what was previewed is kept here, so that it is added as it was shown.

A draft is the form's token: whatever is clicked twice, reloaded, gone back to or open in two
tabs, its renders are made by the one transaction that sets `added_at`.
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
    """What was to be added cannot be: nothing was. `faults` say why."""

    def __init__(self, faults: list[LineError]) -> None:
        super().__init__(f"{len(faults)} faults")
        self.faults = faults


def keep(user: Any, token: str, text: str, layout: Layout, common: dict[str, Any]) -> Draft | None:
    """Keep what is previewed, for a tab adds what it shows. None: the token is another's.

    A form that was gone back to, and filled differently, is a new one: one for each filling.
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
    """Read all, and look whether the references are free, the workspaces this person's, and the
    models allowed.
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
    """What all of it costs about, in millionths of a dollar; None where a price is not known."""
    counts: dict[str, Counter[tuple[str, str]]] = {}
    choose = workspace_choice.remembering()
    for _line, request in sheet.requests:
        name = request.get("workspace") or choose(user)
        counts.setdefault(name, Counter())[request["kind"], request["model"]] += 1
    found = [prices.estimate(workspaces.get(name), number) for name, number in counts.items()]
    known = [micros for micros in found if micros is not None]
    return sum(known) if known and len(known) == len(found) else None


def added_before(draft: Draft) -> Draft | None:
    """Another draft of this person with the same words, that was added since yesterday."""
    same = Draft.objects.filter(created_by=draft.created_by_id, text=draft.text)
    added = same.filter(added_at__isnull=False).exclude(pk=draft.pk)
    return added.defer("text").order_by("-added_at").first()


def add(draft: Draft, user: Any) -> tuple[list[RenderJob], bool]:
    """Make its renders, all or none, once; says whether they are new.

    Raises `Faulty`, or `LineFull` if it does not fit now; nothing is stored then.
    """
    try:
        renders = [] if draft.added_at else _renders(draft, user)
    except Faulty:
        # Its own references are taken once the first of two clicks has added it.
        if Draft.objects.filter(pk=draft.pk, added_at__isnull=False).exists():
            return [], False
        raise
    with transaction.atomic():
        # The lock makes the second of two clicks wait, and find that it was added.
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
    """Where a workspace is named that is not for this person, or none is and theirs is gone."""
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
    """The first line of each model that is not allowed, or that a budget forbids."""
    own = ""
    with suppress(InvalidRender):  # `_refused` reports it
        own = workspace_choice.choose(user)
    first: dict[tuple[str, str, str], int] = {}
    for line, request in sheet.requests:
        workspace = request.get("workspace") or own
        first.setdefault((workspace, request["kind"], request["model"]), line)
    found = {facts: prices.refusal(*facts, owned=True) for facts in first if facts[0]}
    return [fault_of(first[facts], error) for facts, error in found.items() if error]


def _taken(references: Iterable[str], user: Any) -> set[str]:
    names = list(references)
    taken: set[str] = set()
    for start in range(0, len(names), BATCH):
        batch = names[start : start + BATCH]
        taken |= RenderJob.objects.of_references(door(user), user.pk, batch).keys()
    return taken
