"""Parsers of the settings' values. Each raises `ValueError` with what is needed."""

import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from renders.conf.networks import read_private
from renders.conf.redis_url import CLUSTER, PLAIN, SCHEMES, SENTINEL, kind_of, read
from renders.redaction import Hidden
from renders.states import DEFAULT_WORKSPACE, Kind, takes_model

# Writes a minute, and most jobs at once (None: unknown). Source: Sume's API notes.
PLANS: dict[str, tuple[int, int | None]] = {"free": (120, None), "pro": (300, 4 + 20)}

SHORTEST_TOKEN = 16
# A workspace's name is part of URLs, keys and names of variables.
WORKSPACE = re.compile(r"[a-z0-9-]{1,40}")
SCHEDULERS = ("countdown", "sortedset", "database")
MARKS = "a password's / # ? @ are written %2F %23 %3F %40"
NEEDED = {
    CLUSTER: f"an address like redis+cluster://host:6379,host:6379 is needed; {MARKS}",
    SENTINEL: f"an address like redis+sentinel://host:26379,host:26379/name is needed; {MARKS}",
}


def seconds(value: object) -> float:
    """A finite number of seconds, zero or more."""
    try:
        number = float(str(value))
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number < 0:
        raise ValueError("a number of seconds, zero or more, is needed")
    return number


def hours(value: object) -> float:
    """A number of hours, zero or more, at most 100,000 (about eleven years)."""
    try:
        number = seconds(value)
    except ValueError:
        number = math.inf
    if number > 100_000:
        raise ValueError("a number of hours, zero or more, at most 100,000, is needed")
    return number


def days(value: object) -> int:
    """A whole number of days, zero or more, at most 36,500 (about a hundred years)."""
    with suppress(ValueError):
        if (number := count(value)) <= 36_500:
            return number
    raise ValueError("a whole number of days, zero or more, at most 36,500, is needed")


def count(value: object) -> int:
    """A whole number, zero or more."""
    try:
        number = int(str(value))
    except ValueError:
        number = -1
    if number < 0:
        raise ValueError("a whole number, zero or more, is needed")
    return number


def installation(value: object) -> str:
    """A UUID as text, or empty."""
    with suppress(ValueError):
        return str(value and UUID(str(value).strip()))
    raise ValueError("a UUID is needed, for instance what `uuidgen` prints")


def flag(value: object) -> bool:
    """True for 1, true, yes, on; False for 0, false, no, off."""
    word = str(value).strip().lower()
    if word in {"1", "true", "yes", "on"}:
        return True
    if word in {"0", "false", "no", "off"}:
        return False
    raise ValueError("1 or 0 is needed")


def text(value: object) -> str:
    """Text without surrounding white space: keys are often pasted with a line end."""
    return str(value).strip()


def plan(value: object) -> str:
    """The name of one of `PLANS`."""
    name = str(value).strip().lower()
    if name not in PLANS:
        raise ValueError(f"one of {', '.join(PLANS)} is needed")
    return name


def scheduler(value: object) -> str:
    """The name of one of `SCHEDULERS`."""
    name = str(value).strip().lower()
    if name not in SCHEDULERS:
        raise ValueError(f"one of {', '.join(SCHEDULERS)} is needed")
    return name


def secret(value: object) -> str:
    """As `text`, but hidden in its `repr`."""
    return Hidden(text(value))


def token(value: object) -> str:
    """As `secret`, long enough not to be guessed, or empty."""
    given = secret(value)
    if 0 < len(given) < SHORTEST_TOKEN:
        raise ValueError(f"a random text of {SHORTEST_TOKEN} characters or more is needed")
    return given


def redis_address(value: object) -> str:
    """As `secret`: a Redis URL can hold a password, and other parsers' errors would show it."""
    address = secret(value)
    if kind_of(address):
        try:
            read(address)
        except ValueError:
            raise ValueError(NEEDED[kind_of(address)]) from None
        return address
    with suppress(ValueError):
        parts = urlsplit(address)
        if "+" not in parts.scheme and parts.port != 0:
            return address
    raise ValueError(
        f"an address that begins with one of {', '.join((*PLAIN, *SCHEMES))} is needed; {MARKS}"
    )


