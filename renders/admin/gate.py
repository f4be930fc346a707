"""The gate's page: whether each workspace may send, why not and until when; pause and resume."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from renders import services
from renders.conf.workspaces import DEFAULT
from renders.limits import gate
from renders.models import Gate
from renders.reports import standing
from renders.reports.standing import GateStanding
from renders.states import RequestType

# No button ends these: the settings do, or the next month.
NOT_RESUMED = {"budget_spent", "unknown_workspace"}


@admin.register(Gate)
class GateAdmin(admin.ModelAdmin):
    """One page instead of a list. Nothing is edited by hand."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the gates. POST `pause` or `resume` needs the change permission."""
        may_act = self.has_change_permission(request)
        if not (may_act or self.has_view_permission(request)):
            raise PermissionDenied
        if request.method == "POST":
            if not may_act:
                raise PermissionDenied
            return self._act(request)
        by_workspace = standing.all_gates()
        context = {
            **self.admin_site.each_context(request),
            "title": "Gate",
            "opts": self.opts,
            "accounts": [_account(name, gates) for name, gates in by_workspace.items()],
            "several": len(by_workspace) > 1,
            "may_act": may_act,
            "over_budget_url": reverse("admin:renders_renderjob_changelist")
            + "?status=over_budget",
            "overdue_url": reverse("admin:renders_renderjob_changelist") + "?standing=overdue",
            **(extra_context or {}),
        }
        return TemplateResponse(request, "renders/admin/gate.html", context)

    def change_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Redirect to the one page."""
        return HttpResponseRedirect(reverse("admin:renders_gate_changelist"))

    def _act(self, request: HttpRequest) -> HttpResponse:
        workspace, names = request.POST.get("workspace", DEFAULT), standing.all_workspaces()
        if workspace not in names:
            raise PermissionDenied
        where = f"{workspace}: " if len(names) > 1 else ""
        if "pause" in request.POST:
            services.pause_sending(workspace, request.user)
            self._note(request, workspace, "Paused sending.")
            messages.success(request, f"{where}Paused: no render is sent until somebody resumes.")
        elif "resume" in request.POST:
            services.resume_sending(workspace)
            self._note(request, workspace, "Resumed.")
            if closed := standing.why_paused(workspace):
                messages.warning(request, f"{where}Still nothing is sent. {closed}")
            else:
                messages.success(
                    request, f"{where}Resumed: the next render is sent within moments."
                )
        return HttpResponseRedirect(request.path)

    def _note(self, request: HttpRequest, workspace: str, what: str) -> None:
        row = gate.row_of(workspace, RequestType.WRITES)
        if row:
            self.log_change(request, row, what)


def _account(workspace: str, gates: list[GateStanding]) -> dict[str, Any]:
    figures = standing.figures(workspace)
    held = any(row.held for row in gates)
    paused = any(
        row.refusals or ((row.closed or row.trying) and row.code not in NOT_RESUMED)
        for row in gates
    )
    return {"name": workspace, "gates": gates, "figures": figures, "held": held, "paused": paused}
