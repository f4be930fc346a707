"""Helpers for the sandbox's tests: a clock to turn by hand, and short ways to ask."""

import json
from typing import Any

import requests

from renders.sandbox.ledger import Ledger
from renders.sandbox.options import Options
from renders.sandbox.rules import Rules

START = 1_000_000.0
HEADERS = {"Authorization": "Bearer test-key"}


class HandClock:
    """A clock that stands still until it is turned."""

    def __init__(self) -> None:
        self.time = START

    def __call__(self) -> float:
        return self.time

    def turn(self, seconds: float) -> None:
        self.time += seconds


class Bench:
    """Rules with a hand clock: 2 s queued, 5 s processing, hints up to 30 s."""

    def __init__(self, **options: Any) -> None:
        self.clock = HandClock()
        settings = {"queued_seconds": 2, "processing_seconds": 5, "poll_seconds": 30} | options
        self.rules = Rules(Options(**settings), self.clock, lambda job, name: f"/m/{job}/{name}")

    def submit(self, key: str | None = "key", kind: str = "image", **fields: Any) -> dict[str, Any]:
        body = json.dumps({"prompt": "a fox", "mode": "async"} | fields).encode()
        return self.rules.submit(kind, body, key, path="/v1/images")

    def submit_many(self, number: int) -> list[str]:
        return [self.submit(f"many-{index}")["job"]["id"] for index in range(number)]

    def word(self, job_id: str) -> str:
        return str(self.rules.record(job_id)["job"]["status"])

    @property
    def ledger(self) -> Ledger:
        self.rules.settle()
        return self.rules.ledger


class Caller:
    """A plain HTTP client of one sandbox."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.session = requests.Session()
        # A proxy from the environment must not stand between the tests and the sandbox.
        self.session.trust_env = False

    def send(self, method: str, path: str, fault: str = "", **extra: Any) -> requests.Response:
        headers = HEADERS | ({"X-Sandbox-Fault": fault} if fault else {}) | extra.pop("headers", {})
        timeout = extra.pop("timeout", 10)
        return self.session.request(
            method, self.url + path, headers=headers, timeout=timeout, **extra
        )

    def get(self, path: str, fault: str = "", **extra: Any) -> requests.Response:
        return self.send("GET", path, fault, **extra)

    def submit(self, key: str = "key", fault: str = "", **fields: Any) -> requests.Response:
        path = fields.pop("path", "/v1/images")
        headers = {"Idempotency-Key": key}
        body = {"prompt": "a fox", "mode": "async"} | fields
        return self.send("POST", path, fault, json=body, headers=headers)

    def job(self, key: str = "key", **fields: Any) -> str:
        return str(self.submit(key, **fields).json()["data"]["job"]["id"])
