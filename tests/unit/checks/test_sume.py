"""Whether Sume or a stand-in is asked: a surprise is a warning, and names the host."""

import pytest
from django.core.checks import Info, Warning, run_checks

from renders.checks import check_settings

from .conftest import GOOD, STAND_IN

SUME = "https://api.sume.com"
HOW_TO_BILL = (
    "Take SUME_BASE_URL out of the environment (in a project of your own, BASE_URL out of "
    "RENDERS) to have renders made and billed."
)


def found():
    return check_settings(None)


def told_before_a_deploy():
    every = run_checks(tags=["renders"], include_deployment_checks=True)
    return [message for message in every if message.id == "renders.I069"]


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://127.0.0.1:8008", "127.0.0.1:8008"),
        ("https://localhost", "localhost"),
        ("http://ann:s3cret@sandbox:8999", "sandbox:8999"),
        ("http://10.1.2.3/v1", "10.1.2.3"),
        ("https://[fd00::1]:8999", "[fd00::1]:8999"),
        ("http://sume.internal.", "sume.internal."),
    ],
)
def test_a_stand_in_outside_debug_is_a_warning_with_its_host(settings, url, host):
    settings.RENDERS = {**GOOD, "BASE_URL": url}

    assert found() == [
        Warning(
            f"Renders go to {host}, on this machine or a private network: "
            "to a stand-in, not to Sume.",
            hint=HOW_TO_BILL,
            id="renders.W007",
        )
    ]

    settings.DEBUG = True
    assert found() == []


def test_a_stand_in_of_one_workspace_is_a_warning_too(settings):
    acme = {"API_KEY": "sk-acme", "BASE_URL": STAND_IN}
    settings.RENDERS = {**GOOD, "WORKSPACES": {"acme": acme}}

    [message] = found()

    assert message.id == "renders.W007"
    assert message.msg.startswith("Renders go to 127.0.0.1:8999 (workspace acme), on this machine")


def test_a_host_that_is_neither_sume_nor_a_stand_in_is_no_warning(settings):
    settings.RENDERS = {**GOOD, "BASE_URL": "https://sume.example.com"}
    assert found() == []

    settings.DEBUG = True
    assert found() == []


def test_sume_itself_in_debug_is_a_warning_with_its_host(settings):
    settings.DEBUG = True

    assert found() == [
        Warning(
            "DEBUG is on, and renders go to api.sume.com: every render is billed.",
            hint="To try without a bill, run `manage.py sumesandbox` and set what it prints.",
            id="renders.W068",
        )
    ]


@pytest.mark.parametrize("debug", [True, False])
def test_an_address_that_an_own_project_does_not_read_is_a_warning(settings, monkeypatch, debug):
    monkeypatch.setenv("SUME_BASE_URL", STAND_IN)
    settings.DEBUG = debug
    settings.RENDERS = {"API_KEY": "sk-key"}

    assert [message for message in found() if message.id != "renders.W068"] == [
        Warning(
            "SUME_BASE_URL in the environment is not used: renders go to api.sume.com.",
            hint="Have the settings read it into BASE_URL of RENDERS, or take it out.",
            id="renders.W070",
        )
    ]


def test_an_address_that_is_read_is_no_warning(settings, monkeypatch):
    monkeypatch.setenv("SUME_BASE_URL", f"{STAND_IN}/ ")
    settings.DEBUG = True
    settings.RENDERS = {**GOOD, "BASE_URL": STAND_IN}

    assert found() == []


def test_without_a_key_nothing_is_billed_in_debug_either(settings):
    settings.DEBUG = True
    settings.RENDERS = {**GOOD, "API_KEY": ""}

    assert [message.id for message in found()] == ["renders.W001"]


def test_one_workspace_that_asks_sume_in_debug_is_a_warning(settings):
    settings.DEBUG = True
    acme = {"API_KEY": "sk-acme", "BASE_URL": SUME}
    settings.RENDERS = {**GOOD, "BASE_URL": STAND_IN, "WORKSPACES": {"acme": acme}}

    [message] = found()

    assert message.msg == (
        "DEBUG is on, and renders go to api.sume.com (workspace acme): every render is billed."
    )


@pytest.mark.parametrize("debug", [True, False])
@pytest.mark.parametrize(
    ("url", "words"),
    [
        (SUME, "api.sume.com: every render is billed."),
        (STAND_IN, "127.0.0.1:8999, a stand-in on this machine or a private network: "),
        ("https://sume.example.com", "sume.example.com, not Sume's own host: "),
    ],
)
def test_before_a_deploy_the_host_is_told_in_every_case(settings, url, words, debug):
    settings.DEBUG = debug
    settings.RENDERS = {**GOOD, "BASE_URL": url}

    [message] = told_before_a_deploy()

    assert isinstance(message, Info)
    assert message.msg.startswith(f"Renders go to {words}")
    assert "SUME_BASE_URL" in message.hint and "RENDERS" in message.hint


def test_before_a_deploy_the_host_of_each_workspace_is_told(settings):
    acme = {"API_KEY": "sk-acme", "BASE_URL": STAND_IN}
    settings.RENDERS = {**GOOD, "WORKSPACES": {"acme": acme}}

    assert [message.msg.partition(")")[0] for message in told_before_a_deploy()] == [
        "Renders go to api.sume.com (workspace default",
        "Renders go to 127.0.0.1:8999 (workspace acme",
    ]


def test_before_a_deploy_workspaces_that_cannot_be_read_are_told_by_another_check(settings):
    settings.RENDERS = {**GOOD, "WORKSPACES": {"default": {}}}

    assert told_before_a_deploy() == []
    assert "renders.E001" in [message.id for message in run_checks(tags=["renders"])]


def test_only_before_a_deploy_is_the_expected_said(settings):
    assert [message.id for message in run_checks(tags=["renders"])] == []
