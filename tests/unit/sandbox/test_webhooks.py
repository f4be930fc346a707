"""The events that the sandbox sends: signed, and as its faults have it."""

import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from renders.sandbox import Options
from renders.sandbox.replies import ApiError
from renders.sandbox.submissions import check

SECRET = "sandbox-secret"


class Receiver:
    """What arrived: headers and body of each event, in order."""

    def __init__(self) -> None:
        self.events: list[tuple[dict[str, str], bytes]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.events.append((dict(self.headers), body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook?a=1"
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self._thread.start()

    def stop(self) -> None:
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()

    def jobs(self) -> list[str]:
        """The job of each event."""
        return [json.loads(body)["data"]["object"]["id"] for _, body in self.events]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.stop()


def until(condition: Any) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_event_is_signed_as_sume_signs_it(start, receiver):
    sandbox, caller = start(webhook_secret=SECRET)
    job_id = caller.job(mode="webhook", webhook_url=receiver.url)
    until(lambda: sandbox.ledger.events)

    [(headers, body)] = receiver.events
    message = headers["X-Sume-Timestamp"].encode() + b"." + body
    digest = hmac.new(SECRET.encode(), message, hashlib.sha256).hexdigest()
    event = json.loads(body)
    assert headers["X-Sume-Signature"] == f"v1={digest}"
    assert headers["X-Sume-Event-Id"] == event["id"]
    assert abs(time.time() - int(headers["X-Sume-Timestamp"])) < 60
    assert (event["type"], event["data"]["object"]["id"]) == ("job.completed", job_id)
    assert [sent.status for sent in sandbox.ledger.events] == [200]


@pytest.mark.parametrize(
    ("prompt", "what"), [("FAIL", "job.failed"), ("a fox", "job.canceled")], ids=str
)
def test_every_end_is_told(start, receiver, prompt, what):
    sandbox, caller = start(webhook_secret=SECRET, queued_seconds=60 if prompt == "a fox" else 0)
    job_id = caller.job(prompt=prompt, mode="webhook", webhook_url=receiver.url)
    if prompt == "a fox":
        caller.send("POST", f"/v1/jobs/{job_id}/cancel", headers={"Idempotency-Key": "c"})
    until(lambda: sandbox.ledger.events)

    assert json.loads(receiver.events[0][1])["type"] == what


@pytest.mark.parametrize(
    ("fault", "order"),
    [
        ("event_never", "BC"),
        ("event_twice", "AABC"),
        ("event_held", "BAC"),
        ("event_late", "BCA"),
    ],
)
def test_the_first_event_of_three_meets_a_fault(start, receiver, fault, order):
    sandbox, caller = start(webhook_secret=SECRET)
    sandbox.faults.add(fault, argument=0.5 if fault == "event_late" else None)
    names = {}
    for name in "ABC":
        names[caller.job(name, mode="webhook", webhook_url=receiver.url)] = name
    until(lambda: len(sandbox.ledger.events) == len(order))

    assert "".join(names[job] for job in receiver.jobs()) == order
    assert [(note.fault, note.on) for note in sandbox.ledger.faults] == [(fault, "event")]
    assert len({sent.event_id for sent in sandbox.ledger.events}) == len(set(order))


def test_who_is_told_may_read_at_once(start, receiver):
    sandbox, caller = start(webhook_secret=SECRET, processing_seconds=0.2, poll_seconds=60)
    job_id = caller.job(mode="webhook", webhook_url=receiver.url)
    caller.get(f"/v1/jobs/{job_id}/status")
    until(lambda: sandbox.ledger.events)
    caller.get(f"/v1/jobs/{job_id}/status")

    assert sandbox.ledger.early_reads == []


def test_where_nobody_listens_the_event_is_lost(start):
    sandbox, caller = start(webhook_secret=SECRET)
    caller.job(mode="webhook", webhook_url="http://127.0.0.1:9/")
    until(lambda: sandbox.ledger.events)

    assert [sent.status for sent in sandbox.ledger.events] == [0]


@pytest.mark.parametrize(
    ("options", "fields"),
    [({}, {"mode": "webhook"}), ({"webhook_secret": SECRET}, {"mode": "async"})],
    ids=["without a secret", "for another mode"],
)
def test_nothing_is_sent(start, receiver, options, fields):
    sandbox, caller = start(**options)
    caller.job(**fields, webhook_url=receiver.url)
    sandbox.stop()

    assert receiver.events == sandbox.ledger.events == []


@pytest.mark.parametrize(
    ("url", "taken"),
    [
        ("https://a.example/hook", True),
        ("http://127.0.0.1:8000/hook", True),
        ("http://localhost/", True),
        ("http://[::1]:8000/", True),
        ("http://a.example/hook", False),
        ("http://127.0.0.1.a.example/", False),
        ("http://127.0.0.1:99999/", False),
        ("https://", False),
        ("https://a.example/a b", False),
        ("https://a.example/\r\nX: y", False),
        ("ftp://127.0.0.1/", False),
        (["https://a.example"], False),
        (None, False),
    ],
    ids=repr,
)
def test_events_go_over_https_or_stay_on_this_machine(url, taken):
    fields = {"prompt": "a fox", "mode": "webhook", "webhook_url": url}
    if taken:
        check("image", fields)
    else:
        with pytest.raises(ApiError, match="not valid"):
            check("image", fields)


def test_an_empty_secret_is_refused():
    with pytest.raises(ValueError, match="webhook_secret must not be empty"):
        Options(webhook_secret=" ")
