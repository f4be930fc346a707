"""When to act next: every odd value a reply can hold."""

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from renders.sume.timing import back_off, clamp, parse_delay, parse_retry_after

NOW = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)
LIMITS = {"default": 15.0, "shortest": 1.0, "longest": 300.0}


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        pytest.param(5, 5.0, id="whole"),
        pytest.param(2.5, 2.5, id="fraction"),
        pytest.param(0, 0.0, id="zero"),
        pytest.param("7", 7.0, id="text"),
        pytest.param(" 5 ", 5.0, id="text with white space"),
        pytest.param(1e12, 1e12, id="absurd but finite"),
        pytest.param(10**400, math.inf, id="whole, larger than any float"),
        pytest.param(-(10**400), None, id="whole, smaller than any float"),
        pytest.param(None, None, id="missing"),
        pytest.param(-1, None, id="negative"),
        pytest.param("-1", None, id="negative text"),
        pytest.param(math.nan, None, id="NaN"),
        pytest.param("NaN", None, id="NaN as text"),
        pytest.param(math.inf, None, id="infinity"),
        pytest.param("inf", None, id="infinity as text"),
        pytest.param("9" * 400, None, id="text, larger than any float"),
        pytest.param(True, None, id="true"),
        pytest.param(False, None, id="false"),
        pytest.param("", None, id="empty text"),
        pytest.param("soon", None, id="word"),
        pytest.param("\x00", None, id="NUL"),
        pytest.param("\ud800", None, id="half a surrogate pair"),
        pytest.param([1], None, id="list"),
        pytest.param({}, None, id="object"),
        pytest.param(b"5", None, id="bytes"),
    ],
)
def test_a_delay_is_a_finite_number_or_none(value, seconds):
    assert parse_delay(value) == seconds


@pytest.mark.parametrize(
    ("delay", "wait"),
    [
        pytest.param(None, 15.0, id="none named: the default"),
        pytest.param(5.0, 5.0, id="within bounds: as asked"),
        pytest.param(1.0, 1.0, id="at the lower bound"),
        pytest.param(300.0, 300.0, id="at the upper bound"),
        pytest.param(0.0, 1.0, id="zero: no tight loop"),
        pytest.param(1e12, 300.0, id="absurd: the longest"),
        pytest.param(math.inf, 300.0, id="infinite: the longest"),
    ],
)
def test_a_wait_stays_within_its_bounds(delay, wait):
    assert clamp(delay, **LIMITS) == wait


def test_the_default_is_clamped_as_well():
    assert clamp(None, default=900.0, shortest=1.0, longest=300.0) == 300.0
    assert clamp(None, default=0.0, shortest=1.0, longest=300.0) == 1.0


@settings(deadline=None, database=None)
@given(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.lists(st.integers(), max_size=2)
)
def test_whatever_a_reply_names_the_wait_is_bounded(value):
    assert 1.0 <= clamp(parse_delay(value), **LIMITS) <= 300.0


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        pytest.param("120", 120.0, id="seconds"),
        pytest.param(" 3 ", 3.0, id="seconds with white space"),
        pytest.param("0", 0.0, id="zero"),
        pytest.param("1.5", 1.5, id="fraction"),
        pytest.param("Mon, 04 May 2026 12:01:30 GMT", 90.0, id="date to come"),
        pytest.param("Mon, 04 May 2026 14:01:30 +0200", 90.0, id="date in another zone"),
        pytest.param("Mon, 04 May 2026 12:01:30", 90.0, id="date without a zone"),
        pytest.param("Monday, 04-May-26 12:01:30 GMT", 90.0, id="date in the older form"),
        pytest.param("Mon, 04 May 2026 11:00:00 GMT", 0.0, id="date gone by"),
        pytest.param("Mon, 01 Jan 0001 00:00:00 GMT", 0.0, id="date long gone by"),
        pytest.param("1000000000000", 1e12, id="absurd"),
        pytest.param(None, None, id="missing"),
        pytest.param("", None, id="empty"),
        pytest.param("   ", None, id="white space"),
        pytest.param("-5", None, id="negative"),
        pytest.param("inf", None, id="infinity"),
        pytest.param("nan", None, id="NaN"),
        pytest.param("soon", None, id="word"),
        pytest.param("Mon, 32 May 2026 12:00:00 GMT", None, id="no such day"),
        pytest.param("Mon, 04 May 99999 12:00:00 GMT", None, id="no such year"),
        pytest.param("Mon, 04 May 2026 12:00:00 +9999999999", None, id="no such zone"),
        pytest.param("\x00\xff", None, id="hostile bytes"),
    ],
)
def test_retry_after_is_read_in_both_forms(header, seconds):
    assert parse_retry_after(header, NOW) == seconds


@settings(deadline=None, database=None)
@given(
    st.text(st.characters(max_codepoint=255))
    | st.builds(
        "{}, {} {} {} {}:{}:{} {}".format,
        st.sampled_from(["Mon", "Xyz", ""]),
        st.integers(-1, 40),
        st.sampled_from(["Jan", "Dec", "Foo"]),
        st.integers(-1, 10**6),
        st.integers(-1, 30),
        st.integers(-1, 70),
        st.integers(-1, 70),
        st.sampled_from(["GMT", "-0000", "+2400", "-9999", "+99999999999", "Z", ""]),
    )
)
def test_no_retry_after_header_raises(header):
    seconds = parse_retry_after(header, NOW)
    assert seconds is None or 0 <= seconds < math.inf


def test_the_wait_doubles_with_each_failure_in_a_row(monkeypatch):
    monkeypatch.setattr("renders.sume.timing.random.uniform", lambda low, high: high)

    waits = [back_off(failures, base=2.0, longest=60.0) for failures in range(1, 8)]

    assert waits == [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]


@pytest.mark.parametrize("failures", [-1, 0, 1, 5, 31, 10**9])
def test_the_wait_is_bounded_however_often_it_failed(failures):
    for _ in range(20):
        assert 0.5 <= back_off(failures, base=1.0, longest=60.0) <= 60.0


def test_what_failed_together_does_not_come_back_together():
    waits = {back_off(4, base=2.0, longest=60.0) for _ in range(50)}

    assert len(waits) > 40
    assert all(8.0 <= wait <= 16.0 for wait in waits)


def test_the_longest_wait_can_be_added_to_any_clock():
    wait = clamp(parse_retry_after("9" * 300, NOW), **LIMITS)

    assert NOW + timedelta(seconds=wait) == NOW + timedelta(seconds=300)
