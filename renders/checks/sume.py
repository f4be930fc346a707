"""Checks of the settings for Sume: keys, addresses, workspaces, prices, webhooks.

Webhooks need both a secret and a public address; with only one, renders are still polled.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Info, Warning, register
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from renders.conf import conf, destination, workspaces
from renders.conf.destination import Billing, Destination
from renders.conf.networks import host_of, is_inner
from renders.conf.secrets_file import secrets_file
from renders.states import Kind, takes_model

SHORTEST_SECRET = 16


def key_faults() -> Iterator[CheckMessage]:
    """Faults of the default workspace's key, and of the address that it is sent to."""
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
    """Surprising addresses: an unused one, a stand-in in production, billing in debug mode."""
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
    """Where renders will go, for a person to read before a deploy."""
    try:
        destinations = destination.destinations()
    except ImproperlyConfigured:
        return []  # another check reports it
    return [
        Info(
            f"Renders go to {host.words}.",
            hint="If you mean another host, set SUME_BASE_URL (in a project of your own, BASE_URL "
            "in RENDERS), or take it out for Sume.",
            id="renders.I069",
        )
        for host in destinations
    ]


def _places(billing: Billing, *, with_key: bool = False) -> str:
    """The hosts with this kind of billing, separated by commas."""

    def wanted(host: Destination) -> bool:
        return host.billing is billing and (host.has_key or not with_key)

    return ", ".join(host.place for host in destination.destinations() if wanted(host))


def workspace_faults() -> list[CheckMessage]:
    """Faults of each workspace's key, address and prices, and keys that workspaces share."""
    try:
        configured = [workspaces.get(name) for name in workspaces.names()]
    except ImproperlyConfigured:
        return []  # another check reports it
    faults = [*_file_faults(), *_chooser_faults()]
    for workspace in configured:
        if not workspace.api_key and workspace.name != workspaces.DEFAULT:
            faults.append(
                Warning(
                    f"The workspace {workspace.name} has no API key: its renders wait.",
                    hint=f"Set SUME_API_KEY_{_variable(workspace.name)}, or put its key into "
                    "RENDERS_SECRETS_FILE.",
                    id="renders.W060",
                )
            )
        if workspace.name == workspaces.DEFAULT:
            pass  # checked with the app's own settings
        elif not workspace.base_url.startswith(("https://", "http://")):
            faults.append(
                Error(
                    f"BASE_URL of the workspace {workspace.name} is not an http or https address.",
                    hint="For instance https://api.sume.com.",
                    id="renders.E061",
                )
            )
        elif _in_the_clear(workspace.base_url):
            faults.append(
                Error(
                    f"BASE_URL of the workspace {workspace.name} is not https: its API key would "
                    "cross the internet in the clear.",
                    hint="Write https://.",
                    id="renders.E067",
                )
            )
        faults += _price_faults(workspace)
    keys = [workspace.api_key for workspace in configured if workspace.api_key]
    if len(set(keys)) < len(keys):
        names = [
            workspace.name
            for workspace in configured
            if workspace.api_key and keys.count(workspace.api_key) > 1
        ]
        faults.append(
            Warning(
                f"These workspaces share one API key: {', '.join(names)}. Each sends as much as "
                "the key allows, and Sume refuses what is too much.",
                hint="Give each workspace the key of an account of its own.",
                id="renders.W063",
            )
        )
    return faults


