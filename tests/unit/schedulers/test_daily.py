"""Once a day, whatever happens, until the end."""

import threading

import pytest

from renders.schedulers import daily


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(daily, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(daily, "DAY_SECONDS", 0.01)
    monkeypatch.setattr(daily, "close_old_connections", lambda: None)


def test_it_goes_on_after_a_failure_and_ends_with_the_block(caplog):
    third, stops = threading.Event(), []

    def work(stop):
        stops.append(stop())
        if len(stops) == 3:
            third.set()
        raise ValueError

    with daily.Daily(work) as running:
        assert third.wait(10)
    running._thread.join(10)

    assert not running._thread.is_alive()
    assert not any(stops[:3])
    assert "The daily work failed" in caplog.text


def test_work_that_is_under_way_is_told_to_stop():
    told, began = threading.Event(), threading.Event()

    def work(stop):
        began.set()
        while not stop():
            threading.Event().wait(0.001)
        told.set()

    with daily.Daily(work):
        assert began.wait(10)
    assert told.wait(10)


def test_it_does_not_begin_with_the_process(monkeypatch):
    monkeypatch.setattr(daily, "FIRST_SECONDS", 600.0)

    with daily.Daily(lambda stop: pytest.fail("it began")) as running:
        pass
    running._thread.join(10)

    assert not running._thread.is_alive()
