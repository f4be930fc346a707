"""What a free read at Sume tells, against the stand-in over HTTP."""

import time
from unittest import mock

import pytest

from renders.health import environment
from renders.health.findings import Level
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
    return [one.code for one in environment.account()]


def test_a_key_that_is_taken_with_money_on_it_is_well(sandbox):
    found = environment.account()

    assert [one.code for one in found] == ["", ""]
    host = sandbox.url.removeprefix("http://")
    assert found[0].said == f"{host} takes the key; left to spend: 10,000.00 USD."
    assert found[1].said == f"The clock of {host} agrees with this machine's."
    assert not sandbox.ledger.bills


def test_without_a_key_sume_is_not_asked(sandbox, settings):
    settings.RENDERS = {**settings.RENDERS, "API_KEY": ""}

    [found] = environment.account()

    assert (found.code, found.said) == (
        "key-missing",
        f"No API key for {sandbox.url.removeprefix('http://')} is set.",
    )


def test_a_wrong_key_is_refused_and_not_shown(sandbox, settings):
    settings.RENDERS = {**settings.RENDERS, "API_KEY": "wrong-key"}

    [found] = environment.account()

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


def test_a_sume_that_cannot_be_reached_is_told_without_the_password_in_its_address(settings):
    address = "http://ann:s3cret@127.0.0.1:9"
    settings.RENDERS = {**settings.RENDERS, "BASE_URL": address}

    [found] = environment.account()

    assert found.code == "sume-away" and found.said.startswith("127.0.0.1:9: ")
    assert "s3cret" not in found.said


@pytest.mark.parametrize(
    ("url", "said", "level"),
    [
        (
            "https://api.sume.com",
            "Renders go to api.sume.com: every render is billed.",
            Level.OK,
        ),
        (
            "http://127.0.0.1:8999",
            "Renders go to 127.0.0.1:8999, a stand-in on this machine or a private network: "
            "nothing is billed there unless it passes requests on to Sume.",
            Level.OK,
        ),
        (
            "https://sume.example.com",
            "Renders go to sume.example.com, not Sume's own host: "
            "ask whoever runs it whether it bills.",
            Level.INFO,
        ),
    ],
)
def test_the_host_and_whether_it_bills_are_told_without_asking_it(settings, url, said, level):
    settings.RENDERS = {**settings.RENDERS, "BASE_URL": url}

    [found] = environment.destinations()

    assert (found.said, found.level, found.advice) == (said, level, "")


def test_the_account_of_each_workspace_is_told_with_its_host(sandbox, settings):
    acme = {"BASE_URL": "http://localhost:9", "API_KEY": "sk"}
    settings.RENDERS = {**settings.RENDERS, "WORKSPACES": {"acme": acme}}

    said = [one.said for one in environment.account()]

    assert said[0].startswith(f"default: {sandbox.url.removeprefix('http://')} takes the key")
    assert said[-1].startswith("acme: localhost:9: ")


@pytest.mark.parametrize(("shift", "code"), [(1.0, ""), (30.0, "clocks-apart")])
def test_the_clock_is_compared_with_sumes(sandbox, shift, code):
    with mock.patch.object(environment, "time", mock.Mock(time=lambda: time.time() + shift)):
        assert codes() == ["", code]
