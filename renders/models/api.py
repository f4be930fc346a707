"""The tables behind the JSON API: access tokens, and the requests already answered.

A program uses the API as the user of its token. A repeated request with the same
`Idempotency-Key` gets the renders of the first one.
"""

import hashlib
import secrets
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from renders.redaction import Hidden

PREFIX = "renders_"
# This many characters of a token are kept in clear, so that people recognize it.
HINT_LENGTH = len(PREFIX) + 6
# The time of last use is written at most this often, in seconds.
USE_SECONDS = 60


class ApiTokens(models.QuerySet):
    """Named queries on the tokens."""

    def valid(self, now: datetime) -> "ApiTokens":
        """Tokens that are neither revoked nor expired and belong to an active user."""
        unexpired = Q(expires_at__isnull=True) | Q(expires_at__gt=now)
        return self.filter(unexpired, revoked_at__isnull=True, user__is_active=True)

    def of(self, clear: str, now: datetime) -> "ApiToken | None":
        """The valid token with this text; looked up by its hash, so timing reveals no near miss."""
        return self.valid(now).select_related("user").filter(token_hash=hashed(clear)).first()

    def revoke(self, now: datetime) -> int:
        """Revoke the tokens not revoked yet; returns how many."""
        return self.filter(revoked_at__isnull=True).update(revoked_at=now)


class ApiToken(models.Model):
    """One token: it may do what its user may do, until it expires or is revoked."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens"
    )
    name = models.CharField(max_length=100, help_text="What the token is for: the shop's server.")
    token_hash = models.CharField(max_length=64, unique=True, editable=False)
    hint = models.CharField(max_length=HINT_LENGTH, editable=False, verbose_name="begins with")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(null=True, editable=False)
    expires_at = models.DateTimeField(
        null=True, blank=True, help_text="Not valid from then on; empty: valid until revoked."
    )
    revoked_at = models.DateTimeField(null=True, editable=False)

    objects = ApiTokens.as_manager()

    class Meta:
        verbose_name = "API token"
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.name} ({self.hint}…)"

    @classmethod
    def issue(cls, **fields: Any) -> tuple["ApiToken", str]:
        """A new stored token, and its clear text, which is not stored."""
        token = cls(**fields)
        clear = token.renew()
        token.save()
        return token, clear

    def renew(self) -> str:
        """Give the token a new random text and return it; the row keeps only the hash."""
        clear = Hidden(PREFIX + secrets.token_urlsafe(32))
        self.token_hash, self.hint = hashed(clear), clear[:HINT_LENGTH]
        return clear

    def state(self, now: datetime) -> str:
        """`valid`, `expired` or `revoked`."""
        if self.revoked_at:
            return "revoked"
        return "expired" if self.expires_at and self.expires_at <= now else "valid"

    def note_use(self, now: datetime) -> None:
        """Store the time of last use, at most once a minute."""
        before = now - timedelta(seconds=USE_SECONDS)
        if self.last_used_at is None or self.last_used_at < before:
            unnoted = Q(last_used_at__isnull=True) | Q(last_used_at__lt=before)
            ApiToken.objects.filter(unnoted, pk=self.pk).update(last_used_at=now)


def hashed(clear: str) -> str:
    """A token as it is stored: long and random, so a plain hash is safe."""
    return hashlib.sha256(clear.encode("utf-8", "replace")).hexdigest()


class ApiRequests(models.QuerySet):
    """Named queries on the answered requests."""

    def prune(self, made_before: datetime, batch: int) -> int:
        """Delete up to `batch` requests made before this time, oldest first; returns how many."""
        old = self.filter(created_at__lt=made_before).order_by("created_at")
        keys = list(old.values_list("pk", flat=True)[:batch])
        return self.filter(pk__in=keys).delete()[0] if keys else 0


class ApiRequest(models.Model):
    """One request that made renders: repeated with its key, it returns the same renders."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", editable=False
    )
    key = models.CharField(max_length=255, editable=False)
    body_hash = models.CharField(
        max_length=64, editable=False, help_text="SHA-256 of the canonical body, in hexadecimal."
    )
    render_ids = models.JSONField(default=list, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = ApiRequests.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "key"], name="renders_api_request_unique"),
        ]
        indexes = [models.Index(fields=["created_at"], name="renders_api_request_age")]

    def __str__(self) -> str:
        return self.key
