"""The address for Sume's webhooks. Their content is not trusted: it only triggers a poll.

Before any use of the database, events without a valid and recent signature are refused. The
caller does not learn why, but the log does.
"""

import logging

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
from renders.sume.webhooks import job_in, name_in, signatures_in, signed, why_untimely
from renders.telemetry import metrics, store

logger = logging.getLogger(__name__)

MAX_BODY_BYTES = 256 * 1024


@login_not_required
@csrf_exempt
@require_POST
def sume(request: HttpRequest) -> HttpResponse:
    """Receive one event."""
    # A workspace may disappear from the secrets file after its name was read.
    configured = [workspace for workspace in map(workspaces.find, workspaces.names()) if workspace]
    secrets = {workspace.name: workspace.webhook_secrets for workspace in configured}
    if not any(secrets.values()):
        return _answer(404, "Webhooks are off.", outcome="off")
    length = str(request.META.get("CONTENT_LENGTH") or "")
    if length.isdecimal() and int(length[:20]) > MAX_BODY_BYTES:
        return _answer(413, "The body is too large.")
    timestamp = request.headers.get("X-Sume-Timestamp", "")
    signatures = signatures_in(request.headers.get("X-Sume-Signature", ""))
    reason = why_untimely(timestamp, timezone.now(), conf.WEBHOOK_MAX_AGE_SECONDS) or (
        "" if signatures else "no signature"
    )
    if reason:
        return _refused(reason)
    try:
        body = request.body
    except UnreadablePostError:
        return _answer(400, "The body ended too soon.")
    # An event is only for the workspaces with the secret that signed it.
    signers = [name for name in secrets if signed(body, timestamp, signatures, secrets[name])]
    if not signers:
        return _refused("signed with no secret of ours")
    return _take(signers, body, request.headers.get("X-Sume-Event-Id", ""))


def _take(signers: list[str], body: bytes, header_id: str) -> HttpResponse:
    try:
        event = parse_json(body.decode())
    except ValueError:
        return _answer(400, "The body is not valid JSON.")
    if not isinstance(event, dict):
        return _answer(400, "The body is not a JSON object.")
    # The signed body comes first: anybody can change a header.
    event_id = name_in(event.get("id")) or name_in(header_id)
    if not event_id:
        return _answer(400, "The event has no id, or none that can be kept.")
    try:
        kind, job_id = name_in(event.get("type"))[:100], job_in(event.get("data"))
        new = [
            workspace
            for workspace in signers
            if webhook_events.take(workspace, event_id, type=kind, job_id=job_id)
        ]
    except DatabaseError as error:
        logger.warning("Webhook event not kept: %s.", type(error).__name__)
        return _answer(503, "Not now. Send it again later.", outcome="not_kept")
    if new:
        return _answer(200, "Taken.", outcome="taken")
    return _answer(200, "Known already.", outcome="known")


def _refused(reason: str) -> HttpResponse:
    logger.warning("Webhook refused: %s.", reason)
    return _answer(401, "Not accepted.", outcome="refused")


def _answer(status: int, words: str, outcome: str = "unreadable") -> HttpResponse:
    metrics.count("webhooks", outcome=outcome)
    store.flush_soon()
    return HttpResponse(f"{words}\n", status=status, content_type="text/plain; charset=utf-8")
