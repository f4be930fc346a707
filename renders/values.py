"""How the value of a setting is read. Each raises `ValueError` that says what is needed."""

import math
from contextlib import suppress
from urllib.parse import urlsplit

from renders.addresses import read_private
from renders.hiding import Hidden
from renders.redis_url import CLUSTER, PLAIN, SCHEMES, SENTINEL, kind_of, read

# Writes a minute, and jobs at once (None: not known). Source: Sume's API notes.
PLANS: dict[str, tuple[int, int | None]] = {"free": (120, None), "pro": (300, 4 + 20)}

SHORTEST_TOKEN = 16
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
