"""Validates a request for a render: the same rules and error texts for every way to make one."""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from renders.conf import conf, workspaces
from renders.exceptions import InvalidRender
from renders.redaction import ERASED
from renders.states import AUTO, Kind, takes_model
from renders.sume import bodies

REQUEST_FIELDS = ("prompt", "kind", "model", "params", "priority", "reference")
WORKSPACE_FIELD = "workspace"
SAY_WHAT = {
    Kind.IMAGE: "Say what the picture or clip should show.",
    Kind.VIDEO: "Say what the picture or clip should show.",
    Kind.AVATAR: "Describe the avatar, or give a photo, or ethnicity, sex and age.",
    Kind.AVATAR_VIDEO: "Write what the avatar says.",
}
MAX_PARAMS_BYTES = 100_000
MAX_DEPTH = 20
# Default of a prompt that was not passed: no error for it, since the form reported one.
MISSING = object()


def request_fields() -> tuple[str, ...]:
    """The fields that a request may have; `workspace` only if there are several."""
    return (*REQUEST_FIELDS, *((WORKSPACE_FIELD,) if workspaces.several() else ()))


def clean_request(prompt: Any, **fields: Any) -> dict[str, Any]:
    """Return the fields of a `RenderJob`, ready to store; `workspace` only if one is given.

    `fields` are those of `request_fields`; each has a default. Raises `InvalidRender`; its
    `field` names the argument at fault. For a field of one kind only, it is `params.<name>`.
    """
    cleaned, errors = _clean(prompt=prompt, **fields)
    if errors:
        raise errors[0]
    return cleaned


def request_errors(fields: Mapping[str, Any]) -> list[InvalidRender]:
    """The errors of all fields; `clean_request` stops at the first. A missing field is fine."""
    return _clean(**fields)[1]


def clean_params(params: Any) -> dict[str, Any]:
    """Check `params`: a JSON object of limited size and depth.

    Raises `InvalidRender`.
    """
    if not isinstance(params, dict):
        raise InvalidRender("params", 'A JSON object is needed, for instance {"seed": 7}.')
    _json("params", params, depth=0)
    if len(json.dumps(params)) > MAX_PARAMS_BYTES:
        raise InvalidRender("params", f"More than {MAX_PARAMS_BYTES:,} bytes of JSON.")
    return params


