"""Webhooks: half on, they are worth nothing, and renders are polled as often as without."""

from collections.abc import Iterator

from django.conf import settings
from django.core.checks import CheckMessage, Info, Warning

from renders import workspaces
from renders.conf import conf

SHORTEST_SECRET = 16


def webhook_faults() -> Iterator[CheckMessage]:
    """The secret, and the address that Sume is told."""
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
