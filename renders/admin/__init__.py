"""The admin's pages: renders, the gate, and tokens for the API."""

from renders.admin.gate import GateAdmin
from renders.admin.jobs import RenderJobAdmin
from renders.admin.tokens import ApiTokenAdmin
from renders.admin.workspaces import UserWorkspaceAdmin

__all__ = ["ApiTokenAdmin", "GateAdmin", "RenderJobAdmin", "UserWorkspaceAdmin"]
