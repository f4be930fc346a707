"""What readers take from the sorted set, in a real Redis: each render for one, and none lost."""

import time
from typing import Any

import pytest
from django.utils import timezone

from renders.coordination.connections import poll_leases, polls, redis_client
from renders.demo.embedded_redis import EmbeddedRedis
from renders.models import RenderJob
from renders.schedulers.queues import SetQueue
from tests.rows import stored

pytestmark = pytest.mark.usefixtures("database", "by_the_set")


@pytest.fixture
def by_the_set(redis: EmbeddedRedis, settings: Any) -> None:
    settings.RENDERS = {**settings.RENDERS, "SCHEDULER": "sortedset"}


def due() -> RenderJob:
    render = stored("submitted", next_poll_at=timezone.now())
    polls().add({render.pk: time.time()})
    return render


def reader() -> SetQueue:
    return SetQueue(polls(), poll_leases())


def test_when_the_set_gives_away_what_a_dead_reader_had_its_lease_is_over() -> None:
    render = due()
    dead, living = reader(), reader()
    assert len(dead.take(10)) == 1

    while not polls().due_by(time.time(), 10):
        time.sleep(0.01)

    assert [held.render for held in living.take(10)] == [render]


def test_a_reader_that_comes_too_late_drops_nothing_that_the_next_one_has() -> None:
    render = due()
    late, following = reader(), reader()
    [stalled] = late.take(10)
    polls().settle([(render.pk, stalled.lease_ends or 0.0, time.time())])  # its time was over
    poll_leases().release_many({str(render.pk): stalled.token or ""})
    [held] = following.take(10)

    late.settle([(stalled, None)])
    assert len(polls()) == 1

    following.settle([(held, None)])
    assert len(polls()) == 0


def test_what_somebody_else_put_into_the_set_stops_nobody() -> None:
    render = due()
    redis_client().zadd("sume:polls", {"no id": 1.0})

    assert [held.render for held in reader().take(10)] == [render]
    assert len(polls()) == 1
