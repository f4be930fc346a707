"""The Python API for renders: create, cancel, retry, resend, check now.

The row is stored first, and the message to Celery follows the commit. So a render made in a
transaction that is rolled back is never sent, and one made while the broker is down is sent by
the sweep.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from renders import transitions
from renders.conf import conf, workspaces
from renders.exceptions import InvalidRender, ReferenceTaken
from renders.lifecycle import claims, read_now
from renders.lifecycle.steps import Step
from renders.limits import gate, prices, submit_deadline, turns
from renders.media import storing
from renders.models import RenderEvent, RenderJob
from renders.schedulers import dispatch
from renders.services import avatars, permissions, references, workspace_choice
from renders.services.references import ROWS
from renders.services.validation import REQUEST_FIELDS, WORKSPACE_FIELD, clean_request
from renders.states import CODE, Kind, RequestType, Status

# Most messages for renders that are made together.
STARTERS = 10
# Most rows that one transaction changes.
BATCH = 500


def create_render(
    prompt: str,
    *,
    kind: str = Kind.IMAGE,
    model: str = "sume/auto",
    params: Mapping[str, Any] | None = None,
    user: Any = None,
    priority: int = 0,
    reference: str | None = None,
    workspace: str | None = None,
) -> RenderJob:
    """Store one render and have it sent to Sume once the transaction commits.

    `params` are further fields of the request (a JSON object). `reference` is the caller's own
    unique name: a second call with the same one returns the render of the first. `workspace` is the
    name of a Sume account; None: the user's own.
    Raises `InvalidRender` (`ReferenceTaken` if a known reference comes with another request);
    nothing is stored then.
    """
    request = {
        "prompt": prompt,
        "kind": kind,
        "model": model,
        "params": params,
        "priority": priority,
        "reference": reference,
        "workspace": workspace,
    }
    return create_renders([request], user=user)[0]


def create_renders(requests: Iterable[Mapping[str, Any]], *, user: Any = None) -> list[RenderJob]:
    """Store many renders, all or none. Each request holds `create_render`'s arguments.

    Raises `InvalidRender` for the first bad one; nothing is stored then.
    """
    return [render for render, _is_new in create(requests, user, CODE)]


def create(
    requests: Iterable[Mapping[str, Any]], user: Any, scope: str
) -> list[tuple[RenderJob, bool]]:
    """As `create_renders`, with references in this scope; returns also which renders are new.

    Raises `LineFull` if this person has too many renders waiting, for any scope but `CODE`.
    """
    person = None if scope == CODE else user
    requests, choose = list(requests), workspace_choice.remembering()
    renders = [new_render(request, user=user, choose=choose, scope=scope) for request in requests]
    with transaction.atomic():
        permissions.lock(person)
        stored = store(renders)
        _refuse_prices(renders, stored)
        if scope != CODE:
            _refuse_priorities(user, renders, stored)
            _refuse_faces(user, renders, stored)
        for index, (render, row) in enumerate(zip(renders, stored, strict=True)):
            if row is render:
                continue
            owner, cleaned = _cleaned(requests[index], user)
            if not references.asks_for(row, cleaned, owner):
                raise ReferenceTaken(index)
        # Last: errors of the request come before a limit that only needs a wait.
        permissions.check(person, _new(renders, stored))
    return [(row, row is render) for render, row in zip(renders, stored, strict=True)]


def new_render(
    request: Mapping[str, Any],
    *,
    user: Any = None,
    retry_of: RenderJob | None = None,
    choose: Callable[[Any], str] = workspace_choice.choose,
    scope: str = CODE,
) -> RenderJob:
    """A render that is not stored yet. Raises `InvalidRender`."""
    owner, cleaned = _cleaned(request, user)
    if WORKSPACE_FIELD not in cleaned:
        cleaned[WORKSPACE_FIELD] = choose(owner)
    return RenderJob(**cleaned, created_by=owner, retry_of=retry_of, reference_scope=scope)


def store(renders: list[RenderJob], *, starters: int = STARTERS) -> list[RenderJob]:
    """Store new renders, all or none; after the commit, messages start the line.

    Returns rows in order: for a known reference, the row stored before; for a new render, the
    same object.
    """
    with transaction.atomic():
        turns.give(renders)
        stored = references.insert(renders)
        for render, row in zip(renders, stored, strict=True):
            if row is not render and render.retry_of_id:
                # Its original was deleted by hand, then made again with the same id.
                RenderJob.objects.filter(pk=row.pk).update(retry_of=render.retry_of_id)
        new = [render for render, row in zip(renders, stored, strict=True) if render is row]
        RenderEvent.objects.bulk_create(
            [RenderEvent(render=render, what="created") for render in new], batch_size=ROWS
        )
        # Each claim starts the next, so a few messages are enough for a long line.
        firsts = {render.workspace: render for render in reversed(new)}
        lines = firsts.values() if workspaces.several() else ()
        starting = {render.pk: render for render in [*new[:starters], *lines]}
        _on_commit(*(Step("submit", pk) for pk in starting))
    return stored


def store_for(user: Any, renders: list[RenderJob], *, starters: int = STARTERS) -> list[RenderJob]:
    """As `store`, within the limit of renders that this person may have waiting.

    Raises `LineFull` or `TooManyAtOnce`; nothing is stored then. The site's own code (None) has no
    limit.
    """
    with transaction.atomic():
        permissions.lock(user)
        stored = store(renders, starters=starters)
        permissions.check(user, _new(renders, stored))
    return stored


def cancel_render(render: RenderJob) -> bool:
    """Ask for a render to be canceled; True unless it has ended or was asked for already.

    An unsent render is canceled at once. If Sume may hold the render, Sume decides: the row shows
    `cancel_requested_at` until Sume's answer is known.
    """
    now = timezone.now()
    if transitions.cancel_unsent(render.pk, now):
        _on_commit(Step("finish", render.pk))
        asked = True
    else:
        asked = transitions.request_cancel(render.pk, now)
        # Meanwhile it may have been put back as provably unsent.
        unsent = asked and transitions.cancel_unsent(render.pk, now, asked=True)
        if asked:
            _on_commit(Step("finish" if unsent else "cancel", render.pk))
    render.refresh_from_db()
    return asked


def retry_render(render: RenderJob, *, user: Any = None) -> RenderJob:
    """Make a new render, with a new key and a new bill, from one that failed or was canceled.

    A render is retried once: a second call (a double click) returns the first one's render.
    Raises `InvalidRender` if the render has not ended that way, and `LineFull` if `user` has too
    many renders waiting. Without a user, there is no limit.
    """
    return retry_once(render, user)[0]


def retry_once(render: RenderJob, user: Any) -> tuple[RenderJob, bool]:
    """As `retry_render`; returns also whether the render is new.

    The retry has the owner of the original, else `user`.
    """
    with transaction.atomic():
        # The lock makes the second of two clicks wait, and return the first one's row.
        rows = RenderJob.objects.select_for_update(no_key=True).filter(pk=render.pk)
        original = rows.first()
        if original is None:
            raise InvalidRender("render", "It was deleted meanwhile.")
        existing = original.retries.order_by("created_at").first()
        if existing:
            return existing, False
        if original.erased_at:
            raise InvalidRender("render", "It was erased: what was asked for is no longer known.")
        if original.status not in {Status.FAILED, Status.CANCELED}:
            raise InvalidRender(
                "render",
                f"Only a failed or canceled render is retried; this one is {original.status}.",
            )
        retry = new_retry(original, user)
        [row] = store_for(user, [retry])
        return row, row is retry


def new_retry(
    original: RenderJob, user: Any, refusal: prices.Refusal = prices.refusal
) -> RenderJob:
    """A retry that is not stored yet; its owner is the original's, else `user`.

    It keeps the original's priority. That needs no permission, since it was granted before.
    """
    request = {
        name: getattr(original, name) for name in ("prompt", "kind", "model", "params", "priority")
    }
    if missing := workspaces.missing(original.workspace):
        raise InvalidRender("render", f"It cannot be retried now. {missing}")
    request["workspace"] = original.workspace  # any workspace: the one that was billed
    retry = new_render(request, user=user, retry_of=original)
    retry.created_by_id = original.created_by_id or retry.created_by_id
    if error := prices.refusal_of(retry, refusal):
        raise InvalidRender(error.field, error.message)
    if user is not None:  # the site's own code decides for itself
        _refuse_faces(user, [retry], [retry])
    return retry


def resend_render(render: RenderJob) -> bool:
    """Resend a render that failed with an unknown outcome, with the same key; True if it is resent.

    Sume answers with the job it has, as long as it remembers the key; else it makes and bills it.
    The render's signals are sent again when it ends. False if its outcome is known, or if it was
    retried.
    """
    with transaction.atomic():
        gate.lock(render.workspace, RequestType.WRITES)  # no claim sums up the budget meanwhile
        # `retry_once` takes the same lock: either the same key is sent again, or a new one.
        rows = RenderJob.objects.select_for_update(no_key=True).filter(pk=render.pk)
        again = (
            rows.first() is not None
            and RenderJob.objects.resendable().filter(pk=render.pk).exists()
            and transitions.resend(render.pk, timezone.now())
        )
        if again:
            _on_commit(Step("submit", render.pk))
    if again:
        render.refresh_from_db()
    return again


def store_media(render: RenderJob) -> bool:
    """Try now to fetch the missing pictures and clips of a completed render; True if a try follows.

    Reading the result and the download are free. Further tries follow with growing waits, until
    all media are stored or Sume no longer has the result. Once all are stored,
    `render_media_stored` is sent. False if nothing is missing, a try is running, or media are not
    stored here.
    """
    asked = False
    if conf.SAVE_MEDIA:
        with transaction.atomic():
            asked = transitions.ask_media(
                render.pk, timezone.now(), conf.media_seconds, storing.TRIES, storing.MOST
            )
            if asked:
                _on_commit(Step("media", render.pk))
    if asked:
        render.refresh_from_db()
    return asked


def check_now(pks: Iterable[UUID]) -> int:
    """Poll these renders at Sume now; returns how many are polled: those that Sume holds.

    A render that was read within the last `MIN_POLL_SECONDS` is read when that time is over. Only
    Sume's answer changes the status.
    """
    waiting = list(pks)
    asked = 0
    for start in range(0, len(waiting), BATCH):
        with transaction.atomic():
            count, steps = read_now.ask(waiting[start : start + BATCH])
            _on_commit(*steps)
        asked += count
    return asked


def pause_sending(workspace: str, user: Any = None) -> None:
    """Send no render of a workspace until `resume_sending`.

    Jobs that Sume holds are still read, and may be canceled.
    """
    gate.hold(workspace, user)


def resume_sending(workspace: str) -> None:
    """End every pause of a workspace, and the waits of its renders after a refusal."""
    submit_deadline.note(workspace, timezone.now())
    gate.resume(workspace)
    submit_deadline.note(workspace, timezone.now())
    transitions.recall(workspace)
    _on_commit(*claims.next_in_line(workspace))


def _cleaned(request: Mapping[str, Any], user: Any) -> tuple[Any, dict[str, Any]]:
    """The render's owner, and its fields. Raises `InvalidRender`."""
    if not isinstance(request, Mapping):
        raise InvalidRender("request", "An object with a prompt is needed.")
    fields = dict(request)
    owner = fields.pop("user", None) or user
    if isinstance(fields.get("params"), Mapping):
        fields["params"] = dict(fields["params"])
    unknown = sorted(map(repr, fields.keys() - {*REQUEST_FIELDS, WORKSPACE_FIELD}))
    if unknown:
        raise InvalidRender("request", f"Unknown fields: {', '.join(unknown)}.")
    return owner, clean_request(fields.pop("prompt", ""), **fields)


