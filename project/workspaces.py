"""Workspaces as the environment names them: `RENDERS_WORKSPACES=acme,beta-2`.

To set a variable for one of them, append its name in capitals, with `_` for `-`:
`SUME_API_KEY_BETA_2`, `RENDERS_PLAN_BETA_2`.
"""

from collections.abc import Mapping

from renders.redaction import Hidden

SUME = ("API_KEY", "BASE_URL", "WEBHOOK_SECRET")
RENDERS = ("PLAN", "WRITES_PER_MINUTE", "MAX_IN_FLIGHT", "BUDGET_USD", "USER_BUDGET_USD", "PRICES")


def workspaces_in(environment: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """What `RENDERS["WORKSPACES"]` is to hold."""
    listed = environment.get("RENDERS_WORKSPACES", "")
    return {name: _told(name, environment) for name in map(str.strip, listed.split(",")) if name}


def _told(name: str, environment: Mapping[str, str]) -> dict[str, str]:
    ending = name.upper().replace("-", "_")
    given = {field: environment.get(f"SUME_{field}_{ending}", "") for field in SUME}
    given |= {field: environment.get(f"RENDERS_{field}_{ending}", "") for field in RENDERS}
    return {field: Hidden(value) for field, value in given.items() if value.strip()}
