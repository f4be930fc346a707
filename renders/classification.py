"""What a reply that is no success means: a closed table, in one place."""

from typing import Any

from renders.exceptions import (
    BackOff,
    NotFound,
    OutcomeUnknown,
    Paused,
    Rejected,
    SumeError,
)
from renders.replies import SumeFault

# Codes of a 409 that say "another body", in words seen at APIs of this kind.
CONFLICT_WORDS = ("mismatch", "conflict", "reuse", "different")


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
    elif (
        status == 409
        and not refused
        and not any(word in fault.code.lower() for word in CONFLICT_WORDS)
    ):
        kind = OutcomeUnknown  # the first request with this key may still be at work
    elif refused or (400 <= status < 500 and status != 408):
        kind = Rejected
    error = kind(
        message, code=fault.code or f"http_{status}", status=status, request_id=fault.request_id
    )
    if isinstance(error, BackOff):
        error.retry_after = retry_after
    return error


def about(error: SumeError) -> dict[str, Any]:
    """What names an error, to give to another one."""
    return {"code": error.code, "status": error.status, "request_id": error.request_id}
