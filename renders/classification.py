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
from renders.replies import SumeFault

# How a refusal says that the key came before with another body, in words seen at APIs of this kind.
CONFLICT_WORDS = ("mismatch", "conflict", "reuse", "different", "another", "used before")
# How it says that the first request with this key is still at work.
UNDER_WAY_WORDS = ("in progress", "in_progress", "under way", "still", "concurrent")


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
    elif status in {400, 409, 422} and _key_is_taken(status, fault):
        kind = KeyTaken
    elif status == 409 and (not refused or _is_under_way(fault)):
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


def _key_is_taken(status: int, fault: SumeFault) -> bool:
    """Whether the refusal speaks of another body for the key; of a 409, its code is enough."""
    code, text = fault.code.lower(), f"{fault.code} {fault.message}".lower()
    if _is_under_way(fault):
        return False
    if status == 409 and any(word in code for word in CONFLICT_WORDS):
        return True
    return "idempoten" in text and any(word in text for word in CONFLICT_WORDS)


def _is_under_way(fault: SumeFault) -> bool:
    text = f"{fault.code} {fault.message}".lower()
    return "idempoten" in text and any(word in text for word in UNDER_WAY_WORDS)


def about(error: SumeError) -> dict[str, Any]:
    """What names an error, to give to another one."""
    return {
        "code": error.code,
        "status": error.status,
        "request_id": error.request_id,
        "retry_after": error.retry_after,
    }
