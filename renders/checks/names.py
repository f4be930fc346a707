"""Settings that nobody reads: misspelt, or set under a name that another one overrides."""

import os
import re
from collections.abc import Iterator
from difflib import get_close_matches

from django.conf import settings
from django.core.checks import CheckMessage, Warning

from renders.conf import Conf, Setting

# Set by orchestrators for services called "renders" and "renders-web"; and by people for `curl`.
OF_OTHERS = re.compile(r"RENDERS_((\w+_)?(SERVICE_(HOST|PORT)\w*|PORT(_\d+_\w+)?)|NAME|TOKEN)")
# The environment's names of what `RENDERS_<NAME>` does not set in this project's settings.
ELSEWHERE = {
    "API_KEY": "SUME_API_KEY",
    "BASE_URL": "SUME_BASE_URL",
    "WEBHOOK_SECRET": "SUME_WEBHOOK_SECRET",
    "REDIS_URL": "REDIS_URL",
}


def faults() -> Iterator[CheckMessage]:
    """Values are not shown: a secret may have got in the wrong place."""
    known = [name for name, setting in vars(Conf).items() if isinstance(setting, Setting)]
    ours = getattr(settings, "RENDERS", {})
    given = {
        name.removeprefix("RENDERS_"): value.strip()
        for name, value in os.environ.items()
        if name.startswith("RENDERS_") and value.strip()
    }
    for name in sorted({*ours, *given} - {*known}):
        if OF_OTHERS.fullmatch(f"RENDERS_{name}"):
            continue
        close = get_close_matches(str(name).upper(), known, n=1)
        yield Warning(
            f'There is no setting RENDERS["{name}"] (RENDERS_{name} in the environment): '
            "nobody reads it.",
            hint=f"Did you mean {close[0]}?" if close else "Take it out.",
            id="renders.W036",
        )
    for name, right in ELSEWHERE.items():
        if name in given and given[name] != str(ours.get(name, "")):
            yield Warning(
                f"RENDERS_{name} in the environment is not used.",
                hint=f"Set {right} instead.",
                id="renders.W037",
            )
