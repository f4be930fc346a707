"""Workspaces: what the settings and the file say of each, and who finds no key."""

import json
import os
import signal

import pytest
from django.core.exceptions import ImproperlyConfigured

from project.workspaces import workspaces_in
from renders.conf import conf, workspaces
from renders.conf.secrets_file import secrets_file
from renders.exceptions import UnknownWorkspace
from renders.sume import clients
from renders.sume.clients import sume

ACME = {"API_KEY": "acme-key", "PLAN": "pro", "BUDGET_USD": "49.90"}


@pytest.fixture
def told(settings):
    def tell(**changes):
        settings.RENDERS = {"API_KEY": "own-key", "BASE_URL": "https://own.example", **changes}

    tell()
    return tell


def test_a_project_without_workspaces_has_the_one_its_settings_describe(told):
    told(PLAN="pro", BUDGET_USD=5, PRICES="image=0.09")
    own = workspaces.get("default")

    assert workspaces.names() == ["default"] and not workspaces.several()
    assert (own.api_key, own.base_url) == ("own-key", "https://own.example")
    assert (own.writes_per_minute, own.reads_per_minute, own.max_in_flight) == (300, 12_000, 24)
    assert (own.budget_usd_micros, own.prices) == (5_000_000, {"image": 90_000})


def test_a_workspace_has_what_is_said_of_it_and_else_what_the_app_uses(told):
    told(WORKSPACES={"acme": ACME, "beta": {}}, PRICES={"image": 0.09}, PLAN="pro")
    acme, beta = workspaces.get("acme"), workspaces.get("beta")

    assert workspaces.names() == ["default", "acme", "beta"] and workspaces.several()
    assert (acme.api_key, acme.max_in_flight, acme.budget_usd_micros) == (
        "acme-key",
        24,
        49_900_000,
    )
    assert (acme.base_url, acme.prices) == ("https://own.example", {"image": 90_000})
    # Neither the key nor the plan of another.
    assert (beta.api_key, beta.writes_per_minute) == ("", 120)
    assert workspaces.every() == [workspaces.get(name) for name in workspaces.names()]


def test_one_that_is_not_configured_has_no_key_at_all(told):
    assert workspaces.find("acme") is None
    for ask in (workspaces.get, sume):
        with pytest.raises(UnknownWorkspace, match="acme is not configured") as caught:
            ask("acme")
        assert (caught.value.code, caught.value.until) == ("unknown_workspace", None)


def test_each_has_a_client_of_its_own_until_its_key_changes(told):
    told(WORKSPACES={"acme": ACME})
    own, acme = sume("default"), sume("acme")

    assert own is not acme and sume("acme") is acme
    assert (own._api_key, acme._api_key) == ("own-key", "acme-key")
    told(WORKSPACES={"acme": {**ACME, "API_KEY": "new-key"}})
    assert sume("acme")._api_key == "new-key"
    assert sume("default") is own


def test_the_file_goes_before_the_settings_and_can_name_others(told, tmp_path):
    path = tmp_path / "secrets.json"
    path.write_text(
        json.dumps({"default": {"api_key": "file-key"}, "zeta": {"api_key": "zeta-key"}})
    )
    told(WORKSPACES={"acme": ACME}, SECRETS_FILE=str(path))

    assert workspaces.names() == ["default", "acme", "zeta"]
    assert workspaces.every() == [workspaces.get(name) for name in workspaces.names()]
    keys = [workspaces.get(name).api_key for name in workspaces.names()]
    assert keys == ["file-key", "acme-key", "zeta-key"]


def test_nothing_that_is_shown_of_one_is_secret(told):
    told(WORKSPACES={"acme": {"API_KEY": "canary-key", "WEBHOOK_SECRET": "canary-a,canary-b"}})
    acme = workspaces.get("acme")

    assert acme.webhook_secrets == ("canary-a", "canary-b")
    assert "canary" not in repr((acme, conf.WORKSPACES, acme.key_mark))
    assert acme.key_mark != workspaces.get("default").key_mark


