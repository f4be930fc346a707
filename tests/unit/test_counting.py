"""Counts of one process: what is added, taken, given back, and what a fork leaves."""

import os
import signal
import threading

import pytest

from renders import counting
from renders.meters import COUNTERS, HISTOGRAMS, METERS


@pytest.fixture(autouse=True)
def nothing_counted():
    counting.take()
    yield
    counting.take()


def test_what_is_counted_is_taken_once():
    counting.count("reads", outcome="waiting")
    counting.count("reads", 2, outcome="waiting")
    counting.count("ended", kind="image", status="failed")

    assert counting.take() == {"reads|waiting": 3, "ended|failed|image": 1}
    assert counting.take() == {}


def test_a_value_goes_into_the_first_bucket_that_holds_it_and_into_the_sum():
    for seconds in (0.05, 0.051, 1000):
        counting.observe("poll_lateness_seconds", seconds)

    assert counting.take() == {
        "poll_lateness_seconds|0": 1,
        "poll_lateness_seconds|1": 1,
        "poll_lateness_seconds|10": 1,
        "poll_lateness_seconds|sum": 1_000_101_000,
    }


def test_a_clock_that_was_put_back_takes_nothing_away():
    counting.observe("poll_lateness_seconds", -5)

    assert counting.take() == {"poll_lateness_seconds|0": 1, "poll_lateness_seconds|sum": 0}


def test_a_value_that_nobody_expects_makes_no_cell_of_its_own():
    counting.count("reads", outcome="a word of a stranger's")
    counting.count("reads", outcome="another|one")

    assert counting.take() == {"reads|other": 2}


@pytest.mark.parametrize("labels", [{}, {"outcome": "accepted", "kind": "image"}])
def test_a_wrong_label_is_a_mistake_of_ours(labels):
    with pytest.raises(TypeError, match="outcome"):
        counting.count("submits", **labels)


def test_what_is_given_back_goes_with_the_next():
    counting.count("sweeps")
    taken = counting.take()
    counting.count("sweeps")

    counting.give_back(taken)

    assert counting.take() == {"sweeps": 2}


def test_threads_lose_nothing():
    def work():
        for _ in range(1000):
            counting.count("sweeps")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert counting.take() == {"sweeps": 4000}


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_begins_with_nothing_though_a_thread_counts_meanwhile():
    counting.count("sweeps")
    with counting._counts.lock:  # as another thread would hold it just now
        child = os.fork()
        if child == 0:
            signal.alarm(5)  # ends it where it waits for that lock
            counting.count("webhooks", outcome="taken")
            os._exit(0 if counting.take() == {"webhooks|taken": 1} else 1)

    assert os.waitpid(child, 0)[1] == 0
    assert counting.take() == {"sweeps": 1}


def test_every_meter_can_be_kept_under_a_short_key():
    for name, meter in METERS.items():
        for values in meter.cells():
            assert "|" not in name + "".join(values)
            assert len(counting.key_of(name, [*values, "sum"])) <= 200


def test_buckets_rise():
    assert all(list(m.buckets) == sorted(set(m.buckets)) and m.buckets for m in HISTOGRAMS.values())
    assert not any(meter.buckets for meter in COUNTERS.values())
