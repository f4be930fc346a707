"""What `manage.py check` says about workspaces."""

import json

import pytest

from renders.checks import check_settings

GOOD = {"API_KEY": "own-key", "WORKSPACES": {"acme": {"API_KEY": "acme-key"}}}


def found():
    return [message.id for message in check_settings(None)]


def test_workspaces_with_keys_of_their_own_are_well(settings):
    settings.RENDERS = GOOD

    assert found() == []


@pytest.mark.parametrize(
    ("acme", "own", "ids"),
    [
        ({}, {}, ["renders.W060"]),
        ({"API_KEY": "a", "BASE_URL": "api.sume.com"}, {}, ["renders.E061"]),
        ({"API_KEY": "a", "BUDGET_USD": 5}, {}, ["renders.E062"]),
        ({"API_KEY": "a", "BUDGET_USD": 5}, {"PRICES": "image=0.09,avatar=2"}, ["renders.W074"]),
        ({"API_KEY": "a", "BUDGET_USD": 5}, {"PRICES": "image:sume/auto=0.09,image=1"}, []),
        ({"API_KEY": "a", "BUDGET_USD": 5}, {"PRICES": "image=0.09", "MODELS": "a"}, []),
        ({"API_KEY": "a", "BUDGET_USD": 5}, {"PRICES": "avatar=2"}, []),
        ({"API_KEY": "a"}, {"PRICES": "image=0.09"}, []),
        ({"API_KEY": "a"}, {"USER_BUDGET_USD": 5}, ["renders.E062"]),
        ({"API_KEY": "a", "USER_BUDGET_USD": 5}, {}, ["renders.E062"]),
        ({"API_KEY": "a", "USER_BUDGET_USD": 5}, {"PRICES": "image=1"}, ["renders.W074"]),
        ({"API_KEY": "a", "PRICES": "image:b=1"}, {"MODELS": "a"}, ["renders.W075"]),
        ({"API_KEY": "own-key"}, {}, ["renders.W063"]),
        ({"API_KEY": "a"}, {"WORKSPACE_FOR": "tests.nothing"}, ["renders.E066"]),
        (
            {"API_KEY": "a"},
            {"WORKSPACE_FOR": "renders.services.workspace_choice.PERMISSION"},
            ["renders.E066"],
        ),
        ({"API_KEY": "a"}, {"WORKSPACE_FOR": "renders.services.workspace_choice.choose"}, []),
        ({"PLAN": "gold"}, {}, ["renders.E001"]),
    ],
)
def test_what_is_wrong_is_told(settings, acme, own, ids):
    settings.RENDERS = {**GOOD, **own, "WORKSPACES": {"acme": acme}}

    assert found() == ids
    assert "own-key" not in repr(check_settings(None))


def test_the_secrets_file_is_looked_at(settings, tmp_path):
    path = tmp_path / "secrets.json"
    settings.RENDERS = {**GOOD, "SECRETS_FILE": str(path)}
    assert found() == ["renders.E064"]

    path.write_text(json.dumps({"acme": {"api_key": "another"}}))
    path.chmod(0o644)
    assert found() == ["renders.W065"]
    path.chmod(0o640)
    assert found() == []


def test_a_price_that_keeps_no_budget_says_what_to_write(settings):
    settings.RENDERS = {**GOOD, "BUDGET_USD": 5, "PRICES": "image=0.09,video:sume/auto=1,video=2"}

    [message] = check_settings(None)
    assert message.msg.endswith("new renders of these kinds are refused: image.")
    assert "image:sume/auto=0.09" in message.hint and "RENDERS_MODELS" in message.hint
