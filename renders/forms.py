"""What people send: the forms that add a render, and the guards against sending twice.

A double click, a reload or a second tab must not make a second paid render. So each form holds
a random token, made when it is shown; it becomes the render's `reference`. Whether it was sent
before, the database decides when the render is inserted: so a valid form has made its render.
"""

import json
import secrets
from typing import Any, cast

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator

from renders import choosing, services
from renders.bodies import FIELDS
from renders.exceptions import InvalidRender, ReferenceTaken
from renders.models import RenderJob
from renders.references import door
from renders.states import Kind
from renders.validation import (
    JsonError,
    clean_request,
    parse_json,
    request_errors,
    request_fields,
)
from renders.widgets import JsonEditor, KindChoice


def new_token() -> str:
    """A token for one showing of a form."""
    return secrets.token_urlsafe(18)


def add_workspaces(form: Any) -> None:
    """Let the form's person choose a workspace, if there are several and they may; and say what
    each kind costs about, if that is known.
    """
    form.fields["kind"].widget.prices = choosing.prices(form.user)
    if names := choosing.choices(form.user):
        form.fields["workspace"] = forms.ChoiceField(
            choices=[(name, name) for name in names],
            required=False,
            help_text="The Sume account that makes it and is billed.",
        )


def field_of(error: InvalidRender, form: forms.Form) -> str:
    """The form's field where an error of the request is shown."""
    own = error.field.removeprefix("params.")
    if own == error.field or (own in FIELDS and own in form.fields):
        return own
    return "params"


class ParamsBoundField(forms.BoundField):
    """Tells the editor where the JSON is wrong."""

    def build_widget_attrs(self, attrs: Any, widget: Any = None) -> Any:
        attrs = super().build_widget_attrs(attrs, widget)
        for error in self.errors.as_data():
            place = error.params or {}
            if "line" in place:
                attrs |= {
                    "data-error-line": place["line"],
                    "data-error-column": place["column"],
                }
        return attrs


class ParamsField(forms.JSONField):
    """A JSON object; an error names line and column, and the editor marks them."""

    widget = JsonEditor
    bound_field_class = ParamsBoundField

    def to_python(self, value: Any) -> Any:
        if self.disabled or not isinstance(value, str):
            return value
        if not value.strip():
            return {}
        try:
            return parse_json(value)
        except JsonError as error:
            place = {"words": str(error), "line": error.line, "column": error.column}
            raise ValidationError("%(words)s", code="invalid", params=place) from None
        except ValueError as error:
            raise ValidationError(str(error), code="invalid") from None

    def bound_data(self, data: Any, initial: Any) -> Any:
        """Show again what was typed, right or wrong."""
        return initial if self.disabled else data

    def prepare_value(self, value: Any) -> Any:
        return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


class TokenForm(forms.Form):
    """Checks a request for a render by the app's own rules, and makes it once.

    A form that is valid has made its render, as `made`; `repeated` if it was there already.
    """

    user: Any = None
    made: RenderJob
    repeated = False

    token = forms.CharField(
        widget=forms.HiddenInput(attrs={"autocomplete": "off"}),
        validators=[RegexValidator(r"^[A-Za-z0-9_-]{16,64}\Z")],
        error_messages={"required": "Send the form again.", "invalid": "Send the form again."},
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["token"] = new_token()
        add_workspaces(self)

    def clean_prompt(self) -> str:
        """Browsers send line ends as CR LF."""
        return str(self.cleaned_data["prompt"]).replace("\r\n", "\n")

    def clean(self) -> dict[str, Any]:
        """Errors at their fields."""
        data = self.cleaned_data
        fields = {name: data[name] for name in request_fields() if name in data}
        for error in request_errors(fields):
            self.add_error(field_of(error, self), error.message)
        if "token" in self.errors:
            self._renew_token()
        if not (self.errors or fields.get("workspace")):
            try:
                choosing.choose(self.user)
            except InvalidRender as error:
                self.add_error(None, error.message)
        if not self.errors:
            self.request = clean_request(**fields)
        return data

    def _post_clean(self) -> None:
        """Make the render, or find the one that this form made before.

        In place of the model's own checks: `clean` made them.
        """
        if self.errors:
            return
        own_reference = self.request["reference"]
        reference = own_reference or f"form:{self.user.pk}:{self.cleaned_data['token']}"
        request = {**self.request, "reference": reference}
        try:
            [(self.made, is_new)] = services.create([request], self.user, door(self.user))
        except ReferenceTaken as error:
            if own_reference:
                self.add_error("reference", error.message)
                return
            self._renew_token()
            self.add_error(
                None,
                "This form was sent before, with another request. "
                "Nothing was added now; send it again to add this one too.",
            )
        except InvalidRender as error:
            self.add_error(field_of(error, self), error.message)
        else:
            self.repeated = not is_new

    def _renew_token(self) -> None:
        data = cast(Any, self.data).copy()
        data[self.add_prefix("token")] = new_token()
        self.data = data


class RenderForm(TokenForm):
    """Adds a render from its page. Only staff set a priority: it moves others back in the line."""

    prompt = forms.CharField(
        widget=forms.Textarea(
            attrs={"rows": 4, "placeholder": "A lighthouse at dawn, watercolour"}
        ),
        help_text="What the picture or clip should show, in your words.",
        error_messages={"required": "Say what the picture or clip should show."},
    )
    kind = forms.ChoiceField(choices=Kind.choices, initial=Kind.IMAGE, widget=KindChoice)
    model = forms.CharField(
        required=False,
        initial="sume/auto",
        help_text="Sume's name of the model that makes it; sume/auto lets Sume choose.",
    )
    params = ParamsField(
        required=False,
        initial=dict,
        help_text='Further fields of the request, as a JSON object: {"aspect_ratio": "16:9"}.',
    )
    priority = forms.IntegerField(
        required=False, initial=0, help_text="Higher goes first; 0 is usual."
    )
    reference = forms.CharField(
        required=False,
        help_text="Your own unique name for it, if you want one: it is never made twice.",
    )

    def __init__(self, *args: Any, user: Any, **kwargs: Any) -> None:
        self.user = user
        super().__init__(*args, label_suffix="", **kwargs)
        if not user.is_staff:
            del self.fields["priority"]

    def clean_model(self) -> str:
        """Left empty, Sume chooses."""
        return self.cleaned_data["model"] or "sume/auto"

    def clean_priority(self) -> int:
        """Left empty, it is as usual."""
        return self.cleaned_data["priority"] or 0

    @property
    def more_open(self) -> bool:
        """Whether what is seldom needed holds something that a person should see."""
        seldom = ("model", "params", "priority", "reference")
        return bool(self.errors.keys() & set(seldom)) or any(
            self[name].value() not in (None, "", "{}", "0", {}, 0, "sume/auto")
            for name in seldom
            if name in self.fields
        )
