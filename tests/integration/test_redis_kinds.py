"""A Redis Cluster, and a Redis that sentinels look after, do what one server does."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
import redis
from django.utils import timezone

from renders import services
from renders.api import throttling
from renders.coordination import connections
from renders.coordination.connections import REDIS_DOWN, redis_client
from renders.coordination.due_set import SortedSet
from renders.coordination.leases import Leases
from renders.demo.processes import wait_until
from renders.exceptions import Paused
from renders.limits import gate
from renders.models import Gate, RenderJob
from renders.presentation.problems import Problem
from renders.sandbox import Sandbox
from renders.states import RequestType
from tests.integration import engine
from tests.integration.stack import Stack
from tests.redis_servers import (
    PASSWORD,
    QUOTED,
    SENTINEL_PASSWORD,
    SENTINEL_QUOTED,
    Cluster,
    Servers,
    Watched,
)

KINDS: dict[str, type[Servers]] = {"cluster": Cluster, "sentinel": Watched}
LONGEST_FAILOVER_SECONDS = 15.0

# One database is enough: Redis is what is tried here.
ON_ONE_DATABASE = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


@pytest.fixture(scope="module", params=KINDS)
def shared(request: pytest.FixtureRequest) -> Iterator[Servers]:
    with KINDS[request.param]() as servers:
        yield servers


@pytest.fixture
def servers(shared: Servers, settings: Any) -> Servers:
    """Servers that are all left running, and empty at first; the app uses them."""
    use(shared, settings)
    redis_client().flushall()
    return shared


@pytest.fixture
def using(settings: Any) -> Iterator[Callable[[str], Any]]:
    """Start servers of this kind for one test, which may kill them; the app uses them."""
    started: list[Servers] = []

    def start(kind: str) -> Servers:
        started.append(KINDS[kind]())
        started[0].__enter__()
        use(started[0], settings)
        return started[0]

    yield start
    for one in started:
        one.__exit__()


def use(servers: Servers, settings: Any) -> None:
    settings.RENDERS = {**settings.RENDERS, "REDIS_URL": servers.url}
    connections._redis.cache_clear()


def drive_to_end(render: RenderJob) -> None:
    """Every step, as the tasks would take it."""
    if render.status == "pending":
        engine.submit(render)
    token = None
    while render.status == "submitted":
        engine.make_due(render)
        token = engine.poll(render, token)[0].token
    if render.handled_at is None:
        engine.finish(render)


def assert_ended(render: RenderJob, sandbox: Sandbox) -> None:
    assert (render.status, bool(render.handled_at)) == ("completed", True)
    assert [bill.idempotency_key for bill in sandbox.ledger.bills] == [render.idempotency_key]


# --- As on one server -----------------------------------------------------------------------


def test_a_lease_lives_as_on_one_server(servers: Servers) -> None:
    # Many names: they lie on different nodes of a cluster.
    for name in (f"render-{number}" for number in range(12)):
        leases = Leases(redis_client(), "test:")
        first = leases.acquire(name, 10)
        assert first and leases.acquire(name, 10) is None
        assert leases.overtake(name, 10) is None  # it reads
        waiting = leases.hand_on(name, first, 20)
        assert waiting and leases.swap(name, first, 10) is None
        reading = leases.swap(name, waiting, 30)
        assert reading and not leases.release(name, waiting)
        assert 25_000 < redis_client().pttl(f"test:{name}") <= 30_000
        waiting = leases.hand_on(name, reading, 20)
        overtaking = leases.overtake(name, 10)
        assert waiting and overtaking and leases.swap(name, waiting, 10) is None
        assert leases.release(name, overtaking)
        assert redis_client().get(f"test:{name}") is None


def test_many_leases_are_taken_and_given_back_as_on_one_server(servers: Servers) -> None:
    leases = Leases(redis_client(), "test:")
    names = [f"render-{number}" for number in range(20)]
    other = leases.acquire(names[7], 10)
    tokens = leases.acquire_many(names, 10)
    assert tokens.keys() == {*names} - {names[7]}
    leases.release_many({**tokens, names[7]: "not ours"})
    assert [name for name in names if leases.acquire(name, 10) is None] == [names[7]]
    assert other and leases.release(names[7], other)


def test_the_sorted_set_lives_as_on_one_server(servers: Servers) -> None:
    polls = SortedSet(redis_client())
    ids = [UUID(int=number) for number in range(20)]
    polls.add({pk: 100.0 + pk.int for pk in ids})
    taken = polls.take(109.0, 100, 30)
    assert (taken.ids, taken.next_due) == (ids[:10], 110.0)
    polls.settle((pk, taken.lease_ends, None if pk.int % 2 else 200.0) for pk in taken.ids)
    assert len(polls) == 15
    assert polls.due_by(200.0, 100).keys() == {*ids[10:], *ids[0:10:2]}
    assert not polls.is_whole()
    polls.note_whole(10)
    assert polls.is_whole()


def test_scripts_survive_that_servers_forget_them(servers: Servers) -> None:
    leases = Leases(redis_client(), "test:")
    token = leases.acquire("a", 10)
    for server in servers.servers:
        with suppress(redis.ResponseError):  # a sentinel has none
            server.client.script_flush()
    assert token and leases.hand_on("a", token, 10)


@ON_ONE_DATABASE
def test_a_pause_is_told_and_forgotten(database: str, servers: Servers) -> None:
    gate.pause("default", RequestType.WRITES, Paused("No money.", code="insufficient_credits"), 60)
    Gate.objects.all().delete()
    told = gate.closed("default", RequestType.WRITES, timezone.now())
    assert told and told.code == "insufficient_credits"
    gate.resume("default")
    assert gate.closed("default", RequestType.WRITES, timezone.now()) is None


def test_requests_of_the_api_are_counted(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttling._Rest, "until", 0.0)
    users = [SimpleNamespace(pk=number) for number in range(6)]
    counts = []
    for user in (*users, *users):
        quota = throttling.count_request(user)
        assert quota and 1 <= quota.reset <= 60
        counts.append(quota.count)
    assert counts == [1] * 6 + [2] * 6
    for _ in range(throttling.REFUSALS_PER_MINUTE):
        throttling.count_refusal("192.0.2.1")
    with pytest.raises(Problem):
        throttling.count_refusal("192.0.2.1")


@ON_ONE_DATABASE
def test_a_render_goes_from_start_to_end(
    database: str, servers: Servers, sandbox: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    render = services.create_render("a red fox")
    drive_to_end(render)
    assert_ended(render, sandbox)
    assert "Redis unreachable" not in caplog.text


# --- Outages --------------------------------------------------------------------------------


@ON_ONE_DATABASE
@pytest.mark.parametrize("kind", KINDS)
def test_a_render_goes_on_where_all_servers_are_gone(
    database: str, using: Any, kind: str, sandbox: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    servers = using(kind)
    render = services.create_render("a red fox")
    engine.submit(render)
    servers.kill()
    drive_to_end(render)
    assert_ended(render, sandbox)
    assert "Redis unreachable" in caplog.text
    for secret in (PASSWORD, SENTINEL_PASSWORD, QUOTED, SENTINEL_QUOTED):
        assert secret not in caplog.text


@pytest.mark.slow
@ON_ONE_DATABASE
@pytest.mark.parametrize("kind", KINDS)
def test_a_process_that_starts_in_the_outage_works_and_then_uses_redis(
    database: str, using: Any, kind: str, sandbox: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    servers = using(kind)
    servers.kill()
    render = services.create_render("a red fox")
    drive_to_end(render)
    assert_ended(render, sandbox)
    for server in servers.servers:
        server.start()
    until_leased("a")


def until_leased(name: str) -> None:
    """Until leases work again; meanwhile each failure is one that the app lives through."""

    def leased() -> bool:
        with suppress(*REDIS_DOWN):
            return bool(engine.leases().acquire(name, 10))
        return False

    wait_until(leased, "Redis", LONGEST_FAILOVER_SECONDS)


@ON_ONE_DATABASE
def test_a_node_that_is_away_is_an_outage_for_its_renders_and_strands_none(
    database: str, using: Any, sandbox: Sandbox
) -> None:
    servers = using("cluster")
    render = services.create_render("a red fox")
    engine.submit(render)
    servers.holder(f"sume:poll:{render.pk}").kill()
    for operation in (
        lambda: engine.leases().acquire(str(render.pk), 10),
        lambda: engine.leases().overtake(str(render.pk), 10),
    ):
        with pytest.raises(REDIS_DOWN):
            operation()
    drive_to_end(render)
    assert_ended(render, sandbox)


@ON_ONE_DATABASE
def test_when_the_master_dies_the_replica_takes_over(
    database: str, using: Any, sandbox: Sandbox
) -> None:
    servers = using("sentinel")
    render = services.create_render("a red fox")
    engine.submit(render)
    held = engine.leases().acquire("held", 100)
    redis_client().wait(1, 1000)  # the replica has it
    servers.master.kill()
    drive_to_end(render)
    assert_ended(render, sandbox)
    until_leased("free")
    assert redis_client().connection_pool.master_address[1] == servers.replica.port
    assert held and engine.leases().hand_on("held", held, 10)


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_servers_that_fall_silent_are_an_outage_and_then_used_again(using: Any, kind: str) -> None:
    servers = using(kind)
    leases = engine.leases()
    token = leases.acquire("a", 100)
    servers.fall_silent()
    for _ in range(3):
        with pytest.raises(REDIS_DOWN):
            leases.acquire("b", 10)
    for server in servers.servers:
        server.speak()
    until_leased("c")
    assert token


def test_a_cluster_that_did_not_answer_is_left_alone_for_a_while(using: Any) -> None:
    servers = using("cluster")
    servers.kill()
    with pytest.raises(REDIS_DOWN, match="cannot be connected"):
        redis_client().get("a")
    for server in servers.servers:
        server.start()
    with pytest.raises(REDIS_DOWN, match="a moment ago"):
        redis_client().get("a")


# --- Messages -------------------------------------------------------------------------------


@pytest.mark.slow
@ON_ONE_DATABASE
def test_sentinels_lead_celery_too_to_the_new_master(stack: Stack, using: Any) -> None:
    servers = using("sentinel")
    own = [name for name in os.environ if name.startswith("TESTS_REDIS_URL")]
    stack.environment |= dict.fromkeys([*own, "REDIS_URL"], servers.url)
    worker, beat = stack.worker(), stack.beat()
    stack.command("render", "fox", "hen", "--no-follow")
    stack.until_handled(sweeping=False)

    servers.master.kill()
    stack.command("render", "made", "meanwhile", "--no-follow")
    stack.until_handled(sweeping=False)

    assert worker.alive and beat.alive
    assert RenderJob.objects.filter(status="completed").count() == 4
    for secret in (PASSWORD, SENTINEL_PASSWORD, QUOTED, SENTINEL_QUOTED):
        assert secret not in stack.logs()


@pytest.mark.thorough
@pytest.mark.slow
@ON_ONE_DATABASE
def test_a_cluster_for_the_leases_goes_with_another_broker(stack: Stack, using: Any) -> None:
    servers = using("cluster")
    own = [name for name in os.environ if name.startswith("TESTS_REDIS_URL")]
    stack.environment |= dict.fromkeys([*own, "REDIS_URL"], servers.url)
    check = stack.run("check", "manage.py", "check")
    stack.until(lambda: not check.alive)
    assert check.process.returncode == 1 and "renders.E012" in check.output()

    stack.environment["CELERY_BROKER_URL"] = stack.redis.url
    stack.worker()
    stack.command("render", "fox", "hen", "--no-follow")
    stack.until_handled(sweeping=False)

    assert RenderJob.objects.filter(status="completed").count() == 2
    assert "Redis unreachable" not in stack.logs()
    assert PASSWORD not in stack.logs() and QUOTED not in stack.logs()
