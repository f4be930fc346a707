"""What docs/monitoring.md shows for Sentry and OpenTelemetry, run by real workers.

A stand-in on this machine takes what they send, byte for byte.
"""

import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from renders.models import RenderJob
from tests.integration import modes
from tests.integration.stack import Stack
from tests.unit.docs.test_monitoring import blocks

pytestmark = [
    pytest.mark.slow,
    pytest.mark.parametrize("database", ["postgresql"], indirect=True),
]


class Collector(ThreadingHTTPServer):
    """Keeps every body that is posted."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: list[bytes] = []

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.server.bodies.append(body)  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def shown(word: str) -> str:
    """The block of the page with this word."""
    [found] = [block for block in blocks("python") if word in block]
    return found


def with_settings(stack: Stack, folder: Path, lines: str) -> None:
    """Have the stack's processes use the tests' settings and these lines."""
    (folder / "settings_of_docs.py").write_text(f"from tests.settings import *\n\n{lines}\n")
    stack.environment |= {
        "DJANGO_SETTINGS_MODULE": "settings_of_docs",
        "PYTHONPATH": str(folder),
    }


def assert_no_secret(bodies: list[bytes], key: str) -> None:
    everything = b"".join(bodies)
    assert key.encode() not in everything
    for render in RenderJob.objects.filter(status="completed"):
        for artifact in (render.result or {})["artifacts"]:
            signature = artifact["url"].partition("signature=")[2]
            assert len(signature) > 20
            assert signature.encode() not in everything


def events_in(bodies: list[bytes]) -> list[dict[str, Any]]:
    """The errors among what Sentry's client has sent."""
    found = []
    for body in bodies:
        parts = body.split(b"\n")
        for head, told in pairwise(parts):
            if head.startswith(b"{") and json.loads(head).get("type") == "event":
                found.append(json.loads(told))
    return found


def test_sentry_is_told_of_a_receiver_that_raises_and_of_no_secret(
    stack: Stack, collector: Collector, tmp_path: Path, settings: Any
) -> None:
    modes.use(stack, "countdown")
    with_settings(stack, tmp_path, shown("sentry_sdk.init"))
    stack.environment["SENTRY_DSN"] = f"http://public@{collector.host}/1"
    worker = stack.worker()
    [render] = stack.create("[raise] a fox")
    stack.until(lambda: events_in(collector.bodies), child=worker)
    stack.marker.touch()
    stack.until_handled()

    event = events_in(collector.bodies)[0]
    render.refresh_from_db()
    assert event["tags"]["render"] == str(render.pk)
    assert event["tags"]["job"] == render.sume_job_id
    [error] = [one for one in event["exception"]["values"] if one["type"] == "RuntimeError"]
    assert error["value"] == "this receiver fails"
    frames = {frame["function"]: frame["vars"] for frame in error["stacktrace"]["frames"]}
    assert str(render.pk)[:8] in frames["count_effect"]["render"]
    assert_no_secret(collector.bodies, settings.RENDERS["API_KEY"])


def spans_in(bodies: list[bytes]) -> list[tuple[str, dict[str, str]]]:
    """Names and attributes of all spans that came."""
    found = []
    for body in bodies:
        for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for of_scope in of_resource.scope_spans:
                for span in of_scope.spans:
                    told = {one.key: one.value.string_value for one in span.attributes}
                    found.append((span.name, told))
    return found


@pytest.mark.parametrize("scheduler", ["countdown", "database"])
def test_traces_say_which_render_a_request_was_for_and_no_secret(
    stack: Stack, collector: Collector, tmp_path: Path, settings: Any, scheduler: str
) -> None:
    modes.use(stack, scheduler)
    (tmp_path / "tracing_of_docs.py").write_text(shown("class Tracing(AppConfig)"))
    app = 'INSTALLED_APPS = [*INSTALLED_APPS, "tracing_of_docs.Tracing"]'
    with_settings(stack, tmp_path, app)
    stack.environment |= {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{collector.host}",
        "OTEL_BSP_SCHEDULE_DELAY": "200",
        "OTEL_SERVICE_NAME": "renders",
    }
    if scheduler == "countdown":
        stack.worker()
    else:
        modes.start(stack, "runrenders")
    [render] = stack.create("a fox")
    stack.until_handled(sweeping=False)

    def about(method: str) -> list[str]:
        """Addresses that were asked that way for this render."""
        ours = [
            told
            for name, told in spans_in(collector.bodies)
            if name == method and told.get("renders.render") == str(render.pk)
        ]
        return [told.get("url.full") or told["http.url"] for told in ours]

    def of_tasks() -> set[str]:
        """The tasks that were for this render."""
        return {
            name.rpartition(".")[2]
            for name, told in spans_in(collector.bodies)
            if name.startswith("run/") and told.get("renders.render") == str(render.pk)
        }

    stack.until(lambda: any("/media/" in url for url in about("GET")))
    assert any(url.endswith("/v1/images") for url in about("POST"))
    assert any(url.endswith("/status") for url in about("GET"))
    if scheduler == "countdown":
        tasks = {"submit_render", "poll_render", "finish_render", "save_media"}
        stack.until(lambda: tasks <= of_tasks())
    assert_no_secret(collector.bodies, settings.RENDERS["API_KEY"])
