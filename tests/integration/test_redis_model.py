"""The simulation's model of Redis answers as a real server does."""

import time
from typing import Any
from uuid import UUID

import hypothesis.strategies as st
from hypothesis import HealthCheck, given, settings

from renders.coordination.connections import redis_client
from renders.coordination.due_set import SortedSet
from renders.coordination.leases import Leases
from renders.limits import read_quota
from tests.simulation.redis_model import RedisModel

NAMES = st.sampled_from(["a", "b"])
# Which of the tokens handed out so far.
TOKENS = st.integers(0, 5)
IDS = st.sampled_from([UUID(int=number) for number in range(3)])
TIMES = st.sampled_from([1.0, 2.0, 3.0, 4.0])
LEASES = st.tuples(
    st.sampled_from(["acquire", "swap", "hand_on", "overtake", "release", "many", "lose"]),
    NAMES,
    TOKENS,
)
DUE = st.tuples(
    st.sampled_from(["add", "missing", "take", "settle", "end", "remove", "due"]), IDS, TIMES
)
ALONE = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def of_leases(client: Any, steps: list[Any]) -> list[Any]:
    """What each step was answered, without the tokens themselves."""
    leases, tokens, answers = Leases(client, "model:"), ["none"], []
    for do, name, number in steps:
        token = tokens[number % len(tokens)]
        if do == "acquire":
            answer: Any = leases.acquire(name, 60)
        elif do == "overtake":
            answer = leases.overtake(name, 60)
        elif do == "release":
            answer = leases.release(name, token)
        elif do == "many":
            answer = sorted(leases.acquire_many(["a", "b"], 60))
            leases.release_many({name: token})
        elif do == "lose":
            answer = client.delete(f"model:{name}")
        else:
            answer = getattr(leases, do)(name, token, 60)
        if isinstance(answer, str):
            tokens.append(answer)
            answer = answer[0]
        answers.append(answer)
    return answers


def of_due_set(client: Any, steps: list[Any]) -> list[Any]:
    polls, answers = SortedSet(client, "model:polls"), []
    for do, pk, at in steps:
        answer: Any = None
        if do == "add":
            polls.add({pk: at})
        elif do == "missing":
            answer = polls.add_missing({pk: at})
        elif do == "take":
            answer = polls.take(at, 2, 1.5)
        elif do == "settle":
            polls.settle([(pk, at, at + 1)])
        elif do == "end":
            polls.settle([(pk, at + 1.5, None)])
        elif do == "remove":
            polls.remove([pk])
        else:
            answer = polls.due_by(at, 2)
        answers.append((answer, len(polls)))
    return answers


@ALONE
@given(steps=st.lists(LEASES, max_size=12))
def test_leases_are_the_same(steps: list[Any], redis: Any) -> None:
    redis_client().flushall()

    assert of_leases(RedisModel(time.time), steps) == of_leases(redis_client(), steps)


@ALONE
@given(steps=st.lists(DUE, max_size=12))
def test_the_due_set_is_the_same(steps: list[Any], redis: Any) -> None:
    redis_client().flushall()

    assert of_due_set(RedisModel(time.time), steps) == of_due_set(redis_client(), steps)


@ALONE
@given(wanted=st.lists(st.integers(0, 4), max_size=5))
def test_the_quota_of_reads_is_the_same(wanted: list[int], redis: Any) -> None:
    redis_client().flushall()
    answers = []
    for client in (RedisModel(time.time), redis_client()):
        take = client.register_script(read_quota._TAKE)
        answers.append([take(keys=["model:quota"], args=[6, one, 5]) for one in wanted])

    assert answers[0] == answers[1]


def test_what_has_a_time_to_live_is_gone_after_it(redis: Any) -> None:
    redis_client().set("model:x", 1, px=30)
    now = 0.0
    model = RedisModel(lambda: now)
    model.set("model:x", 1, px=30)
    assert model.get("model:x") == redis_client().get("model:x") == b"1"

    now = 0.031
    deadline = time.monotonic() + 5
    while redis_client().get("model:x") is not None:
        assert time.monotonic() < deadline
        time.sleep(0.01)

    assert model.get("model:x") is None
    assert model.set("model:x", 2, nx=True) is True
