"""One HTTP request, read in full, and the numbers in its query."""

from collections.abc import Mapping
from dataclasses import dataclass

from .replies import ApiError


@dataclass(frozen=True)
class Request:
    """What a client asked for. `headers` has lower-case names."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    base_url: str

    @property
    def idempotency_key(self) -> str | None:
        """The `Idempotency-Key`; None if it is missing or empty."""
        return self.headers.get("idempotency-key", "").strip() or None

    def limit(self, default: int, most: int = 1000) -> int:
        """How many rows are asked for. ApiError 422 unless it is 1 to `most`."""
        text = self.query.get("limit", str(default))
        if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= most:
            raise bad_query("limit", f"Must be a number from 1 to {most}.")
        return int(text)


def bad_query(name: str, message: str) -> ApiError:
    """The refusal of a query parameter."""
    errors = [(name, message)]
    return ApiError(422, "validation_error", "The request is not valid.", errors=errors)
