"""A crew takes steps in the order of their times, as many at once as it has hands."""

import threading
import time
import uuid

from renders.lifecycle.steps import Step
from renders.schedulers.step_pool import StepPool

IDS = [uuid.uuid4() for _ in range(4)]


class Work:
    """Notes what is taken, and holds it up until it is let go."""

    def __init__(self, following=()):
        self.taken = []
        self.go = threading.Semaphore(0)
        self._following = list(following)

    def __call__(self, step):
        self.taken.append(step)
        assert self.go.acquire(timeout=20)
        return step, self._following


def collected(crew, number=1):
    """What follows the next so many that end."""
    following, busy = [], crew.busy
    while crew.busy > busy - number:
        following += crew.collect(10)
    return following


def test_what_is_due_first_is_taken_first_whatever_came_first():
    work = Work()
    crew = StepPool(work, 1, "one")
    late, soon, now = Step("finish", IDS[0], 0.02), Step("finish", IDS[1], 0.01), None
    now = Step("finish", IDS[2])
    for step in (late, soon, now):
        crew.put(step)
    time.sleep(0.03)

    for _ in range(3):
        crew.start()
        work.go.release()
        collected(crew)

    assert work.taken == [now, soon, late]


def test_what_came_first_is_taken_first_where_all_is_due():
    work = Work()
    crew = StepPool(work, 1, "one")
    steps = [Step("finish", pk) for pk in IDS]
    for step in steps:
        crew.put(step)

    for _ in steps:
        crew.start()
        work.go.release()
        collected(crew)

    assert work.taken == steps


def test_what_is_not_due_waits():
    work = Work()
    crew = StepPool(work, 2, "two")
    crew.put(Step("finish", IDS[0], 60))

    crew.start()

    assert crew.busy == 0
    assert 50 < crew.next_at - time.monotonic() <= 60


def test_no_more_are_under_way_than_there_are_hands():
    work = Work()
    crew = StepPool(work, 2, "two")
    for pk in IDS:
        crew.put(Step("finish", pk))

    crew.start()

    assert crew.busy == 2
    assert crew.next_at == float("inf")  # nothing can begin, so nobody has to look
    work.go.release()
    collected(crew)
    assert crew.next_at <= time.monotonic()
    crew.start()
    assert crew.busy == 2
    for _ in range(3):
        work.go.release()


def test_what_follows_comes_back():
    following = [Step("media", IDS[1]), Step("finish", IDS[2], 5)]
    work = Work(following)
    crew = StepPool(work, 1, "one")
    crew.put(Step("finish", IDS[0]))
    crew.start()
    work.go.release()

    assert collected(crew) == following
    assert crew.collect(0) == []


def test_what_is_to_be_done_already_is_not_noted_twice():
    work = Work()
    crew = StepPool(work, 4, "four")
    step = Step("cancel", IDS[0])

    crew.put(step)
    crew.put(step)
    crew.start()
    crew.put(step)  # while it is under way
    crew.start()
    assert crew.busy == 1

    work.go.release()
    collected(crew)
    crew.put(step)  # and once it was done, it may be there again
    crew.start()
    assert crew.busy == 1
    work.go.release()


def test_another_step_of_the_same_render_and_the_same_of_another_are_noted():
    work = Work()
    crew = StepPool(work, 4, "four")
    for step in (Step("cancel", IDS[0]), Step("finish", IDS[0]), Step("cancel", IDS[1])):
        crew.put(step)

    crew.start()

    assert crew.busy == 3
    for _ in range(3):
        work.go.release()


def test_each_submit_counts_for_it_stands_for_whoever_is_next():
    work = Work()
    crew = StepPool(work, 4, "four")
    crew.put(Step("submit", IDS[0]))
    crew.put(Step("submit", IDS[0]))

    crew.start()

    assert crew.busy == 2
    for _ in range(2):
        work.go.release()


def test_it_has_what_is_due_or_under_way_and_not_what_waits_for_its_time():
    work = Work()
    crew = StepPool(work, 1, "one")
    assert crew.all_of("submit") == set()

    crew.put(Step("submit", IDS[0], 60))
    assert crew.all_of("submit") == set()

    crew.put(Step("submit", IDS[1]))
    assert crew.all_of("submit") == {IDS[1]}
    crew.start()
    assert crew.all_of("submit") == {IDS[1]}
    assert crew.all_of("finish") == set()

    work.go.release()
    collected(crew)
    assert crew.all_of("submit") == set()
