"""One HTTP/1.1 connection: reads requests, has them answered, sends what comes back."""

import re
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qsl, urlsplit

from .effects import Wire
from .replies import ApiError, Reply
from .request import Request
from .transmission import encode, transmit

if TYPE_CHECKING:
    from .server import SandboxServer

IDLE_SECONDS = 300
# A body a little too long is read to its end, so that the client sees the refusal.
DRAIN_FACTOR = 8
HOST_HEADER = re.compile(r"[A-Za-z0-9._-]+(:\d+)?|\[[0-9A-Fa-f:.]+\](:\d+)?")


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
        return cast("SandboxServer", self.server)

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
