"""What a free read at Sume tells, against the stand-in over HTTP."""

import time
from unittest import mock

import pytest

from renders.health import outside
from renders.sandbox import Sandbox


@pytest.fixture(scope="module")
def one_sandbox():
    with Sandbox(key="right-key") as sandbox:
        yield sandbox


@pytest.fixture
def sandbox(one_sandbox, settings):
    one_sandbox.faults.clear()
    own = {"BASE_URL": one_sandbox.url, "API_KEY": "right-key"}
    settings.RENDERS = {**settings.RENDERS, **own}
    return one_sandbox


def codes():
    return [one.code for one in outside.account()]


def test_a_key_that_is_taken_with_money_on_it_is_well(sandbox):
    found = outside.account()

    assert [one.code for one in found] == ["", ""]
    assert found[0].said == "Sume takes the key; left to spend: 10,000.00 USD."
    assert not sandbox.ledger.bills


def test_without_a_key_sume_is_not_asked(sandbox, settings):
    settings.RENDERS = {**settings.RENDERS, "API_KEY": ""}

    assert codes() == ["key-missing"]


def test_a_wrong_key_is_refused_and_not_shown(sandbox, settings):
    settings.RENDERS = {**settings.RENDERS, "API_KEY": "wrong-key"}

    [found] = outside.account()

    assert found.code == "key-refused"
    assert "wrong-key" not in found.said + found.advice


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("unauthorized", "key-refused"),
        ("forbidden", "key-refused"),
        ("rate_limited", "sume-busy"),
        ("unavailable", "sume-busy"),
        ("server_error", "sume-away"),
        ("html", "sume-away"),
        ("not_found", ""),
    ],
)
def test_each_way_to_answer_is_told_apart(sandbox, fault, code):
    sandbox.faults.add(fault, on="any")

    assert codes() == [code]


def test_an_account_without_money_is_told(settings):
    with Sandbox(balance_usd_micros=0) as poor:
        settings.RENDERS = {**settings.RENDERS, "BASE_URL": poor.url}
        assert codes()[0] == "no-credit"


def test_a_sume_that_cannot_be_reached_is_told_without_its_address(settings):
    settings.RENDERS = {**settings.RENDERS, "BASE_URL": "http://127.0.0.1:9"}

    [found] = outside.account()

    assert found.code == "sume-away" and "127.0.0.1" not in found.said


@pytest.mark.parametrize(("shift", "code"), [(1.0, ""), (30.0, "clocks-apart")])
def test_the_clock_is_compared_with_sumes(sandbox, shift, code):
    with mock.patch.object(outside, "time", mock.Mock(time=lambda: time.time() + shift)):
        assert codes() == ["", code]
