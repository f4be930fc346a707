"""What each fault does to a request: answer in its place, change the reply, or break the wire."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

from .arguments import ODD_POLLS
from .faults import Fault
from .jobs import JobError
from .replies import ApiError, Reply, html_page, job_not_found, result_not_ready

HOSTILE = "\x00\ud800"
# Without these nothing else could be read at all.
KEPT_WHOLE = frozenset(
    {"id", "request_id", "job_id", "status", "sume_status", "url", "status_url", "result_url"}
)


@dataclass(frozen=True)
class Wire:
    """How a reply travels. Times are seconds."""

    reset: bool = False
    wait_seconds: float = 0.0
    spread_seconds: float = 0.0
    cut_short: bool = False


def _http_date(seconds: float) -> str:
    # Dates know whole seconds only: round up, so that the wait is never shorter than asked.
    moment = datetime.now(UTC) + timedelta(seconds=math.ceil(seconds) + 1)
    return format_datetime(moment.replace(microsecond=0), usegmt=True)


def _too_many(code: str, retry_after: str) -> ApiError:
    message = "The sandbox was asked for this."
    return ApiError(429, code, message, retryable=True, retry_after=retry_after)


REFUSALS: dict[str, Callable[[Any], ApiError]] = {
    "rate_limited": lambda s: _too_many("rate_limit_exceeded", _http_date(s)),
    "queue_full": lambda s: _too_many("queue_full", str(math.ceil(s))),
    "unavailable": lambda s: ApiError(
        503,
        "service_unavailable",
        "Try again later.",
        retryable=True,
        retry_after=str(math.ceil(s)),
    ),
    "unauthorized": lambda _: unauthorized(),
    "insufficient_credits": lambda _: ApiError(402, "insufficient_credits", "No credits left."),
    "forbidden": lambda _: ApiError(403, "forbidden", "This API key may not do that."),
    "not_found": lambda _: job_not_found(),
    "rejected": lambda code: ApiError(
        422, code, "The sandbox was asked to refuse this.", retryable=False
    ),
    "idempotency_in_progress": lambda _: ApiError(
        409,
        "idempotency_in_progress",
        "A request with this Idempotency-Key is still under way.",
        retryable=True,
    ),
    "result_not_ready": result_not_ready,
}


# What becomes of the job, where the fault is met later than the request.
PLANS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "job_fails": lambda code: {
        "planned_error": JobError(code, "The sandbox was asked to fail this.", code)
    },
    "job_takes": lambda seconds: {"processing_seconds": seconds},
}


def unauthorized() -> ApiError:
    """The refusal for a missing or unknown API key."""
    return ApiError(401, "unauthorized", "A valid API key is required.")


def instead(fault: Fault, request_id: str) -> Reply | None:
    """The reply that takes the request's place, so that it is never carried out; else None."""
    if fault.name == "reset_before":
        return Reply(500)  # never sent: `wire` resets the connection
    if fault.name == "server_error":
        return html_page(fault.argument, "Bad gateway")
    refusal = REFUSALS.get(fault.name)
    return refusal(fault.argument).reply(request_id) if refusal else None


def changed(fault: Fault, reply: Reply) -> Reply:
    """The reply of a request that was carried out, as the fault leaves it."""
    if fault.name == "gateway_timeout":
        return html_page(fault.argument, "Gateway time-out")
    if fault.name == "html":
        return html_page(reply.status, "Please wait")
    if not isinstance(reply.payload, dict):
        return reply
    if fault.name == "hostile":
        return replace(reply, payload=_poisoned(reply.payload))
    data = reply.payload.get("data")
    if not isinstance(data, dict) or fault.name not in DATA_CHANGES:
        return reply
    # A copy: the dict may hold parts that others still use.
    copy = json.loads(json.dumps(data))
    return replace(reply, payload=DATA_CHANGES[fault.name](copy, fault.argument))


def wire(fault: Fault | None) -> Wire:
    """How the reply travels under this fault."""
    if fault is None:
        return Wire()
    return Wire(
        reset=fault.name in ("reset_before", "reset_after"),
        wait_seconds=fault.argument if fault.name == "slow" else 0.0,
        spread_seconds=fault.argument if fault.name == "trickle" else 0.0,
        cut_short=fault.name == "cut_short",
    )


def hides_hint(fault: Fault) -> bool:
    """Whether a client under this fault cannot know when its next status read is due."""
    return fault.name not in ("slow", "trickle", "no_envelope", "hostile", "status_word")


def _without_job_id(data: dict[str, Any], _: Any) -> dict[str, Any]:
    for name in ("request_id", "status_url", "result_url"):
        data.pop(name, None)
    data.get("job", {}).pop("id", None)
    return {"data": data}


def _with_odd_poll(data: dict[str, Any], which: str) -> dict[str, Any]:
    data.pop("next_poll_after_seconds", None)
    if which != "missing":
        data["next_poll_after_seconds"] = ODD_POLLS[which]
    return {"data": data}


def _with_status_word(data: dict[str, Any], word: str) -> dict[str, Any]:
    data |= {"status": word.upper(), "sume_status": word}
    if isinstance(data.get("job"), dict):
        data["job"]["status"] = word
    return {"data": data}


DATA_CHANGES: dict[str, Callable[[dict[str, Any], Any], dict[str, Any]]] = {
    "no_envelope": lambda data, _: data,
    "no_job_id": _without_job_id,
    "odd_poll": _with_odd_poll,
    "status_word": _with_status_word,
}


def _poisoned(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        poisoned = {key: _poisoned(item, key) for key, item in value.items()}
        return poisoned | {"note": HOSTILE} if value else poisoned
    if isinstance(value, list):
        return [_poisoned(item) for item in value]
    return f"{value}{HOSTILE}" if isinstance(value, str) and name not in KEPT_WHOLE else value
