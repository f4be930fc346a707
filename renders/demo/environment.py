"""The environment in which the demo's processes run: the user's own, completed."""

import secrets
from collections.abc import Mapping
from urllib.parse import quote

from renders.coordination.clients import REDIS_DOWN, connect
from renders.demo.state import StateFolder

# The last: the demo says itself whether renders are billed.
FOR_OTHERS = ("renders.E030", "renders.W031", "renders.W068")


def child_environment(
    own: Mapping[str, str], state: StateFolder, settings_module: str
) -> dict[str, str]:
    """What all processes share, Redis and Sume aside."""
    environment = {
        **own,
        "DJANGO_SETTINGS_MODULE": settings_module,
        "DJANGO_ENV_FILE": "",  # it was read: what is taken out here shall stay out
        "DJANGO_DEBUG": "1",
        "DJANGO_STATE_DIR": str(state.path),
        "DJANGO_MEDIA_ROOT": str(state.media),
        "PYTHONUNBUFFERED": "1",
    }
    if hosts := own.get("DJANGO_ALLOWED_HOSTS"):
        environment["DJANGO_ALLOWED_HOSTS"] = f"{hosts},127.0.0.1,localhost"
    # It is in debug mode whatever the site is called: only this machine reaches it.
    silenced = [*own.get("DJANGO_SILENCED_SYSTEM_CHECKS", "").split(","), *FOR_OTHERS]
    environment["DJANGO_SILENCED_SYSTEM_CHECKS"] = ",".join(filter(None, silenced))
    if not own.get("DATABASE_URL"):
        environment["DATABASE_URL"] = f"sqlite:///{quote(str(state.database))}"
    if not own.get("DJANGO_SECRET_KEY"):
        key = state.recall("django-secret-key") or secrets.token_urlsafe(48)
        state.remember("django-secret-key", key)
        environment["DJANGO_SECRET_KEY"] = key
    if not own.get("RENDERS_SWEEP_SECONDS"):
        environment["RENDERS_SWEEP_SECONDS"] = "5"
    return environment


def redis_environment(url: str) -> dict[str, str]:
    """What makes the processes use the embedded Redis, for everything."""
    return {"REDIS_URL": url, "CELERY_BROKER_URL": url}


def sandbox_environment(own: Mapping[str, str], port: int, key: str) -> dict[str, str]:
    """What makes the processes use the stand-in instead of Sume."""
    environment = {"SUME_API_KEY": key, "SUME_BASE_URL": f"http://127.0.0.1:{port}"}
    # It sends no webhooks: waiting for them would only slow the polls down.
    environment["SUME_WEBHOOK_SECRET"] = ""
    # Nor shall another account's key come in, with which renders would be billed.
    environment |= dict.fromkeys(["RENDERS_SECRETS_FILE", "RENDERS_WORKSPACES"], "")
    # It bills nothing, and knows every model.
    limits = ("RENDERS_BUDGET_USD", "RENDERS_USER_BUDGET_USD", "RENDERS_MODELS")
    environment |= dict.fromkeys(limits, "")
    # A proxy that the user needs for the outer world cannot reach this machine's own ports.
    direct = own.get("no_proxy") or own.get("NO_PROXY") or ""
    environment |= dict.fromkeys(["no_proxy", "NO_PROXY"], f"{direct},127.0.0.1".lstrip(","))
    # Its pictures come from there, too.
    private = own.get("RENDERS_MEDIA_PRIVATE_HOSTS") or ""
    environment["RENDERS_MEDIA_PRIVATE_HOSTS"] = f"{private},127.0.0.1".lstrip(",")
    if not own.get("RENDERS_DEFAULT_POLL_SECONDS"):
        environment["RENDERS_DEFAULT_POLL_SECONDS"] = "2"
    return environment


def why_unreachable(redis_url: str) -> str:
    """Why this Redis cannot be used, in a few words; empty if it can. Never shows the URL."""
    try:
        client = connect(redis_url)
    except ValueError:
        return "it is no Redis address"
    try:
        client.ping()
    except REDIS_DOWN as error:
        return f"{type(error).__name__} on ping"
    finally:
        client.close()
    return ""