def _price_faults(workspace: workspaces.Workspace) -> Iterator[CheckMessage]:
    """Prices that are missing, too coarse for a budget, or for models that are not allowed."""
    limited = workspace.budget_usd_micros or workspace.user_budget_usd_micros
    if limited and not workspace.prices:
        yield Error(
            f"The workspace {workspace.name} has no prices, so a budget cannot be kept: new "
            "renders are refused.",
            hint="Set RENDERS_PRICES, for instance image:sume/auto=0.09,avatar=2.",
            id="renders.E062",
        )
    loose = [
        kind.value
        for kind in Kind
        if takes_model(kind)
        and kind in workspace.prices
        and not any(name.startswith(f"{kind}:") for name in workspace.prices)
    ]
    if limited and loose and not conf.MODELS:
        yield Warning(
            f"The workspace {workspace.name} has one price for all models of a kind, which keeps "
            f"no budget: new renders of these kinds are refused: {', '.join(loose)}.",
            hint="Name models in RENDERS_PRICES (image:sume/auto=0.09), or set RENDERS_MODELS.",
            id="renders.W074",
        )
    if unknown := [
        name
        for name in workspace.prices
        if conf.MODELS and ":" in name and name.partition(":")[2] not in conf.MODELS
    ]:
        yield Warning(
            f"The workspace {workspace.name} has prices of models that RENDERS_MODELS does not "
            f"allow: {', '.join(sorted(unknown))}.",
            hint="Add them to RENDERS_MODELS, or take them out of RENDERS_PRICES.",
            id="renders.W075",
        )


def _file_faults() -> list[CheckMessage]:
    path = conf.SECRETS_FILE
    if not path:
        return []
    file = secrets_file(path)
    file.read()
    faults: list[CheckMessage] = []
    if file.fault:
        faults.append(
            Error(
                f"The file that SECRETS_FILE names is no use: {file.fault}.",
                hint='JSON like {"default": {"api_key": "…", "webhook_secret": "…"}}, or TOML.',
                id="renders.E064",
            )
        )
    elif os.stat(path).st_mode & stat.S_IROTH:
        faults.append(
            Warning(
                "Everybody on this machine can read the file that SECRETS_FILE names.",
                hint="Let its owner alone read it: chmod 600, or defaultMode 0400 for a mounted "
                "secret.",
                id="renders.W065",
            )
        )
    return faults


def _chooser_faults() -> list[CheckMessage]:
    path = conf.WORKSPACE_FOR
    if not path:
        return []
    try:
        if callable(import_string(path)):
            return []
    except ImportError:
        pass
    return [
        Error(
            f"WORKSPACE_FOR names nothing that can be called: {path}.",
            hint="The dotted path of a function that takes a user, or None, and returns the name "
            "of a workspace, or None.",
            id="renders.E066",
        )
    ]


def _in_the_clear(address: str) -> bool:
    return not settings.DEBUG and address.startswith("http://") and not is_inner(host_of(address))


def _variable(name: str) -> str:
    return name.upper().replace("-", "_")


def webhook_faults() -> Iterator[CheckMessage]:
    """Faults of the webhook secret and of the public address, which work only together."""
    secrets = workspaces.get(workspaces.DEFAULT).webhook_secrets
    address = conf.PUBLIC_URL
    if secrets and not address:
        yield Warning(
            "SUME_WEBHOOK_SECRET is set, yet Sume is not told where to send webhooks.",
            hint="Set RENDERS_PUBLIC_URL to the address of this site, "
            "for instance https://example.com.",
            id="renders.W021",
        )
    if address and not secrets:
        yield Info(
            "PUBLIC_URL is set and SUME_WEBHOOK_SECRET is not: Sume sends no webhooks.",
            hint="Set SUME_WEBHOOK_SECRET to the secret of the webhook in your Sume account "
            "if you want them; without, renders are polled.",
            id="renders.I022",
        )
    if secrets and address.startswith("http://") and not settings.DEBUG:
        yield Warning(
            "PUBLIC_URL is not https: Sume sends no webhooks there.",
            hint="Serve the site over https and set RENDERS_PUBLIC_URL to that address.",
            id="renders.W023",
        )
    if any(len(secret) < SHORTEST_SECRET for secret in secrets):
        yield Warning(
            f"A secret in SUME_WEBHOOK_SECRET has fewer than {SHORTEST_SECRET} characters: "
            "it was cut short, or can be guessed.",
            hint="Copy it whole; commas stand between two secrets only.",
            id="renders.W024",
        )
