"""The tries to store a finished file: what is paid for survives a short outage."""

from datetime import timedelta

import pytest
from django.utils import timezone

from renders.conf import conf
from renders.coordination.connections import redis_client
from renders.coordination.leases import Leases, Unshared
from renders.lifecycle import media_saving
from renders.lifecycle.steps import Step
from renders.media import storing
from renders.models import RenderJob
from renders.schedulers import runner
from renders.sume.clients import sume
from tests.unit.api.support import completed


@pytest.mark.parametrize(("jitter", "shortest", "longest"), [(0.5, 5, 7), (1.0, 10, 13)])
def test_five_tries_span_about_ten_minutes(settings, monkeypatch, jitter, shortest, longest):
    settings.RENDERS = {}
    monkeypatch.setattr("random.uniform", lambda low, high: jitter)

    minutes = sum(media_saving.wait_after(tries) for tries in range(1, storing.TRIES)) / 60

    assert shortest <= minutes <= longest


class Killed(BaseException):
    """The worker dies here."""


@pytest.mark.django_db
def test_what_kills_each_worker_is_given_up_and_the_render_goes_on(monkeypatch, django_user_model):
    render = completed(
        django_user_model.objects.create_user("ann"),
        {"url": "https://a.example/0?sig=1", "type": "image", "content_type": "image/png"},
    )
    leases = Leases(redis_client(), "test:")

    def kill(*args):
        raise Killed

    def artifact():
        [found] = RenderJob.objects.get(pk=render.pk).artifacts
        return found

    monkeypatch.setattr(storing, "save", kill)
    for tries in range(1, storing.TRIES + 1):
        with pytest.raises(Killed):
            media_saving.save(render.pk, sume, leases)
        RenderJob.objects.update(next_poll_at=render.created_at)  # as time does
        assert artifact()["begun"] == tries

    assert media_saving.save(render.pk, sume, leases) == [Step("finish", render.pk)]
    assert artifact()["failures"] == storing.TRIES
    assert artifact()["url"] and "begun" not in artifact()
    assert render.events.get(what="media not stored").detail.endswith("5 workers died over it.")


@pytest.mark.django_db
def test_a_try_whose_end_is_noted_is_not_taken_for_a_death(monkeypatch, django_user_model):
    render = completed(django_user_model.objects.create_user("ann"), {"url": "https://a.example/0"})

    def fail(*args):
        raise storing.MediaError("no")

    monkeypatch.setattr(storing, "save", fail)
    [step] = media_saving.save(render.pk, sume, Leases(redis_client(), "test:"))

    assert step.do == "media" and step.after > 0
    assert RenderJob.objects.get(pk=render.pk).artifacts == [
        {"url": "https://a.example/0", "failures": 1}
    ]


@pytest.mark.django_db
@pytest.mark.parametrize("scheduler", ["countdown", "sortedset", "database"])
def test_nobody_begins_a_download_again_while_it_may_still_be_under_way(
    settings, monkeypatch, django_user_model, scheduler
):
    """Who looks after what stopped: the sweep a grace later, a runner almost at once."""
    settings.RENDERS = {"SCHEDULER": scheduler}  # the times of a real site
    render = completed(
        django_user_model.objects.create_user("ann"),
        {"url": "https://a.example/0?sig=1", "type": "image", "content_type": "image/png"},
    )
    seen = []
    patience = runner.LEFT_SECONDS if scheduler == "database" else conf.grace_seconds

    def look(*args):
        end = timezone.now() + timedelta(
            seconds=conf.MEDIA_TIMEOUT_SECONDS + conf.REQUEST_TIMEOUT_SECONDS
        )
        seen.append(RenderJob.objects.unhandled_late(end, patience).exists())
        lost = end + timedelta(seconds=conf.LEASE_MARGIN_SECONDS + patience + 1)
        seen.append(RenderJob.objects.unhandled_late(lost, patience).exists())
        raise storing.MediaError("seen")

    monkeypatch.setattr(storing, "save", look)

    media_saving.save(render.pk, sume, Unshared())

    assert seen == [False, True]
