"""May Sume be read now? The gate, the budget of a span, and one that tries after a refusal."""

import json
import logging
from datetime import UTC, datetime, timedelta

import pytest
import redis

from renders.conf import conf
from renders.exceptions import BackOff, Closed, NotReady, OutcomeUnknown, Paused, Rejected
from renders.limits import gate, read_quota
from renders.limits.read_quota import Admission
from renders.models import Gate
from renders.states import RequestType

pytestmark = pytest.mark.django_db


def raising(error):
    def ask():
        raise error

    return ask


NOW = datetime(2026, 5, 4, 12, 0, 0, 250_000, tzinfo=UTC)
SECOND = timedelta(seconds=1)


class FakeRedis:
    """Keys without an end; counts what is asked."""

    def __init__(self):
        self.kept = {}
        self.away = False
        self.calls = []

    def _reach(self, what):
        self.calls.append(what)
        if self.away:
            raise redis.ConnectionError

    def get(self, key):
        self._reach("get")
        return self.kept.get(key)

    def set(self, key, value, *, px, nx=False):
        self._reach("set")
        if not (nx and key in self.kept):
            self.kept[key] = value

    def delete(self, key):
        self._reach("delete")
        self.kept.pop(key, None)

    def register_script(self, text):
        def take(keys, args):
            self._reach("take")
            most, wanted, _ = args
            taken = max(0, min(most - self.kept.get(keys[0], 0), wanted))
            self.kept[keys[0]] = self.kept.get(keys[0], 0) + taken
            return taken

        return take


@pytest.fixture
def a_redis(monkeypatch):
    client = FakeRedis()
    for module in (read_quota, gate):
        monkeypatch.setattr(module, "redis_client", lambda: client)
    return client


@pytest.fixture
def none(settings):
    """No Redis at all."""
    settings.RENDERS = {**settings.RENDERS, "SCHEDULER": "database"}


@pytest.fixture(autouse=True)
def clock(monkeypatch, settings):
    """A clock that stands, and ten reads a second (16 writes a minute)."""
    settings.RENDERS = {**settings.RENDERS, "WRITES_PER_MINUTE": 16}
    times = [NOW]
    for module in (read_quota, gate):
        monkeypatch.setattr(f"{module.__name__}.timezone.now", lambda: times[0])
    return times


MOST = 16 * 40 // 62


@pytest.fixture(params=["database", "redis", "redis away"])
def anywhere(request, a_redis, settings):
    """Wherever the reads are counted."""
    if request.param == "database":
        settings.RENDERS = {**settings.RENDERS, "SCHEDULER": "database"}
    a_redis.away = request.param == "redis away"
    return request.param


# --- The budget ---------------------------------------------------------------------------


def test_no_more_are_admitted_than_the_span_allows(anywhere):
    assert read_quota.admit("default", 4) == Admission(4)
    assert read_quota.admit("default", MOST) == Admission(MOST - 4)

    refused = read_quota.admit("default", 1)

    assert (refused.count, refused.probe) == (0, False)
    assert refused.closed.code == "read_budget"
    assert refused.closed.until == NOW.replace(microsecond=0) + SECOND


def test_the_next_span_has_a_budget_of_its_own(anywhere, clock):
    read_quota.admit("default", MOST)
    clock[0] = NOW + SECOND

    assert read_quota.admit("default", MOST + 5) == Admission(MOST)


def test_where_a_second_allows_none_the_span_is_longer(anywhere, clock, settings):
    settings.RENDERS = {**settings.RENDERS, "WRITES_PER_MINUTE": 1}  # 40 reads in 62 s

    assert read_quota.admit("default", 5).count == 1
    closed = read_quota.admit("default", 5).closed
    clock[0] = closed.until - timedelta(microseconds=1)
    assert read_quota.admit("default", 5).count == 0
    clock[0] = closed.until
    assert read_quota.admit("default", 5).count == 1


def test_without_redis_the_row_counts(none):
    read_quota.admit("default", 3)
    read_quota.admit("default", 2)

    row = Gate.objects.get(pk=RequestType.READS)
    assert (row.span, row.span_taken) == (int(NOW.timestamp()), 5)


def test_redis_away_is_told(a_redis, caplog):
    a_redis.away = True

    with caplog.at_level(logging.WARNING):
        assert read_quota.admit("default", 2) == Admission(2)

    assert "Redis unreachable (ConnectionError): the database counts." in caplog.messages
    assert Gate.objects.get(pk=RequestType.READS).span_taken == 2


# --- The gate -------------------------------------------------------------------------------


def closed_gate(**fields):
    return Gate.objects.create(
        key=RequestType.READS,
        **{"paused_until": NOW + 9 * SECOND, "code": "rate_limited", "reason": "Wait.", **fields},
    )


def test_while_the_gate_is_closed_none_is_admitted_and_none_taken_from_the_budget(anywhere):
    closed_gate()

    admission = read_quota.admit("default", 5)

    assert admission.count == 0
    assert (admission.closed.code, admission.closed.until) == ("rate_limited", NOW + 9 * SECOND)
    assert Gate.objects.get().span_taken == 0


def test_a_pause_that_redis_tells_of_needs_no_database(a_redis, django_assert_num_queries):
    until = NOW + 9 * SECOND
    a_redis.kept["sume:gate:reads"] = json.dumps([until.timestamp(), "busy", "Wait."])

    with django_assert_num_queries(0):
        admission = read_quota.admit("default", 5)

    assert (admission.closed.code, admission.closed.until) == ("busy", until)


def test_an_open_gate_is_not_looked_at_again_for_a_moment(a_redis, django_assert_num_queries):
    read_quota.admit("default", 1)
    assert a_redis.kept["sume:gate:reads"] == gate.OPEN
    a_redis.calls.clear()

    with django_assert_num_queries(0):
        assert read_quota.admit("default", 1) == Admission(1)
    assert a_redis.calls == ["get", "take"]


