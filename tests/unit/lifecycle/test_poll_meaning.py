"""What an answer means for a render: wait so long, or the end. Tables; nothing is stored."""

from dataclasses import replace
from datetime import timedelta

import pytest

from renders.conf import conf
from renders.exceptions import BackOff, NotFound, OutcomeUnknown, Paused
from renders.lifecycle.poll_results import Ended, KeepPolling, learn
from renders.states import Status
from tests.rows import NOW, a_render
from tests.unit.fakes import done, goes

BASE, SHORTEST, LONGEST, GRACE, WEBHOOK = 15.0, 1.0, 300.0, 60.0, 120.0


@pytest.fixture(autouse=True)
def round_times(settings, monkeypatch):
    monkeypatch.setattr("renders.sume.timing.random.uniform", lambda low, high: high)
    settings.RENDERS = {
        **settings.RENDERS,
        "DEFAULT_POLL_SECONDS": BASE,
        "MIN_POLL_SECONDS": SHORTEST,
        "MAX_POLL_SECONDS": LONGEST,
        "NOT_FOUND_GRACE_SECONDS": GRACE,
        "WEBHOOK_POLL_SECONDS": WEBHOOK,
        "WEBHOOK_SECRET": "a-secret-that-is-long-enough",
        "OVERDUE_HOURS": 6,
    }


def ago(seconds):
    return NOW - timedelta(seconds=seconds)


def render(**fields):
    return a_render(Status.SUBMITTED, **{"sume_status": "queued", **fields})


# --- The job runs -------------------------------------------------------------------------

WAITS = {
    "as asked": ({}, goes(wait=7), 7),
    "none named": ({}, goes(wait=None), BASE),
    "too short": ({}, goes(wait=0), SHORTEST),
    "too long": ({}, goes(wait=1e9), LONGEST),
    "one that an event will announce": ({"by_webhook": True}, goes(wait=7), WEBHOOK),
    "one that asks for longer than that": ({"by_webhook": True}, goes(wait=200), 200),
    "one whose event has come": ({"by_webhook": True, "asked_at": NOW}, goes(wait=7), 7),
    "completed without its result": ({}, done(ready=False), BASE),
    "its event has come, its result not": ({"by_webhook": True}, done(ready=False), BASE),
    "overdue": ({"submitted_at": ago(6 * 3600 + 1)}, goes(wait=7), LONGEST),
    "not overdue yet": ({"submitted_at": ago(6 * 3600)}, goes(wait=7), 7),
}


@pytest.mark.parametrize(("fields", "answer", "wait"), WAITS.values(), ids=WAITS)
def test_a_job_that_runs_is_read_again_in_its_time(fields, answer, wait):
    assert learn(render(**fields), answer, NOW) == KeepPolling(wait, answer.sume_status)


def test_without_a_secret_no_event_is_waited_for(settings):
    settings.RENDERS = {**settings.RENDERS, "WEBHOOK_SECRET": ""}

    assert learn(render(by_webhook=True), goes(wait=7), NOW) == KeepPolling(7, "processing")


def test_with_no_hours_nothing_is_overdue(settings):
    settings.RENDERS = {**settings.RENDERS, "OVERDUE_HOURS": 0}

    assert learn(render(submitted_at=ago(1e7)), goes(wait=7), NOW).wait == 7


# --- The job has ended --------------------------------------------------------------------

ENDS = {
    "completed": (done(cost=90_000), Ended(Status.COMPLETED, "completed", cost=90_000)),
    "completed for an unknown cost": (done(cost=None), Ended(Status.COMPLETED, "completed")),
    "failed": (
        done(Status.FAILED, cost=90_000, ready=False),
        Ended(Status.FAILED, "failed", "odd", "Too odd.", 0),
    ),
    "canceled": (
        done(Status.CANCELED, cost=None, ready=False),
        Ended(Status.CANCELED, "canceled", "odd", "Too odd.", 0),
    ),
}


@pytest.mark.parametrize(("answer", "end"), ENDS.values(), ids=ENDS)
def test_an_end_is_what_sume_says_and_costs_only_what_was_made(answer, end):
    assert learn(render(), answer, NOW) == end


# --- No answer ----------------------------------------------------------------------------


def back_off(retry_after):
    error = BackOff("Later.", code="rate_limited", status=429)
    error.retry_after = retry_after
    return error


NO_ANSWER = OutcomeUnknown("No answer.", code="no_answer")
FAILED = {
    "the first": ({}, NO_ANSWER, BASE),
    "the third": ({"failed_reads": 2}, NO_ANSWER, 4 * BASE),
    "the hundredth": ({"failed_reads": 99}, NO_ANSWER, LONGEST),
    "refused": ({}, Paused("No.", code="unauthorized"), BASE),
    "Sume names a longer wait": ({}, back_off(100), 100),
    "Sume names a shorter wait": ({}, back_off(2), BASE),
    "Sume names no wait": ({}, back_off(None), BASE),
    "Sume names an endless wait": ({}, back_off(1e9), LONGEST),
    "overdue": ({"submitted_at": ago(1e6)}, NO_ANSWER, LONGEST),
}


@pytest.mark.parametrize(("fields", "error", "wait"), FAILED.values(), ids=FAILED)
def test_a_read_without_an_answer_backs_off_and_leaves_what_is_known(fields, error, wait):
    row = render(**fields)

    assert learn(row, error, NOW) == KeepPolling(
        wait, "queued", row.failed_reads + 1, answered=False
    )


NOT_FOUND = NotFound("Unknown job.", code="not_found", status=404)


@pytest.mark.parametrize("since", [None, 0, GRACE], ids=["never before", "now", "within grace"])
def test_a_job_that_sume_does_not_know_is_read_for_a_grace(since):
    since = None if since is None else ago(since)

    found = learn(render(not_found_since=since), NOT_FOUND, NOW)

    assert found == KeepPolling(BASE, "queued", 1, since or NOW, answered=False)


def test_after_that_it_has_failed_and_nobody_sends_it_again_by_itself():
    end = learn(render(not_found_since=ago(GRACE + 1)), NOT_FOUND, NOW)

    assert end == Ended(
        Status.FAILED,
        "queued",
        "job_not_found",
        "Sume no longer knows this job. Look into your Sume account before you retry: "
        "a retry is a new job with a new bill.",
    )


def test_only_a_good_read_ends_the_grace_of_a_job_that_was_not_found():
    row = render(not_found_since=ago(GRACE + 1))

    between = learn(row, NO_ANSWER, NOW)
    assert between.not_found_since == row.not_found_since
    assert isinstance(learn(row, NOT_FOUND, NOW), Ended)  # 404 and 502 in turn end, too
    assert learn(row, goes(), NOW).not_found_since is None


def test_the_wait_that_sume_asks_for_counts_for_every_failed_read():
    for kind in (OutcomeUnknown, NotFound, BackOff):
        error = kind("Later.", code="http_502", status=502, retry_after=100.0)
        assert learn(render(), error, NOW).wait >= min(100.0, conf.MAX_POLL_SECONDS)


@pytest.mark.parametrize("ending", [Status.FAILED, Status.CANCELED])
def test_what_sume_captured_is_the_cost_however_the_job_ended(ending):
    refunded = learn(render(), done(ending, cost=90_000), NOW)
    captured = learn(render(), replace(done(ending, cost=90_000), captured=True), NOW)
    unnamed = learn(render(), replace(done(ending, cost=None), captured=True), NOW)

    assert (refunded.cost, captured.cost, unnamed.cost) == (0, 90_000, None)
