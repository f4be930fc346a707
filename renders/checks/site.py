"""Checks of the web site: its secret key, host names, debug mode, time zones and database."""

from collections.abc import Iterator

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.http.request import validate_host
from django.utils.encoding import force_str

from renders.conf import conf, destination, workspaces
from renders.conf.destination import Billing
from renders.conf.networks import host_of, is_inner

SHORTEST_KEY, FEWEST_CHARACTERS = 32, 10
# Parts of keys in examples, and in the keys that `startproject` makes.
EXAMPLES = ("insecure", "change-me", "changeme", "change_me", "example", "secret-key", "secret_key")


def faults() -> Iterator[CheckMessage]:
    """Faults of the site's settings. Debug mode allows most of them."""
    yield from _key_faults()
    yield from _debug_faults() if settings.DEBUG else _host_faults()
    if not settings.USE_TZ:
        yield Error(
            "USE_TZ is off: times without a zone shift what is due, by an hour twice a year.",
            hint="Set USE_TZ = True in the settings; TIME_ZONE can be any.",
            id="renders.E033",
        )
    if not settings.DEBUG and connection.vendor == "sqlite":
        yield Warning(
            "The database is SQLite: for one machine and a few users.",
            hint="Set DATABASE_URL to a PostgreSQL, for instance "
            "postgres://user:password@host/name.",
            id="renders.W034",
        )


def _key_faults() -> Iterator[CheckMessage]:
    key = _secret_key()
    if not key:
        yield Error(
            "No secret key is set.",
            hint="Set DJANGO_SECRET_KEY to a long random text, "
            "or DJANGO_DEBUG=1 on a developer's machine.",
            id="renders.E002",
        )
    if settings.DEBUG:
        return
    # Fallback keys are accepted too.
    if any(_can_be_guessed(text) for text in [key, *settings.SECRET_KEY_FALLBACKS] if text):
        yield Error(
            "The secret key can be guessed: whoever does so is logged in as anybody.",
            hint="Set DJANGO_SECRET_KEY to what this prints: python -c "
            "'import secrets; print(secrets.token_urlsafe(50))'. It logs everybody out.",
            id="renders.E027",
        )


def _can_be_guessed(given: str | bytes) -> bool:
    key = force_str(given, errors="replace")  # Django takes bytes as well
    if len(key) < SHORTEST_KEY or len(set(key)) < FEWEST_CHARACTERS:
        return True
    return any(word in key.lower() for word in EXAMPLES)


def _host_faults() -> Iterator[CheckMessage]:
    names = settings.ALLOWED_HOSTS
    if not names:
        yield Error(
            "ALLOWED_HOSTS is empty: every page would be answered with 400.",
            hint="Set DJANGO_ALLOWED_HOSTS to the names of the site, with commas between.",
            id="renders.E028",
        )
    elif "*" in names:
        yield Error(
            "ALLOWED_HOSTS takes any name: a forged one would get into links and mails.",
            hint="Set DJANGO_ALLOWED_HOSTS to the names of the site. A monitor that asks an "
            "address can send one of them as Host.",
            id="renders.E029",
        )
    elif conf.PUBLIC_URL and not validate_host(host_of(conf.PUBLIC_URL), names):
        yield Warning(
            "ALLOWED_HOSTS does not hold the host of PUBLIC_URL: "
            "links there, and Sume's webhooks, would be answered with 400.",
            hint="Add it to DJANGO_ALLOWED_HOSTS, or correct RENDERS_PUBLIC_URL.",
            id="renders.W032",
        )


def _debug_faults() -> Iterator[CheckMessage]:
    """Debug mode on a public site. A public name alone is only a warning: it may be a tunnel."""
    if not _has_public_name():
        return
    own = destination.of(workspaces.get(workspaces.DEFAULT))
    if own.has_key and own.billing is not Billing.STAND_IN and _database_is_elsewhere():
        yield Error(
            "DEBUG is on in production: a public name, Sume's key and a database elsewhere. "
            "Every error would show code and settings to anybody.",
            hint="Set DJANGO_DEBUG=0.",
            id="renders.E030",
        )
    else:
        yield Warning(
            "DEBUG is on, and the site has a public name: "
            "every error shows code and settings to anybody.",
            hint="Set DJANGO_DEBUG=0 unless this is a developer's machine.",
            id="renders.W031",
        )


def _has_public_name() -> bool:
    names = [name.lstrip(".") for name in settings.ALLOWED_HOSTS]
    return any(not is_inner(name) for name in [*names, host_of(conf.PUBLIC_URL)] if name != "*")


def _database_is_elsewhere() -> bool:
    host = str(connection.settings_dict.get("HOST") or "")
    return bool(host) and not host.startswith("/") and host not in {"localhost", "127.0.0.1", "::1"}


def _secret_key() -> str:
    try:
        return settings.SECRET_KEY
    except ImproperlyConfigured:
        return ""
