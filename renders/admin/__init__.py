"""The admin's pages: renders, and the gate."""

from renders.admin.gate import GateAdmin
from renders.admin.jobs import RenderJobAdmin

__all__ = ["GateAdmin", "RenderJobAdmin"]
