"""Workspaces: one Sume account each, with its key and its limits, read at use.

The workspace `default` is what the app's own settings say. A render belongs to one workspace from
the start to its end: what was sent with one account's key is never sent with another's.
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
    """One account: whose key is sent, and what limits it now."""

    name: str
    api_key: str = field(repr=False)
    webhook_secrets: tuple[str, ...] = field(repr=False)
    """Those that sign events: while they are exchanged, the old and the new."""
    base_url: str
    writes_per_minute: int
    """Most POSTs in any 60 seconds, over all workers."""
    max_in_flight: int | None
    """Most renders at Sume at once; None where only Sume's own readings say."""
    budget_usd_micros: int
    """Most that is spent in a calendar month, in millionths of a dollar; 0: no limit."""
    user_budget_usd_micros: int
    """As `budget_usd_micros`, for what one user's renders cost in this workspace."""
    prices: Mapping[str, int]
    """What one render costs, in millionths of a dollar, by `kind` and `kind:model`."""

    @property
    def reads_per_minute(self) -> int:
        """Most GETs in any 60 seconds, over all workers."""
        return self.writes_per_minute * READS_PER_WRITE

    @property
    def webhooks_wanted(self) -> bool:
        """Whether Sume is asked for events. It sends them over https; the stand-in need not."""
        return bool(self.webhook_secrets) and conf.PUBLIC_URL.startswith(
            ("https://", "http://") if self.base_url.startswith("http://") else "https://"
        )

    @property
    def webhook_poll_seconds(self) -> float:
        """Least wait between reads of a job with a webhook; 0 if none could be believed."""
        wait = min(conf.WEBHOOK_POLL_SECONDS, conf.MAX_POLL_SECONDS)
        return wait if self.webhook_secrets else 0.0

    @property
    def key_mark(self) -> str:
        """Tells whether the key is still the same, and nothing else of it."""
        mark = salted_hmac("renders.workspaces.key", self.api_key, algorithm="sha256")
        return mark.hexdigest()[:16]


def names() -> list[str]:
    """All workspaces there are, the default one first."""
    return [DEFAULT, *sorted({*conf.WORKSPACES, *_from_file()} - {DEFAULT})]


def every() -> list[Workspace]:
    """All workspaces, the default one first; the settings are read once for all."""
    told, kept = {**conf.WORKSPACES, DEFAULT: _own()}, _from_file()
    return [_made(name, told.get(name, {}), kept.get(name, Secrets())) for name in names()]


def several() -> bool:
    """Whether there is more than the default one: only then do people read of workspaces."""
    return len(names()) > 1


def get(name: str) -> Workspace:
    """The workspace of this name. Raises `UnknownWorkspace`."""
    workspace = find(name)
    if workspace is None:
        raise UnknownWorkspace(name)
    return workspace


def find(name: str) -> Workspace | None:
    """As `get`; None where it is not configured."""
    told: Mapping[str, Any] | None = _own() if name == DEFAULT else conf.WORKSPACES.get(name)
    kept = _from_file().get(name)
    if told is None and kept is None:
        return None
    return _made(name, told or {}, kept or Secrets())


def missing(name: str) -> UnknownWorkspace | None:
    """Why nothing may be sent for it: it is not configured. None if it is."""
    return None if find(name) else UnknownWorkspace(name)


def _from_file() -> Mapping[str, Secrets]:
    path = conf.SECRETS_FILE
    return secrets_file(path).read() if path else {}


def _own() -> dict[str, Any]:
    return {
        "API_KEY": conf.API_KEY,
        "WEBHOOK_SECRET": conf.WEBHOOK_SECRET,
        "PLAN": conf.PLAN,
        "WRITES_PER_MINUTE": conf.WRITES_PER_MINUTE,
        "MAX_IN_FLIGHT": conf.MAX_IN_FLIGHT,
        "BUDGET_USD": conf.BUDGET_USD,
        "USER_BUDGET_USD": conf.USER_BUDGET_USD,
    }


def _made(name: str, told: Mapping[str, Any], kept: Secrets) -> Workspace:
    writes, at_once = PLANS[told.get("PLAN") or "free"]
    secrets = kept.webhook_secret or told.get("WEBHOOK_SECRET") or ""
    prices = {**conf.PRICES, **told.get("PRICES", {})}
    return Workspace(
        name,
        api_key=Hidden(kept.api_key or told.get("API_KEY") or ""),
        webhook_secrets=tuple(Hidden(one) for one in map(str.strip, secrets.split(",")) if one),
        base_url=told.get("BASE_URL") or conf.BASE_URL,
        writes_per_minute=told.get("WRITES_PER_MINUTE") or writes,
        max_in_flight=told.get("MAX_IN_FLIGHT") or at_once,
        budget_usd_micros=_micros(told.get("BUDGET_USD", 0.0)),
        user_budget_usd_micros=_micros(told.get("USER_BUDGET_USD", 0.0)),
        prices={name: _micros(price) for name, price in prices.items()},
    )


def _micros(dollars: float) -> int:
    """Millionths of a dollar; at least one, if it is anything: 0 would mean free, or no limit."""
    return max(round(dollars * MICROS), 1 if dollars else 0)
