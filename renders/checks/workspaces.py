"""Workspaces: their keys, the secrets file, who chooses."""

import os
import stat
from collections.abc import Iterator

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from renders import workspaces
from renders.conf import conf
from renders.hosts import host_of, is_inner
from renders.secrets_file import secrets_file
from renders.states import Kind, takes_model


def workspace_faults() -> list[CheckMessage]:
    """Each workspace has a key of its own, and money is counted where it is limited."""
    try:
        known = [workspaces.get(name) for name in workspaces.names()]
    except ImproperlyConfigured:
        return []  # the other check names it
    found = [*_file_faults(), *_chooser_faults()]
    for workspace in known:
        if not workspace.api_key and workspace.name != workspaces.DEFAULT:
            found.append(
                Warning(
                    f"The workspace {workspace.name} has no API key: its renders wait.",
                    hint=f"Set SUME_API_KEY_{_variable(workspace.name)}, or put its key into "
                    "RENDERS_SECRETS_FILE.",
                    id="renders.W060",
                )
            )
        if workspace.name == workspaces.DEFAULT:
            pass  # as the app's own settings
        elif not workspace.base_url.startswith(("https://", "http://")):
            found.append(
                Error(
                    f"BASE_URL of the workspace {workspace.name} is not an http or https address.",
                    hint="For instance https://api.sume.com.",
                    id="renders.E061",
                )
            )
        elif _in_the_clear(workspace.base_url):
            found.append(
                Error(
                    f"BASE_URL of the workspace {workspace.name} is not https: its API key would "
                    "cross the internet in the clear.",
                    hint="Write https://.",
                    id="renders.E067",
                )
            )
        found += _price_faults(workspace)
    keys = [workspace.api_key for workspace in known if workspace.api_key]
    if len(set(keys)) < len(keys):
        names = [one.name for one in known if one.api_key and keys.count(one.api_key) > 1]
        found.append(
            Warning(
                f"These workspaces share one API key: {', '.join(names)}. Each sends as much as "
                "the key allows, and Sume refuses what is too much.",
                hint="Give each workspace the key of an account of its own.",
                id="renders.W063",
            )
        )
    return found


def _price_faults(workspace: workspaces.Workspace) -> Iterator[CheckMessage]:
    """Where a price is missing, or of no use."""
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
    found: list[CheckMessage] = []
    if file.fault:
        found.append(
            Error(
                f"The file that SECRETS_FILE names is no use: {file.fault}.",
                hint='JSON like {"default": {"api_key": "…", "webhook_secret": "…"}}, or TOML.',
                id="renders.E064",
            )
        )
    elif os.stat(path).st_mode & stat.S_IROTH:
        found.append(
            Warning(
                "Everybody on this machine can read the file that SECRETS_FILE names.",
                hint="Let its owner alone read it: chmod 600, or defaultMode 0400 for a mounted "
                "secret.",
                id="renders.W065",
            )
        )
    return found


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
