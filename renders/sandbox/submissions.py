"""Reads the body of a submit and says what is wrong with it."""

import json
import re
from typing import Any
from urllib.parse import urlsplit

from .replies import ApiError

MODES = ("async", "sync", "subscribe", "webhook")
LOOPBACK = ("127.0.0.1", "localhost", "::1")
PLAIN = re.compile(r"[!-~]{1,2000}")
MAX_PROMPT_CHARACTERS = 100_000


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


def check(fields: dict[str, Any]) -> None:
    """Raise ApiError 422 that names every bad field, or when the prompt asks to be refused."""
    errors = list(_errors(fields))
    if errors:
        message = "The request is not valid."
        raise ApiError(422, "validation_error", message, retryable=False, errors=errors)
    if fields["prompt"].startswith("REJECT"):
        message = "The stand-in was asked to refuse: the prompt begins with REJECT."
        raise ApiError(422, "prompt_rejected", message, retryable=False)


def _errors(fields: dict[str, Any]) -> list[tuple[str, str]]:
    errors = []
    prompt, mode = fields.get("prompt"), fields.get("mode", "async")
    if not isinstance(prompt, str) or not prompt.strip():
        errors.append(("prompt", "A prompt that is not empty is required."))
    elif len(prompt) > MAX_PROMPT_CHARACTERS:
        errors.append(("prompt", f"At most {MAX_PROMPT_CHARACTERS} characters."))
    model = fields.get("model", "sume/auto")
    if not isinstance(model, str) or not model.strip():
        errors.append(("model", "Must be the name of a model."))
    if mode not in MODES:
        errors.append(("mode", f"Must be one of {', '.join(MODES)}."))
    if mode == "webhook" and not _takes_events(fields.get("webhook_url")):
        errors.append(("webhook_url", "Mode webhook needs a public HTTPS URL."))
    return errors


def _takes_events(url: Any) -> bool:
    """Whether events may be sent there: https, or http to this machine."""
    if not (isinstance(url, str) and PLAIN.fullmatch(url)):
        return False
    try:
        parts = urlsplit(url)
        named = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return named and (
        parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
    )


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON.")
