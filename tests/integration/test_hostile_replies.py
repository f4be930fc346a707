"""Whatever bytes Sume sends, on both databases: no row breaks, no page fails, nothing strands.

A tiny server answers each kind of request with what the test has put there. That no value
raises while it is read is the matter of the unit tests; here it goes through the tables.
"""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from renders.coordination.connections import redis_client
from renders.lifecycle import cancellation
from renders.limits import gate
from renders.models import RenderJob
from renders.sume.clients import sume
from tests.effects.models import Effect
from tests.integration import engine

# As they stand in a JSON text.
VALUES: dict[str, bytes] = {
    "NUL": rb'"\u0000a\u0000"',
    "half a surrogate pair": rb'"\ud800"',
    "a long text": b'"' + b"x" * 400_000 + b'"',
    "letters that grow": ('"' + "İ" * 60 + '"').encode(),
    "control characters": rb'"\u001b[31m\u0007\u202e\r\n\ufeff"',
    "markup": rb'"<script>alert(1)</script>{{ render }}"',
    "null": b"null",
    "NaN": b"NaN",
    "a float without end": b"1e400",
    "a huge number": b"1" + b"0" * 400,
    "the largest that fits": b"9223372036854775807",
    "one more": b"9223372036854775808",
    "a list": b"[[[{}]]]",
    "an object": rb'{"\u0000": "\ud800", "id": {"id": 1}}',
    "deep": b"[" * 500 + b"]" * 500,
}
# What is stored at all; the rest is the reading's matter, and once is enough for it.
STORED = ("NUL", "half a surrogate pair", "a long text", "the largest that fits", "one more")
BODIES: dict[str, bytes] = {
    "empty": b"",
    "too deep": b'{"data": ' + b"[" * 100_000,
    "digits without end": b'{"data": {"job": {"id": %s}}}' % (b"9" * 5_000),
    "latin-1": '{"data": {"job": {"id": "jöb"}, "sume_status": "é"}}'.encode("latin-1"),
    "a mark and no JSON": b"\xef\xbb\xbf<html>",
    "null": b"null",
    "a text": b'"completed"',
    "a list": b'[{"data": {"sume_status": "failed"}}]',
    "the last of two names counts": b'{"data": {"sume_status": "failed"}, "data": 7}',
    "an error": rb'{"error": {"code": "\u0000", "message": ["\ud800"], "details": {"errors": 7}}}',
    "an error that is a text": rb'{"error": "\ud800\u0000"}',
}
HOLE = "@"  # in a template, where the hostile value goes
JOB = {"id": "job_1", "status": "queued", "error": None}
GOOD: dict[str, Any] = {
    "submit": {"request_id": "job_1", "job": JOB},
    "running": {"sume_status": "processing", "terminal": False, "job": JOB},
    "completed": {"sume_status": "completed", "terminal": True, "result_ready": True, "job": JOB},
    "failed": {"sume_status": "failed", "terminal": True, "job": {**JOB, "status": "failed"}},
    "result": {"result": {"artifacts": [{"url": "https://media.example/1", "type": "image"}]}},
    "cancel": {"canceled": True},
}
USAGE = {"billable_amount_usd_micros": HOLE, "currency": HOLE, "status": HOLE}
FAULT = {
    "code": HOLE,
    "message": HOLE,
    "public_reason": HOLE,
    "request_id": HOLE,
    "details": {"errors": [{"path": HOLE, "message": HOLE}, HOLE]},
}
EVERYWHERE: dict[str, list[Any]] = {
    "submit": [
        {"request_id": HOLE, "job": {"id": HOLE, "status": HOLE}},
        {
            **GOOD["submit"],
            "idempotency_hit": HOLE,
            "next_poll_after_seconds": HOLE,
            "sume_status": HOLE,
            "generation_limits": {"queue_capacity_remaining": HOLE},
        },
        {**GOOD["submit"], "generation_limits": HOLE, "usage": HOLE, "error": HOLE},
    ],
    "status": [
        {"sume_status": HOLE, "status": HOLE, "terminal": HOLE, "result_ready": HOLE, "job": HOLE},
        {"sume_status": HOLE, "terminal": True, "job": {"error": FAULT, "usage": USAGE}},
        {**GOOD["running"], "next_poll_after_seconds": HOLE, "usage": USAGE},
        {**GOOD["failed"], "job": {"error": FAULT}, "usage": USAGE},
        {**GOOD["completed"], "result_ready": HOLE, "terminal": HOLE, "usage": USAGE},
    ],
    "result": [
        {"result": HOLE},
        {"result": {"artifacts": HOLE}},
        {"result": {"artifacts": [HOLE, {"url": HOLE}]}},
        {
            "result": {"artifacts": [{**GOOD["result"], "type": HOLE, "content_type": HOLE}]},
            "usage": USAGE,
        },
        {"result": {"artifacts": [{"url": "https://x/", "type": HOLE, "content_type": HOLE}]}},
    ],
    "record": [{"job": {"error": FAULT}}, {"job": {"error": HOLE}}, {"job": HOLE}],
    "cancel": [{"canceled": HOLE}, {"canceled": False, "error": FAULT}],
}


