"""The tables and the named queries on them."""

from renders.models.api import ApiRequest, ApiToken
from renders.models.avatars import Avatar
from renders.models.drafts import Draft
from renders.models.gates import Gate
from renders.models.installation import Installation
from renders.models.jobs import RenderEvent, RenderJob
from renders.models.telemetry import Heartbeat, Tally
from renders.models.webhooks import WebhookEvent
from renders.models.workspaces import UserWorkspace

__all__ = [
    "ApiRequest",
    "ApiToken",
    "Avatar",
    "Draft",
    "Gate",
    "Heartbeat",
    "Installation",
    "RenderEvent",
    "RenderJob",
    "Tally",
    "UserWorkspace",
    "WebhookEvent",
]
