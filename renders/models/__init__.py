"""The tables."""

from renders.models.api import ApiRequest
from renders.models.avatars import Avatar
from renders.models.drafts import Draft
from renders.models.events import RenderEvent
from renders.models.gates import Gate
from renders.models.heartbeats import Heartbeat
from renders.models.installation import Installation
from renders.models.jobs import RenderJob
from renders.models.tallies import Tally
from renders.models.tokens import ApiToken
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
