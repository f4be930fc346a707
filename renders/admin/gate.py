"""The gate's page: may Sume be asked now, why not, until when; and a button. For each workspace."""

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

# What no button ends: the settings do, or the next month.
NOT_RESUMED = {"budget_spent", "unknown_workspace"}


@admin.register(Gate)
class GateAdmin(admin.ModelAdmin):
    """One page instead of a list; nothing is edited by hand."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the gates; POST `pause` or `resume` from those who may change them."""
        may_act = self.has_change_permission(request)
        if not (may_act or self.has_view_permission(request)):
            raise PermissionDenied
        if request.method == "POST":
            if not may_act:
                raise PermissionDenied
            return self._act(request)
        known = standing.all_gates()
        context = {
            **self.admin_site.each_context(request),
            "title": "Gate",
            "opts": self.opts,
            "accounts": [_account(name, gates) for name, gates in known.items()],
            "several": len(known) > 1,
            "may_act": may_act,
            "over_budget_url": reverse("admin:renders_renderjob_changelist")
            + "?status=over_budget",
            "overdue_url": reverse("admin:renders_renderjob_changelist") + "?standing=overdue",
            **(extra_context or {}),
        }
        return TemplateResponse(request, "renders/admin/gate.html", context)

    def change_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """The one page there is."""
        return HttpResponseRedirect(reverse("admin:renders_gate_changelist"))

    def _act(self, request: HttpRequest) -> HttpResponse:
        workspace, known = request.POST.get("workspace", DEFAULT), standing.all_workspaces()
        if workspace not in known:
            raise PermissionDenied
        where = f"{workspace}: " if len(known) > 1 else ""
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
    held = any(one.held for one in gates)
    paused = any(
        one.refusals or ((one.closed or one.trying) and one.code not in NOT_RESUMED)
        for one in gates
    )
    return {"name": workspace, "gates": gates, "figures": figures, "held": held, "paused": paused}
