"""What other code calls: create, cancel, retry, check now.

The row is stored first; the message to Celery follows the commit, so a render made inside a
transaction that is rolled back never existed, and one made while the broker is down is sent by
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

# Messages for renders that are made together.
STARTERS = 10
# Rows in one transaction of those that change many.
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
    Raises `InvalidRender` (`ReferenceTaken` where a reference comes again with another request);
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
    """As `create_renders`, with references of this scope; says also which renders are new.

    Raises `LineFull` if this person has too many renders waiting, for any scope but `CODE`.
    """
    person = None if scope == CODE else user
    requests, choose = list(requests), workspace_choice.remembering()
    renders = [new_render(one, user=user, choose=choose, scope=scope) for one in requests]
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
        # Last: what is wrong with the request counts before what only has to wait.
        permissions.check(person, _new(renders, stored))
    return [(row, row is render) for render, row in zip(renders, stored, strict=True)]


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


def _cleaned(request: Mapping[str, Any], user: Any) -> tuple[Any, dict[str, Any]]:
    """Whose render it is, and its fields. Raises `InvalidRender`."""
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


def store(renders: list[RenderJob], *, starters: int = STARTERS) -> list[RenderJob]:
    """Store new renders, all or none, with messages that start the line, once that is committed.

    Returns them in order, those of known references as they were stored before; the same objects
    where they are new.
    """
    with transaction.atomic():
        turns.give(renders)
        stored = references.insert(renders)
        for render, row in zip(renders, stored, strict=True):
            if row is not render and render.retry_of_id:
                # Its original had been deleted by hand, and was made again with its id.
                RenderJob.objects.filter(pk=row.pk).update(retry_of=render.retry_of_id)
        new = [render for render, row in zip(renders, stored, strict=True) if render is row]
        RenderEvent.objects.bulk_create(
            [RenderEvent(render=render, what="created") for render in new], batch_size=ROWS
        )
        # Each claim starts the next, so a few messages set a long line going.
        firsts = {render.workspace: render for render in reversed(new)}
        lines = firsts.values() if workspaces.several() else ()
        begun = {render.pk: render for render in [*new[:starters], *lines]}
        _on_commit(*(Step("submit", pk) for pk in begun))
    return stored


def store_for(user: Any, renders: list[RenderJob], *, starters: int = STARTERS) -> list[RenderJob]:
    """As `store`, within the number of renders that this person may have waiting.

    Raises `LineFull` or `TooManyAtOnce`; nothing is stored then. Without a user (None: the site's
    own code) there is no limit.
    """
    with transaction.atomic():
        permissions.lock(user)
        stored = store(renders, starters=starters)
        permissions.check(user, _new(renders, stored))
    return stored


def cancel_render(render: RenderJob) -> bool:
    """Ask for a render to be canceled; True unless it has ended or was asked for already.

    One that was never sent is canceled at once. For one that Sume may hold, Sume decides: the
    row shows `cancel_requested_at` until Sume's answer is known.
    """
    now = timezone.now()
    if transitions.cancel_unsent(render.pk, now):
        _on_commit(Step("finish", render.pk))
        asked = True
    else:
        asked = transitions.request_cancel(render.pk, now)
        # Meanwhile it may have been put back, certainly unsent.
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
    """As `retry_render`; says also whether the render is new.

    The retry belongs to whom the render belongs to, else to `user`.
    """
    with transaction.atomic():
        # The lock makes the second of two clicks wait, and find the first one's row.
        rows = RenderJob.objects.select_for_update(no_key=True).filter(pk=render.pk)
        original = rows.first()
        if original is None:
            raise InvalidRender("render", "It was deleted meanwhile.")
        known = original.retries.order_by("created_at").first()
        if known:
            return known, False
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
    """A retry that is not stored yet, of the original's owner, else of `user`.

    It keeps the original's priority, which needs no permission here: it was granted once.
    """
    request = {
        name: getattr(original, name) for name in ("prompt", "kind", "model", "params", "priority")
    }
    if missing := workspaces.missing(original.workspace):
        raise InvalidRender("render", f"It cannot be retried now. {missing}")
    request["workspace"] = original.workspace  # of anybody's: whose bill it was
    retry = new_render(request, user=user, retry_of=original)
    retry.created_by_id = original.created_by_id or retry.created_by_id
    if error := prices.refusal_of(retry, refusal):
        raise InvalidRender(error.field, error.message)
    if user is not None:  # the site's own code decides for itself
        _refuse_faces(user, [retry], [retry])
    return retry


def resend_render(render: RenderJob) -> bool:
    """Send a render whose submit ended without a known outcome once more, with the same key.

    Sume answers with the job it has, as long as it remembers the key; else it makes and bills it.
    The render's signals are sent again when it ends. False if it is not such a one, or was
    retried.
    """
    with transaction.atomic():
        gate.lock(render.workspace, RequestType.WRITES)  # nobody adds up what is spent meanwhile
        # The lock is that of `retry_once`: either the same key is sent again, or a new one.
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
    """Have the pictures and clips of a completed render that are not stored fetched again, now.

    Reading the result and the download are free. True if a try follows, and further ones with
    growing waits until all are stored or Sume no longer has the result; `render_media_stored`
    is sent then. False if nothing is missing, a try is under way, or media are not stored here.
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
    """Have these renders read at Sume at once; how many are: those that Sume holds.

    One that was read within `MIN_POLL_SECONDS` is read when these are over. The status changes
    only by what Sume answers.
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
    """Send no render of a workspace until `resume_sending`; what Sume holds is read and may be
    canceled.
    """
    gate.hold(workspace, user)


def resume_sending(workspace: str) -> None:
    """End every pause of a workspace, and the waits of its renders that were put back."""
    submit_deadline.note(workspace, timezone.now())
    gate.resume(workspace)
    submit_deadline.note(workspace, timezone.now())
    transitions.recall(workspace)
    _on_commit(*claims.next_in_line(workspace))


def _on_commit(*steps: Step) -> None:
    transaction.on_commit(lambda: dispatch.follow(steps), robust=True)
