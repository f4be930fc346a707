"""The tables."""

from renders.models.events import RenderEvent
from renders.models.gates import Gate
from renders.models.jobs import RenderJob
from renders.models.webhooks import WebhookEvent

__all__ = ["Gate", "RenderEvent", "RenderJob", "WebhookEvent"]
