"""The faults that can be ordered, and the book of orders. What they do: `effects`.

| name | argument (default) | the request |
|---|---|---|
| `reset_before` | | connection reset, nothing was accepted |
| `reset_after` | | connection reset, the request was carried out and billed |
| `server_error` | status (502) | HTML page, nothing was accepted; also 408 |
| `gateway_timeout` | status (504) | HTML page, the request was carried out and billed |
| `slow` | seconds (5) | carried out, the reply waits |
| `trickle` | seconds (2) | carried out, the reply comes in small pieces |
| `cut_short` | | carried out, the reply breaks off in the middle |
| `rate_limited` | seconds (2) | 429 `rate_limit_exceeded`, `Retry-After` as an HTTP date |
| `queue_full` | seconds (1) | 429 `queue_full`, `Retry-After` in seconds |
| `unavailable` | seconds (1) | 503, `Retry-After` in seconds |
| `unauthorized`, `insufficient_credits`, `forbidden` | | 401, 402, 403 |
| `not_found` | | 404 |
| `rejected` | code (prompt_rejected) | 422 that says never to try again |
| `job_fails`, `job_takes` | code, seconds (60) | accepted; the job fails, or takes that long |
| `idempotency_in_progress` | | 409, the first request is said to be still under way |
| `html` | | carried out, but a 2xx with an HTML page |
| `no_job_id` | | accepted, the reply names no job |
| `no_envelope` | | carried out, the fields come without `data` |
| `odd_poll` | a key of `ODD_POLLS` (missing) | odd `next_poll_after_seconds` |
| `status_word` | word (succeeded) | another spelling of the status |
| `result_not_ready` | 404 or 409 (409) | the result is said to be not ready |
| `result_late` | seconds (1) | `terminal: true, result_ready: false` for so long |
| `hostile` | | NUL and a lone surrogate in every free text |
| `event_never`, `event_twice` | | the webhook is not sent, or twice |
| `event_late` | seconds (1) | the webhook comes so much later |
| `event_held` | | the webhook comes after that of the next job |
"""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .arguments import http_error, missing_result, odd_poll, seconds, word

# What a client asks for, and `event`: a webhook that is to be sent.
OPERATIONS = ("submit", "status", "result", "record", "cancel", "media", "event")
# Media files are left out of `any`: most clients fetch them with another code path.
ANY = frozenset(OPERATIONS) - {"media"} | {"other"}
WRITES = frozenset({"submit", "cancel"})


@dataclass(frozen=True)
class _Shape:
    default: Any = None
    parse: Callable[[Any], Any] | None = None
    on: frozenset[str] = ANY - {"event"} | {"media"}


_STATUS, _EVENT = frozenset({"status"}), frozenset({"event"})
CATALOGUE: dict[str, _Shape] = {
    "reset_before": _Shape(),
    "reset_after": _Shape(),
    "server_error": _Shape(502, http_error),
    "gateway_timeout": _Shape(504, http_error),
    "slow": _Shape(5.0, seconds),
    "trickle": _Shape(2.0, seconds),
    "cut_short": _Shape(),
    "rate_limited": _Shape(2.0, seconds),
    "queue_full": _Shape(1.0, seconds, frozenset({"submit"})),
    "unavailable": _Shape(1.0, seconds),
    "unauthorized": _Shape(),
    "insufficient_credits": _Shape(on=frozenset({"submit"})),
    "forbidden": _Shape(),
    "not_found": _Shape(),
    "rejected": _Shape("prompt_rejected", word, frozenset({"submit"})),
    "job_fails": _Shape("generation_failed", word, frozenset({"submit"})),
    "job_takes": _Shape(60.0, seconds, frozenset({"submit"})),
    "idempotency_in_progress": _Shape(on=WRITES),
    "html": _Shape(),
    "no_job_id": _Shape(on=frozenset({"submit"})),
    "no_envelope": _Shape(on=ANY - _EVENT),
    "odd_poll": _Shape("missing", odd_poll, _STATUS),
    "status_word": _Shape("succeeded", word, _STATUS),
    "result_not_ready": _Shape(409, missing_result, frozenset({"result"})),
    "result_late": _Shape(1.0, seconds, _STATUS),
    "hostile": _Shape(on=ANY - _EVENT),
    "event_never": _Shape(on=_EVENT),
    "event_twice": _Shape(on=_EVENT),
    "event_late": _Shape(1.0, seconds, _EVENT),
    "event_held": _Shape(on=_EVENT),
}
# What random faults are drawn from: nothing that needs a person to act.
RECOVERABLE: tuple[tuple[str, Any], ...] = (
    ("reset_before", None),
    ("reset_after", None),
    ("server_error", 502),
    ("gateway_timeout", 504),
    ("cut_short", None),
    ("html", None),
    ("no_envelope", None),
    ("slow", 1.0),
    ("trickle", 1.0),
    ("rate_limited", 1.0),
    ("unavailable", 1.0),
    ("no_job_id", None),
    ("idempotency_in_progress", None),
    ("odd_poll", "missing"),
    ("odd_poll", "nan"),
    ("result_not_ready", 409),
    ("event_never", None),
    ("event_twice", None),
    ("event_late", 1.0),
)


