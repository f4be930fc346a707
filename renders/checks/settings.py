"""Checks of the dict `RENDERS`: unreadable values, contradictory limits, unused names.

A name is unused if it is misspelt, or if another variable sets the same thing.
"""

import os
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.core.exceptions import ImproperlyConfigured

from renders.conf import Conf, Setting, conf

# Settings that must not be 0.
ABOVE_ZERO = (
    "REQUEST_TIMEOUT_SECONDS",
    "MIN_POLL_SECONDS",
    "SWEEP_SECONDS",
    "SWEEP_BATCH",
    "PAUSE_SECONDS",
    "MAX_PAUSE_SECONDS",
    "WEBHOOK_MAX_AGE_SECONDS",
    "MEDIA_TIMEOUT_SECONDS",
    "READS_AT_ONCE",
)
# Variables with other purposes: orchestrators set some for services called "renders" and
# "renders-web", and people set some for `curl`.
OF_OTHERS = re.compile(r"RENDERS_((\w+_)?(SERVICE_(HOST|PORT)\w*|PORT(_\d+_\w+)?)|NAME|TOKEN)")
OF_WORKSPACES = r"(PLAN|WRITES_PER_MINUTE|MAX_IN_FLIGHT|BUDGET_USD|USER_BUDGET_USD|PRICES)_"
# Settings that this project reads from another variable than `RENDERS_<NAME>`.
ELSEWHERE = {
    "API_KEY": "SUME_API_KEY",
    "BASE_URL": "SUME_BASE_URL",
    "WEBHOOK_SECRET": "SUME_WEBHOOK_SECRET",
    "REDIS_URL": "REDIS_URL",
}


def unreadable() -> list[CheckMessage]:
    """Each setting with an invalid value. With one of these, nothing else can be checked."""
    errors: list[CheckMessage] = []
    for name, setting in vars(Conf).items():
        if isinstance(setting, Setting):
            try:
                getattr(conf, name)
            except ImproperlyConfigured as error:
                errors.append(Error(str(error), hint=setting.help, id="renders.E001"))
    return errors


def limit_faults() -> Iterator[CheckMessage]:
    """Times and counts that contradict each other, or are 0."""
    if conf.MIN_POLL_SECONDS > conf.MAX_POLL_SECONDS or conf.MAX_POLL_SECONDS <= 0:
        yield Error(
            "MIN_POLL_SECONDS is larger than MAX_POLL_SECONDS, or that is 0.",
            hint="Set RENDERS_MIN_POLL_SECONDS below RENDERS_MAX_POLL_SECONDS.",
            id="renders.E003",
        )
    if idle := [name for name in ABOVE_ZERO if not getattr(conf, name)]:
        yield Error(
            f"Must be above 0: {', '.join(idle)}.",
            hint="Nothing would be sent or taken, or without a pause.",
            id="renders.E008",
        )
    if conf.REAP_AFTER_SECONDS <= conf.REQUEST_TIMEOUT_SECONDS:
        yield Error(
            "REAP_AFTER_SECONDS is not longer than REQUEST_TIMEOUT_SECONDS: "
            "a submit still under way would be taken for dead.",
            hint="Raise RENDERS_REAP_AFTER_SECONDS.",
            id="renders.E005",
        )
    if not conf.LEASE_MARGIN_SECONDS:
        yield Error(
            "LEASE_MARGIN_SECONDS is 0: a lease would not outlast REQUEST_TIMEOUT_SECONDS, "
            "and a job would be read twice at once.",
            hint="Set RENDERS_LEASE_MARGIN_SECONDS to some seconds, for instance 15.",
            id="renders.E035",
        )


def name_faults() -> Iterator[CheckMessage]:
    """Settings that nothing reads. Values are not shown: a secret may be in the wrong place."""
    defined = [name for name, setting in vars(Conf).items() if isinstance(setting, Setting)]
    ours = getattr(settings, "RENDERS", {})
    given = {
        name.removeprefix("RENDERS_"): value.strip()
        for name, value in os.environ.items()
        if name.startswith("RENDERS_") and value.strip()
    }
    for name in sorted({*ours, *given} - {*defined}):
        if OF_OTHERS.fullmatch(f"RENDERS_{name}") or _of_a_workspace(name, ours, given):
            continue
        close = get_close_matches(str(name).upper(), defined, n=1)
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
    """Whether a workspace's settings come from this variable, like `RENDERS_PLAN_ACME`."""
    configured = ours.get("WORKSPACES")
    return isinstance(configured, Mapping) and any(
        name == f"{field}_{str(workspace).upper().replace('-', '_')}"
        and str(value).strip() == given.get(str(name))
        for workspace, fields in configured.items()
        if isinstance(fields, Mapping)
        for field, value in fields.items()
    )
