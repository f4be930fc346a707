"""Settings that nobody reads: misspelt, or set under a name that another one overrides."""

import os
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Warning

from renders.conf import Conf, Setting

# Set by orchestrators for services called "renders" and "renders-web"; and by people for `curl`.
OF_OTHERS = re.compile(r"RENDERS_((\w+_)?(SERVICE_(HOST|PORT)\w*|PORT(_\d+_\w+)?)|NAME|TOKEN)")
OF_WORKSPACES = r"(PLAN|WRITES_PER_MINUTE|MAX_IN_FLIGHT|BUDGET_USD|USER_BUDGET_USD|PRICES)_"
# The environment's names of what `RENDERS_<NAME>` does not set in this project's settings.
ELSEWHERE = {
    "API_KEY": "SUME_API_KEY",
    "BASE_URL": "SUME_BASE_URL",
    "WEBHOOK_SECRET": "SUME_WEBHOOK_SECRET",
    "REDIS_URL": "REDIS_URL",
}


def name_faults() -> Iterator[CheckMessage]:
    """Values are not shown: a secret may have got in the wrong place."""
    known = [name for name, setting in vars(Conf).items() if isinstance(setting, Setting)]
    ours = getattr(settings, "RENDERS", {})
    given = {
        name.removeprefix("RENDERS_"): value.strip()
        for name, value in os.environ.items()
        if name.startswith("RENDERS_") and value.strip()
    }
    for name in sorted({*ours, *given} - {*known}):
        if OF_OTHERS.fullmatch(f"RENDERS_{name}") or _of_a_workspace(name, ours, given):
            continue
        close = get_close_matches(str(name).upper(), known, n=1)
        yield Warning(
            f'There is no setting RENDERS["{name}"] (RENDERS_{name} in the environment): '
            "nobody reads it.",
            hint=(
                "If it is a workspace's, name that in RENDERS_WORKSPACES."
                if re.match(OF_WORKSPACES, str(name))
                else f"Did you mean {close[0]}?"
                if close
                else "Take it out."
            ),
            id="renders.W036",
        )
    for name, right in ELSEWHERE.items():
        if name in given and given[name] != str(ours.get(name, "")):
            yield Warning(
                f"RENDERS_{name} in the environment is not used.",
                hint=f"Set {right} instead.",
                id="renders.W037",
            )


def _of_a_workspace(name: object, ours: Mapping[str, Any], given: Mapping[str, str]) -> bool:
    """Whether it is one of `RENDERS_PLAN_ACME` and the like that has become a workspace's own."""
    told = ours.get("WORKSPACES")
    return isinstance(told, Mapping) and any(
        name == f"{field}_{str(workspace).upper().replace('-', '_')}"
        and str(value).strip() == given.get(str(name))
        for workspace, fields in told.items()
        if isinstance(fields, Mapping)
        for field, value in fields.items()
    )
