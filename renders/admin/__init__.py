"""The admin's pages: renders, the gate, avatars, workspaces of users, and tokens for the API."""

from renders.admin.avatars import AvatarAdmin
from renders.admin.gate import GateAdmin
from renders.admin.jobs import RenderJobAdmin
from renders.admin.tokens import ApiTokenAdmin
from renders.admin.workspaces import UserWorkspaceAdmin

__all__ = ["ApiTokenAdmin", "AvatarAdmin", "GateAdmin", "RenderJobAdmin", "UserWorkspaceAdmin"]
