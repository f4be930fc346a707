"""The form that adds a render in the admin."""

from typing import Any

from django import forms
from django.utils.html import format_html

from renders.models import RenderJob
from renders.presentation.forms import ParamsField, TokenForm
from renders.presentation.widgets import KindChoice
from renders.services.validation import REQUEST_FIELDS
from renders.states import Kind


class RenderAdminForm(TokenForm, forms.ModelForm):
    """Adds a render. The admin sets `user` on the subclass that it makes."""

    kind = forms.ChoiceField(choices=Kind.choices, initial=Kind.IMAGE, widget=KindChoice)
    params = ParamsField(
        required=False,
        initial=dict,
        help_text=format_html(
            "Further fields of the request, as a JSON object: <code>{}</code>. "
            "Available fields depend on the model. Sume refuses what it does not know.",
            '{"seed": 7}',
        ),
    )

    class Meta:
        model = RenderJob
        fields = REQUEST_FIELDS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.initial.get("kind") not in Kind.values:
            self.initial["kind"] = Kind.IMAGE  # the query string may hold anything
