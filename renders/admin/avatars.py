"""Avatars in the admin: their owners, and whether everybody may use them."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest

from renders.conf import workspaces
from renders.models import Avatar
from renders.sume import bodies


class AvatarForm(forms.ModelForm):
    """An avatar that exists at Sume; with a field for the workspace if there are several."""

    class Meta:
        model = Avatar
        fields = ["handle", "owner", "released"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if workspaces.several() and self.instance.pk is None:
            self.fields["workspace"] = forms.ChoiceField(
                choices=[(name, name) for name in workspaces.names()],
                help_text="The Sume account that has it.",
            )

    def clean_handle(self) -> str:
        try:
            return bodies.handle(self.cleaned_data["handle"])
        except ValueError as error:
            raise ValidationError(str(error)) from None

    def clean(self) -> dict[str, Any]:
        """The handle is unique in its workspace."""
        data = super().clean() or self.cleaned_data
        if self.instance.pk is None:
            workspace = data.get("workspace") or workspaces.DEFAULT
            self.instance = Avatar(workspace=workspace)
            same = Avatar.objects.filter(workspace=workspace, handle=data.get("handle", ""))
            if same.exists():
                self.add_error("handle", "This avatar is in the list already.")
        return data


@admin.register(Avatar)
class AvatarAdmin(admin.ModelAdmin):
    """Avatars. Those made here are added automatically, others by hand."""

    form = AvatarForm
    list_display = ["handle", "owner", "released"]
    list_select_related = ["owner"]
    list_filter = ["released"]
    search_fields = ["handle"]
    search_help_text = "A handle, or a part of it."
    raw_id_fields = ["owner"]
    ordering = ["handle", "workspace"]
    actions = ["release", "take_back"]

    def get_list_display(self, request: HttpRequest) -> Any:
        return [*self.list_display[:2], *_workspace(), *self.list_display[2:]]

    def get_list_filter(self, request: HttpRequest) -> Any:
        return [*self.list_filter, *_workspace()]

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ["handle", *_workspace(), "owner", "released"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        # The handle and account name the avatar at Sume: with others, it would be another avatar.
        return ["handle", *_workspace()] if obj else []

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        if obj is None:
            kwargs["fields"] = ["handle", "owner", "released"]  # the form itself adds the workspace
        else:
            kwargs["form"] = forms.ModelForm
        return super().get_form(request, obj, change=change, **kwargs)

    @admin.action(description="Release to everybody", permissions=["change"])
    def release(self, request: HttpRequest, queryset: QuerySet[Avatar]) -> None:
        """Let everybody use these avatars."""
        self._set(request, queryset, released=True, word="Released")

    @admin.action(description="Take back", permissions=["change"])
    def take_back(self, request: HttpRequest, queryset: QuerySet[Avatar]) -> None:
        """Let only the owners and staff use these avatars."""
        self._set(request, queryset, released=False, word="Taken back")

    def _set(
        self, request: HttpRequest, queryset: QuerySet[Avatar], *, released: bool, word: str
    ) -> None:
        rows = list(queryset.filter(released=not released))
        Avatar.objects.filter(pk__in=[row.pk for row in rows]).update(released=released)
        for row in rows:
            self.log_change(request, row, f"{word}.")
        if rows:
            self.message_user(request, f"{word}: {len(rows)}.", messages.SUCCESS)
        else:
            self.message_user(request, "Nothing to do.")


def _workspace() -> list[str]:
    return ["workspace"] if workspaces.several() else []
