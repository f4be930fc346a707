"""Counts of one process: what is added, taken, given back, and what a fork leaves."""

import os
import signal
import threading

import pytest

from renders.telemetry import metrics
from renders.telemetry.metrics import COUNTERS, HISTOGRAMS, METERS


@pytest.fixture(autouse=True)
def nothing_counted():
    metrics.take()
    yield
    metrics.take()


def test_what_is_counted_is_taken_once():
    metrics.count("reads", outcome="waiting")
    metrics.count("reads", 2, outcome="waiting")
    metrics.count("ended", kind="image", status="failed")

    assert metrics.take() == {"reads|waiting": 3, "ended|failed|image": 1}
    assert metrics.take() == {}


def test_a_value_goes_into_the_first_bucket_that_holds_it_and_into_the_sum():
    for seconds in (0.05, 0.051, 1000):
        metrics.observe("poll_lateness_seconds", seconds)

    assert metrics.take() == {
        "poll_lateness_seconds|0": 1,
        "poll_lateness_seconds|1": 1,
        "poll_lateness_seconds|10": 1,
        "poll_lateness_seconds|sum": 1_000_101_000,
    }


def test_a_clock_that_was_put_back_takes_nothing_away():
    metrics.observe("poll_lateness_seconds", -5)

    assert metrics.take() == {"poll_lateness_seconds|0": 1, "poll_lateness_seconds|sum": 0}


def test_a_value_that_nobody_expects_makes_no_cell_of_its_own():
    metrics.count("reads", outcome="a word of a stranger's")
    metrics.count("reads", outcome="another|one")

    assert metrics.take() == {"reads|other": 2}


@pytest.mark.parametrize("labels", [{}, {"outcome": "accepted", "kind": "image"}])
def test_a_wrong_label_is_a_mistake_of_ours(labels):
    with pytest.raises(TypeError, match="outcome"):
        metrics.count("submits", **labels)


def test_what_is_given_back_goes_with_the_next():
    metrics.count("sweeps")
    taken = metrics.take()
    metrics.count("sweeps")

    metrics.give_back(taken)

    assert metrics.take() == {"sweeps": 2}


def test_threads_lose_nothing():
    def work():
        for _ in range(1000):
            metrics.count("sweeps")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert metrics.take() == {"sweeps": 4000}


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_begins_with_nothing_though_a_thread_counts_meanwhile():
    metrics.count("sweeps")
    with metrics._counts.lock:  # as another thread would hold it just now
        child = os.fork()
        if child == 0:
            signal.alarm(5)  # ends it where it waits for that lock
            metrics.count("webhooks", outcome="taken")
            os._exit(0 if metrics.take() == {"webhooks|taken": 1} else 1)

    assert os.waitpid(child, 0)[1] == 0
    assert metrics.take() == {"sweeps": 1}


def test_every_meter_can_be_kept_under_a_short_key():
    for name, meter in METERS.items():
        for values in meter.cells():
            assert "|" not in name + "".join(values)
            assert len(metrics.key_of(name, [*values, "sum"])) <= 200


def test_buckets_rise():
    assert all(list(m.buckets) == sorted(set(m.buckets)) and m.buckets for m in HISTOGRAMS.values())
    assert not any(meter.buckets for meter in COUNTERS.values())
