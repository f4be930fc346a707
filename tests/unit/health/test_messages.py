"""Which queues must be served, and which are."""

import time

import pytest

from renders.health import messages

FOUR = ["renders.finish", "renders.media", "renders.poll", "renders.submit"]


@pytest.mark.parametrize(
    ("own", "queues"),
    [
        ({"SCHEDULER": "countdown"}, FOUR),
        ({"SCHEDULER": "countdown", "SAVE_MEDIA": False}, [FOUR[0], FOUR[2], FOUR[3]]),
        ({"SCHEDULER": "sortedset", "TICKS": 2}, FOUR),
        ({"SCHEDULER": "sortedset", "TICKS": 0}, [FOUR[0], FOUR[1], FOUR[3]]),
        ({"SCHEDULER": "database"}, []),
    ],
)
def test_each_way_to_run_it_needs_its_own_queues(settings, own, queues):
    settings.RENDERS = {**settings.RENDERS, **own}

    assert messages.needed() == queues


@pytest.mark.parametrize(
    ("found", "codes"),
    [
        ({}, ["workers-none"]),
        ({"a@x": {"renders.submit"}, "b@x": {"renders.poll"}}, []),
        ({"a@x": {"renders.submit"}}, ["queue-unserved"]),
        ({"a@x": {"celery"}}, ["queue-unserved"] * 2),
    ],
)
def test_a_queue_without_a_worker_is_told_with_the_command_that_starts_one(found, codes):
    told = messages.judged(found, ["renders.submit", "renders.poll"])

    assert [one.code for one in told if one.code] == codes
    if codes == ["queue-unserved"]:
        assert told[0].said == "No worker serves the queue renders.poll."
        assert told[0].advice == "Start one: `celery -A project worker -Q renders.poll`."


@pytest.mark.usefixtures("no_broker")
def test_a_broker_that_refuses_is_told_at_once_and_without_its_address():
    began = time.monotonic()
    [found] = messages.answers()

    assert found.code == "broker-away" and "127.0.0.1" not in found.said
    assert time.monotonic() - began < 1


@pytest.fixture
def asked(monkeypatch):
    """How many answers were waited for, each time; `asked.workers` are those that answer."""

    class Asked(list):
        workers = ("a", "b")

        def __call__(self, seconds, first=None):
            self.append(first)
            return {name: {"renders.submit"} for name in self.workers[:first]}

    asked = Asked()
    monkeypatch.setattr(messages, "listening", asked)
    monkeypatch.setattr(messages, "needed", lambda: ["renders.submit"])
    monkeypatch.setattr(messages, "_before", {"workers": 0})
    return asked


def test_where_as_many_answer_as_before_nobody_waits_for_more(asked):
    assert [messages.workers()[0].code for _ in range(3)] == ["", "", ""]
    assert asked == [None, 2, 2]


def test_where_something_is_missing_all_have_time_to_answer(asked):
    messages.workers()
    asked.workers = ()
    assert messages.workers()[0].code == "workers-none"
    assert asked == [None, 2, None]

    asked.workers = ("a",)
    assert messages.workers()[0].code == ""
    assert asked[3:] == [None]
