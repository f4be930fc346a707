"""Which key was refused, and so whether another one is tried at once."""

from datetime import timedelta

import pytest
from django.utils import timezone

from renders.exceptions import BackOff, Paused
from renders.lifecycle import sweep
from renders.lifecycle.steps import Step
from renders.limits import gate
from renders.models import RenderJob
from renders.reports import standing
from renders.states import RequestType

pytestmark = pytest.mark.django_db

REFUSED = Paused("No.", code="unauthorized", status=401)


@pytest.fixture
def key(settings):
    def use(key):
        settings.RENDERS = {**settings.RENDERS, "API_KEY": key, "PAUSE_SECONDS": 300}

    use("the-old-key")
    return use


@pytest.mark.parametrize(
    "straggler", [REFUSED, BackOff("Wait.", code="rate_limited", status=429)], ids=["401", "429"]
)
def test_what_was_on_its_way_when_the_key_changed_does_not_hide_that(key, straggler):
    gate.pause("default", RequestType.WRITES, REFUSED)
    key("the-new-key")
    gate.pause("default", RequestType.WRITES, straggler)

    assert gate.try_new_key("default")
    assert not gate.closed("default", RequestType.WRITES, timezone.now())


def test_what_was_refused_itself_is_sent_with_the_new_key_at_once(key):
    later, ago = (timezone.now() + timedelta(seconds=many) for many in (3600, -3600))
    render = RenderJob.objects.create(prompt="a fox", created_at=ago, not_before=later)
    gate.pause("default", RequestType.WRITES, REFUSED)
    assert Step("submit", render.pk) not in sweep.sweep()
    key("the-new-key")

    assert Step("submit", render.pk) in sweep.sweep()


def test_a_new_key_that_is_refused_too_is_not_tried_again_at_once(key):
    gate.pause("default", RequestType.WRITES, REFUSED)
    assert not gate.try_new_key("default")
    key("the-new-key")
    assert gate.try_new_key("default")

    gate.pause("default", RequestType.WRITES, REFUSED)

    assert not gate.try_new_key("default")


@pytest.mark.parametrize("hours", [0, 24])
def test_people_are_shown_that_a_workspace_is_missing(settings, hours):
    settings.RENDERS = {**settings.RENDERS, "SUBMIT_DEADLINE_HOURS": hours}
    RenderJob.objects.create(prompt="a fox", workspace="gone")

    sweep.sweep()

    assert [one.code for one in standing.all_gates()["gone"]] == ["unknown_workspace"] * 2


def test_a_longer_pause_that_sume_asks_for_holds_for_a_new_key_too(key):
    gate.pause("default", RequestType.WRITES, REFUSED)
    gate.pause(
        "default", RequestType.WRITES, BackOff("Wait.", code="rate_limited", status=429), 3600
    )
    key("the-new-key")

    assert not gate.try_new_key("default")
