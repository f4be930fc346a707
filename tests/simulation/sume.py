"""Sume in the simulation: the real client, whose requests the sandbox's rules answer directly."""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any
from unittest import mock

from renders.redaction import without
from renders.sandbox.application import Application
from renders.sandbox.faults import CATALOGUE, Fault, make_fault
from renders.sandbox.options import Options
from renders.sandbox.request import Request
from renders.sume.client import SumeClient, _Reply
from renders.sume.timing import parse_retry_after
from tests.simulation.actors import Stage

KEY = "key-of-the-simulation"
# A request needs at most so long to arrive; its reply as long again.
TRANSIT_SECONDS = 0.3
# So long after a worker slept, what it sends may be too late.
WAKING_SECONDS = 5.0
# What a request may meet, and how often compared with the others.
FAULTS: tuple[tuple[str, Any, int], ...] = (
    ("unreachable", None, 1),
    ("reset_before", None, 2),
    ("reset_after", None, 4),
    ("server_error", 502, 1),
    ("gateway_timeout", 504, 2),
    ("cut_short", None, 1),
    ("html", None, 1),
    ("no_envelope", None, 1),
    ("slow", 2.0, 2),
    ("slow", 9.0, 3),
    ("slow", 40.0, 1),
    ("rate_limited", 3.0, 1),
    ("queue_full", 2.0, 1),
    ("unavailable", 3.0, 1),
    ("unauthorized", None, 1),
    ("rejected", "prompt_rejected", 2),
    ("no_job_id", None, 1),
    ("idempotency_in_progress", None, 1),
    ("odd_poll", "missing", 1),
    ("odd_poll", "nan", 1),
    ("result_not_ready", 409, 1),
    ("result_late", 4.0, 1),
    ("job_fails", "generation_failed", 1),
    ("job_takes", 60.0, 1),
)
# Not in the sandbox: the request never leaves.
UNREACHABLE = "unreachable"


@dataclass(frozen=True)
class Seen:
    """A POST as Sume saw it. Times are seconds of the true time."""

    key: str
    left: float
    came: float
    gone: float
    """When its worker heard of it, waited no longer, or died."""
    late: bool
    """Whether its worker had slept before."""
    submit: bool


class Luck:
    """Which fault the next request meets: `faults` of the sandbox's application."""

    def __init__(self, rate: float, seed: str) -> None:
        self.rate = rate
        self._random = random.Random(seed)

    def draw(self, operation: str) -> str | Fault | None:
        """Always two draws, so that one request's luck does not change the next one's."""
        met, choice = self._random.random() < self.rate, self._random.random()
        known = [one for one in FAULTS if self._fits(one[0], operation)]
        if not met or not known:
            return None
        weights = list(range(sum(weight for _, _, weight in known)))
        number = weights[int(choice * len(weights))]
        for name, argument, weight in known:
            number -= weight
            if number < 0:
                return name if name == UNREACHABLE else make_fault(name, argument)
        raise AssertionError("No fault was drawn.")

    @staticmethod
    def _fits(name: str, operation: str) -> bool:
        return name == UNREACHABLE or operation in CATALOGUE[name].on


class Account:
    """Sume's side: the rules, and what came when."""

    def __init__(self, stage: Stage, options: Options, luck: Luck) -> None:
        self.stage = stage
        self.luck = luck
        self.app = Application(options, lambda: stage.clock.unix)
        self.posts: list[Seen] = []
        self.reads: list[tuple[str, float, bool]] = []
        """Status reads: job, when it left, and whether its worker had slept before."""
        self.note: Callable[[str], None] = lambda line: None

    @property
    def ledger(self) -> Any:
        return self.app.rules.ledger

    def jobs(self) -> list[Any]:
        """All jobs, as they are now."""
        with self.app.rules.settled() as jobs:
            return jobs

    def word(self, job_id: str) -> str:
        """How a job stands, without a read."""
        return next(job.status for job in self.jobs() if job.id == job_id)


class Client(SumeClient):
    """The real client without sockets."""

    def __init__(self, account: Account, timeout: float) -> None:
        super().__init__(KEY, "http://sume.simulation", timeout=timeout)
        self._account = account
        self.sent = False

    def _get(self, path: str) -> Any:
        return self._travel("GET", path, b"", {})

    def _post(self, path: str, body: str, idempotency_key: str) -> Any:
        headers = {"idempotency-key": idempotency_key} if idempotency_key else {}
        return self._travel("POST", path, body.encode(), headers)

    def _travel(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Any:
        account = self._account
        stage, luck, ledger = account.stage, account.luck, account.ledger
        what = _operation(method, path)
        stage.point(f"{method} {path}")
        left, key = stage.clock.now, headers.get("idempotency-key", "")
        slept_until = stage.actor.process.slept_until if stage.actor else -1.0
        late = left - slept_until < WAKING_SECONDS
        fault = luck.draw(what)
        if fault == UNREACHABLE:
            self.sent = False
            account.note(f"{what} {key or path}: unreachable")
            return "NewConnectionError"
        came: float | None = None
        try:
            stage.sleep(luck._random.random() * TRANSIT_SECONDS)
            came, bills = stage.clock.now, len(ledger.bills)
            if what == "status":
                account.reads.append((path.split("/")[3], left, late))
            with mock.patch.object(account.app.faults, "pick", lambda operation, header: fault):
                reply, wire = account.app.handle(
                    Request(
                        method,
                        path.partition("?")[0],
                        {},
                        {**headers, "authorization": f"Bearer {KEY}"},
                        body,
                        self.base_url,
                    )
                )
            wait = luck._random.random() * TRANSIT_SECONDS + wire.wait_seconds
            billed = ", billed" * (len(ledger.bills) > bills)
            named = f", {fault.name}" if isinstance(fault, Fault) else ""
            account.note(f"{what} {key or path}: {reply.status}{named}{billed}")
            lost = wire.reset or wire.cut_short or wait > self.timeout
            stage.sleep(min(wait, self.timeout))
        finally:
            if method == "POST" and came is not None:
                gone = stage.clock.now
                account.posts.append(Seen(key, left, came, gone, late, what == "submit"))
        stage.point(f"answer to {method} {path}")
        self.sent = True
        if lost:
            return "ReadTimeoutError" if wait > self.timeout else "ProtocolError"
        try:
            payload = json.loads(reply.content(), object_hook=partial(without, KEY))
        except ValueError:
            payload = None
        now = datetime.now(UTC)
        after = parse_retry_after(reply.headers.get("Retry-After"), now)
        return _Reply(reply.status, after, "", payload, now)


def _operation(method: str, path: str) -> str:
    if method == "POST":
        return "cancel" if path.endswith("/cancel") else "submit"
    return {"status": "status", "result": "result"}.get(path.rpartition("/")[2], "record")
