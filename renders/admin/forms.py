"""The form that adds a render in the admin."""

from typing import Any

from django import forms
from django.utils.html import format_html, format_html_join

from renders.forms import ParamsField, TokenForm
from renders.kinds import EXAMPLES
from renders.models import RenderJob
from renders.states import Kind
from renders.validation import REQUEST_FIELDS
from renders.widgets import KindChoice

# The style sheet shows the one of the kind that is chosen.
EXAMPLE = '<span class="for-kind" data-kind="{}">For instance: {}</span>'


class RenderAdminForm(TokenForm, forms.ModelForm):
    """Adds a render in the admin, which sets `user` on the class it makes of this."""

    kind = forms.ChoiceField(choices=Kind.choices, initial=Kind.IMAGE, widget=KindChoice)
    params = ParamsField(
        required=False,
        initial=dict,
        help_text=format_html(
            "Further fields of the request, as a JSON object: <code>{}</code>. "
            "Which there are, the model decides; Sume refuses what it does not know.",
            '{"aspect_ratio": "16:9"}',
        ),
    )

    class Meta:
        model = RenderJob
        fields = REQUEST_FIELDS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.initial.get("kind") not in Kind.values:
            self.initial["kind"] = Kind.IMAGE  # the address may ask for anything
        self.fields["prompt"].help_text = format_html(
            "{} {}",
            self.fields["prompt"].help_text,
            format_html_join(" ", EXAMPLE, EXAMPLES.items()),
        )