def web_address(value: object) -> str:
    """As `text`: an http or https URL without a slash at the end, or empty."""
    address = text(value).rstrip("/")
    with suppress(ValueError):
        parts = urlsplit(address)
        if not address or (
            parts.scheme in {"http", "https"} and parts.hostname and not parts.query
        ):
            return address
    raise ValueError("an address like https://example.com is needed")


def hosts(value: object) -> str:
    """As `text`: a comma-separated list of host names, addresses and networks, or empty."""
    given = text(value)
    try:
        read_private(given)
    except ValueError:
        raise ValueError("a list like 10.0.0.0/8,media.internal is needed") from None
    return given


def dollars(value: object) -> float:
    """An amount of US dollars, zero or more."""
    try:
        number = seconds(value)
    except ValueError:
        number = math.inf
    if number > 1_000_000_000:
        raise ValueError("an amount of US dollars, zero or more, is needed, for instance 49.90")
    return number


def prices(value: object) -> dict[str, float]:
    """US dollars for one render, by kind or by kind and model.

    A mapping, or text like image=0.09,image:gpt-image-2=0.20.
    """
    if not isinstance(value, Mapping):
        parts = [part for part in map(str.strip, _unbraced(value).split(",")) if part]
        value = {name: amount for name, _, amount in (part.partition("=") for part in parts)}
    return {_priced(str(name)): dollars(amount) for name, amount in value.items()}


def models(value: object) -> tuple[str, ...]:
    """Names of models: a list, or comma-separated text."""
    given = value.strip().removeprefix("()").split(",") if isinstance(value, str) else value
    if not isinstance(given, list | tuple) or not all(isinstance(item, str) for item in given):
        raise ValueError("a list like sume/auto,gpt-image-2 is needed")
    return tuple(dict.fromkeys(name for item in given if (name := item.strip())))


# The fields of a workspace, each with its parser.
WORKSPACE_FIELDS: dict[str, Callable[[object], Any]] = {
    "API_KEY": secret,
    "WEBHOOK_SECRET": secret,
    "BASE_URL": text,
    "PLAN": plan,
    "WRITES_PER_MINUTE": count,
    "MAX_IN_FLIGHT": count,
    "BUDGET_USD": dollars,
    "USER_BUDGET_USD": dollars,
    "PRICES": prices,
}


def workspace_name(value: object) -> str:
    """The name of a workspace."""
    name = str(value).strip()
    if not WORKSPACE.fullmatch(name):
        raise ValueError(
            "the name of a workspace has 1 to 40 small letters, digits and hyphens (a-z, 0-9, -)"
        )
    return name


def workspaces(value: object) -> dict[str, dict[str, Any]]:
    """The workspaces beside the default one.

    Comma-separated names, or a mapping of each name to its fields.
    """
    if not isinstance(value, Mapping):
        value = {name: {} for name in map(str.strip, _unbraced(value).split(",")) if name}
    return {workspace_name(name): _workspace(str(name), given) for name, given in value.items()}


def _priced(name: str) -> str:
    """The key of a price: `kind` or `kind:model`."""
    kind, colon, model = (part.strip() for part in name.partition(":"))
    if kind not in Kind.values or (colon and not model):
        raise ValueError(
            "a list like image=0.09,image:gpt-image-2=0.20 is needed; the kinds: "
            + ", ".join(Kind.values)
        )
    if colon and not takes_model(kind):
        raise ValueError(f"kind {kind} has no models: write {kind}=0.09, without a model")
    return kind + colon + model


def _unbraced(value: object) -> str:
    """The value as text; empty for an empty mapping that was written as text."""
    return str(value).strip().removeprefix("{}")


def _workspace(name: str, given: object) -> dict[str, Any]:
    """The parsed fields of one workspace."""
    if name == DEFAULT_WORKSPACE:
        raise ValueError("the workspace default is what the app's own settings say")
    if not isinstance(given, Mapping):
        raise ValueError(f"{name}: a mapping is needed")
    if {str(field) for field in given} - WORKSPACE_FIELDS.keys():
        raise ValueError(f"{name}: all that can be said is: {', '.join(WORKSPACE_FIELDS)}")
    parsed = {}
    for field, field_value in given.items():
        try:
            parsed[field] = WORKSPACE_FIELDS[field](field_value)
        except ValueError as error:
            raise ValueError(f"{name}, {field}: {error}") from None
    return parsed
