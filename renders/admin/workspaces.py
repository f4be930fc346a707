"""The workspace that each user's renders are made in; hidden unless there are, or were, several."""

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest

from renders.conf import workspaces
from renders.models import UserWorkspace


class UserWorkspaceForm(forms.ModelForm):
    """A choice of the configured workspaces, plus the current one if it is gone."""

    workspace = forms.ChoiceField(help_text="Where this person's renders are made, and billed.")

    class Meta:
        model = UserWorkspace
        fields = ["user", "workspace"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = workspaces.names()
        gone = self.instance.workspace
        choices = [(name, name) for name in names]
        if gone and gone not in names:
            choices.append((gone, f"{gone} (not configured)"))
        self.fields["workspace"].choices = choices  # type: ignore[attr-defined]


@admin.register(UserWorkspace)
class UserWorkspaceAdmin(admin.ModelAdmin):
    """The workspace of each user. Users without a row use `default`."""

    form = UserWorkspaceForm
    list_display = ["user", "workspace"]
    list_select_related = ["user"]
    list_filter = ["workspace"]
    raw_id_fields = ["user"]

    def has_module_permission(self, request: HttpRequest) -> bool:
        shown = workspaces.several() or UserWorkspace.objects.exists()
        return shown and super().has_module_permission(request)
