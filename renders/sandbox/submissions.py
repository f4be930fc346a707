"""Reads the body of a submit and refuses what is wrong with it."""

import json
from typing import Any

from .bodies import Wish, problems, wish
from .replies import ApiError


def read_json_object(body: bytes) -> dict[str, Any]:
    """Parse a request body. Raises ApiError 400 when it is no JSON object."""
    try:
        value = json.loads(body, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        message = "The request body is not valid JSON."
        raise ApiError(400, "invalid_json", message, retryable=False) from error
    if not isinstance(value, dict):
        message = "The request body must be a JSON object."
        raise ApiError(400, "invalid_json", message, retryable=False)
    return value


def check(kind: str, fields: dict[str, Any]) -> Wish:
    """What a body of this kind asks for.

    Raises ApiError 422 that names every bad field, or when the text asks to be refused.
    """
    errors = list(problems(kind, fields))
    if errors:
        message = "The request is not valid."
        raise ApiError(422, "validation_error", message, retryable=False, errors=errors)
    wanted = wish(kind, fields)
    if wanted.text.startswith("REJECT"):
        message = "The stand-in was asked to refuse: the prompt begins with REJECT."
        raise ApiError(422, "prompt_rejected", message, retryable=False)
    return wanted


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON.")