@dataclass(frozen=True)
class Fault:
    """A fault with its checked argument."""

    name: str
    argument: Any = None


@dataclass
class Order:
    """A fault in the script: for which operation, and how often (None: until cleared)."""

    fault: Fault
    on: str
    times: int | None

    def matches(self, operation: str) -> bool:
        """Whether a request of this operation meets the fault."""
        asked = operation in ANY if self.on == "any" else operation == self.on
        return asked and operation in CATALOGUE[self.fault.name].on


def make_fault(name: Any, argument: Any = None) -> Fault:
    """Check a fault's name and argument. Raises ValueError that says what is allowed."""
    shape = CATALOGUE.get(name) if isinstance(name, str) else None
    if shape is None:
        raise ValueError(f"Unknown fault {name!r}; there are {', '.join(CATALOGUE)}.")
    if argument is None or shape.parse is None:
        return Fault(name, shape.default)
    try:
        return Fault(name, shape.parse(argument))
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"Fault {name}: bad argument {argument!r}: {error}.") from error


class FaultBook:
    """Scripted faults first come, first served, then random ones. Thread-safe."""

    def __init__(self, rate: float = 0.0, seed: int = 0) -> None:
        self._lock = threading.Lock()
        self._orders: list[Order] = []
        self._rate = rate
        # Not for secrets: the same seed must give the same faults.
        self._random = random.Random(seed)  # noqa: S311

    def add(
        self, name: str, *, on: str = "any", times: int | None = 1, argument: Any = None
    ) -> None:
        """Order a fault for the next `times` requests of operation `on`.

        Raises ValueError for an unknown name, operation, argument or combination.
        """
        fault = make_fault(name, argument)
        if on != "any" and on not in OPERATIONS:
            raise ValueError(f"Unknown operation {on!r}; there are {', '.join(OPERATIONS)}, any.")
        if on != "any" and on not in CATALOGUE[name].on:
            allowed = ", ".join(sorted(CATALOGUE[name].on))
            raise ValueError(f"Fault {name} makes no sense on {on}; it does on {allowed}.")
        if times is not None and (not isinstance(times, int) or times < 1):
            raise ValueError(f"times must be 1 or more, or null for always, not {times!r}.")
        with self._lock:
            self._orders.append(Order(fault, on, times))

    def clear(self) -> None:
        """Forget the script. Random faults go on."""
        with self._lock:
            self._orders.clear()

    def pending(self) -> list[dict[str, Any]]:
        """The rest of the script: `{"fault", "argument", "on", "times"}` each."""
        with self._lock:
            return [
                {
                    "fault": order.fault.name,
                    "argument": order.fault.argument,
                    "on": order.on,
                    "times": order.times,
                }
                for order in self._orders
            ]

    def pick(self, operation: str, header: str | None = None) -> Fault | None:
        """The fault that this request meets, if any; it counts as met.

        `header` is `name[:argument]` and comes before the script. Raises ValueError if it is
        not understood; a header's fault that makes no sense here does nothing.
        """
        if header is not None:
            name, _, argument = header.strip().partition(":")
            fault = make_fault(name.strip(), argument.strip() or None)
            return fault if operation in CATALOGUE[fault.name].on else None
        with self._lock:
            for order in self._orders:
                if order.matches(operation):
                    if order.times is not None:
                        order.times -= 1
                        if not order.times:
                            self._orders.remove(order)
                    return order.fault
            return self._drawn(operation)

    def _drawn(self, operation: str) -> Fault | None:
        if not self._rate or operation not in ANY:
            return None
        # Always two draws, so that one request's luck does not shift the next one's.
        met, choice = self._random.random() < self._rate, self._random.random()
        candidates = [Fault(*pair) for pair in RECOVERABLE if operation in CATALOGUE[pair[0]].on]
        return candidates[int(choice * len(candidates))] if met else None
