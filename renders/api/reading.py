"""Reading requests that make renders: the JSON body and the key. Errors are `Problem`s."""

import re
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, UnreadablePostError

from renders.exceptions import InvalidRender
from renders.presentation.problems import Problem
from renders.services import workspace_choice
from renders.services.validation import parse_json, request_errors, request_fields

MAX_BODY_BYTES = 10_000_000
MOST_RENDERS = 10_000
KEY = re.compile(r"[ -~]{1,255}")


@dataclass(frozen=True)
class Wanted:
    """The renders that a body requests; `many` if it is a list."""

    requests: list[dict[str, Any]]
    many: bool
    body: dict[str, Any]

    def field(self, index: int, name: str) -> str:
        """The path of a render's field in the body, for error messages."""
        return f"renders[{index}].{name}" if self.many else name


def check_body_headers(request: HttpRequest, *, needed: bool) -> None:
    """Raise `Problem` for a body that is too large or not JSON, before reading it."""
    given = str(request.META.get("CONTENT_LENGTH") or "")
    length = int(given[:20]) if given.isdecimal() else 0
    if length > MAX_BODY_BYTES:
        raise Problem(413, f"The body is larger than {MAX_BODY_BYTES:,} bytes.")
    if (needed or length) and request.content_type != "application/json":
        raise Problem(415, "Send the body as application/json.", Accept="application/json")


def read_key(request: HttpRequest) -> str:
    """The caller's `Idempotency-Key`, or "". Raises `Problem` for an invalid one."""
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return ""
    if not KEY.fullmatch(key):
        raise Problem(
            400,
            "An Idempotency-Key has 1 to 255 characters of printable ASCII.",
            code="bad_idempotency_key",
        )
    return key


def read_wanted(request: HttpRequest) -> Wanted:
    """The requested renders: one, or several in `renders`. Raises `Problem` with all errors."""
    body = _read_object(request)
    if "renders" not in body:
        wanted = Wanted([body], many=False, body=body)
    else:
        wanted = Wanted(_list(body), many=True, body=body)
    _refuse_workspaces(request.user, wanted)
    errors = [
        InvalidRender(wanted.field(index, error.field), error.message)
        for index, fields in enumerate(wanted.requests)
        for error in _errors(fields)
    ]
    if errors:
        raise Problem(422, "Nothing was made: the request is not acceptable.", errors)
    return wanted


def _refuse_workspaces(user: Any, wanted: Wanted) -> None:
    """Raise `Problem` for a workspace that the user may not choose, whether it exists or not."""
    if "workspace" not in request_fields():
        return
    first: dict[str, int] = {}
    for index, fields in enumerate(wanted.requests):
        if isinstance(name := fields.get("workspace"), str):
            first.setdefault(name, index)
    for name, index in first.items():
        try:
            workspace_choice.refuse(user, name)
        except InvalidRender as error:
            field = InvalidRender(wanted.field(index, "workspace"), error.message)
            words = f"Nothing was made. {error.message}"
            raise Problem(403, words, [field], code="workspace_not_allowed") from None


def _list(body: dict[str, Any]) -> list[dict[str, Any]]:
    renders = body["renders"]
    errors = [
        InvalidRender(name, "Unknown field beside renders.") for name in body if name != "renders"
    ]
    if not isinstance(renders, list) or not 1 <= len(renders) <= MOST_RENDERS:
        errors.append(InvalidRender("renders", f"A list of 1 to {MOST_RENDERS:,} is needed."))
    else:
        errors += [
            InvalidRender(f"renders[{index}]", "An object with a prompt is needed.")
            for index, fields in enumerate(renders)
            if not isinstance(fields, dict)
        ]
    if errors:
        raise Problem(422, "Nothing was made: the request is not acceptable.", errors)
    return renders


def _errors(fields: dict[str, Any]) -> list[InvalidRender]:
    names = request_fields()
    unknown = [InvalidRender(name, "Unknown field.") for name in fields if name not in names]
    priority = fields.get("priority")
    if isinstance(priority, float) and priority.is_integer():
        fields["priority"] = int(priority)  # in JSON, 3.0 is a whole number
    valid = {name: value for name, value in fields.items() if name in names}
    return [*unknown, *request_errors({"prompt": "", **valid})]


def _read_object(request: HttpRequest) -> dict[str, Any]:
    try:
        fields = parse_json(request.body.decode())
    except UnreadablePostError:
        raise Problem(400, "The body broke off.") from None
    except UnicodeDecodeError:
        raise Problem(400, "The body is not UTF-8.") from None
    except ValueError as error:
        raise Problem(400, str(error)) from None
    if not isinstance(fields, dict):
        raise Problem(400, 'The body must be a JSON object, for instance {"prompt": "A boat"}.')
    return fields
