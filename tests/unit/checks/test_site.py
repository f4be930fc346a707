"""What must hold for the web site."""

import secrets
from types import SimpleNamespace

import pytest
from django.core.checks import Error, Warning

from renders.checks import check_settings

from .conftest import GOOD, KEY, turn_on_debug


def found():
    return check_settings(None)


def ids():
    return [message.id for message in found()]


@pytest.mark.parametrize(
    "key",
    [
        "short",
        KEY[:31],
        "abcdabcd" * 8,
        "django-insecure-" + KEY,
        "Change-Me-" + KEY,
        "insecure-for-debug-only-insecure-for-debug-only",
    ],
)
def test_a_key_that_can_be_guessed_is_an_error(settings, key):
    settings.SECRET_KEY = key

    assert found() == [
        Error(
            "The secret key can be guessed: whoever does so is logged in as anybody.",
            hint="Set DJANGO_SECRET_KEY to what this prints: python -c "
            "'import secrets; print(secrets.token_urlsafe(50))'. It logs everybody out.",
            id="renders.E027",
        )
    ]

    turn_on_debug(settings)
    assert found() == []


@pytest.mark.parametrize("key", ["", KEY])
def test_an_old_key_that_can_be_guessed_is_an_error_too(settings, key):
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = key, [KEY[::-1], "short"]

    assert ids() == [*([] if key else ["renders.E002"]), "renders.E027"]


def test_a_key_can_be_of_bytes(settings):
    settings.SECRET_KEY = KEY.encode()
    assert found() == []

    settings.SECRET_KEY = b"short"
    assert ids() == ["renders.E027"]


def test_what_the_hint_makes_is_good_enough(settings):
    settings.SECRET_KEY = secrets.token_urlsafe(50)

    assert found() == []


def test_a_site_without_a_name_is_an_error(settings):
    settings.ALLOWED_HOSTS = []

    assert found() == [
        Error(
            "ALLOWED_HOSTS is empty: every page would be answered with 400.",
            hint="Set DJANGO_ALLOWED_HOSTS to the names of the site, with commas between.",
            id="renders.E028",
        )
    ]

    turn_on_debug(settings)
    assert found() == []


def test_a_site_of_any_name_is_an_error(settings):
    settings.ALLOWED_HOSTS = ["a.example", "*"]

    assert found() == [
        Error(
            "ALLOWED_HOSTS takes any name: a forged one would get into links and mails.",
            hint="Set DJANGO_ALLOWED_HOSTS to the names of the site. A monitor that asks an "
            "address can send one of them as Host.",
            id="renders.E029",
        )
    ]

    turn_on_debug(settings)
    assert found() == []


@pytest.mark.parametrize(
    ("hosts", "fits"),
    [
        (["a.example"], True),
        ([".example"], True),
        (["b.example", "A.example"], True),
        (["b.example"], False),
        (["example"], False),
    ],
)
def test_the_public_address_is_one_of_the_sites_names(settings, hosts, fits):
    settings.ALLOWED_HOSTS = hosts
    settings.RENDERS = {**GOOD, "PUBLIC_URL": "https://a.example:8443/sub"}

    assert [message for message in found() if message.id != "renders.I022"] == (
        []
        if fits
        else [
            Warning(
                "ALLOWED_HOSTS does not hold the host of PUBLIC_URL: "
                "links there, and Sume's webhooks, would be answered with 400.",
                hint="Add it to DJANGO_ALLOWED_HOSTS, or correct RENDERS_PUBLIC_URL.",
                id="renders.W032",
            )
        ]
    )


def test_debug_in_production_is_an_error(settings):
    settings.DEBUG = True
    settings.ALLOWED_HOSTS = ["renders.example.com"]

    assert [message for message in found() if message.id != "renders.W068"] == [
        Error(
            "DEBUG is on in production: a public name, Sume's key and a database elsewhere. "
            "Every error would show code and settings to anybody.",
            hint="Set DJANGO_DEBUG=0.",
            id="renders.E030",
        )
    ]


@pytest.mark.parametrize("missing", ["key", "sume", "database"])
@pytest.mark.parametrize("named_by", ["ALLOWED_HOSTS", "PUBLIC_URL"])
def test_a_developer_behind_a_tunnel_is_only_warned(settings, monkeypatch, missing, named_by):
    settings.DEBUG = True
    settings.RENDERS = dict(GOOD)
    if named_by == "PUBLIC_URL":
        settings.RENDERS["PUBLIC_URL"] = "https://boats.ngrok.app"
    else:
        settings.ALLOWED_HOSTS = [".ngrok.app"]
    if missing == "key":
        settings.RENDERS["API_KEY"] = ""
    elif missing == "sume":
        settings.RENDERS["BASE_URL"] = "http://127.0.0.1:8999"
    else:
        here = SimpleNamespace(vendor="postgresql", settings_dict={"HOST": "127.0.0.1"})
        monkeypatch.setattr("renders.checks.site.connection", here)

    assert [message for message in found() if message.id[8:] not in {"W001", "I022", "W068"}] == [
        Warning(
            "DEBUG is on, and the site has a public name: "
            "every error shows code and settings to anybody.",
            hint="Set DJANGO_DEBUG=0 unless this is a developer's machine.",
            id="renders.W031",
        )
    ]


@pytest.mark.parametrize("hosts", [[], ["localhost", "127.0.0.1"], ["*"], ["10.0.0.7", "box"]])
def test_debug_on_ones_own_machine_is_quiet(settings, hosts):
    turn_on_debug(settings)
    settings.ALLOWED_HOSTS = hosts

    assert found() == []


def test_times_without_a_zone_are_an_error(settings):
    settings.USE_TZ = False

    assert found() == [
        Error(
            "USE_TZ is off: times without a zone shift what is due, by an hour twice a year.",
            hint="Set USE_TZ = True in the settings; TIME_ZONE can be any.",
            id="renders.E033",
        )
    ]


def test_sqlite_outside_debug_is_a_warning(settings, monkeypatch):
    sqlite = SimpleNamespace(vendor="sqlite", settings_dict={"HOST": ""})
    monkeypatch.setattr("renders.checks.site.connection", sqlite)

    assert found() == [
        Warning(
            "The database is SQLite: for one machine and a few users.",
            hint="Set DATABASE_URL to a PostgreSQL, for instance "
            "postgres://user:password@host/name.",
            id="renders.W034",
        )
    ]

    turn_on_debug(settings)
    assert found() == []
