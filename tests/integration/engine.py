"""The rules run by hand in the test's own process, step by step, without Celery."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db.models import F

from renders.coordination.connections import redis_client
from renders.coordination.leases import Leases
from renders.lifecycle import finishing, media_saving, polling, submission, sweep
from renders.lifecycle.steps import Step
from renders.limits import gate
from renders.models import Gate, RenderJob
from renders.sume.clients import sume

TIMES = (
    "created_at",
    "not_before",
    "claimed_at",
    "outcome_unknown_at",
    "next_poll_at",
    "not_found_since",
    "swept_at",
    "taken_at",
    "media_due_at",
)


def clients_of(made: Callable[[], Any]) -> Callable[[str], Any]:
    """As `connections.sume`, of a stand-in that every workspace is given."""
    return lambda workspace: made()


def leases() -> Leases:
    """The leases as the tasks use them."""
    return Leases(redis_client(), "sume:poll:")


def media_leases() -> Leases:
    """The leases of downloads."""
    return Leases(redis_client(), "sume:media:")


def submit(render: RenderJob) -> list[Step]:
    """One submit; the row is refreshed."""
    steps = submission.submit(render.pk, sume)
    render.refresh_from_db()
    return steps


def poll(render: RenderJob, token: str | None = None) -> list[Step]:
    """One hop; the row is refreshed."""
    steps = polling.poll(render.pk, token, sume, leases())
    render.refresh_from_db()
    return steps


def finish(render: RenderJob) -> list[Step]:
    """One try to finish, its media included; the row is refreshed. Returns what follows later."""
    steps = finishing.finish(render.pk, sume, leases())
    while steps and steps[0].render_id == render.pk and not steps[0].after:
        if steps[0].do == "media":
            steps = save_media(render)
        else:
            steps = finishing.finish(render.pk, sume, leases())
    render.refresh_from_db()
    return steps


def save_media(render: RenderJob) -> list[Step]:
    """One try to store one artifact; the row is refreshed."""
    steps = media_saving.save(render.pk, sume, media_leases())
    render.refresh_from_db()
    return steps


def make_due(render: RenderJob, **changes: Any) -> None:
    """Let the time for the next read come now."""
    from django.utils import timezone

    gate.resume("default")
    RenderJob.objects.filter(pk=render.pk).update(next_poll_at=timezone.now(), **changes)
    render.refresh_from_db()


def age_rows(seconds: float) -> None:
    """Let that much time pass for the renders, and for the clock of their deadline."""
    later = timedelta(seconds=seconds)
    RenderJob.objects.update(**{name: F(name) - later for name in TIMES})
    for row in Gate.objects.exclude(standstills=[]):
        row.standstills = [[at and at - seconds for at in one] for one in row.standstills]
        row.save(update_fields=["standstills"])


def age_gates(seconds: float) -> None:
    """Let that much time pass for the gates."""
    names = ("paused_until", "probe_until", "wake_at", "capacity_at")
    Gate.objects.update(**{name: F(name) - timedelta(seconds=seconds) for name in names})


def swept() -> list[tuple[str, Any]]:
    """What a sweep puts back."""
    return [(step.do, step.render_id) for step in sweep.sweep()]