def filled(template: Any, value: bytes) -> bytes:
    """The template as JSON, with the value in every hole."""
    return json.dumps({"data": template}).encode().replace(b'"%s"' % HOLE.encode(), value)


class Liar(ThreadingHTTPServer):
    """Says what it is told to say: `says[operation]` is a status and a body."""

    daemon_threads = True

    def __init__(self) -> None:
        self.says: dict[str, tuple[int, bytes]] = {}
        super().__init__(("127.0.0.1", 0), Answer)

    def good(self, operation: str, name: str = "") -> None:
        """Let it answer as Sume does."""
        self.says[operation] = 200, filled(GOOD[name or operation], b"")


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Liar

    def do_GET(self) -> None:
        last = self.path.rpartition("/")[2]
        self._answer(last if last in {"status", "result"} else "record")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer("cancel" if self.path.endswith("/cancel") else "submit")

    def _answer(self, operation: str) -> None:
        status, body = self.server.says[operation]
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""


@pytest.fixture
def liar(database: str, redis: Any, settings: Any) -> Iterator[Liar]:
    with Liar() as server:
        url = f"http://127.0.0.1:{server.server_port}"
        settings.RENDERS = {**settings.RENDERS, "BASE_URL": url, "SAVE_MEDIA": "0"}
        thread = threading.Thread(target=server.serve_forever, args=[0.02])
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def owner(liar: Liar) -> Any:
    return get_user_model().objects.create_superuser("ann")


@pytest.fixture(params=["stored", pytest.param("all", marks=pytest.mark.thorough)])
def whole(request: pytest.FixtureRequest, database: str) -> bool:
    """Whether every value is tried, or those that have broken a database."""
    return request.param == "all" and connection.vendor == "postgresql"


def replies_to(operation: str, whole: bool) -> dict[str, tuple[int, bytes]]:
    """Every hostile reply to this operation: a status and a body."""
    values = VALUES if whole else {name: VALUES[name] for name in STORED}
    found = {
        f"{name}, {number}": (200, filled(template, value))
        for name, value in values.items()
        for number, template in enumerate(EVERYWHERE[operation])
    }
    found |= {f"body: {name}": (200, body) for name, body in BODIES.items()}
    status = 422 if operation == "submit" else 500
    found |= {
        f"error: {name}": (status, b'{"error": %s}' % fault(value))
        for name, value in values.items()
    }
    return found | {"204": (204, b"")}


def fault(value: bytes) -> bytes:
    return json.dumps(FAULT).encode().replace(b'"%s"' % HOLE.encode(), value)


def submitted(count: int, owner: Any, **fields: Any) -> list[RenderJob]:
    """Renders that Sume holds."""
    now = timezone.now()
    common = {
        "status": "submitted",
        "sume_job_id": "job_1",
        "submitted_at": now,
        "next_poll_at": now,
    }
    return RenderJob.objects.bulk_create(
        RenderJob(prompt="a fox", created_by=owner, **{**common, **fields}) for _ in range(count)
    )


def let_go_on(render: RenderJob) -> None:
    """No wait and no pause holds it back any more."""
    gate.resume("default")
    redis_client().delete(f"sume:poll:{render.pk}")
    now = timezone.now()
    RenderJob.objects.filter(pk=render.pk, status="pending").update(not_before=None)
    RenderJob.objects.filter(pk=render.pk, next_poll_at__isnull=False).update(next_poll_at=now)
    render.refresh_from_db()


def bring_home(render: RenderJob, liar: Liar) -> None:
    """From here on all answers are good: whatever state it was left in, it ends and is handled."""
    for operation in ("submit", "result", "cancel"):
        liar.good(operation)
    liar.says["record"] = 200, filled({"job": JOB}, b"")
    for step in (engine.submit, engine.poll, engine.finish):
        let_go_on(render)
        # A reply about another job would be no answer.
        job = {**JOB, "id": render.sume_job_id or JOB["id"]}
        liar.says["status"] = 200, filled({**GOOD["completed"], "job": job}, b"")
        step(render)
    assert render.is_terminal
    assert render.handled_at
    assert Effect.objects.filter(render_id=render.pk).count() == 1


