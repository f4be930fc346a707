"""Renders that need somebody, and webhooks that do not come."""

from datetime import timedelta

import pytest
from django.utils import timezone

from renders import services, transitions
from renders.health import work
from renders.limits import gate
from renders.models import RenderEvent, RenderJob, WebhookEvent
from renders.states import SENDING

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("followed")]


def codes(found):
    return [one.code for one in found]


def sent(**fields):
    render = services.create_render("a fox")
    now = timezone.now()
    transitions.claim(render.pk, now, "default")
    transitions.record_submitted(
        render.pk, now, job_id="job", sume_status="queued", hit=False, next_poll_at=now
    )
    RenderJob.objects.filter(pk=render.pk).update(**fields)
    return render


def test_each_reason_for_attention_is_a_finding_of_its_own():
    assert codes(work.needing_attention()) == [""]

    sent(submitted_at=timezone.now() - timedelta(days=2))
    sent(failed_reads=5)
    sent(failed_reads=5)

    found = work.needing_attention()
    assert codes(found) == ["renders-overdue", "renders-unread"]
    assert [one.said for one in found] == [
        "1 render: overdue at Sume.",
        "2 renders: reads keep failing.",
    ]


@pytest.fixture
def waiting(settings):
    settings.RENDERS = {**settings.RENDERS, "SWEEP_SECONDS": 10, "MAX_IN_FLIGHT": 2}
    render = services.create_render("a fox")
    RenderJob.objects.update(created_at=timezone.now() - timedelta(minutes=10))
    return render


def test_what_could_be_sent_and_is_not_is_told(waiting):
    assert codes(work.sends()) == ["sends-nothing"]


def test_a_line_that_moves_is_well(waiting):
    RenderEvent.objects.create(render=waiting, what=SENDING)
    assert codes(work.sends()) == [""]

    RenderEvent.objects.update(at=timezone.now() - timedelta(minutes=5))
    assert codes(work.sends()) == ["sends-nothing"]


def test_what_waits_for_the_gate_or_for_room_is_well(waiting, django_user_model):
    gate.hold("default", django_user_model.objects.create_user("ann"))
    assert codes(work.sends()) == [""]
    gate.resume("default")
    assert codes(work.sends()) == ["sends-nothing"]
    sent(), sent()
    RenderEvent.objects.all().delete()
    assert codes(work.sends()) == [""]


def ended(number):
    for _ in range(number):
        render = sent(by_webhook=True)
        now = timezone.now()
        transitions.end(render.pk, 0, now, "completed", sume_status="completed", code="")


def test_webhooks_are_missed_when_jobs_end_without_any(settings):
    assert codes(work.webhooks()) == [""]
    on = {"WEBHOOK_SECRET": "s" * 20, "PUBLIC_URL": "https://example.com"}
    settings.RENDERS = {**settings.RENDERS, **on}
    ended(2)
    assert codes(work.webhooks()) == [""]
    ended(1)
    assert codes(work.webhooks()) == ["webhooks-silent"]

    WebhookEvent.objects.record("default", "event-1", type="job", job_id="job")
    assert codes(work.webhooks()) == [""]
    WebhookEvent.objects.update(received_at=timezone.now() - timedelta(days=2))
    assert codes(work.webhooks()) == ["webhooks-silent"]
