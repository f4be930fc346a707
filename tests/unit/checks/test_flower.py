"""Flower, as far as the environment tells."""

import pytest
from django.core.checks import Error, Warning

from renders.checks import check_settings

from .conftest import GOOD, turn_on_debug

EVERYWHERE = "0.0.0.0"  # noqa: S104  (nothing listens there)


def found():
    return check_settings(None)


@pytest.mark.parametrize("word", ["true", "1", "True"])
def test_an_open_api_is_an_error(settings, monkeypatch, word):
    monkeypatch.setenv("FLOWER_UNAUTHENTICATED_API", word)

    assert found() == [
        Error(
            "FLOWER_UNAUTHENTICATED_API opens Flower's API: anybody could have tasks run.",
            hint="Take it out of the environment, and set FLOWER_BASIC_AUTH.",
            id="renders.E056",
        )
    ]

    turn_on_debug(settings)
    assert found() == []


@pytest.mark.parametrize("word", ["", "false", "0"])
def test_a_closed_one_is_fine(monkeypatch, word):
    monkeypatch.setenv("FLOWER_UNAUTHENTICATED_API", word)

    assert found() == []


@pytest.mark.parametrize("address", [EVERYWHERE, "::", "10.0.0.1", "flower"])
def test_an_open_address_without_a_password_is_an_error(monkeypatch, address):
    monkeypatch.setenv("FLOWER_ADDRESS", address)

    assert found() == [
        Error(
            "FLOWER_ADDRESS opens Flower to others, and no password is set.",
            hint="Set FLOWER_BASIC_AUTH to name:password, or take FLOWER_ADDRESS out.",
            id="renders.E057",
        )
    ]


@pytest.mark.parametrize("how", ["FLOWER_BASIC_AUTH", "FLOWER_AUTH"])
def test_an_open_address_with_a_login_is_fine(monkeypatch, how):
    monkeypatch.setenv("FLOWER_ADDRESS", EVERYWHERE)
    monkeypatch.setenv(how, "ann@example.com:correct-horse")

    assert found() == []


def test_this_machine_alone_is_fine(monkeypatch):
    monkeypatch.setenv("FLOWER_ADDRESS", "127.0.0.1")

    assert found() == []


@pytest.mark.parametrize(
    "pairs",
    ["admin:canary", "name:password", "a:correct-horse,canary", "canarycanary:canarycanary"],
)
def test_a_password_that_can_be_guessed_is_a_warning_that_does_not_show_it(monkeypatch, pairs):
    monkeypatch.setenv("FLOWER_BASIC_AUTH", pairs)

    assert found() == [
        Warning(
            "A password in FLOWER_BASIC_AUTH can be guessed.",
            hint="Take one of 8 characters or more, unlike the name; "
            "commas stand between two pairs only.",
            id="renders.W058",
        )
    ]


def test_a_password_in_the_clear_is_a_warning(settings):
    settings.RENDERS = {**GOOD, "FLOWER_URL": "http://flower.example.com"}

    assert found() == [
        Warning(
            "FLOWER_URL is not https: Flower's password crosses the internet in the clear.",
            hint="Put Flower behind a proxy with https, and set RENDERS_FLOWER_URL to that.",
            id="renders.W059",
        )
    ]


@pytest.mark.parametrize("url", ["https://flower.example.com", "http://127.0.0.1:5555"])
def test_a_safe_way_to_flower_is_fine(settings, url):
    settings.RENDERS = {**GOOD, "FLOWER_URL": url}

    assert found() == []
