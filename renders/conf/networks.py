"""Which hosts and addresses are public, and which of them a download may reach.

A download's URL comes from a reply of Sume's or from a redirect. So `find` resolves the host,
checks every address, and the connection is made to a checked address: a second look-up could
return another one. The other functions judge a host without any look-up.
"""

import ipaddress
import socket
from collections.abc import Iterable
from contextlib import suppress
from urllib.parse import urlsplit

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Private = Iterable[Network | str]
"""Networks and host names that may be reached although they are not public."""

WEB_PORTS = frozenset({80, 443})
FIRST_FREE_PORT = 1024
UNICAST = ipaddress.ip_network("2000::/3")
NAT64 = ipaddress.ip_network("64:ff9b::/96")
# Some versions of Python don't treat all of these as special.
SPECIAL = [
    ipaddress.ip_network(network)
    for network in (
        "192.0.0.0/24",  # protocol assignments
        "192.88.99.0/24",  # 6to4 relays
        "2001::/23",  # Teredo and others
        "2002::/16",  # 6to4
        "3fff::/20",  # documentation
    )
]
# Suffixes of names that the public DNS never resolves.
INNER = (".localhost", ".local", ".internal", ".lan", ".home.arpa", ".test", ".example", ".invalid")


class NotAllowed(Exception):
    """This machine or port must not be reached. The message names the host alone."""


def read_private(text: str) -> tuple[Network | str, ...]:
    """The hosts, addresses and networks of a comma-separated text. Raises `ValueError`."""
    entries = [entry.strip().lower().rstrip(".") for entry in text.split(",")]
    return tuple(_entry(entry) for entry in entries if entry)


def find(host: str, port: int, private: Private = ()) -> list[str]:
    """All addresses of `host`, checked. Raises `NotAllowed` and `OSError`.

    `host` may be a name or an address in any spelling that the system understands (127.1 too):
    only the resolved addresses count.
    """
    resolved = [info[4][0] for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    addresses = list(dict.fromkeys(str(address) for address in resolved))
    if host.rstrip(".").lower() in [entry for entry in private if isinstance(entry, str)]:
        return addresses
    networks = [entry for entry in private if not isinstance(entry, str)]
    outside = [address for address in addresses if not _within(_read(address), networks)]
    if not all(is_public(address) for address in outside):
        raise NotAllowed(
            f"{host} is not at a public address; if that is right, name it in "
            "RENDERS_MEDIA_PRIVATE_HOSTS"
        )
    if outside and port not in WEB_PORTS and port < FIRST_FREE_PORT:
        raise NotAllowed(f"port {port} of {host} is not one of the web's")
    return addresses


def is_public(text: str) -> bool:
    """Whether this address is globally routable: it means one machine for the whole internet."""
    address = _read(text)
    if isinstance(address, ipaddress.IPv6Address):
        if address in NAT64:
            address = ipaddress.IPv4Address(address.packed[-4:])
        elif address not in UNICAST:
            return False
    special = any(address in network for network in SPECIAL)
    return address.is_global and not (special or address.is_multicast or address.is_reserved)


def host_of(url: str) -> str:
    """The host of a URL; empty if it has none."""
    with suppress(ValueError):
        return urlsplit(url).hostname or ""
    return ""


def is_inner(host: str) -> bool:
    """Whether this name or address is on this machine or a private network, without a look-up.

    A name without a dot counts as private, since containers use such names.
    """
    host = host.strip("[]").rstrip(".").lower()
    with suppress(ValueError):
        ipaddress.ip_address(host)
        return not is_public(host)
    return "." not in host.lstrip(".") or host.endswith(INNER)


def is_loopback(host: str) -> bool:
    """Whether this host is the machine itself. An empty host means every interface: False."""
    host = host.strip("[]").lower()
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def _entry(entry: str) -> Network | str:
    """One entry as a network or a host name. Raises `ValueError`."""
    if "/" in entry or ":" in entry or entry.replace(".", "").isdigit():
        return ipaddress.ip_network(entry.strip("[]"), strict=False)
    if not entry.replace("-", "").replace(".", "").replace("_", "").isalnum():
        raise ValueError("this is not a host name")
    return entry


def _read(text: str) -> Address:
    """The address; for an IPv4 address mapped into IPv6 (::ffff:127.0.0.1), the IPv4 one."""
    address = ipaddress.ip_address(text)
    return getattr(address, "ipv4_mapped", None) or address


def _within(address: Address, networks: Iterable[Network]) -> bool:
    return any(address in network for network in networks)
