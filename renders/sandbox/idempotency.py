"""Which request first came with which Idempotency-Key."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from .jobs import Job
from .ledger import Ledger
from .replies import ApiError


@dataclass(frozen=True)
class Fingerprint:
    """What a request said: `meaning` ignores the order of JSON fields, `wording` does not."""

    meaning: str
    wording: str


def fingerprint(path: str, fields: dict[str, Any], body: bytes = b"") -> Fingerprint:
    """Identify a request, to tell a replay from a conflict."""
    meaning = f"{path} {json.dumps(fields, sort_keys=True)}".encode("utf-8", "backslashreplace")
    return Fingerprint(hashlib.sha256(meaning).hexdigest(), hashlib.sha256(body).hexdigest())


class KeyStore:
    """The keys of accepted requests, submits and cancels alike. Not thread-safe.

    A request that was refused leaves its key unused.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._first: dict[str, tuple[Fingerprint, Job]] = {}

    def replayed(self, key: str | None, request: Fingerprint, now: float) -> Job | None:
        """The job that this very request made or canceled before.

        Raises ApiError 409 `idempotency_conflict` if the key belongs to another request.
        """
        if key is None or key not in self._first:
            return None
        first, job = self._first[key]
        if first.meaning != request.meaning:
            self._ledger.note_conflict(key, now)
            message = "This Idempotency-Key was used before with another request."
            raise ApiError(409, "idempotency_conflict", message, retryable=False)
        if first.wording != request.wording:
            self._ledger.note_reserialized(key, now)
        return job

    def remember(self, key: str | None, request: Fingerprint, job: Job) -> None:
        """Bind the key to the request that was accepted with it."""
        if key is not None:
            self._first[key] = (request, job)