def assert_pages_hold(owner: Any, renders: list[RenderJob]) -> None:
    """Every page on which they are shown can be shown, and the API's JSON is strict."""
    browser = Client()
    browser.force_login(owner)
    for path in ("/renders/", reverse("admin:renders_renderjob_changelist")):
        assert browser.get(path).status_code == 200
    for page in ("renders:detail", "renders:api_detail", "admin:renders_renderjob_change"):
        for render in renders[::2]:
            reply = browser.get(reverse(page, args=[render.pk]))
            assert reply.status_code == 200
            text = reply.content.decode()
            assert "\x00" not in text
            assert page == "renders:api_detail" or "<script>alert" not in text
            if page == "renders:api_detail":
                json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


@pytest.mark.parametrize("operation", ["submit", "status"])
def test_no_hostile_reply_strands_a_render(
    liar: Liar, owner: Any, operation: str, whole: bool
) -> None:
    hostile = replies_to(operation, whole)
    unsent: dict[str, Any] = {
        "status": "pending",
        "sume_job_id": "",
        "submitted_at": None,
        "next_poll_at": None,
    }
    renders = submitted(len(hostile), owner, **(unsent if operation == "submit" else {}))
    liar.says["record"] = 200, filled({"job": JOB}, b"")
    shown: dict[str, RenderJob] = {}
    for render, (name, says) in zip(renders, hostile.items(), strict=True):
        liar.says[operation] = says
        gate.resume("default")
        steps = engine.submit(render) if operation == "submit" else engine.poll(render)
        assert steps, f"nothing follows: {name}"
        assert render.status != "submitting", name
        assert all(0 <= step.after <= 900 for step in steps)
        shown.setdefault(name.partition(",")[0].partition(":")[0], render)
    assert_pages_hold(owner, list(shown.values()))
    for render in shown.values():
        bring_home(render, liar)


@pytest.mark.parametrize(("operation", "status"), [("result", "completed"), ("record", "failed")])
def test_no_hostile_result_or_record_holds_an_ended_render(
    liar: Liar, owner: Any, operation: str, status: str, whole: bool
) -> None:
    hostile = replies_to(operation, whole)
    renders = submitted(len(hostile), owner, status=status, finished_at=timezone.now())
    shown: dict[str, RenderJob] = {}
    for render, (name, says) in zip(renders, hostile.items(), strict=True):
        liar.says[operation] = says
        steps = engine.finish(render)
        assert bool(steps) != bool(render.handled_at), name
        shown.setdefault(name.partition(",")[0].partition(":")[0], render)
    assert_pages_hold(owner, list(shown.values()))
    for render in renders:
        if not render.handled_at:
            bring_home(render, liar)
    assert Effect.objects.count() == len(renders)


def test_no_hostile_answer_to_a_cancel_breaks_the_row(liar: Liar, owner: Any, whole: bool) -> None:
    hostile = replies_to("cancel", whole)
    renders = submitted(len(hostile), owner, cancel_requested_at=timezone.now())
    for render, says in zip(renders, hostile.values(), strict=True):
        liar.says["cancel"] = says
        cancellation.cancel(render.pk, sume)
    assert_pages_hold(owner, renders[:3])
    for render in renders[::10]:
        bring_home(render, liar)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "url",
    [
        "https://media.example/" + "x" * 7_900,
        "https://media.example/a\nSet-Cookie: b",
        "https://media.example/\x00\x7f\ufffd é",
        "https://[::1",
        "https://[x]/",
        "https://:99999999/",
        "https://",
        "http:///a",
    ],
    ids=ascii,
)
def test_the_way_to_an_artifact_with_an_odd_address_is_no_server_error(
    owner: Any, url: str
) -> None:
    result = {"artifacts": [{"url": url, "type": "image", "content_type": "image/png"}]}
    now = timezone.now()
    [render] = submitted(1, owner, status="completed", finished_at=now, result=result)
    browser = Client(raise_request_exception=False)
    browser.force_login(owner)

    reply = browser.get(reverse("renders:artifact", args=[render.pk, 0]))

    assert reply.status_code in {302, 404}
    assert reply.status_code == 302 or not url.startswith("https://media.example/")
