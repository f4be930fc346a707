"""Sume: which host that is, whether it answers, takes the key, and has money of ours.

The host is named in all findings: it may be a stand-in.
"""

import time
from dataclasses import replace

from renders import destination, workspaces
from renders.client import SumeClient
from renders.conf import conf
from renders.destination import Billing
from renders.exceptions import BackOff, OutcomeUnknown, Paused, SumeError, Unreachable
from renders.health import clocks
from renders.health.findings import Finding, Level
from renders.workspaces import Workspace

NO_MONEY = 402
LONGEST_SECONDS = 8.0
DATE_GRAIN_SECONDS = 1.0


def destinations() -> list[Finding]:
    """Each host that renders go to, and whether it bills. No server is asked."""
    return [
        Finding(one.sentence, grave=Level.INFO if one.billing is Billing.UNKNOWN else None)
        for one in destination.destinations()
    ]


def account() -> list[Finding]:
    """What `GET /v1/balance` tells, with the key of each workspace."""
    names = workspaces.names()
    found = {name: _account(workspaces.get(name)) for name in names}
    if len(names) == 1:
        return found[names[0]]
    return [
        replace(one, said=f"{name}: {one.said}") for name, told in found.items() for one in told
    ]


def _account(workspace: Workspace) -> list[Finding]:
    host = destination.of(workspace).host
    if not workspace.api_key:
        return [Finding(f"No API key for {host} is set.", "key-missing")]
    timeout = min(conf.REQUEST_TIMEOUT_SECONDS, LONGEST_SECONDS)
    asked = time.time()
    try:
        balance = SumeClient(workspace.api_key, workspace.base_url, timeout=timeout).balance()
    except Paused as error:
        code = "no-credit" if error.status == NO_MONEY else "key-refused"
        return [Finding(_said(host, error), code)]
    except (OutcomeUnknown, Unreachable) as error:
        return [Finding(_said(host, error), "sume-away")]
    except BackOff as error:
        return [Finding(_said(host, error), "sume-busy")]
    except SumeError:
        return [Finding(f"{host} answers, and does not tell the balance.")]
    found = []
    if balance.at:
        at = balance.at.timestamp()
        found.append(clocks.compared(host, at, asked, time.time(), grain=DATE_GRAIN_SECONDS))
    if balance.usd_micros is None:
        return [Finding(f"{host} takes the key, and tells no balance."), *found]
    left = f"{balance.usd_micros / 1_000_000:,.2f} USD"
    said = f"{host} takes the key; left to spend: {left}."
    return [Finding(said, "" if balance.usd_micros > 0 else "no-credit"), *found]


def _said(host: str, error: SumeError) -> str:
    return f"{host}: {str(error).rstrip('.')} ({error.code or error.status})."
