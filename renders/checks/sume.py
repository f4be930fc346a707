"""How Sume is reached, and whether it is Sume."""

import os
from collections.abc import Iterator, Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Info, Warning, register
from django.core.exceptions import ImproperlyConfigured

from renders import destination, workspaces
from renders.conf import conf
from renders.destination import Billing, Destination


def key_faults() -> Iterator[CheckMessage]:
    """The key, and where it is sent."""
    if not workspaces.get(workspaces.DEFAULT).api_key:
        yield Warning(
            "No API key for Sume is set: nothing can be submitted.",
            hint="Set SUME_API_KEY; for a try, run `manage.py sumesandbox` and set what it prints.",
            id="renders.W001",
        )
    own = destination.of(workspaces.get(workspaces.DEFAULT)).billing
    if own is Billing.NOWHERE:
        yield Error(
            "SUME_BASE_URL is not an http or https address.",
            hint="For instance https://api.sume.com.",
            id="renders.E006",
        )
    elif own is not Billing.STAND_IN and conf.BASE_URL.startswith("http://") and not settings.DEBUG:
        yield Error(
            "SUME_BASE_URL is not https: the API key would cross the internet in the clear.",
            hint="Write https://, or take SUME_BASE_URL out of the environment.",
            id="renders.E026",
        )
    yield from _surprises()


def _surprises() -> Iterator[CheckMessage]:
    """A stand-in in production; Sume on a developer's machine; an address that nobody reads."""
    own = destination.at(conf.BASE_URL)
    given = os.environ.get("SUME_BASE_URL", "").strip()
    if given and destination.at(given).host != own.host:
        yield Warning(
            f"SUME_BASE_URL in the environment is not used: renders go to {own.host}.",
            hint="Have the settings read it into BASE_URL of RENDERS, or take it out.",
            id="renders.W070",
        )
    stand_ins = _places(Billing.STAND_IN)
    if stand_ins and not settings.DEBUG:
        yield Warning(
            f"Renders go to {stand_ins}, on this machine or a private network: "
            "to a stand-in, not to Sume.",
            hint="Take SUME_BASE_URL out of the environment (in a project of your own, BASE_URL "
            "out of RENDERS) to have renders made and billed.",
            id="renders.W007",
        )
    billed = _places(Billing.BILLED, with_key=True)
    if billed and settings.DEBUG:
        yield Warning(
            f"DEBUG is on, and renders go to {billed}: every render is billed.",
            hint="To try without a bill, run `manage.py sumesandbox` and set what it prints.",
            id="renders.W068",
        )


@register("renders", deploy=True)
def check_destination(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """Before a deploy, a person reads where renders will go."""
    try:
        known = destination.destinations()
    except ImproperlyConfigured:
        return []  # another check names it
    return [
        Info(
            f"Renders go to {one.words}.",
            hint="If you mean another host, set SUME_BASE_URL (in a project of your own, BASE_URL "
            "in RENDERS), or take it out for Sume.",
            id="renders.I069",
        )
        for one in known
    ]


def _places(billing: Billing, *, with_key: bool = False) -> str:
    """The hosts that bill so, with commas between."""

    def wanted(one: Destination) -> bool:
        return one.billing is billing and (one.has_key or not with_key)

    return ", ".join(one.place for one in destination.destinations() if wanted(one))
