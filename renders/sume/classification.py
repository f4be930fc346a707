"""The meaning of every unsuccessful reply, as one closed table of error types."""

from typing import Any

from renders.exceptions import (
    BackOff,
    KeyTaken,
    NotFound,
    OutcomeUnknown,
    Paused,
    Rejected,
    SumeError,
)
from renders.sume.replies import SumeFault

# Words and codes in a refusal for a key that was used before with another body. Source: similar
# APIs, and the IETF's draft of the header.
OTHER_BODY = (
    "mismatch",
    "conflict",
    "different",
    "differ ",
    "not match",
    "reuse",
    "used before",
    "already used",
    "already been used",
    "in_use",
    "another body",
    "another payload",
    "another request body",
    "with another request",
)
# Words in a refusal while the first request with this key is still running.
UNDER_WAY = (
    "in_progress",
    "in progress",
    "in-progress",
    "processing",
    "processed",
    "running",
    "under way",
    "outstanding",
    "pending",
    "locked",
    "concurrent",
    "still",
)
# Words in a refusal of a malformed header: then no request is stored under the key.
MALFORMED = ("invalid", "format", "missing", "required", "must be a", "too long", "character")


def classify(
    status: int, fault: SumeFault, retry_after: float | None, *, readable: bool = True
) -> SumeError:
    """The error for an unsuccessful reply; anything not listed here is *unknown outcome*.

    `retry_after` is in seconds. A reply that is not `readable` (no JSON object) may come from a
    proxy with any status, so it never counts as Sume's refusal.
    Source: the table of replies in Sume's API notes.
    """
    message = fault.message or f"Sume answered with HTTP status {status}."
    refused = fault.retryable is False
    kind: type[SumeError] = OutcomeUnknown
    if status == 503 or (status == 429 and not refused):
        kind = BackOff
    elif status in {401, 402, 403}:
        kind = Paused
    elif not readable:
        kind = OutcomeUnknown
    elif status == 404:
        kind = NotFound
    elif of_key := _about_key(status, fault):
        kind = of_key
    elif status == 409 and not refused:
        kind = OutcomeUnknown  # the first request with this key may still be running
    elif refused or (400 <= status < 500 and status not in {408, 425}):
        kind = Rejected
    return kind(
        message,
        code=fault.code or f"http_{status}",
        status=status,
        request_id=fault.request_id,
        retry_after=retry_after,
    )


def _about_key(status: int, fault: SumeFault) -> type[SumeError] | None:
    """The error for a refusal of the idempotency key; None if it is about something else.

    An unclear refusal never counts as a free failure, since Sume has seen this key before.
    """
    if status not in {400, 409, 422}:
        return None
    code, words = fault.code.lower(), fault.message.lower()
    if "idempoten" not in f"{code} {words}":
        other = status == 409 and any(word in code for word in ("mismatch", "different", "reuse"))
        return KeyTaken if other else None
    for text in (code, words):  # the code is clearer than the message
        if any(word in text for word in OTHER_BODY):
            return KeyTaken
        if any(word in text for word in UNDER_WAY):
            return OutcomeUnknown
        if any(word in text for word in MALFORMED):
            return None
    return OutcomeUnknown if status == 409 and fault.retryable is not False else KeyTaken


def about(error: SumeError) -> dict[str, Any]:
    """The identifying fields of an error, as arguments for another one."""
    return {
        "code": error.code,
        "status": error.status,
        "request_id": error.request_id,
        "retry_after": error.retry_after,
    }