def test_a_pause_told_meanwhile_stays(a_redis):
    a_redis.kept["sume:gate:reads"] = pause = json.dumps([NOW.timestamp(), "busy", "Over."])

    read_quota.admit("default", 1)

    assert a_redis.kept["sume:gate:reads"] == pause


def test_a_pause_takes_the_place_of_an_open_gate(a_redis):
    read_quota.admit("default", 1)

    read_quota.answered("default", False, Paused("No.", code="unauthorized", status=401))

    assert read_quota.admit("default", 1).closed.code == "unauthorized"


# --- One that tries -------------------------------------------------------------------------


@pytest.fixture
def refused(clock):
    """The gate after a pause for a refused key."""
    return closed_gate(paused_until=NOW - SECOND, code="unauthorized", refusals=1)


def test_after_a_refusal_one_read_tries_and_the_others_wait(anywhere, refused):
    assert read_quota.admit("default", 5) == Admission(1, probe=True)

    admission = read_quota.admit("default", 5)

    assert (admission.count, admission.closed.code) == (0, "probe")


def test_whoever_waits_for_the_one_that_tries_takes_nothing_from_the_budget(none, refused):
    read_quota.admit("default", 5)
    for _ in range(MOST):
        read_quota.admit("default", 5)

    refused.refresh_from_db()
    assert refused.span_taken == 1


def test_of_two_that_would_try_at_once_one_does(none, refused, monkeypatch):
    take = read_quota._take

    def overtaken(*args):
        Gate.objects.update(probe_until=NOW + 60 * SECOND)  # by another, just before
        return take(*args)

    monkeypatch.setattr(read_quota, "_take", overtaken)

    assert read_quota.admit("default", 5).closed.code == "probe"


def test_one_that_died_trying_is_waited_for_and_then_replaced(none, refused, clock):
    read_quota.admit("default", 1)
    clock[0] = NOW + 2.4 * SECOND
    assert read_quota.admit("default", 1).closed.code == "probe"

    clock[0] = NOW + 2.6 * SECOND  # grace_seconds of the tests: 2.5
    assert read_quota.admit("default", 1) == Admission(1, probe=True)


ANSWERS = {
    "an answer": (None, 0),
    "an answer that refuses this one": (Rejected("No.", code="not_found"), 0),
    "no result yet": (NotReady("No.", code="x"), 0),
    "no answer": (OutcomeUnknown("No.", code="no_answer"), 1),
}


@pytest.mark.parametrize(("error", "refusals"), ANSWERS.values(), ids=ANSWERS)
def test_any_answer_to_the_one_that_tries_opens_the_gate(none, refused, error, refusals):
    read_quota.admit("default", 1)

    read_quota.answered("default", True, error)

    refused.refresh_from_db()
    assert (refused.refusals, refused.probe_until) == (refusals, None)
    expected = Admission(3) if not refusals else Admission(1, probe=True)
    assert read_quota.admit("default", 3) == expected


def test_another_refusal_closes_it_for_longer(none, refused):
    read_quota.admit("default", 1)

    read_quota.answered("default", True, Paused("No.", code="unauthorized", status=401))

    refused.refresh_from_db()
    assert refused.refusals == 2
    assert refused.paused_until == NOW + 2 * 0.5 * SECOND  # PAUSE_SECONDS of the tests
    assert read_quota.admit("default", 1).closed.code == "unauthorized"


def test_too_many_reads_hold_all_reads_back(anywhere):
    error = BackOff("Slow.", code="rate_limit_exceeded", status=429, retry_after=7.0)

    with pytest.raises(BackOff):
        read_quota.read("default", raising(error))

    closed = read_quota.admit("default", 1).closed
    assert (closed.code, closed.until) == ("rate_limit_exceeded", NOW + 7 * SECOND)


def test_pauses_that_name_no_time_begin_short_again_after_a_quiet_while(none, clock, monkeypatch):
    monkeypatch.setattr("renders.sume.timing.random.uniform", lambda low, high: high)
    error = BackOff("Slow.", code="rate_limit_exceeded", status=429)
    waits = []
    for gap in (0, 1, 1, conf.MAX_PAUSE_SECONDS + 60):
        clock[0] += gap * SECOND
        read_quota.answered("default", False, error)
        until = read_quota.admit("default", 1).closed.until
        waits.append((until - clock[0]).total_seconds())
        clock[0] = until

    assert waits == [5, 10, 20, 5]


@pytest.mark.parametrize(
    "error",
    [None, OutcomeUnknown("No.", code="no_answer"), BackOff("No.", code="busy", status=503)],
)
def test_what_the_others_are_told_leaves_the_gate_alone(none, error, django_assert_num_queries):
    with django_assert_num_queries(0):
        read_quota.answered("default", False, error)


# --- One read -----------------------------------------------------------------------------


def test_one_read_is_sent_where_it_may_be(none):
    assert read_quota.read("default", lambda: "the answer") == "the answer"


def test_one_read_is_not_sent_where_the_gate_is_closed(none):
    closed_gate()

    with pytest.raises(Closed, match="Wait"):
        read_quota.read("default", lambda: pytest.fail("It was sent."))


@pytest.mark.parametrize("probe", [False, True])
def test_the_gate_learns_from_one_read(none, probe):
    if probe:
        closed_gate(paused_until=NOW - SECOND, refusals=1)

    def ask():
        raise Paused("No.", code="unauthorized", status=401)

    with pytest.raises(Paused):
        read_quota.read("default", ask)
    assert read_quota.admit("default", 1).closed.code == "unauthorized"
