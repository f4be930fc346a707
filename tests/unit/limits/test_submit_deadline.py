"""The clock of the submit deadline stands still while the line is held up."""

from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from renders import services
from renders.exceptions import BackOff, Paused
from renders.lifecycle.sweep import sweep
from renders.limits import gate, submit_deadline
from renders.models import Gate, RenderJob
from renders.states import RequestType, Status

pytestmark = pytest.mark.django_db
START = datetime(2026, 11, 2, tzinfo=UTC)
HOUR = 3600.0


@pytest.fixture(autouse=True)
def a_day(settings):
    settings.RENDERS = {**settings.RENDERS, "SUBMIT_DEADLINE_HOURS": 24}


def at(hours):
    return time_machine.travel(START + timedelta(hours=hours), tick=False)


def sweep_at(*hours):
    for hour in hours:
        with at(hour):
            sweep()


def status(render):
    render.refresh_from_db()
    return render.status


@pytest.fixture
def render():
    """Made at the start; its line is then held up by nothing."""
    with at(0):
        return services.create_render("a fox")


@pytest.mark.parametrize(
    ("spans", "hours"),
    [
        ([], 24),
        ([[30, 40]], 24),  # longer ago than the clock runs
        ([[90, 100]], 34),
        ([[50, 70], [80, 90]], 24 + 30),
        ([[0, 100]], 124),
        ([[70, 76]], 24),
        ([[74, 80]], 30),
        ([[90, 120]], 34),  # noted by a clock that was put back since
        ([[110, 120]], 24),
        ([[50, 70], [90, None]], 24 + 30),
    ],
)
def test_what_a_clock_shows_that_stood_still(spans, hours):
    spans = [[begin * HOUR, end and end * HOUR] for begin, end in spans]

    assert submit_deadline.started(spans, 100 * HOUR, 24 * HOUR) == (100 - hours) * HOUR


def test_only_so_many_standstills_are_kept():
    spans = []
    for number in range(200):
        spans = submit_deadline.noted(spans, number * 10, None)
        spans = submit_deadline.noted(spans, number * 10, number * 10 + 1)

    assert len(spans) == submit_deadline.MOST_SPANS
    assert (spans[0][0], spans[-1]) == (0, [1990, 1991])


def test_without_a_standstill_it_fails_after_its_time(render):
    sweep_at(23)
    assert status(render) == Status.PENDING

    sweep_at(24.1)

    assert status(render) == Status.FAILED


def held(render, until):
    with at(1):
        services.pause_sending("default")
    with at(until):
        services.resume_sending("default")


def refused(render, until):
    with at(1):
        gate.pause("default", RequestType.WRITES, Paused("No credit left.", code="x", status=402))
    sweep_at(1.01, until - 0.5)
    with at(until):
        gate.passed("default", RequestType.WRITES)
        gate.resume("default")


@pytest.mark.parametrize("hold_up", [held, refused])
def test_what_holds_up_the_line_does_not_count(render, hold_up):
    hold_up(render, until=11)

    sweep_at(11, 33.9)
    assert status(render) == Status.PENDING
    assert RenderJob.objects.due(START + timedelta(hours=33.9)).exists()

    sweep_at(34.2)
    assert status(render) == Status.FAILED


def test_a_pause_that_no_sweep_saw_counts_as_little(render):
    """Beat was stopped for as long."""
    held(render, until=100)

    sweep_at(100.5)

    assert status(render) == Status.PENDING


def test_while_a_person_s_pause_lasts_nothing_fails(render):
    with at(1):
        services.pause_sending("default")

    sweep_at(1000)

    assert status(render) == Status.PENDING


def test_a_spent_budget_holds_up_the_line(render, settings):
    settings.RENDERS |= {"BUDGET_USD": 0.05, "PRICES": "image:sume/auto=0.09"}

    sweep_at(1, 30, 60)

    assert status(render) == Status.PENDING


def test_a_pause_that_sume_asks_for_counts(render):
    with at(1):
        gate.pause("default", RequestType.WRITES, BackOff("Wait.", code="x", status=429), 900)

    sweep_at(*(1 + number / 2 for number in range(2 * 23 + 2)))

    assert status(render) == Status.FAILED


def test_one_that_sume_may_hold_gets_no_more_time(render):
    """Sume forgets a key: sent later, it could be billed again."""
    RenderJob.objects.filter(pk=render.pk).update(outcome_unknown_at=START)
    with at(1):
        services.pause_sending("default")

    sweep_at(24.1)

    render.refresh_from_db()
    assert render.error_code == "submit_outcome_unknown"


def test_what_waits_for_the_settings_does_not_fail():
    with at(0):
        render = RenderJob.objects.create(prompt="a fox", workspace="gone")

    sweep_at(30, 1000)

    assert status(render) == Status.PENDING
    assert Gate.objects.get(pk="gone:writes").standstills
