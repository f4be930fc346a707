"""Forgets what nobody asks for any more: a few rows at a time, so that nobody waits for it."""

from datetime import timedelta

from django.utils import timezone

from renders.conf import conf
from renders.models import ApiRequest, WebhookEvent

# Long after an event's signature has become too old to come again.
KEEP_EVENTS_DAYS = 30


def prune() -> None:
    """Delete up to `SWEEP_BATCH` old rows of each sort: webhook events, keys of the API."""
    now = timezone.now()
    batch = conf.SWEEP_BATCH
    WebhookEvent.objects.prune(now - timedelta(days=KEEP_EVENTS_DAYS), batch)
    if conf.IDEMPOTENCY_HOURS:
        ApiRequest.objects.prune(now - timedelta(hours=conf.IDEMPOTENCY_HOURS), batch)
