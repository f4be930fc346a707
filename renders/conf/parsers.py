"""How the value of a setting is read. Each raises `ValueError` that says what is needed."""

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

# Writes a minute, and jobs at once (None: not known). Source: Sume's API notes.
PLANS: dict[str, tuple[int, int | None]] = {"free": (120, None), "pro": (300, 4 + 20)}

SHORTEST_TOKEN = 16
# What a workspace may be called: its name stands in addresses, keys and names of variables.
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
    """A number of hours, zero or more, up to some ten years."""
    try:
        number = seconds(value)
    except ValueError:
        number = math.inf
    if number > 100_000:
        raise ValueError("a number of hours, zero or more, at most 100,000, is needed")
    return number


def days(value: object) -> int:
    """A whole number of days, zero or more, up to some hundred years."""
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
    """A UUID as text; nothing for none."""
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
    """Text without white space around it (keys are often pasted with a line end)."""
    return str(value).strip()


def plan(value: object) -> str:
    """A plan of Sume's that is known here."""
    name = str(value).strip().lower()
    if name not in PLANS:
        raise ValueError(f"one of {', '.join(PLANS)} is needed")
    return name


def scheduler(value: object) -> str:
    """One of the ways to have what is due done."""
    name = str(value).strip().lower()
    if name not in SCHEDULERS:
        raise ValueError(f"one of {', '.join(SCHEDULERS)} is needed")
    return name


def secret(value: object) -> str:
    """As `text`, and not shown by its `repr`."""
    return Hidden(text(value))


def token(value: object) -> str:
    """As `secret`, and too long to be guessed; or nothing."""
    given = secret(value)
    if 0 < len(given) < SHORTEST_TOKEN:
        raise ValueError(f"a random text of {SHORTEST_TOKEN} characters or more is needed")
    return given


def redis_address(value: object) -> str:
    """As `secret`, for it can hold a password; an error of whoever parses it would show a part."""
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
    """As `text`, an address of http or https without a slash at its end, or nothing."""
    address = text(value).rstrip("/")
    with suppress(ValueError):
        parts = urlsplit(address)
        if not address or (
            parts.scheme in {"http", "https"} and parts.hostname and not parts.query
        ):
            return address
    raise ValueError("an address like https://example.com is needed")


def hosts(value: object) -> str:
    """As `text`, names of hosts, addresses and networks with commas between, or nothing."""
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
    """US dollars for one render of each kind, or of one model of a kind: a mapping, or text like
    image=0.09,image:gpt-image-2=0.20.
    """
    if not isinstance(value, Mapping):
        parts = [part for part in map(str.strip, _unbraced(value).split(",")) if part]
        value = {name: amount for name, _, amount in (one.partition("=") for one in parts)}
    return {_priced(str(name)): dollars(amount) for name, amount in value.items()}


def _priced(name: str) -> str:
    """What a price is for: `kind`, or `kind:model`."""
    kind, colon, model = (part.strip() for part in name.partition(":"))
    if kind not in Kind.values or (colon and not model):
        raise ValueError(
            "a list like image=0.09,image:gpt-image-2=0.20 is needed; the kinds: "
            + ", ".join(Kind.values)
        )
    if colon and not takes_model(kind):
        raise ValueError(f"kind {kind} has no models: write {kind}=0.09, without a model")
    return kind + colon + model


def models(value: object) -> tuple[str, ...]:
    """Names of models: a list, or text with commas between."""
    given = value.strip().removeprefix("()").split(",") if isinstance(value, str) else value
    if not isinstance(given, list | tuple) or not all(isinstance(one, str) for one in given):
        raise ValueError("a list like sume/auto,gpt-image-2 is needed")
    return tuple(dict.fromkeys(name for one in given if (name := one.strip())))


def _unbraced(value: object) -> str:
    """Text; nothing for an empty mapping that was written as text."""
    return str(value).strip().removeprefix("{}")


# What is said of a workspace, and how it is read.
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
    """The workspaces beside the default one: names with commas between, or a mapping of each
    name to what is said of it.
    """
    if not isinstance(value, Mapping):
        value = {name: {} for name in map(str.strip, _unbraced(value).split(",")) if name}
    return {workspace_name(name): _workspace(str(name), told) for name, told in value.items()}


def _workspace(name: str, told: object) -> dict[str, Any]:
    if name == DEFAULT_WORKSPACE:
        raise ValueError("the workspace default is what the app's own settings say")
    if not isinstance(told, Mapping):
        raise ValueError(f"{name}: a mapping is needed")
    if {str(field) for field in told} - WORKSPACE_FIELDS.keys():
        raise ValueError(f"{name}: all that can be said is: {', '.join(WORKSPACE_FIELDS)}")
    found = {}
    for field, given in told.items():
        try:
            found[field] = WORKSPACE_FIELDS[field](given)
        except ValueError as error:
            raise ValueError(f"{name}, {field}: {error}") from None
    return found
