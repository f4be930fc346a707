"""Sume: a free read tells whether it answers, takes the key, and has money of ours."""

import time
from dataclasses import replace

from renders import workspaces
from renders.client import SumeClient
from renders.conf import conf
from renders.exceptions import BackOff, OutcomeUnknown, Paused, SumeError
from renders.health import clocks
from renders.health.findings import Finding
from renders.workspaces import Workspace

NO_MONEY = 402
LONGEST_SECONDS = 8.0
DATE_GRAIN_SECONDS = 1.0


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
    if not workspace.api_key:
        return [Finding("No API key is set.", "key-missing")]
    timeout = min(conf.REQUEST_TIMEOUT_SECONDS, LONGEST_SECONDS)
    asked = time.time()
    try:
        balance = SumeClient(workspace.api_key, workspace.base_url, timeout=timeout).balance()
    except Paused as error:
        code = "no-credit" if error.status == NO_MONEY else "key-refused"
        return [Finding(_said(error), code)]
    except BackOff as error:
        return [Finding(_said(error), "sume-busy")]
    except OutcomeUnknown as error:
        return [Finding(_said(error), "sume-away")]
    except SumeError:
        return [Finding("Sume answers, and does not tell the balance.")]
    found = []
    if balance.at:
        at = balance.at.timestamp()
        found.append(clocks.compared("Sume", at, asked, time.time(), grain=DATE_GRAIN_SECONDS))
    if balance.usd_micros is None:
        return [Finding("Sume takes the key, and tells no balance."), *found]
    said = f"Sume takes the key; left to spend: {balance.usd_micros / 1_000_000:,.2f} USD."
    return [Finding(said, "" if balance.usd_micros > 0 else "no-credit"), *found]


def _said(error: SumeError) -> str:
    return f"Sume: {str(error).rstrip('.')} ({error.code or error.status})."