@pytest.mark.parametrize(
    "given",
    [
        {"Acme": {}},
        {"a_b": {}},
        {"": {}},
        {"a" * 41: {}},
        {"default": {}},
        {"acme": "sk-canary"},
        {"acme": {"sk-canary": 1}},
        {"acme": {"PLAN": "sk-canary"}},
        {"acme": {"BUDGET_USD": "sk-canary"}},
        {"acme": {"PRICES": "sk-canary"}},
        {"acme": {"PRICES": {"sk-canary": 1}}},
        "acme,sk canary",
    ],
    ids=repr,
)
def test_what_cannot_be_read_is_told_without_its_value(told, given):
    told(WORKSPACES=given)

    with pytest.raises(ImproperlyConfigured, match="WORKSPACES") as caught:
        workspaces.names()
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("given", ["image=0.09, video=1.2", {"image": 0.09, "video": "1.20"}])
def test_prices_are_read(told, given):
    told(PRICES=given)

    assert workspaces.get("default").prices == {"image": 90_000, "video": 1_200_000}


@pytest.mark.parametrize(
    "given",
    [
        "image=0.09, image : gpt-image-2=0.2, video:a:b=1",
        {"image": 0.09, "image:gpt-image-2": "0.20", "video:a:b": 1},
    ],
)
def test_prices_of_single_models_are_read(told, given):
    told(PRICES=given)

    assert workspaces.get("default").prices == {
        "image": 90_000,
        "image:gpt-image-2": 200_000,
        "video:a:b": 1_000_000,
    }


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("song:a=1", "the kinds: image, video"),
        ("image:=1", "a list like"),
        ("avatar:sume/auto=1", "kind avatar has no models"),
        ("avatar_video:a=1", "kind avatar_video has no models"),
        ("image:a", "an amount of US dollars"),
    ],
)
def test_a_price_that_cannot_be_read_says_what_is_needed(told, given, words):
    told(PRICES=given)

    with pytest.raises(ImproperlyConfigured, match=words):
        workspaces.get("default")


@pytest.mark.parametrize(
    "given", [" sume/auto, gpt-image-2,,sume/auto", ["sume/auto", "gpt-image-2 "]]
)
def test_models_are_read(told, given):
    told(MODELS=given)

    assert conf.MODELS == ("sume/auto", "gpt-image-2")


@pytest.mark.parametrize("given", [7, {"a": 1}, ["a", 7], None])
def test_models_that_cannot_be_read_say_what_is_needed(told, given):
    told(MODELS=given)

    with pytest.raises(ImproperlyConfigured, match="a list like sume/auto"):
        _ = conf.MODELS


def test_the_environment_names_workspaces_and_what_holds_for_each():
    told = workspaces_in(
        {
            "RENDERS_WORKSPACES": " acme,beta-2 ",
            "SUME_API_KEY": "not this one",
            "SUME_API_KEY_ACME": "acme-key",
            "SUME_API_KEY_BETA_2": "beta-key",
            "RENDERS_PLAN_BETA_2": "pro",
            "RENDERS_BUDGET_USD_BETA_2": " ",
            "RENDERS_PLAN_GAMMA": "pro",
        }
    )

    assert told == {
        "acme": {"API_KEY": "acme-key"},
        "beta-2": {"API_KEY": "beta-key", "PLAN": "pro"},
    }
    assert "key" not in repr(list(told["acme"].values()))
    assert workspaces_in(os.environ) == {}


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_finds_its_keys_though_a_thread_looks_meanwhile(told, tmp_path):
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"default": {"api_key": "key-of-the-file"}}))
    told(SECRETS_FILE=str(path))
    # As another thread would hold them just now.
    with secrets_file(str(path))._lock, clients._lock:
        child = os.fork()
        if child == 0:
            signal.alarm(5)  # ends it where it waits for one of them
            os._exit(0 if sume("default")._api_key == "key-of-the-file" else 1)

    assert os.waitpid(child, 0)[1] == 0