def _refuse_prices(renders: list[RenderJob], stored: list[RenderJob]) -> None:
    """Raise `InvalidRender` if the model of a new render is not allowed, or a budget forbids it.

    A known row passes: it was asked for before.
    """
    refusal = prices.remembering()
    for index, (render, row) in enumerate(zip(renders, stored, strict=True)):
        if row is render and (error := prices.refusal_of(row, refusal)):
            raise InvalidRender(error.field, error.message, index=index)


def _new(renders: list[RenderJob], stored: list[RenderJob]) -> int:
    """How many of these were stored just now."""
    return sum(row is render for render, row in zip(renders, stored, strict=True))


def _refuse_priorities(user: Any, renders: list[RenderJob], stored: list[RenderJob]) -> None:
    """Raise `InvalidRender` if this person may not give a new render its priority.

    A known row passes: it keeps the priority that it has.
    """
    for index, (render, row) in enumerate(zip(renders, stored, strict=True)):
        if row is render and (error := permissions.priority_fault(user, render.priority)):
            error.index = index
            raise error


def _refuse_faces(user: Any, renders: list[RenderJob], stored: list[RenderJob]) -> None:
    """Raise `InvalidRender` if a new render needs an avatar that this person may not use.

    A known row passes: it was asked for before.
    """
    asked = [
        {"kind": row.kind, "params": row.params, "workspace": row.workspace, "index": index}
        for index, (render, row) in enumerate(zip(renders, stored, strict=True))
        if row is render
    ]
    for index, error in avatars.faults(user, asked):
        error.index = asked[index]["index"]
        raise error


def _on_commit(*steps: Step) -> None:
    transaction.on_commit(lambda: dispatch.follow(steps), robust=True)
