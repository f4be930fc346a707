"""API tokens in the admin: made here, shown once, revoked. Their text is never stored."""

from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils import timezone

from renders.models import ApiToken


class TokenForm(forms.ModelForm):
    """The fields of a new token. `owner` is the user if the form has no field for it."""

    owner: Any = None

    class Meta:
        model = ApiToken
        fields = ["user", "name", "expires_at"]

    def clean_expires_at(self) -> Any:
        expires_at = self.cleaned_data["expires_at"]
        if expires_at and expires_at <= timezone.now():
            raise ValidationError("This time is over.", code="past")
        return expires_at

    def clean(self) -> dict[str, Any]:
        """Refuse a second valid token with the same name, also from a form sent twice."""
        data = super().clean() or self.cleaned_data
        same = ApiToken.objects.valid(timezone.now()).filter(
            user=data.get("user") or self.owner, name=data.get("name")
        )
        if same.exists():
            self.add_error(
                "name", "There is a valid token of this name. Revoke it, or choose another."
            )
        return data


@admin.register(ApiToken)
class ApiTokenAdmin(admin.ModelAdmin):
    """Each user's own tokens; superusers see and make tokens for everybody."""

    form = TokenForm
    list_display = ["name", "hint", "user", "state", "created_at", "last_used_at", "expires_at"]
    list_select_related = ["user"]
    search_fields = ["name", "hint"]
    search_help_text = "A name, or how a token begins."
    actions = ["revoke"]
    change_form_template = "renders/admin/token.html"

    # --- Who may do what ------------------------------------------------------------------

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiToken]:
        tokens = super().get_queryset(request)
        return tokens if _is_superuser(request) else tokens.filter(user_id=request.user.pk)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj:
            return ["name", "hint", "user", "state", "created_at", "last_used_at", "expires_at"]
        return ["user", "name", "expires_at"] if _is_superuser(request) else ["name", "expires_at"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.get_fields(request, obj) if obj else []

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"user": request.user.pk, **super().get_changeform_initial_data(request)}

    # --- Making -----------------------------------------------------------------------------

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        kwargs["form"] = forms.ModelForm if obj else TokenForm
        form: Any = super().get_form(request, obj, change=change, **kwargs)
        form.owner = request.user
        return form

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Only one save button: the next page shows the token."""
        extra = {"show_save_and_add_another": False, "show_save_and_continue": False}
        return super().add_view(request, form_url, extra | (extra_context or {}))

    def save_model(self, request: HttpRequest, obj: ApiToken, form: Any, change: bool) -> None:
        """Give a new token its text, for the following reply only; never change an old token."""
        if change:
            return
        if not _is_superuser(request):
            obj.user = cast(Any, request.user)
        request._api_token = obj.renew()  # type: ignore[attr-defined]
        obj.save()

    def response_add(
        self, request: HttpRequest, obj: ApiToken, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the token in the reply itself, so it is never in a URL, session or message."""
        context = {
            **self.admin_site.each_context(request),
            "title": "Your new API token",
            "opts": self.opts,
            "token": obj,
            "clear": request._api_token,  # type: ignore[attr-defined]
        }
        return TemplateResponse(request, "renders/admin/new_token.html", context)

    # --- Revoking ---------------------------------------------------------------------------

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The token with a button that revokes it. Nothing else can change."""
        if request.method == "POST":
            token: Any = self.get_object(request, object_id)
            if token is None or not self.has_change_permission(request, token):
                raise PermissionDenied
            self._revoke(request, self.get_queryset(request).filter(pk=token.pk))
            return HttpResponseRedirect(request.path)
        extra = {"title": "API token", **(extra_context or {})}
        return super().change_view(request, object_id, form_url, extra)

    @admin.action(description="Revoke the selected tokens", permissions=["change"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        """Revoke the tokens: requests with them are refused from now on."""
        self._revoke(request, queryset)

    def _revoke(self, request: HttpRequest, tokens: Any) -> None:
        valid = list(tokens.filter(revoked_at__isnull=True))
        tokens.revoke(timezone.now())
        for token in valid:
            self.log_change(request, token, "Revoked.")
        if valid:
            self.message_user(request, f"{len(valid)} revoked.", messages.SUCCESS)
        else:
            self.message_user(request, "Nothing to do: revoked before.")

    @admin.display(description="State")
    def state(self, token: ApiToken) -> str:
        return token.state(timezone.now())


def _is_superuser(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_superuser", False))
