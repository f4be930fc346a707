"""What a reply that is no success means: a closed table, in one place."""

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

# How a refusal of the key says that it came before with another body; in words, and codes, seen at
# APIs of this kind and in the IETF's draft of the header.
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
# How it says that the first request with this key is still at work.
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
# How it says that the header itself is wrong: nothing is known under it.
MALFORMED = ("invalid", "format", "missing", "required", "must be a", "too long", "character")


def classify(
    status: int, fault: SumeFault, retry_after: float | None, *, readable: bool = True
) -> SumeError:
    """What a reply that is no success means. What is not known here is *unknown outcome*.

    `retry_after` in seconds. A reply that is not `readable` (no JSON object) is not Sume's own
    word: a proxy in between can answer so with any status, and nothing fails for it.
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
        kind = OutcomeUnknown  # the first request with this key may still be at work
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
    """What a refusal of the key means; None where it is about something else.

    What is not understood is never taken for a free failure: Sume has seen this key before.
    """
    if status not in {400, 409, 422}:
        return None
    code, words = fault.code.lower(), fault.message.lower()
    if "idempoten" not in f"{code} {words}":
        other = status == 409 and any(word in code for word in ("mismatch", "different", "reuse"))
        return KeyTaken if other else None
    for text in (code, words):  # the code is the clearer word
        if any(word in text for word in OTHER_BODY):
            return KeyTaken
        if any(word in text for word in UNDER_WAY):
            return OutcomeUnknown
        if any(word in text for word in MALFORMED):
            return None
    return OutcomeUnknown if status == 409 and fault.retryable is not False else KeyTaken


def about(error: SumeError) -> dict[str, Any]:
    """What names an error, to give to another one."""
    return {
        "code": error.code,
        "status": error.status,
        "request_id": error.request_id,
        "retry_after": error.retry_after,
    }
