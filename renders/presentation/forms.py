"""Forms that add a render, and their protection against sending twice.

A double click, a reload or a second tab must not make a second paid render. So each form has a
random token, made when it is displayed, which becomes the render's `reference`. The insert into
the database decides whether it was sent before. So a valid form has made its render.
"""

import json
import secrets
from typing import Any, cast

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator

from renders import services
from renders.conf import conf
from renders.exceptions import InvalidRender, ReferenceTaken
from renders.limits import prices
from renders.models import RenderJob
from renders.presentation import kind_fields
from renders.presentation.widgets import JsonEditor, KindChoice, Suggesting
from renders.services import inputs, permissions, workspace_choice
from renders.services.references import door
from renders.services.validation import (
    JsonError,
    clean_request,
    parse_json,
    request_errors,
    request_fields,
)
from renders.states import AUTO, Kind
from renders.sume.bodies import SHAPES


def new_token() -> str:
    """A random token for one display of a form."""
    return secrets.token_urlsafe(18)


def add_workspaces(form: Any) -> None:
    """Add a choice of workspaces if the user may choose; show the approximate cost of each kind."""
    form.fields["kind"].widget.prices = workspace_choice.prices(form.user)
    if names := workspace_choice.choices(form.user):
        form.fields["workspace"] = forms.ChoiceField(
            choices=[(name, name) for name in names],
            required=False,
            help_text="The Sume account that makes it and is billed.",
        )


def add_models(form: Any) -> None:
    """Suggest the allowed models and start with one of them, unless all are allowed."""
    if not conf.MODELS:
        return
    field = form.fields["model"]
    field.widget = Suggesting(field.widget.attrs)
    field.widget.offered = lambda: conf.MODELS
    field.help_text = f"One of: {prices.listed(conf.MODELS)}."
    if form.initial.get("model", AUTO) == AUTO:
        form.initial["model"] = prices.default_model()


def add_error_of(form: forms.Form, error: InvalidRender) -> None:
    """Show an error of the request at its field."""
    texts = {name for name in form.fields if form.data.get(form.add_prefix(name))}
    name = inputs.place(error, texts)
    if name in form.fields or not error.field.startswith("params."):
        form.add_error(name if name in form.fields else None, error.message)
        return
    own = error.field.removeprefix("params.")
    words = error.message if own in error.message else f"{own}: {error.message}"
    form.add_error("params", words)


def start_of(row: RenderJob, kind: str = "") -> dict[str, Any]:
    """A form's initial values to repeat a render's request, with its kind or another one."""
    wanted = Kind(kind) if kind in Kind.values else Kind(row.kind)
    others = SHAPES[Kind(row.kind)].fields.keys() - SHAPES[wanted].fields.keys()
    return {
        "kind": wanted,
        "prompt": row.prompt,
        "model": row.model or AUTO,
        "params": {name: value for name, value in row.params.items() if name not in others},
    }


class ParamsBoundField(forms.BoundField):
    """Adds an error's line and column to the widget, for the editor."""

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
        """The typed text, valid or not, so that it is shown again."""
        return initial if self.disabled else data

    def prepare_value(self, value: Any) -> Any:
        return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


class TokenForm(forms.Form):
    """Validates a request by the app's own rules, and makes its render once.

    A valid form has made its render: `made`. `repeated` is true if the render existed already.
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
        add_models(self)
        kind_fields.add_to(self)

    def clean_prompt(self) -> str:
        """The prompt with plain newlines: browsers send CR LF."""
        return str(self.cleaned_data["prompt"]).replace("\r\n", "\n")

    def clean(self) -> dict[str, Any]:
        """The data; errors of the request are shown at their fields."""
        data = self.cleaned_data
        kind = data.get("kind")
        for name in kind_fields.hidden(kind):  # errors there would be invisible
            self.errors.pop(name, None)
            data.pop(name, None)
        fields = {name: data[name] for name in request_fields() if name in data}
        wrong = self._merge(fields, kind_fields.filled(data, kind))
        for error in [*wrong, *request_errors(fields)]:
            add_error_of(self, error)
        if "token" in self.errors:
            self._renew_token()
        if not (self.errors or fields.get("workspace")):
            try:
                workspace_choice.choose(self.user)
            except InvalidRender as error:
                self.add_error(None, error.message)
        if not self.errors:
            self.request = clean_request(**fields)
        return data

    def _merge(self, fields: dict[str, Any], filled: dict[str, Any]) -> list[InvalidRender]:
        """Merge the kind's own fields into the request's params; returns the errors."""
        params = fields.get("params")
        params = {} if params is None else params
        if not (filled and isinstance(params, dict)):
            return []
        fields["params"], wrong = inputs.merge(Kind(fields["kind"]), filled, params)
        return wrong

    def bound(self, names: list[str]) -> list[forms.BoundField]:
        """The bound fields with these names, as far as the form has them."""
        return [self[name] for name in names if name in self.fields]

    def fields_before(self) -> list[forms.BoundField]:
        """Fields that some kind requires, shown before the prompt."""
        return self.bound(kind_fields.BEFORE)

    def fields_after(self) -> list[forms.BoundField]:
        """Optional fields of some kind, shown after the prompt."""
        return self.bound(kind_fields.AFTER)

    kinds_with_fields = " ".join(kind for kind, fields in kind_fields.SHOWN.items() if fields)

    def fields_seldom(self) -> list[forms.BoundField]:
        """Fields of some kind that few people need, folded away."""
        return self.bound(kind_fields.SELDOM)

    def _post_clean(self) -> None:
        """Make the render, or get the one that this form made before.

        This replaces the model's own validation, since `clean` has validated the request.
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
            add_error_of(self, error)
        else:
            self.repeated = not is_new

    def _renew_token(self) -> None:
        data = cast(Any, self.data).copy()
        data[self.add_prefix("token")] = new_token()
        self.data = data


class RenderForm(TokenForm):
    """Adds a render from its page. A priority needs a permission, since it delays other renders."""

    prompt = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 4}),
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
        label="Further fields",
        help_text='Of the request, as a JSON object: {"seed": 7}.',
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
        if not permissions.may_prioritize(user):
            del self.fields["priority"]

    def clean_model(self) -> str:
        """The model; if empty, Sume chooses."""
        return self.cleaned_data["model"] or AUTO

    def clean_priority(self) -> int:
        """The priority; 0 if empty."""
        return self.cleaned_data["priority"] or 0

    @property
    def more_open(self) -> bool:
        """Whether a folded field has an error or an unusual value, so it must be unfolded."""
        hidden = kind_fields.hidden(self["kind"].value())
        seldom = {"model", "params", "priority", "reference", *kind_fields.SELDOM} - {*hidden}
        return bool(self.errors.keys() & seldom) or any(
            self[name].value() not in (None, "", "{}", "0", {}, 0, AUTO, prices.default_model())
            for name in seldom
            if name in self.fields
        )
