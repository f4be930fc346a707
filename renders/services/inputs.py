"""The inputs of forms and tables for each kind: one for each field of its request.

They are derived from the table in `renders.sume.bodies`. A field with parts has one input for each
part.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from renders.exceptions import InvalidRender
from renders.states import Kind
from renders.sume.bodies import FIELDS, SHAPES, Part


@dataclass(frozen=True)
class Input:
    """One field of a form, or one column of a table."""

    name: str
    param: str
    """The field of the request that it fills."""
    label: str
    help: str
    typed: str
    choices: tuple[str, ...] = ()
    required: bool = False
    seldom: bool = False
    part: Part | None = None

    def value(self, given: Any) -> Any:
        """The request field's value for this input; it is validated later."""
        text = given.strip() if isinstance(given, str) else given
        if self.typed == "number" and isinstance(text, str) and _is_number(text):
            return int(text)
        return {**self.part.fixed, self.part.key: text} if self.part else text

    def text(self, value: Any) -> str | None:
        """The text to type for this value; None if this input cannot produce it."""
        if self.part:
            rest = dict(value) if isinstance(value, dict) else {}
            value = rest.pop(self.part.key, None)
            if rest != self.part.fixed:
                return None
        if self.typed == "number":
            return str(value) if isinstance(value, int) and not isinstance(value, bool) else None
        fits = isinstance(value, str) and (not self.choices or value in self.choices)
        return value if fits and "\n" not in value else None


def _inputs(kind: Kind) -> Iterable[Input]:
    for name, field in SHAPES[kind].fields.items():
        if not field.parts:
            yield Input(
                name,
                name,
                field.label or name,
                field.help,
                field.typed,
                field.choices,
                field.required,
                field.seldom,
            )
        for part_name, part in field.parts.items():
            yield Input(
                part_name, name, part.label, part.help, part.typed, seldom=field.seldom, part=part
            )


INPUTS: dict[Kind, dict[str, Input]] = {
    kind: {entry.name: entry for entry in _inputs(kind)} for kind in SHAPES
}
# The columns of a table, beside those of every request. JSON may use whole fields too (`KEYS`).
COLUMNS = tuple(dict.fromkeys(name for inputs in INPUTS.values() for name in inputs))
KEYS = frozenset({*COLUMNS, *FIELDS})


def merge(
    kind: Kind, given: Mapping[str, Any], params: Mapping[str, Any]
) -> tuple[dict[str, Any], list[InvalidRender]]:
    """`params` with the values of these inputs, and the errors of values that conflict."""
    merged, errors = dict(params), []
    first: dict[str, str] = {}
    for name, value in given.items():
        entry = INPUTS[kind].get(name)
        param = entry.param if entry else name
        if entry is None and name not in SHAPES[kind].fields:
            words = f"{name} is not part of a request of kind {kind}."
        elif param in params:
            words = f"params has {param} too. Give it in one place only."
        elif param in first:
            words = f"Give this or {first[param]}, not both."
        else:
            merged[param] = entry.value(value) if entry else value
            first[param] = entry.label if entry else name
            continue
        errors.append(InvalidRender(f"params.{name}", words))
    return merged, errors


def split(kind: Kind, params: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, Any]]:
    """The text of each input for these `params`, and the fields that no input can produce."""
    texts, rest = {}, dict(params)
    for name, entry in INPUTS[kind].items():
        text = entry.text(params[entry.param]) if entry.param in rest else None
        if text is not None:
            texts[name] = text
            del rest[entry.param]
    return texts, rest


def place(error: InvalidRender, filled: Iterable[str]) -> str:
    """The input at which to show an error: one that was filled in, else the field's first."""
    own = error.field.removeprefix("params.")
    if own == error.field or own not in KEYS:
        return error.field
    names = [
        name
        for inputs in INPUTS.values()
        for name, entry in inputs.items()
        if own in (name, entry.param)
    ]
    return next((name for name in names if name in set(filled)), [*names, own][0])


def _is_number(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 10
