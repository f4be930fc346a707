"""Where an address or a name of a host leads, as far as it can be told without asking anybody."""

import ipaddress
from contextlib import suppress
from urllib.parse import urlsplit

from renders.addresses import is_public

# Names that nobody on the internet can look up.
INNER = (".localhost", ".local", ".internal", ".lan", ".home.arpa", ".test", ".example", ".invalid")


def host_of(url: str) -> str:
    """The host that an address names; empty if it names none."""
    with suppress(ValueError):
        return urlsplit(url).hostname or ""
    return ""


def is_inner(host: str) -> bool:
    """Whether this name or address is of this machine or of a network of one's own.

    So is a name without a dot, as containers call each other.
    """
    host = host.strip("[]").rstrip(".").lower()
    with suppress(ValueError):
        ipaddress.ip_address(host)
        return not is_public(host)
    return "." not in host.lstrip(".") or host.endswith(INNER)


def is_loopback(host: str) -> bool:
    """Whether only this machine can mean itself by it; an empty one is taken as everywhere."""
    host = host.strip("[]").lower()
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"
