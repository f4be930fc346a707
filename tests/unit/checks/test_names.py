"""Settings that nobody reads."""

import pytest
from django.core.checks import Warning

from renders.checks import check_settings

from .conftest import GOOD


def found():
    return check_settings(None)


@pytest.mark.parametrize("where", ["settings", "environment", "both"])
def test_a_misspelt_setting_is_named_with_what_was_meant(settings, monkeypatch, where):
    if where != "environment":
        settings.RENDERS = {**GOOD, "SWEEP_SECOND": "canary"}
    if where != "settings":
        monkeypatch.setenv("RENDERS_SWEEP_SECOND", "canary")

    assert found() == [
        Warning(
            'There is no setting RENDERS["SWEEP_SECOND"] (RENDERS_SWEEP_SECOND in the '
            "environment): nobody reads it.",
            hint="Did you mean SWEEP_SECONDS?",
            id="renders.W036",
        )
    ]


def test_a_lower_case_key_is_no_setting(settings):
    settings.RENDERS = {**GOOD, "plan": "pro"}

    assert [message.hint for message in found()] == ["Did you mean PLAN?"]


def test_what_is_like_no_setting_shall_go(settings):
    settings.RENDERS = {**GOOD, "XYZ": 1}

    assert [message.hint for message in found()] == ["Take it out."]


def test_a_misspelt_name_shows_beside_a_value_that_cannot_be_read(settings):
    settings.RENDERS = {**GOOD, "PLAN": "gold", "PLANN": "pro"}

    assert [message.id for message in found()] == ["renders.E001", "renders.W036"]
    assert "one of free, pro is needed" in found()[0].msg


@pytest.mark.parametrize(
    "name",
    [
        "SERVICE_HOST",
        "SERVICE_PORT",
        "SERVICE_PORT_HTTP",
        "PORT",
        "PORT_8000_TCP_ADDR",
        "TOKEN",
        "WEB_PORT_8000_TCP",
        "WEB_SERVICE_HOST",
    ],
)
def test_what_an_orchestrator_sets_for_a_service_called_renders_is_not_ours(
    settings, monkeypatch, name
):
    monkeypatch.setenv(f"RENDERS_{name}", "tcp://10.0.0.1:8000")
    assert found() == []

    settings.RENDERS = {**GOOD, name: "tcp://10.0.0.1:8000"}
    assert found() == []


@pytest.mark.parametrize("blank", ["", "  "])
def test_an_empty_name_is_not_set(settings, monkeypatch, blank):
    monkeypatch.setenv("RENDERS_PALN", blank)

    assert found() == []


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("API_KEY", "SUME_API_KEY"),
        ("BASE_URL", "SUME_BASE_URL"),
        ("REDIS_URL", "REDIS_URL"),
        ("WEBHOOK_SECRET", "SUME_WEBHOOK_SECRET"),
    ],
)
def test_a_name_that_another_overrides_is_pointed_out(settings, monkeypatch, name, right):
    monkeypatch.setenv(f"RENDERS_{name}", "canary")

    assert found() == [
        Warning(
            f"RENDERS_{name} in the environment is not used.",
            hint=f"Set {right} instead.",
            id="renders.W037",
        )
    ]


def test_a_project_of_ones_own_may_read_that_name(settings, monkeypatch):
    monkeypatch.setenv("RENDERS_API_KEY", f" {GOOD['API_KEY']} ")

    assert found() == []


def test_what_is_said_of_a_workspace_is_read(settings, monkeypatch):
    for name, value in {"PLAN_BETA_2": " pro", "BUDGET_USD_BETA_2": "200"}.items():
        monkeypatch.setenv(f"RENDERS_{name}", value)
    monkeypatch.setenv("RENDERS_PLAN_OTHER", "pro")
    kept = {"API_KEY": "sk-beta-0123456789", "PLAN": " pro", "BUDGET_USD": "200"}
    # As this project's settings take them: each RENDERS_<NAME>, the workspaces' own too.
    given = {"PLAN_BETA_2": " pro", "BUDGET_USD_BETA_2": "200", "PLAN_OTHER": "pro"}
    settings.RENDERS = {**GOOD, **given, "WORKSPACES": {"beta-2": kept}}

    [unread] = [message for message in found() if message.id == "renders.W036"]
    assert "PLAN_OTHER" in unread.msg
    assert unread.hint == "If it is a workspace's, name that in RENDERS_WORKSPACES."
