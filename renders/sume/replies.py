"""Parsers from Sume's JSON to our dataclasses, and from Sume's words to ours. No I/O.

They are lenient: the `data` envelope is optional, unknown fields are ignored, and invalid values
count as missing. Source of every fact: the public Sume API, as in the project's API notes.
"""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from renders.redaction import Link, unsigned
from renders.states import Status
from renders.sume.timing import parse_delay

# Sume's words for a terminal state → ours. Any other word does not end the job.
ENDINGS = {
    "completed": Status.COMPLETED,
    "complete": Status.COMPLETED,
    "succeeded": Status.COMPLETED,
    "success": Status.COMPLETED,
    "failed": Status.FAILED,
    "error": Status.FAILED,
    "errored": Status.FAILED,
    "expired": Status.FAILED,
    "canceled": Status.CANCELED,
    "cancelled": Status.CANCELED,
}
RUNNING = frozenset({"queued", "processing", "running", "pending"})
MAX_TEXT = 2_000
# Possible names of the balance, and of the objects in the reply's data that may hold it: the reply
# is not fully documented.
BALANCES = ("available_usd_micros", "balance_usd_micros", "remaining_usd_micros", "usd_micros")
BALANCE_PLACES = ("balance", "account", "workspace")


@dataclass(frozen=True)
class SumeFault:
    """Why Sume refused a request or ended a job: Sume's code, and a message for people."""

    code: str = ""
    message: str = ""
    retryable: bool | None = None
    request_id: str = ""


@dataclass(frozen=True)
class Accepted:
    """Reply to a submit. `next_poll_after` is in seconds, or None if Sume gave none."""

    job_id: str
    sume_status: str
    idempotency_hit: bool
    next_poll_after: float | None
    queue_capacity_remaining: int | None
    adopted: bool = False
    """A conflict named the job: Sume already had it for this key."""


@dataclass(frozen=True)
class JobStatus:
    """Reply to a status read.

    `ending` is our status if the job has ended, else None. `result_ready` matters only for a
    completed job. `cost_usd_micros` is in millionths of a dollar; `captured` if Sume has finally
    charged it, even if the job failed.
    """

    sume_status: str
    ending: Status | None
    result_ready: bool
    next_poll_after: float | None
    fault: SumeFault
    cost_usd_micros: int | None
    captured: bool = False


@dataclass(frozen=True)
class JobResult:
    """Reply to a result read: artifacts with `url`, `type`, `content_type`."""

    artifacts: list[dict[str, str]]
    cost_usd_micros: int | None


@dataclass(frozen=True)
class Balance:
    """The balance in millionths of a dollar, and the time by Sume's clock; each None if missing."""

    usd_micros: int | None
    at: datetime | None


@dataclass(frozen=True)
class ListedJob:
    """One job in Sume's list. A missing field is ""; `created_at` is Sume's own text."""

    id: str
    type: str
    status: str
    created_at: str


def clean_text(value: Any, longest: int = MAX_TEXT) -> str:
    """Text that any database can store: no NUL, no lone surrogates, limited length."""
    if not isinstance(value, str):
        return ""
    printable = "".join(c if c in "\n\t" or c >= " " else "\ufffd" for c in value[:longest])
    return printable.encode("utf-8", "replace").decode("utf-8").strip()


def read_accepted(payload: Any) -> Accepted | None:
    """Parse the reply to a submit; None if it has no job id."""
    data = _data(payload)
    if data.get("error"):
        return None  # a request id beside an error names no job
    job = _object(data.get("job"))
    job_id = _first_text(job.get("id"), data.get("request_id"), data.get("job_id"), data.get("id"))
    if not job_id:
        return None
    limits = _object(data.get("generation_limits"))
    return Accepted(
        job_id=job_id,
        sume_status=_word(data.get("sume_status"), job.get("status")),
        idempotency_hit=data.get("idempotency_hit") is True,
        next_poll_after=parse_delay(data.get("next_poll_after_seconds")),
        queue_capacity_remaining=_capacity(limits.get("queue_capacity_remaining")),
    )


