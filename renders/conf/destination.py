"""The hosts that renders are sent to, and whether they bill, judged by `BASE_URL` alone.

Startup, `check`, the doctor and staff's pages show it, so that nobody mistakes Sume for a stand-in.
No server is asked.
"""

import logging
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from renders.conf import workspaces
from renders.conf.networks import host_of, is_inner
from renders.conf.workspaces import Workspace

logger = logging.getLogger(__name__)

SUME = "sume.com"
MOST_NAMES = 3
NO_KEY = "No API key is set here: nothing is sent."


class Billing(Enum):
    """Whether a render costs money at a host. The value says so in words; `{}` is the host."""

    BILLED = "{}: every render is billed"
    """Sume's own host."""
    STAND_IN = (
        "{}, a stand-in on this machine or a private network: "
        "nothing is billed there unless it passes requests on to Sume"
    )
    UNKNOWN = "{}, not Sume's own host: ask whoever runs it whether it bills"
    NOWHERE = "{}: BASE_URL is not an http or https address"


@dataclass(frozen=True)
class Destination:
    """A host that renders are sent to."""

    host: str
    """With the port if there is one; never with a user or password."""
    billing: Billing
    has_key: bool
    """Whether anything is sent there: without an API key, nothing is."""
    workspaces: tuple[str, ...] = ()
    """The workspaces that send there; empty if all do."""

    @property
    def place(self) -> str:
        """The host, with the workspaces that send there if not all do."""
        if not self.workspaces:
            return self.host
        names = ", ".join(self.workspaces[:MOST_NAMES])
        more = len(self.workspaces) - MOST_NAMES
        plural = "s" if len(self.workspaces) > 1 else ""
        return f"{self.host} (workspace{plural} {names}{f' and {more} more' * (more > 0)})"

    @property
    def words(self) -> str:
        """Host and billing, as the end of a sentence without the full stop."""
        return self.billing.value.format(self.place)

    @property
    def sentence(self) -> str:
        """Host and billing, for a person."""
        return " ".join([f"Renders go to {self.words}.", *([] if self.has_key else [NO_KEY])])


def at(url: str, *, has_key: bool = True) -> Destination:
    """The destination of this base URL."""
    url = url.strip()
    host = host_of(url)
    if not (url.startswith(("https://", "http://")) and host):
        return Destination("an invalid address", Billing.NOWHERE, has_key)
    shown = f"[{host}]" if ":" in host else host
    with suppress(ValueError):
        port = urlsplit(url).port
        shown += f":{port}" if port else ""
    if f".{host.rstrip('.')}".endswith(f".{SUME}"):
        return Destination(shown, Billing.BILLED, has_key)
    return Destination(shown, Billing.STAND_IN if is_inner(host) else Billing.UNKNOWN, has_key)


def of(workspace: Workspace) -> Destination:
    """The destination of this workspace's renders."""
    return at(workspace.base_url, has_key=bool(workspace.api_key))


def destinations() -> list[Destination]:
    """Each host that renders are sent to, with the default workspace's first.

    Raises `ImproperlyConfigured` if the workspaces' settings are invalid.
    """
    senders: dict[Destination, list[Workspace]] = {}
    for workspace in workspaces.every():
        senders.setdefault(at(workspace.base_url), []).append(workspace)
    merged = []
    for place, group in senders.items():
        names = tuple(workspace.name for workspace in group) if len(senders) > 1 else ()
        has_key = any(workspace.api_key for workspace in group)
        merged.append(replace(place, has_key=has_key, workspaces=names))
    return merged


def say_where_renders_go() -> None:
    """Log one line with each host that renders are sent to, and whether it bills.

    It is a warning if that is unexpected: billing in debug mode, or anything but Sume outside it.
    It is also a warning if INFO is not logged (the default of Celery and Django), so that it shows.
    """
    try:
        hosts = destinations()
    except ImproperlyConfigured as error:
        logger.warning("Where renders go is unknown: %s", error)
        return
    expected = Billing.STAND_IN if settings.DEBUG else Billing.BILLED
    surprising = any(host.has_key and host.billing is not expected for host in hosts)
    seen = logger.isEnabledFor(logging.INFO)
    level = logging.INFO if seen and not surprising else logging.WARNING
    logger.log(level, "%s", " ".join(host.sentence for host in hosts))
