"""What must go on is missed in time; a pause is no fault of those who wait for its end."""

from datetime import timedelta

import pytest
from django.utils import timezone

from renders import services, transitions
from renders.exceptions import BackOff, Paused
from renders.health import work
from renders.health.findings import Level
from renders.limits import gate, spending
from renders.models import Heartbeat, RenderJob
from renders.states import RequestType, Status
from renders.telemetry import heartbeats
from tests.rows import stored

pytestmark = pytest.mark.django_db


def codes(findings):
    return [finding.code for finding in findings]


def age(name, seconds):
    past = timezone.now() - timedelta(seconds=seconds)
    Heartbeat.objects.filter(pk=name).update(stored_at=past)


@pytest.mark.parametrize(
    ("name", "ask", "longest"),
    [
        (heartbeats.SWEEP, work.sweep, 3 * 10 + 15),
        (heartbeats.POLLRENDERS, work.pollrenders, 20),
        (heartbeats.RUNRENDERS, work.runrenders, 20),
    ],
)
def test_what_must_go_on_is_missed_after_a_while(settings, name, ask, longest):
    settings.RENDERS = {**settings.RENDERS, "SWEEP_SECONDS": 10}
    assert codes(ask()) == [f"{name}-silent"]
    assert ask()[0].said == f"Never seen: {name}."

    heartbeats.note(name)
    assert codes(ask()) == [""]
    age(name, longest - 5)
    assert codes(ask()) == [""]
    age(name, longest + 5)
    assert codes(ask()) == [f"{name}-silent"]
    heartbeats.note(name)
    assert codes(ask()) == [""]


@pytest.fixture
def submitted():
    render = services.create_render("a fox")
    now = timezone.now()
    transitions.claim(render.pk, now, "default")
    transitions.record_submitted(
        render.pk, now, job_id="job_1", sume_status="queued", hit=False, next_poll_at=now
    )
    return render


@pytest.mark.usefixtures("followed")
def test_a_read_that_is_late_for_longer_than_a_repair_takes_is_told(submitted):
    assert codes(work.reads()) == [""]

    RenderJob.objects.update(next_poll_at=timezone.now() - timedelta(minutes=5))
    [found] = work.reads()
    assert (found.code, found.said) == ("reads-late", "1 late read, by up to 5 min.")

    gate.pause("default", RequestType.READS, BackOff("Wait.", code="rate_limit_exceeded"), 60)
    assert codes(work.reads()) == [""]


@pytest.mark.parametrize(
    ("error", "seconds", "code", "ok"),
    [
        (BackOff("Wait.", code="rate_limit_exceeded"), 30, "gate-paused", True),
        (BackOff("Wait.", code="rate_limit_exceeded"), 90, "gate-paused", False),
        (Paused("Refused.", code="unauthorized", status=401), None, "gate-refused", False),
    ],
)
def test_a_closed_gate_is_told_with_what_sume_says(settings, error, seconds, code, ok):
    settings.RENDERS = {**settings.RENDERS, "MAX_PAUSE_SECONDS": 900}
    assert codes(work.gate()) == [""]

    gate.pause("default", RequestType.WRITES, error, seconds)

    [found] = work.gate()
    assert found.code == code and (found.level < 2) == ok
    assert found.said.startswith("Writes: paused until ") and str(error)[:-1] in found.said


def test_a_person_who_paused_is_named_as_such(django_user_model):
    gate.hold("default", django_user_model.objects.create_user("ann"))

    assert codes(work.gate()) == ["gate-held"]
    assert "paused by a person" in work.gate()[0].said


def test_a_budget_that_is_low_is_a_note(settings):
    assert [one.said for one in work.budgets()] == ["There is none."]
    settings.RENDERS = {**settings.RENDERS, "WORKSPACES": {"acme": {"BUDGET_USD": 1}, "b": {}}}
    spending.forget()
    assert [one.said for one in work.budgets()] == ["Enough is left."]

    fields = {"cost_usd_micros": 800_000, "workspace": "acme"}
    stored(Status.COMPLETED, finished_at=timezone.now(), **fields)
    spending.forget()

    [found] = work.budgets()
    assert (found.code, found.level) == ("budget-low", Level.INFO)
    assert found.said == "acme: $0.20 of $1.00 is left this month."


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.2, "0 s"), (90, "90 s"), (150, "2 min"), (7200, "2 h"), (1e6, "12 d")]
)
def test_a_length_of_time_is_told_in_one_unit(seconds, words):
    assert work.span(seconds) == words
