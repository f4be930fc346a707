"""Form fields that only some kinds have, made from `renders.services.inputs`.

The page has all of them, and a style sheet shows those of the chosen kind. So the page works
without JavaScript, and input for another kind is ignored.
"""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from renders.presentation.widgets import EXAMPLES, PROMPT_HELP, PROMPT_LABELS, Suggesting
from renders.services import avatars
from renders.services.inputs import INPUTS, Input, split
from renders.states import Kind, takes_model

HANDLE = "avatar_handle"
# Inputs with only a single choice are not shown.
SHOWN: dict[Kind, dict[str, Input]] = {
    kind: {name: field for name, field in inputs.items() if len(field.choices) != 1}
    for kind, inputs in INPUTS.items()
}
FORM_KINDS: dict[str, list[Kind]] = {
    "model": [kind for kind in Kind if takes_model(kind)],
    **{
        name: [kind for kind in Kind if name in SHOWN[kind]]
        for inputs in SHOWN.values()
        for name in inputs
    },
}
"""The kinds that each field is for."""


def _named(*, required: bool = False, seldom: bool = False) -> list[str]:
    inputs = {name: field for fields in SHOWN.values() for name, field in fields.items()}
    wanted = (required, seldom)
    return [name for name, field in inputs.items() if (field.required, field.seldom) == wanted]


# The fields that a form shows before the prompt, after it, and folded away.
BEFORE = _named(required=True)
AFTER = _named()
SELDOM = _named(seldom=True)


def add_to(form: Any) -> None:
    """Add the kinds' fields to a form that has a request's fields and a `user`."""
    for name, kinds in FORM_KINDS.items():
        if name not in form.fields:
            form.fields[name] = _field({kind: SHOWN[kind][name] for kind in kinds})
        form.fields[name].widget.attrs["data-kinds"] = " ".join(kinds)
    prompt = form.fields["prompt"]
    prompt.required = False  # optional for some avatars; the request is validated later
    prompt.label = by_kind(PROMPT_LABELS)
    examples = {kind: f"For instance: {text}" for kind, text in EXAMPLES.items()}
    prompt.help_text = format_html("{} {}", by_kind(PROMPT_HELP), by_kind(examples))
    if HANDLE in form.fields:
        form.fields[HANDLE].widget.offered = lambda: avatars.choices(
            form.user, ask=form["kind"].value() == Kind.AVATAR_VIDEO
        )
    kind, params = form.initial.get("kind"), form.initial.get("params")
    if kind in Kind.values and isinstance(params, dict):
        texts, rest = split(Kind(kind), params)
        shown = {name: text for name, text in texts.items() if name in form.fields}
        hidden = {name: params[name] for name in texts if name not in form.fields}
        form.initial |= {**shown, "params": {**rest, **hidden}}


def hidden(kind: Any) -> Iterable[str]:
    """The names of the fields that this kind does not have."""
    return [
        name
        for name, kinds in FORM_KINDS.items()
        if kind not in kinds and not (name == "model" and kind is None)
    ]


def filled(data: dict[str, Any], kind: Any) -> dict[str, Any]:
    """The non-empty values of this kind's fields."""
    return {name: data[name] for name in SHOWN.get(kind, ()) if data.get(name) not in (None, "")}


def by_kind(words: dict[Kind, str]) -> SafeString:
    """HTML with each kind's words; the page shows those of the chosen kind."""
    kinds: dict[str, list[Kind]] = {}
    for kind, text in words.items():
        kinds.setdefault(text, []).append(kind)
    parts = [(" ".join(names), text) for text, names in kinds.items()]
    return format_html_join(" ", '<span class="for-kind" data-kinds="{}">{}</span>', parts)


def _field(inputs: dict[Kind, Input]) -> forms.Field:
    first = next(iter(inputs.values()))
    helps = {kind: each.help for kind, each in inputs.items()}
    common: dict[str, Any] = {
        "required": False,
        "label": first.label,
        "help_text": by_kind(helps) if len(set(helps.values())) > 1 else first.help,
    }
    choices = dict.fromkeys(choice for each in inputs.values() for choice in each.choices)
    if choices:
        return forms.ChoiceField(
            choices=[("", "-"), *((choice, choice) for choice in choices)], **common
        )
    # Not `type=url` or `number`: browsers refuse to submit invalid values, even in hidden fields.
    mode = {"url": "url", "number": "numeric"}.get(first.typed, "text")
    attrs = {"inputmode": mode, "autocomplete": "off"}
    widget = Suggesting(attrs) if first.name == HANDLE else forms.TextInput(attrs)
    return forms.CharField(widget=widget, **common)