def read_named_job(payload: Any) -> Accepted | None:
    """Parse the job that a conflict (409) names for this key; None if it names none.

    It is in the details of a refused key's error, or in the shape of the first request's reply.
    """
    job = _object(_data(payload).get("job"))
    fault = read_error(payload)
    details = _object(_object(_object(payload).get("error")).get("details"))
    of_key = "idempoten" in f"{fault.code} {fault.message}".lower()
    job_id = _first_text(job.get("id"), details.get("job_id") if of_key else None)
    if not job_id:
        return None
    return Accepted(job_id, _word(job.get("status")), True, None, None, adopted=True)


def is_about(payload: Any, job_id: str) -> bool:
    """Whether a reply names this job or no job at all."""
    data = _data(payload)
    job = _object(data.get("job"))
    named = [_first_text(value) for value in (data.get("job_id"), job.get("id"), job.get("job_id"))]
    # Without the prefix, these may name the HTTP request or an artifact.
    others = [_first_text(data.get("request_id")), _first_text(data.get("id"))]
    named += [name for name in others if name.startswith("job_")]
    return job_id in named or not any(named)


def read_status(payload: Any) -> JobStatus | None:
    """Parse the reply to a status read; None if it has no status."""
    data = _data(payload)
    job = _object(data.get("job"))
    word = _word(data.get("sume_status"), job.get("status"), data.get("status"))
    if not word:
        return None
    ending = ENDINGS.get(word)
    if data.get("terminal") is False:
        ending = None
    elif data.get("terminal") is True and ending is None and word not in RUNNING:
        # An unknown word, but Sume marks it as terminal.
        ending = Status.COMPLETED if data.get("result_ready") is True else Status.FAILED
    return JobStatus(
        sume_status=word,
        ending=ending,
        result_ready=data.get("result_ready") is not False,
        next_poll_after=parse_delay(data.get("next_poll_after_seconds")),
        fault=_fault(_object(job.get("error")) or _object(data.get("error"))),
        cost_usd_micros=_cost(data),
        captured=any(_word(usage.get("status")) == "captured" for usage in _usages(data)),
    )


def read_result(payload: Any) -> JobResult | None:
    """Parse the reply to a result read; None if it has no result."""
    data = _data(payload)
    if "result" not in data and "artifacts" not in data:
        return None
    result = _object(data.get("result")) or data
    listed = result.get("artifacts")
    artifacts = []
    for item in listed if isinstance(listed, list) else []:
        url = clean_text(_object(item).get("url"), longest=8_000)
        if url:
            artifacts.append(
                {
                    "url": Link(url),
                    "type": clean_text(item.get("type"), longest=50),
                    "content_type": clean_text(item.get("content_type"), longest=100),
                }
            )
    return JobResult(artifacts=artifacts, cost_usd_micros=_cost(data))


def read_balance(payload: Any) -> int | None:
    """The balance in millionths of a dollar, below 0 if owed; None if it is missing."""
    data = _data(payload)
    for place in (data, *(_object(data.get(name)) for name in BALANCE_PLACES)):
        for name in BALANCES:
            amount = _whole(place.get(name))
            if amount is not None:
                return amount
    return None


def read_ready_avatars(payload: Any) -> list[str] | None:
    """Parse the handles of the avatars that are ready; None if the reply has no list."""
    listed = _data(payload).get("avatars")
    if not isinstance(listed, list):
        return None
    handles = []
    for avatar in map(_object, listed):
        # `status` may be the place in a queue, with `resource_status` beside it.
        word = _word(avatar.get("resource_status"), avatar.get("status"))
        handle = _first_text(avatar.get("handle"), longest=101).removeprefix("@")
        if handle and word == "ready":
            handles.append(handle)
    return handles


def read_canceled(payload: Any) -> bool | None:
    """Whether the reply to a cancel says that the job was canceled; None if it does not say."""
    canceled = _data(payload).get("canceled")
    return canceled if isinstance(canceled, bool) else None


def read_record_fault(payload: Any) -> SumeFault:
    """Parse why a job failed from its record."""
    data = _data(payload)
    job = _object(data.get("job")) or data
    return _fault(_object(job.get("error")))


