"""The lease, in a real Redis."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from renders.coordination.connections import redis_client
from renders.coordination.leases import Leases
from renders.demo.embedded_redis import EmbeddedRedis


@pytest.fixture
def leases(redis: EmbeddedRedis) -> Iterator[Leases]:
    yield Leases(redis_client(), "test:lease:")


def test_one_of_two_gets_a_free_lease(leases: Leases) -> None:
    assert leases.acquire("a", 10)
    assert leases.acquire("a", 10) is None


def test_a_token_is_good_for_one_swap(leases: Leases) -> None:
    first = leases.acquire("a", 10)
    assert first
    second = leases.swap("a", first, 10)
    assert second
    assert second != first
    assert leases.swap("a", first, 10) is None


def test_only_the_holder_hands_on(leases: Leases) -> None:
    token = leases.acquire("a", 10)
    assert token
    assert leases.hand_on("a", "somebody else's", 10) is None
    assert leases.hand_on("a", token, 10)


def test_a_late_former_holder_releases_nothing(leases: Leases) -> None:
    token = leases.acquire("a", 10)
    assert token
    handed = leases.hand_on("a", token, 10)
    assert not leases.release("a", token)
    assert leases.acquire("a", 10) is None
    assert handed
    assert leases.release("a", handed)
    assert leases.acquire("a", 10)


def test_a_late_former_holder_does_not_lengthen_the_life_of_anothers_lease(leases: Leases) -> None:
    token = leases.acquire("a", 10)
    assert token
    leases.hand_on("a", token, 10)
    leases.swap("a", token, 1000)
    leases.hand_on("a", token, 1000)
    assert redis_client().pttl("test:lease:a") <= 10_000


def test_a_killed_holders_lease_runs_out(leases: Leases) -> None:
    assert leases.acquire("a", 0.05)
    deadline = time.monotonic() + 2
    while leases.acquire("a", 10) is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_after_redis_was_emptied_the_first_to_come_takes_over(leases: Leases) -> None:
    token = leases.acquire("a", 10)
    assert token
    redis_client().flushall()
    assert leases.swap("a", token, 10)
    assert leases.swap("a", token, 10) is None


def test_every_lease_has_an_end(leases: Leases) -> None:
    token = leases.acquire("a", 10)
    assert token
    token = leases.swap("a", token, 20)
    assert token
    leases.hand_on("a", token, 30)
    assert 25_000 < redis_client().pttl("test:lease:a") <= 30_000


def test_the_scripts_survive_a_restart_of_redis(leases: Leases, redis: EmbeddedRedis) -> None:
    token = leases.acquire("a", 10)
    assert token
    assert leases.swap("a", token, 10)
    redis.restart()
    token = leases.acquire("a", 10)
    assert token
    assert leases.swap("a", token, 10)


def test_one_that_waits_is_overtaken_and_its_token_is_spent(leases: Leases) -> None:
    token = leases.acquire("a", 10)
    assert token
    waiting = leases.hand_on("a", token, 100)
    assert waiting
    assert leases.overtake("a", 10)
    assert redis_client().pttl("test:lease:a") <= 10_000
    assert leases.swap("a", waiting, 10) is None


def test_one_that_reads_is_not_overtaken(leases: Leases) -> None:
    token = leases.acquire("a", 10)
    assert token
    assert leases.overtake("a", 10) is None
    handed = leases.hand_on("a", token, 10)
    assert handed
    reading = leases.swap("a", handed, 10)
    assert leases.overtake("a", 10) is None
    assert reading
    assert leases.release("a", reading)


def test_a_free_lease_can_be_overtaken_by_one_alone(leases: Leases) -> None:
    assert leases.overtake("a", 10)
    assert leases.overtake("a", 10) is None


def test_of_many_that_overtake_at_once_one_reads(leases: Leases) -> None:
    token = leases.acquire("a", 10)
    assert token
    leases.hand_on("a", token, 100)
    with ThreadPoolExecutor(8) as pool:
        tokens = list(pool.map(lambda _: leases.overtake("a", 10), range(32)))
    assert len([token for token in tokens if token]) == 1
