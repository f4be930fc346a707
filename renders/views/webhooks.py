"""Where Sume tells that a job has ended. What it says is not believed: it has the job read.

Refused before the database is asked for anything: what no secret of ours signed, and what was
signed too long ago. The caller is not told why; the log is.
"""

import hashlib
import hmac
import logging
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.db.utils import Error as DatabaseError
from django.http import HttpRequest, HttpResponse
from django.http.request import UnreadablePostError
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from renders.conf import conf, workspaces
from renders.services import webhook_events
from renders.services.validation import parse_json
from renders.telemetry import metrics, store

logger = logging.getLogger(__name__)

MAX_BODY_BYTES = 256 * 1024
MAX_SIGNATURES = 8
SIGNATURE = re.compile(r"v1=([0-9a-f]{64})")
TIMESTAMP = re.compile(r"[0-9]{1,12}")
# An id or a word that every database holds; anything else names nothing here.
NAME = re.compile(r"[!-~]{1,200}")


@login_not_required
@csrf_exempt
@require_POST
def sume(request: HttpRequest) -> HttpResponse:
    """Take one event."""
    # One may be taken out of the file of keys between the two looks.
    known = [one for one in map(workspaces.find, workspaces.names()) if one]
    secrets = {one.name: one.webhook_secrets for one in known}
    if not any(secrets.values()):
        return _answer(404, "Webhooks are off.", outcome="off")
    length = str(request.META.get("CONTENT_LENGTH") or "")
    if length.isdecimal() and int(length[:20]) > MAX_BODY_BYTES:
        return _answer(413, "The body is too large.")
    timestamp = request.headers.get("X-Sume-Timestamp", "")
    signatures = signatures_in(request.headers.get("X-Sume-Signature", ""))
    reason = why_untimely(timestamp, timezone.now()) or ("" if signatures else "no signature")
    if reason:
        return _refused(reason)
    try:
        body = request.body
    except UnreadablePostError:
        return _answer(400, "The body ended too soon.")
    # Whose secret signed it tells whose renders it may speak of.
    theirs = [name for name in secrets if signed(body, timestamp, signatures, secrets[name])]
    if not theirs:
        return _refused("signed with no secret of ours")
    return _take(theirs, body, request.headers.get("X-Sume-Event-Id", ""))


def signatures_in(header: str) -> list[str]:
    """The `v1` signatures of a header: while secrets are exchanged, there are several."""
    parts = [part.strip() for part in header.split(",", MAX_SIGNATURES)[:MAX_SIGNATURES]]
    return [found[1] for found in map(SIGNATURE.fullmatch, parts) if found]


def why_untimely(timestamp: str, now: datetime) -> str:
    """Why an event of that time is refused now; empty if it is not."""
    if not TIMESTAMP.fullmatch(timestamp):
        return "no readable timestamp"
    age = now.timestamp() - int(timestamp)
    return "" if abs(age) <= conf.WEBHOOK_MAX_AGE_SECONDS else f"signed {age:.0f} s ago"


def signed(body: bytes, timestamp: str, signatures: list[str], secrets: Iterable[str]) -> bool:
    """Whether one of the secrets made one of the signatures."""
    message = timestamp.encode() + b"." + body
    ours = [hmac.new(secret.encode(), message, hashlib.sha256).hexdigest() for secret in secrets]
    # Every pair, so that the time tells nothing.
    same = [hmac.compare_digest(mine, theirs) for mine in ours for theirs in signatures]
    return any(same)


def _take(theirs: list[str], body: bytes, header_id: str) -> HttpResponse:
    try:
        event = parse_json(body.decode())
    except ValueError:
        return _answer(400, "The body is not valid JSON.")
    if not isinstance(event, dict):
        return _answer(400, "The body is not a JSON object.")
    # What is signed comes first: anybody can change a header.
    event_id = _name(event.get("id")) or _name(header_id)
    if not event_id:
        return _answer(400, "The event has no id, or none that can be kept.")
    try:
        kind, job_id = _name(event.get("type"))[:100], job_in(event.get("data"))
        new = [
            workspace
            for workspace in theirs
            if webhook_events.take(workspace, event_id, type=kind, job_id=job_id)
        ]
    except DatabaseError as error:
        logger.warning("Webhook event not kept: %s.", type(error).__name__)
        return _answer(503, "Not now. Send it again later.", outcome="not_kept")
    if new:
        return _answer(200, "Taken.", outcome="taken")
    return _answer(200, "Known already.", outcome="known")


def job_in(data: Any) -> str:
    """The id of the job that an event is about; empty where it names none."""
    if not isinstance(data, dict):
        return ""
    inner = data.get("object")
    for holder in (inner, data):
        if isinstance(holder, dict):
            job = holder.get("job")
            named = [holder.get("job_id"), job.get("id") if isinstance(job, dict) else None]
            for value in (*named, holder.get("request_id"), holder.get("id")):
                if name := _name(value):
                    return name
    return ""


def _name(value: Any) -> str:
    return value if isinstance(value, str) and NAME.fullmatch(value) else ""


def _refused(reason: str) -> HttpResponse:
    logger.warning("Webhook refused: %s.", reason)
    return _answer(401, "Not accepted.", outcome="refused")


def _answer(status: int, words: str, outcome: str = "unreadable") -> HttpResponse:
    metrics.count("webhooks", outcome=outcome)
    store.flush_soon()
    return HttpResponse(f"{words}\n", status=status, content_type="text/plain; charset=utf-8")
