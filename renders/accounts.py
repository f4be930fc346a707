"""What Sume tells of the account that the key belongs to. No I/O.

The reply to `GET /v1/balance` is not documented in full: the amount is taken where and as it is
likely to stand, and anything else says nothing.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

# Under which names the amount may stand, and in which objects inside the reply's data.
AMOUNTS = ("available_usd_micros", "balance_usd_micros", "remaining_usd_micros", "usd_micros")
PLACES = ("balance", "account", "workspace")


@dataclass(frozen=True)
class Balance:
    """What is left to spend, in millionths of a dollar, and the time by Sume's clock; or None."""

    usd_micros: int | None
    at: datetime | None


def read_balance(payload: Any) -> int | None:
    """What is left to spend, in millionths of a dollar, below 0 if owed; None if not told."""
    body = payload if isinstance(payload, dict) else {}
    data = body["data"] if isinstance(body.get("data"), dict) else body
    places: list[Any] = [data, *(data.get(name) for name in PLACES)]
    for place in (place for place in places if isinstance(place, dict)):
        for name in AMOUNTS:
            amount = place.get(name)
            if isinstance(amount, int) and not isinstance(amount, bool):
                return amount
    return None
