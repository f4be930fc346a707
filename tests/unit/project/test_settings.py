"""The project's settings outside debug mode: over https, with files of its own."""

import os
import runpy
from pathlib import Path

import pytest
from django.conf import settings as current
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

FILE = str(Path(current.BASE_DIR, "project/settings.py"))
KEY = "nPzX4vYqk8LrT2wBd7MfHs9JcVgA3eUxQ5yKnPzX4vYqk8LrT2wBd7Mf"
SERVER = {
    "DJANGO_SECRET_KEY": KEY,
    "DJANGO_ALLOWED_HOSTS": "boats.example.com",
    "DATABASE_URL": "postgres://ann@db.example.com/renders",
    "SUME_API_KEY": "sk-of-a-test",
}
HTTPS = (
    "SECURE_SSL_REDIRECT",
    "SECURE_REDIRECT_EXEMPT",
    "SECURE_PROXY_SSL_HEADER",
    "SECURE_HSTS_SECONDS",
    "SECURE_HSTS_INCLUDE_SUBDOMAINS",
    "SECURE_HSTS_PRELOAD",
    "SESSION_COOKIE_SECURE",
    "CSRF_COOKIE_SECURE",
    "CSRF_TRUSTED_ORIGINS",
    "ALLOWED_HOSTS",
    "SECRET_KEY",
    "SILENCED_SYSTEM_CHECKS",
)


@pytest.fixture
def read(monkeypatch, tmp_path):
    """The settings with this environment."""

    def read(**environment):
        monkeypatch.setattr(os, "environ", {"DJANGO_STATE_DIR": str(tmp_path)} | environment)
        return runpy.run_path(FILE)

    return read


@pytest.fixture
def use(read, settings):
    """Have the site run with the settings of this environment, as far as https goes."""

    def use(**environment):
        found = read(**SERVER, **environment)
        for name in HTTPS:
            if name in found:
                setattr(settings, name, found[name])
        return Client(headers={"Host": "boats.example.com"})

    return use


def test_outside_debug_everything_goes_over_https(use):
    client = use()

    answer = client.get("/renders/?page=2")
    assert answer.status_code == 301
    assert answer.headers["Location"] == "https://boats.example.com/renders/?page=2"
    assert "Strict-Transport-Security" not in answer.headers
    safe = client.get("/accounts/login/", secure=True)
    assert safe.headers["Strict-Transport-Security"] == "max-age=3600"
    assert safe.cookies["csrftoken"]["secure"]


@pytest.mark.django_db
def test_a_monitor_on_the_inside_may_ask_by_http(use):
    assert use().get("/healthz").status_code == 200


@pytest.mark.parametrize("path", ["/x/healthz", "/metricsx"])
def test_what_only_looks_like_a_monitors_address_may_not(use, path):
    assert use().get(path).status_code == 301


def test_a_proxys_word_counts_only_if_the_proxy_is_named(use):
    said = {"X-Forwarded-Proto": "https"}

    assert use().get("/accounts/login/", headers=said).status_code == 301
    client = use(DJANGO_PROXY_SSL_HEADER="X-Forwarded-Proto")
    assert client.get("/accounts/login/", headers=said).status_code == 200
    assert client.get("/accounts/login/").status_code == 301


@pytest.mark.parametrize("name", ["x-forwarded-proto", "HTTP_X_FORWARDED_PROTO"])
def test_the_header_may_be_written_as_django_does(read, name):
    found = read(**SERVER, DJANGO_PROXY_SSL_HEADER=name)

    assert found["SECURE_PROXY_SSL_HEADER"] == ("HTTP_X_FORWARDED_PROTO", "https")


def test_an_empty_secret_key_is_none_and_a_developer_needs_none(read):
    assert read(DJANGO_SECRET_KEY="", DJANGO_DEBUG="1")["SECRET_KEY"]
    assert read(DJANGO_SECRET_KEY="")["SECRET_KEY"] == ""


def test_a_proxy_may_do_the_sending_on(use):
    assert use(DJANGO_SSL_REDIRECT="0").get("/accounts/login/").status_code == 200


def test_all_of_it_can_be_set(read):
    found = read(
        **SERVER,
        DJANGO_SECURE_COOKIES="0",
        DJANGO_HSTS_SECONDS="31536000",
        DJANGO_HSTS_SUBDOMAINS="1",
        DJANGO_HSTS_PRELOAD="1",
        DJANGO_CSRF_TRUSTED_ORIGINS="https://a.example, https://b.example",
        DJANGO_SECRET_KEY_FALLBACKS="old",
        DJANGO_SILENCED_SYSTEM_CHECKS="renders.W034",
        DJANGO_STATIC_ROOT="/srv/static",
    )

    assert not (found["SESSION_COOKIE_SECURE"] or found["CSRF_COOKIE_SECURE"])
    assert found["SECURE_HSTS_SECONDS"] == 31536000
    assert found["SECURE_HSTS_INCLUDE_SUBDOMAINS"] and found["SECURE_HSTS_PRELOAD"]
    assert found["CSRF_TRUSTED_ORIGINS"] == ["https://a.example", "https://b.example"]
    assert found["SECRET_KEY_FALLBACKS"] == ["old"]
    assert found["SILENCED_SYSTEM_CHECKS"] == ["renders.W034"]
    assert found["STATIC_ROOT"] == Path("/srv/static")


def test_debug_mode_needs_no_https_and_serves_files_as_they_are(read):
    found = read(DJANGO_DEBUG="1")

    assert [name for name in HTTPS if name.endswith(("SECURE", "REDIRECT")) and found[name]] == []
    assert found["SECURE_HSTS_SECONDS"] == 0
    assert not any("whitenoise" in name for name in found["MIDDLEWARE"])
    assert "whitenoise" not in str(found["STORAGES"])


def test_a_wrong_word_does_not_open_the_site(read):
    with pytest.raises(ImproperlyConfigured, match="DJANGO_SSL_REDIRECT in the environment"):
        read(**SERVER, DJANGO_SSL_REDIRECT="ja")


@pytest.mark.django_db  # whose connections are looked after when the answer is closed
def test_static_files_come_without_another_server_and_before_a_login(read, settings, tmp_path):
    (tmp_path / "static").mkdir()
    (tmp_path / "static/a.css").write_text("b {}")
    found = read(**SERVER, DJANGO_STATIC_ROOT=str(tmp_path / "static"))
    settings.MIDDLEWARE, settings.STATIC_ROOT = found["MIDDLEWARE"], found["STATIC_ROOT"]

    answer = Client().get("/static/a.css")

    assert (answer.status_code, b"".join(answer)) == (200, b"b {}")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    answer.close()


def test_djangos_own_checks_for_a_server_are_content(use, settings):
    use(DJANGO_HSTS_SUBDOMAINS="1", DJANGO_HSTS_PRELOAD="1")

    found = run_checks(tags=["security"], include_deployment_checks=True)

    assert found == []


def test_they_are_not_where_https_is_off(use, settings):
    use(DJANGO_SSL_REDIRECT="0", DJANGO_SECURE_COOKIES="0", DJANGO_HSTS_SECONDS="0")

    found = run_checks(tags=["security"], include_deployment_checks=True)

    assert {message.id for message in found} == {
        f"security.W{n}" for n in ("004", "008", "012", "016")
    }
