"""The HTTP server around the rules, and `Sandbox`, which starts and stops it.

with Sandbox(port=0, processing_seconds=0.2) as sandbox:
    requests.post(f"{sandbox.url}/v1/images", json=..., timeout=5)
    assert len(sandbox.ledger.bills) == 1
"""

import contextlib
import logging
import re
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

from .application import Application
from .effects import Wire
from .faults import FaultBook
from .ledger import Ledger
from .options import Options
from .replies import ApiError, Reply
from .request import Request
from .rules import Clock, Rules
from .transmission import encode, is_reset, transmit
from .webhooks import Courier

logger = logging.getLogger(__name__)

STOP_SECONDS = 1.0
IDLE_SECONDS = 300
# A body a little too long is read to its end, so that the client sees the refusal.
DRAIN_FACTOR = 8
HOST_HEADER = re.compile(r"[A-Za-z0-9._-]+(:\d+)?|\[[0-9A-Fa-f:.]+\](:\d+)?")


class Sandbox:
    """A stand-in for the Sume API, served from a background thread.

    `port` 0 picks a free one. `clock` returns Unix seconds. `options` are those of `Options`.
    `start` raises OSError if the address cannot be had. Use it as a context manager.
    """

    def __init__(
        self,
        port: int = 0,
        host: str = "127.0.0.1",
        *,
        clock: Clock = time.time,
        **options: Any,
    ) -> None:
        self._address = (host, port)
        self._application = Application(Options(**options), clock)
        self._courier = Courier(self.rules, self.faults)
        self._server: SandboxServer | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The base URL, without a slash at its end. RuntimeError before the start."""
        if self._server is None:
            raise RuntimeError("The sandbox is not running; use it in a with statement.")
        return self._server.url

    @property
    def ledger(self) -> Ledger:
        """What was billed, read and posted, up to now."""
        self.rules.settle()
        return self.rules.ledger

    @property
    def faults(self) -> FaultBook:
        """The script of faults: `add`, `clear`, `pending`."""
        return self._application.faults

    @property
    def rules(self) -> Rules:
        """The state machine, to look at a job or hold its result without HTTP."""
        return self._application.rules

    def start(self) -> "Sandbox":
        """Bind the port and serve."""
        self._server = SandboxServer(self._address, self._application)
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            kwargs={"poll_interval": 0.02},
            name="sume-sandbox",
            daemon=True,
        )
        self._thread.start()
        self._courier.start()
        return self

    def stop(self) -> None:
        """Close the port and every connection. Jobs and ledger stay readable."""
        if self._server is not None and self._thread is not None:
            self._courier.stop()
            self._server.stop()
            self._thread.join()
            self._server = self._thread = None

    def __enter__(self) -> "Sandbox":
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()


class SandboxServer(ThreadingHTTPServer):
    """Accepts connections, knows the open ones, and can close them all."""

    daemon_threads = True
    request_queue_size = 256
    # Two sandboxes on one port would answer in turn.
    allow_reuse_port = False

    def __init__(self, address: tuple[str, int], application: Application) -> None:
        self.application = application
        self.stopping = threading.Event()
        self._open: set[socket.socket] = set()
        self._changed = threading.Condition()
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, Handler)

    @property
    def url(self) -> str:
        host, port = self.server_address[:2]
        name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(str(host), str(host))  # noqa: S104
        return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"

    def server_bind(self) -> None:
        # The parent's asks the name service for the host's name, which can hang.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._changed:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        # A polite end first would hide the reset that a fault asked for.
        if not is_reset(request):
            with contextlib.suppress(OSError):
                request.shutdown(socket.SHUT_WR)
        self.close_request(request)
        with self._changed:
            self._open.discard(request)
            self._changed.notify_all()

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A client that leaves, or that a fault cut off, is everyday; anything else is ours.
        if not isinstance(sys.exception(), OSError):
            logger.exception("The sandbox failed while it answered a request.")

    def stop(self) -> None:
        self.stopping.set()
        self.shutdown()
        self.server_close()
        with self._changed:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            self._changed.wait_for(lambda: not self._open, timeout=STOP_SECONDS)


class Handler(BaseHTTPRequestHandler):
    """Serves every method alike; the routes decide."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = IDLE_SECONDS

    def do_GET(self) -> None:
        """Answer one request."""
        try:
            body = self._body()
        except ApiError as error:
            self.close_connection = True
            self._send(error.reply("req_unread"), Wire())
            return
        reply, wire = self._server.application.handle(self._request(body))
        self._send(reply, wire)

    do_POST = do_DELETE = do_PUT = do_PATCH = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the application logs, without paths, keys and signatures."""

    @property
    def _server(self) -> "SandboxServer":
        return cast(SandboxServer, self.server)

    def _request(self, body: bytes) -> Request:
        target = urlsplit(self.path)
        host = self.headers.get("Host", "")
        return Request(
            method=self.command,
            path=target.path,
            query=dict(parse_qsl(target.query)),
            headers={name.lower(): value for name, value in self.headers.items()},
            body=body,
            # The client's own name for us: links must work from where it stands.
            base_url=f"http://{host}" if HOST_HEADER.fullmatch(host) else self._server.url,
        )

    def _body(self) -> bytes:
        if "Transfer-Encoding" in self.headers:
            raise ApiError(411, "length_required", "Send the body with a Content-Length.")
        text = self.headers.get("Content-Length", "0").strip()
        if not text.isascii() or not text.isdigit() or len(text) > 15:
            raise ApiError(400, "bad_request", "The Content-Length is not a number.")
        length, limit = int(text), self._server.application.options.max_body_bytes
        if length > limit:
            if length <= limit * DRAIN_FACTOR:
                self.rfile.read(length)
            message = f"The request body may have at most {limit} bytes."
            raise ApiError(413, "payload_too_large", message, retryable=False)
        body = self.rfile.read(length)
        if len(body) < length:
            raise ApiError(400, "bad_request", "The request body ended too soon.")
        return body

    def _send(self, reply: Reply, wire: Wire) -> None:
        message = encode(reply, close=self.close_connection)
        if not transmit(self.connection, message, wire, self._server.stopping):
            self.close_connection = True
