"""Workspaces: one Sume account each, with its key and limits, read at use.

The app's own settings define the workspace `default`. A render keeps its workspace for life, so a
request sent with one account's key is never sent with another's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.crypto import salted_hmac

from renders.conf import conf
from renders.conf.parsers import PLANS
from renders.conf.secrets_file import Secrets, secrets_file
from renders.exceptions import UnknownWorkspace
from renders.redaction import Hidden
from renders.states import DEFAULT_WORKSPACE as DEFAULT

READS_PER_WRITE = 40
MICROS = 1_000_000


@dataclass(frozen=True)
class Workspace:
    """One account: its key and its present limits."""

    name: str
    api_key: str = field(repr=False)
    webhook_secrets: tuple[str, ...] = field(repr=False)
    """The secrets that sign events: the old and the new one during a rotation."""
    base_url: str
    writes_per_minute: int
    """Most POSTs in any 60 seconds, over all workers."""
    max_in_flight: int | None
    """Most renders at Sume at once; None if only the capacity that Sume reports limits them."""
    budget_usd_micros: int
    """Most spending in a calendar month, in millionths of a dollar; 0: no limit."""
    user_budget_usd_micros: int
    """As `budget_usd_micros`, for the renders of one user in this workspace."""
    prices: Mapping[str, int]
    """The price of one render in millionths of a dollar, by `kind` and `kind:model`."""

    @property
    def reads_per_minute(self) -> int:
        """Most GETs in any 60 seconds, over all workers."""
        return self.writes_per_minute * READS_PER_WRITE

    @property
    def webhooks_wanted(self) -> bool:
        """Whether Sume is asked for webhooks. It sends them over https; a stand-in may use http."""
        return bool(self.webhook_secrets) and conf.PUBLIC_URL.startswith(
            ("https://", "http://") if self.base_url.startswith("http://") else "https://"
        )

    @property
    def webhook_poll_seconds(self) -> float:
        """Shortest wait between reads of a job with a webhook; 0 if no webhook can be verified."""
        wait = min(conf.WEBHOOK_POLL_SECONDS, conf.MAX_POLL_SECONDS)
        return wait if self.webhook_secrets else 0.0

    @property
    def key_mark(self) -> str:
        """A mark that changes with the key and reveals nothing else of it."""
        mark = salted_hmac("renders.workspaces.key", self.api_key, algorithm="sha256")
        return mark.hexdigest()[:16]


def names() -> list[str]:
    """The names of all workspaces, the default one first."""
    return [DEFAULT, *sorted({*conf.WORKSPACES, *_from_file()} - {DEFAULT})]


def every() -> list[Workspace]:
    """All workspaces, the default one first; the settings are read once for all of them."""
    fields, secrets = {**conf.WORKSPACES, DEFAULT: _own()}, _from_file()
    return [_made(name, fields.get(name, {}), secrets.get(name, Secrets())) for name in names()]


def several() -> bool:
    """Whether there is more than the default workspace: only then do pages mention workspaces."""
    return len(names()) > 1


def get(name: str) -> Workspace:
    """The workspace of this name. Raises `UnknownWorkspace`."""
    workspace = find(name)
    if workspace is None:
        raise UnknownWorkspace(name)
    return workspace


def find(name: str) -> Workspace | None:
    """As `get`, but None if the workspace is not configured."""
    fields: Mapping[str, Any] | None = _own() if name == DEFAULT else conf.WORKSPACES.get(name)
    secrets = _from_file().get(name)
    if fields is None and secrets is None:
        return None
    return _made(name, fields or {}, secrets or Secrets())


def missing(name: str) -> UnknownWorkspace | None:
    """The error for a workspace that is not configured; None if it is."""
    return None if find(name) else UnknownWorkspace(name)


def _from_file() -> Mapping[str, Secrets]:
    """The secrets in `SECRETS_FILE`, by workspace."""
    path = conf.SECRETS_FILE
    return secrets_file(path).read() if path else {}


def _own() -> dict[str, Any]:
    """The default workspace's fields, from the app's own settings."""
    return {
        "API_KEY": conf.API_KEY,
        "WEBHOOK_SECRET": conf.WEBHOOK_SECRET,
        "PLAN": conf.PLAN,
        "WRITES_PER_MINUTE": conf.WRITES_PER_MINUTE,
        "MAX_IN_FLIGHT": conf.MAX_IN_FLIGHT,
        "BUDGET_USD": conf.BUDGET_USD,
        "USER_BUDGET_USD": conf.USER_BUDGET_USD,
    }


def _made(name: str, fields: Mapping[str, Any], secrets: Secrets) -> Workspace:
    """A workspace of these fields; keys and secrets of the file come first."""
    writes, at_once = PLANS[fields.get("PLAN") or "free"]
    signing = secrets.webhook_secret or fields.get("WEBHOOK_SECRET") or ""
    prices = {**conf.PRICES, **fields.get("PRICES", {})}
    return Workspace(
        name,
        api_key=Hidden(secrets.api_key or fields.get("API_KEY") or ""),
        webhook_secrets=tuple(Hidden(key) for key in map(str.strip, signing.split(",")) if key),
        base_url=fields.get("BASE_URL") or conf.BASE_URL,
        writes_per_minute=fields.get("WRITES_PER_MINUTE") or writes,
        max_in_flight=fields.get("MAX_IN_FLIGHT") or at_once,
        budget_usd_micros=_micros(fields.get("BUDGET_USD", 0.0)),
        user_budget_usd_micros=_micros(fields.get("USER_BUDGET_USD", 0.0)),
        prices={name: _micros(price) for name, price in prices.items()},
    )


def _micros(dollars: float) -> int:
    """Millionths of a dollar, at least one for any amount: 0 would mean free or no limit."""
    return max(round(dollars * MICROS), 1 if dollars else 0)
