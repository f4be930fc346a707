"""The environment of the demo's processes: the user's own, plus what is missing."""

import secrets
from collections.abc import Mapping
from urllib.parse import quote

from renders.coordination.clients import REDIS_DOWN, connect
from renders.demo.state import StateFolder

# Checks that the demo silences. It uses debug mode with any host name, since only this machine can
# reach it; and it says itself whether renders are billed (W068).
SILENCED_CHECKS = ("renders.E030", "renders.W031", "renders.W068")


def child_environment(
    own: Mapping[str, str], state: StateFolder, settings_module: str
) -> dict[str, str]:
    """The environment of all processes, without the variables for Redis and Sume."""
    environment = {
        **own,
        "DJANGO_SETTINGS_MODULE": settings_module,
        "DJANGO_ENV_FILE": "",  # read already: variables removed here must stay removed
        "DJANGO_DEBUG": "1",
        "DJANGO_STATE_DIR": str(state.path),
        "DJANGO_MEDIA_ROOT": str(state.media),
        "PYTHONUNBUFFERED": "1",
    }
    if hosts := own.get("DJANGO_ALLOWED_HOSTS"):
        environment["DJANGO_ALLOWED_HOSTS"] = f"{hosts},127.0.0.1,localhost"
    silenced = [*own.get("DJANGO_SILENCED_SYSTEM_CHECKS", "").split(","), *SILENCED_CHECKS]
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
    """The variables that make the processes use the embedded Redis for everything."""
    return {"REDIS_URL": url, "CELERY_BROKER_URL": url}


def sandbox_environment(own: Mapping[str, str], port: int, key: str) -> dict[str, str]:
    """The variables that make the processes use the sandbox instead of Sume."""
    environment = {"SUME_API_KEY": key, "SUME_BASE_URL": f"http://127.0.0.1:{port}"}
    # The sandbox sends no webhooks: waiting for them would only delay polls.
    environment["SUME_WEBHOOK_SECRET"] = ""
    # No other account's key may be used: renders with it would be billed.
    environment |= dict.fromkeys(["RENDERS_SECRETS_FILE", "RENDERS_WORKSPACES"], "")
    # The sandbox bills nothing and accepts every model.
    limits = ("RENDERS_BUDGET_USD", "RENDERS_USER_BUDGET_USD", "RENDERS_MODELS")
    environment |= dict.fromkeys(limits, "")
    # The user's proxy cannot reach ports of this machine.
    direct = own.get("no_proxy") or own.get("NO_PROXY") or ""
    environment |= dict.fromkeys(["no_proxy", "NO_PROXY"], f"{direct},127.0.0.1".lstrip(","))
    # The sandbox's pictures come from this machine too.
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
