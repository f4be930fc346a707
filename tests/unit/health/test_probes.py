"""A server that is silent holds up nobody, and gathers no threads."""

import threading
import time
from unittest import mock

import pytest
from django.db import OperationalError

from renders.health.findings import Finding
from renders.health.probes import Lanes, Probe, Round

FINE = [Finding("Fine.")]


def health_threads():
    return [thread for thread in threading.enumerate() if thread.name == "health"]


@pytest.fixture
def silent():
    """A question that nobody answers until the test ends; and how often it was asked."""
    answer, asked = threading.Event(), []

    def ask():
        asked.append(1)
        answer.wait(20)
        return FINE

    yield Probe("silent", ask), asked, answer
    answer.set()


def test_what_answers_is_told_and_what_does_not_is_named(silent):
    probe, _, _ = silent
    lanes = [[probe, Probe("behind", lambda: FINE)], [Probe("other", lambda: FINE)]]

    parts = {part.name: part for part in Lanes().ask(lanes, 0.05)}

    assert parts["other"].ok and parts["other"].detail == "Fine."
    assert parts["silent"].findings[0].code == "no-answer" and not parts["silent"].ok
    assert parts["behind"].detail == "Not asked: silent has not answered."
    assert not parts["behind"].ok


def test_a_silent_server_is_asked_once_and_waited_for_once(silent):
    probe, asked, answer = silent
    lanes, before = Lanes(), set(health_threads())
    lanes.ask([[probe]], 0.05)

    began = time.monotonic()
    for _ in range(20):
        [part] = lanes.ask([[probe]], 0.05)
    assert time.monotonic() - began < 0.5
    assert "No answer within" in part.detail
    assert len(asked) == 1 and len(set(health_threads()) - before) == 1

    answer.set()
    deadline = time.monotonic() + 5
    while not lanes.ask([[probe]], 0.05)[0].ok and time.monotonic() < deadline:
        time.sleep(0.01)
    assert lanes.ask([[probe]], 0.05)[0].ok


def test_many_who_ask_at_once_cost_one_round():
    asked = []
    lanes, lane = Lanes(keep_seconds=60), [Probe("a", lambda: asked.append(1) or FINE)]

    assert [lanes.ask([lane], 5)[0].ok for _ in range(3)] == [True] * 3
    assert len(asked) == 1

    lanes = Lanes(keep_seconds=0)
    assert [lanes.ask([lane], 5)[0].ok for _ in range(3)] == [True] * 3
    assert len(asked) == 4


def test_a_server_that_is_away_is_asked_nothing_more():
    asked = []
    away = Finding("Redis does not answer.", "redis-away")
    one = Round([Probe("redis", lambda: [away]), Probe("beat", lambda: asked.append(1) or FINE)])
    one.ask_all()

    assert [part.detail for part in one.parts()] == [
        "Redis does not answer.",
        "Not asked: Redis does not answer.",
    ]
    assert not asked


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OperationalError("host=secret refused"), "database-away"),
        (OperationalError("no such table: renders_renderjob"), "tables-missing"),
        (RuntimeError("password=secret"), "probe-failed"),
    ],
)
def test_a_question_that_fails_is_a_finding_without_the_text_of_the_error(error, code):
    def fail():
        raise error

    one = Round([Probe("a", fail)])
    one.ask_all()

    [finding] = one.parts()[0].findings
    assert finding.code == code
    assert "secret" not in finding.said and type(error).__name__ in finding.said


def test_without_a_thread_to_spare_it_is_said_and_asked_again_later():
    lanes, lane = Lanes(0), [Probe("part", lambda: FINE)]
    with mock.patch("threading.Thread.start", side_effect=RuntimeError("can't start new thread")):
        [part] = lanes.ask([lane], 5)
    assert not part.ok and part.detail == "No thread was free to ask."

    assert lanes.ask([lane], 5)[0].ok


def test_what_is_dear_to_ask_is_told_again_for_longer(monkeypatch):
    now = []
    monkeypatch.setattr(time, "monotonic", lambda: now[-1])
    monkeypatch.setattr(Round, "start", Round.ask_all)
    asked = []

    def ask(name):
        asked.append(name)
        return FINE

    cheap = [Probe("cheap", lambda: ask("cheap"))]
    dear = [Probe("dear", lambda: ask("dear"), 30.0)]
    lanes = Lanes(2.0)
    for moment in (100.0, 101.0, 110.0, 129.0, 131.0):
        now.append(moment)
        lanes.ask([cheap, dear], 1)

    assert asked == ["cheap", "dear", "cheap", "cheap", "cheap", "dear"]
