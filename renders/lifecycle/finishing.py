"""Finishes an ended render, once: result, media (in `media_saving`), signals, `handled_at`.

Each part is stored on the row as soon as it is known, so if a worker dies, the next one carries
on. The receivers of the signals run in one transaction with the mark `handled_at`.
"""

import logging
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from renders import signals, transitions
from renders.conf import conf
from renders.coordination.leases import Leases, hold
from renders.exceptions import NotFound, SumeError
from renders.lifecycle import late_media
from renders.lifecycle.steps import Step
from renders.limits import read_quota
from renders.media import storing
from renders.models import Avatar, RenderJob
from renders.states import Kind, Status
from renders.sume.clients import Clients
from renders.sume.field_values import handle as handle_of
from renders.sume.timing import back_off
from renders.telemetry import log_context, metrics

logger = logging.getLogger(__name__)

SIGNALS = {
    Status.COMPLETED: signals.render_completed,
    Status.FAILED: signals.render_failed,
    Status.CANCELED: signals.render_canceled,
}
BACK_OFF_SECONDS = 2.0


def finish(render_id: UUID, sume: Clients, leases: Leases) -> list[Step]:
    """Finish an ended render that is not handled yet; any other render is left alone.

    Media that are still to be stored come first: their step is returned, and this one follows it.
    """
    with hold(leases, str(render_id), conf.grace_seconds) as free:
        return _finish(render_id, sume) if free else []


def note_avatar(render: RenderJob) -> None:
    """Record the owner of a new avatar; call it in the transaction that records its end."""
    if render.kind == Kind.AVATAR:
        try:
            handle = handle_of(render.params.get("avatar_handle"))
        except ValueError:
            return  # stored by an older release: no render can use such a handle
        # An earlier owner of the handle keeps it.
        Avatar.objects.bulk_create(
            [Avatar(workspace=render.workspace, handle=handle, owner_id=render.created_by_id)],
            ignore_conflicts=True,
        )


def _finish(render_id: UUID, sume: Clients) -> list[Step]:
    render = RenderJob.objects.unhandled().filter(pk=render_id).first()
    if render is None:
        return []
    log_context.note(job=render.sume_job_id)
    doing = "Fetching the result"
    try:
        _fetch(render, sume)
        if conf.SAVE_MEDIA and storing.missing(render.artifacts) is not None:
            return [Step("media", render_id)]
        doing = "A receiver"
        _handle(render)
    except SumeError as error:
        metrics.count("finish_failures", reason="sume")
        words = f"Fetching the result failed: {error} ({error.code})"
        return _postpone(render, words, at_least=error.retry_after or 0)
    except Exception as error:
        # An error in a receiver of the project: the traceback goes to the log, the render waits.
        metrics.count("finish_failures", reason="receiver")
        logger.exception("%s failed for render %s.", doing, render_id)
        return _postpone(render, f"{doing} failed ({type(error).__name__}); the log says more.")
    return [] if render.sume_job_id else _next_unsent()


def _next_unsent() -> list[Step]:
    """The next render to finish.

    A render that Sume never had starts it, so that canceling many at once needs few messages.
    """
    pk = transitions.take_unfinished(timezone.now(), conf.grace_seconds)
    return [Step("finish", pk)] if pk else []


def _fetch(render: RenderJob, sume: Clients) -> None:
    """Read the result of a completed render from Sume, or the reason why it failed."""
    name = render.workspace
    if render.status == Status.COMPLETED:
        if render.result is None:
            result = read_quota.read(name, lambda: sume(name).result(render.sume_job_id))
            if result.cost_usd_micros is not None:
                render.cost_usd_micros = result.cost_usd_micros
            artifacts, cost = result.artifacts, render.cost_usd_micros
            now = timezone.now()
            transitions.store_result(render.pk, now, artifacts, cost, _limited(artifacts))
            render.refresh_from_db()  # another worker may have stored it, and begun its media
    elif render.status == Status.FAILED and not render.error_code:
        try:
            fault = read_quota.read(name, lambda: sume(name).record_fault(render.sume_job_id))
            code, message = fault.code, fault.message
        except NotFound:
            ended = (timezone.now() - (render.finished_at or timezone.now())).total_seconds()
            if ended < conf.NOT_FOUND_GRACE_SECONDS:
                raise  # Sume may not know a new job everywhere yet
            code = message = ""
        transitions.store(
            render.pk,
            error_code=code or render.sume_status or "failed",
            error_message=message or render.error_message or "Sume gave no reason.",
        )


def _limited(artifacts: list[dict[str, Any]]) -> tuple[str, str] | None:
    """The timeline entry that says how many artifacts are stored; None if all are."""
    if not conf.SAVE_MEDIA or len(artifacts) <= storing.MOST:
        return None
    words = f"Sume made {len(artifacts):,} files. The first {storing.MOST} are stored here."
    return ("media limited", f"{words} The others are kept as links, which expire.")


def _handle(render: RenderJob) -> None:
    with transaction.atomic():
        if transitions.mark_handled(render.pk, timezone.now()):
            render.refresh_from_db()
            if render.status == Status.COMPLETED:
                note_avatar(render)
            late_media.plan(render)
            SIGNALS[Status(render.status)].send(sender=RenderJob, render=render)
    if render.handled_at:
        _count(render)


def _count(render: RenderJob) -> None:
    """Count a render in the metrics; called once, when it is handled."""
    metrics.count("ended", status=render.status, kind=render.kind)
    if render.cost_usd_micros:
        micros, workspace = render.cost_usd_micros, render.workspace
        metrics.count("cost_usd", micros, workspace=workspace, kind=render.kind)
    for stage, begin, end in (
        ("at_sume", render.submitted_at, render.finished_at),
        ("finishing", render.finished_at, render.handled_at),
    ):
        if begin and end:
            seconds = (end - begin).total_seconds()
            metrics.observe("stage_duration_seconds", seconds, stage=stage)


def _postpone(render: RenderJob, message: str, at_least: float = 0) -> list[Step]:
    """Try again later: after at least `at_least` seconds, up to `MAX_POLL_SECONDS`."""
    wait = back_off(render.failed_reads + 1, base=BACK_OFF_SECONDS, longest=conf.MAX_POLL_SECONDS)
    wait = min(max(wait, at_least), conf.MAX_POLL_SECONDS)
    logger.warning("Finishing render %s again in %.1f s: %s", render.pk, wait, message)
    won = transitions.postpone_finish(
        render.pk, render.failed_reads, timezone.now() + timedelta(seconds=wait), message
    )
    return [Step("finish", render.pk, wait)] if won else []