def read_jobs(payload: Any) -> list[ListedJob] | None:
    """Parse a list of jobs, without entries that have no id; None if the reply has no list."""
    data = payload.get("data", payload) if isinstance(payload, dict) else payload
    entries = data.get("jobs") if isinstance(data, dict) else data
    if not isinstance(entries, list):
        return None
    jobs = []
    for job in (_object(entry.get("job")) or entry for entry in map(_object, entries)):
        if job_id := _first_text(job.get("id"), job.get("request_id"), job.get("job_id")):
            kind, made = clean_text(job.get("type"), 50), clean_text(job.get("created_at"), 50)
            jobs.append(ListedJob(job_id, kind, _word(job.get("status")), made))
    return jobs if jobs or not entries else None


def read_error(payload: Any, header_request_id: str | None = None) -> SumeFault:
    """Parse the error of a refused request; fields that are missing are empty."""
    body = _object(payload)
    error = body.get("error")
    text = error if isinstance(error, str) else ""
    if not error:  # a problem document (RFC 9457) from a proxy
        texts = (clean_text(body.get(name)) for name in ("title", "detail"))
        text = " ".join(word for word in texts if word)
    fault = _fault(_object(error), text=text)
    request_id = fault.request_id or _first_text(
        body.get("request_id"), header_request_id, longest=100
    )
    return SumeFault(fault.code, fault.message, fault.retryable, request_id)


def _fault(error: Mapping[str, Any], text: str = "") -> SumeFault:
    """An error object as a fault; `text` is the message if the object has none."""
    if not error and not text:
        return SumeFault()  # the usual case: nearly every read has no error
    details = _object(error.get("details")).get("errors")
    listed = [_object(item) for item in details] if isinstance(details, list) else []
    parts = [_first_text(error.get("public_reason"), error.get("message"), text, longest=MAX_TEXT)]
    parts += [
        f"{clean_text(item.get('path'), 100)}: {clean_text(item.get('message'), 300)}"
        for item in listed[:5]
        if item
    ]
    retryable = error.get("retryable")
    return SumeFault(
        code=clean_text(error.get("code"), longest=100),
        message=unsigned(" ".join(part for part in parts if part))[:MAX_TEXT],
        retryable=retryable if isinstance(retryable, bool) else None,
        request_id=clean_text(error.get("request_id"), longest=100),
    )


def _cost(data: Mapping[str, Any]) -> int | None:
    """The cost in millionths of a dollar; None if the reply has no valid one."""
    for usage in _usages(data):
        amount = _whole(usage.get("billable_amount_usd_micros"))
        if amount is not None and amount >= 0:
            return amount
    return None


def _usages(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The `usage` objects of a reply, from each place that may hold one."""
    places = (data, _object(data.get("job")), _object(data.get("result")))
    return [_object(place.get("usage")) for place in places]


def _capacity(value: Any) -> int | None:
    """A free capacity, zero or more; None for anything else."""
    number = _whole(value)
    return None if number is None or number < 0 else number


def _data(payload: Any) -> Mapping[str, Any]:
    """The content of a reply, with or without the `data` envelope."""
    body = _object(payload)
    inner = body.get("data")
    return inner if isinstance(inner, dict) else body


def _object(value: Any) -> Mapping[str, Any]:
    """The value if it is an object; otherwise an empty one."""
    return value if isinstance(value, dict) else {}


def _first_text(*values: Any, longest: int = 200) -> str:
    """The first of these values that is text and not empty; empty if there is none."""
    return next((text for text in (clean_text(value, longest) for value in values) if text), "")


def _word(*values: Any) -> str:
    """Sume's word in lower case, cut again because lower case can be longer."""
    return _first_text(*values, longest=50).lower()[:50]


def _whole(value: Any) -> int | None:
    """A whole number, also if it is written as 90000.0, 9e4 or "90000"; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    number = value
    if isinstance(number, str):
        with suppress(ValueError):
            number = float(number)  # exact up to 2**53, about nine billion dollars
    if isinstance(number, float) and math.isfinite(number) and number.is_integer():
        number = int(number)
    return number if isinstance(number, int) and abs(number) < 2**63 else None