class JsonError(ValueError):
    """The text is not JSON; the error is at this line and column (both count from 1)."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


def parse_json(text: str) -> Any:
    """The value of strict JSON: no NaN, no infinity.

    Raises `ValueError`; a `JsonError` if the place is known.
    """
    try:
        return json.loads(text, parse_int=_parse_int, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        words = f"Not valid JSON at line {error.lineno}, column {error.colno}: {error.msg}."
        raise JsonError(words, error.lineno, error.colno) from None
    except RecursionError:
        raise ValueError("Nested too deeply.") from None


def _clean(
    *,
    prompt: Any = MISSING,
    kind: Any = Kind.IMAGE,
    model: Any = AUTO,
    params: Any = None,
    priority: Any = 0,
    reference: Any = None,
    workspace: Any = None,
) -> tuple[dict[str, Any], list[InvalidRender]]:
    """The valid fields, and all errors."""
    errors: list[InvalidRender] = []
    cleaned: dict[str, Any] = {}

    def read(name: str, check: Callable[..., Any], *args: Any) -> None:
        try:
            cleaned[name] = check(*args)
        except InvalidRender as error:
            errors.append(error)

    if workspace not in (None, ""):
        read("workspace", _workspace, workspace)
    if prompt is not MISSING:
        read("prompt", _prompt, prompt)
    read("kind", _kind, kind)
    read("params", clean_params, {} if params is None else params)
    if "kind" in cleaned:
        read("model", _model, model, cleaned["kind"])
    read("priority", _priority, priority)
    read("reference", _reference, reference)
    readable = {"kind", "params"} <= cleaned.keys()
    if cleaned.get("prompt") == "" and not (
        readable and not bodies.needs_prompt(cleaned["kind"], cleaned["params"])
    ):
        errors.append(InvalidRender("prompt", SAY_WHAT[cleaned.get("kind", Kind.IMAGE)]))
    if readable and ("prompt" in cleaned or prompt is MISSING):
        cleaned["params"], wrong = _fitting(
            cleaned["kind"], cleaned.get("prompt"), cleaned["params"]
        )
        errors += wrong
    return cleaned, errors


def _prompt(prompt: Any) -> str:
    return _text("prompt", prompt, conf.MAX_PROMPT_LENGTH).strip()


def _kind(kind: Any) -> Kind:
    if kind not in Kind.values:
        raise InvalidRender("kind", f"Unknown kind; choose one of: {', '.join(Kind.values)}.")
    return Kind(kind)


def _model(model: Any, kind: Kind) -> str:
    """The model; empty for a kind that has none."""
    if not takes_model(kind):
        if model not in (None, "", AUTO):
            words = f"Kind {kind} takes no model; leave it out."
            raise InvalidRender("model", words)
        return ""
    model = _text("model", model, 100).strip()
    if not model:
        raise InvalidRender("model", "Name Sume's model, for instance sume/auto.")
    if model.lower().startswith("sume/avatar"):
        raise InvalidRender("model", "Choose the kind avatar or avatar_video instead.")
    return str(model)


def _priority(priority: Any) -> int:
    if isinstance(priority, bool) or not isinstance(priority, int) or abs(priority) > 32_000:
        raise InvalidRender("priority", "A whole number from -32000 to 32000 is needed.")
    return priority


def _reference(reference: Any) -> str | None:
    if reference is None:
        return None
    name = reference.strip() if isinstance(reference, str) else reference
    name = _text("reference", name, 200) or None
    if (name or "").startswith(ERASED):
        raise InvalidRender("reference", f"It must not begin with {ERASED}")
    return name


def _fitting(
    kind: Kind, prompt: str | None, params: dict[str, Any]
) -> tuple[dict[str, Any], list[InvalidRender]]:
    """The cleaned `params`, and the errors of `params` and the prompt for this kind."""
    if not prompt:  # if one is needed, that was reported already
        prompt = "any" if bodies.needs_prompt(kind, params) else ""
    cleaned, wrong = bodies.check(kind, prompt, params)
    errors = []
    for error in wrong:
        name = "prompt" if error.of_prompt else f"params.{error.field}"
        errors.append(InvalidRender(name, str(error)))
    return cleaned, errors


def _workspace(name: Any) -> str:
    if name not in workspaces.names():
        raise InvalidRender("workspace", "There is no such workspace.")
    return str(name)


def _json(where: str, value: Any, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise InvalidRender("params", f"Nested deeper than {MAX_DEPTH} levels.")
    match value:
        case None | bool():
            pass
        case str():
            _text("params", value, MAX_PARAMS_BYTES)
        case int() | float():
            _number(where, value)
        case dict():
            for key, inner in value.items():
                _text("params", key, 200)
                _json(f"{where}.{key}", inner, depth + 1)
        case list() | tuple():
            for index, inner in enumerate(value):
                _json(f"{where}[{index}]", inner, depth + 1)
        case _:
            kind = type(value).__name__
            raise InvalidRender("params", f"{where}: a {kind} cannot be written as JSON.")


def _number(where: str, value: int | float) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidRender("params", f"{where}: NaN and infinity are not JSON numbers.")
    if abs(value) >= 2**63:  # PostgreSQL returns such a float as an integer
        raise InvalidRender("params", f"{where}: the number is too large.")


def _text(field: str, value: Any, longest: int) -> str:
    """Text that every database and JSON parser can hold."""
    if not isinstance(value, str):
        raise InvalidRender(field, "Text is needed.")
    if len(value) > longest:
        raise InvalidRender(field, f"Longer than {longest:,} characters.")
    if "\x00" in value:
        raise InvalidRender(field, "NUL characters cannot be stored.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidRender(field, "Half of a surrogate pair is not a character.") from None
    return value


def _parse_int(digits: str) -> int:
    if len(digits) > 1000:
        raise ValueError("A number has too many digits.")
    return int(digits)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number.")
