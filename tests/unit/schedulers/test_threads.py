"""Threads: as many as there is work for, and what they did comes back."""

import threading

import pytest

from renders.schedulers.step_pool import Threads


def collected(threads, number):
    """So many results, in the order of their ends."""
    found = []
    while len(found) < number:
        found += threads.get(10, number)
    return found


def test_what_is_put_in_comes_back_done():
    threads = Threads(lambda job: job * 2, 3, "double")

    for job in (1, 2, 3):
        threads.put(job)

    assert sorted(collected(threads, 3)) == [2, 4, 6]
    assert (threads.busy, threads.free) == (0, 3)
    threads.end()


def test_busy_counts_what_was_not_got_back_yet():
    threads = Threads(lambda job: job, 2, "echo")

    threads.put("a")

    assert (threads.busy, threads.free) == (1, 1)
    assert threads.get(10, 5) == ["a"]
    assert (threads.busy, threads.free) == (0, 2)
    threads.end()


def test_a_thread_is_started_only_where_all_are_at_work():
    names = set()
    threads = Threads(lambda job: names.add(threading.get_ident()), 5, "one")

    for job in range(4):
        threads.put(job)
        collected(threads, 1)

    assert len(names) == 1
    threads.end()


def test_as_many_work_at_once_as_were_put_in():
    together = threading.Barrier(4, timeout=10)
    threads = Threads(lambda job: together.wait(), 4, "meet")

    for job in range(4):
        threads.put(job)

    assert sorted(collected(threads, 4)) == [0, 1, 2, 3]
    threads.end()


def test_no_more_is_got_than_asked_for():
    threads = Threads(lambda job: job, 3, "echo")
    for job in range(3):
        threads.put(job)
    first = collected(threads, 1)

    assert len([*first, *collected(threads, 2)]) == 3
    threads.end()


@pytest.mark.parametrize("seconds", [0, 0.01])
def test_nothing_done_is_nothing_got(seconds):
    assert Threads(lambda job: job, 1, "idle").get(seconds, 5) == []


def test_at_the_end_what_was_put_in_is_done_and_the_threads_are_gone():
    done, ours = [], "only-in-this-test"
    threads = Threads(done.append, 2, ours)
    for job in range(2):
        threads.put(job)

    threads.end()
    for thread in threading.enumerate():
        if thread.name == ours:
            thread.join(10)

    assert sorted(done) == [0, 1]
    assert ours not in {thread.name for thread in threading.enumerate()}


def test_where_the_system_allows_no_more_threads_those_that_run_do_the_work(monkeypatch):
    threads = Threads(lambda job: job, 5, "test")
    threads.put(1)
    assert threads.get(5, 1) == [1]

    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("threading.Thread.start", refuse)
    threads.put(2)
    threads.put(3)

    assert threads.free < 0
    found = []
    while len(found) < 2:
        found += threads.get(5, 2)
    assert found == [2, 3]
    assert threads.free == 1
    threads.end()


def test_without_any_thread_it_fails_and_nothing_counts_as_under_way(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("threading.Thread.start", refuse)
    threads = Threads(lambda job: job, 5, "test")

    with pytest.raises(RuntimeError):
        threads.put(1)

    assert threads.busy == 0
