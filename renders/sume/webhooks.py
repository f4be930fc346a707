"""Sume's webhook events: whether a signature is valid, and which job an event is about. Pure.

Source: the signature scheme in Sume's documents (`X-Sume-Timestamp`, `X-Sume-Signature: v1=...`).
"""

import hashlib
import hmac
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

MAX_SIGNATURES = 8
SIGNATURE = re.compile(r"v1=([0-9a-f]{64})")
TIMESTAMP = re.compile(r"[0-9]{1,12}")
NAME = re.compile(r"[!-~]{1,200}")


def signatures_in(header: str) -> list[str]:
    """The `v1` signatures of a header; during a rotation of secrets, there are several."""
    parts = [part.strip() for part in header.split(",", MAX_SIGNATURES)[:MAX_SIGNATURES]]
    return [match[1] for match in map(SIGNATURE.fullmatch, parts) if match]


def why_untimely(timestamp: str, now: datetime, max_age: float) -> str:
    """Why an event with this timestamp is refused; empty if it is at most `max_age` seconds off."""
    if not TIMESTAMP.fullmatch(timestamp):
        return "no readable timestamp"
    age = now.timestamp() - int(timestamp)
    return "" if abs(age) <= max_age else f"signed {age:.0f} s ago"


def signed(body: bytes, timestamp: str, signatures: list[str], secrets: Iterable[str]) -> bool:
    """Whether any of the secrets matches any of the signatures."""
    message = timestamp.encode() + b"." + body
    ours = [hmac.new(secret.encode(), message, hashlib.sha256).hexdigest() for secret in secrets]
    # Compare every pair, so that the duration reveals nothing.
    matches = [hmac.compare_digest(mine, given) for mine in ours for given in signatures]
    return any(matches)


def job_in(data: Any) -> str:
    """The id of the job that an event is about; empty if it names none."""
    if not isinstance(data, dict):
        return ""
    inner = data.get("object")
    for holder in (inner, data):
        if isinstance(holder, dict):
            job = holder.get("job")
            named = [holder.get("job_id"), job.get("id") if isinstance(job, dict) else None]
            for value in (*named, holder.get("request_id"), holder.get("id")):
                if name := name_in(value):
                    return name
    return ""


def name_in(value: Any) -> str:
    """An id or a word that every database can store; empty for anything else."""
    return value if isinstance(value, str) and NAME.fullmatch(value) else ""
