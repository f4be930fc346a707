"""A server that answers each read of a job at once, or after a set time, and remembers when.

`python -m tests.benchmarks.stub HTTP_PORT [HTTPS_PORT CERTIFICATE]` serves on 127.0.0.1 until it
is ended. It costs little, so that clients of it can be measured: nothing is parsed but the path.
Jobs are called `job-<number>`. `PUT /control` begins anew with the settings in its body (JSON,
fields of `Settings`), `GET /control` gives the count of reads, `GET /log` all that is remembered.
"""

import asyncio
import json
import ssl
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass
class Settings:
    """How reads are answered. Times are seconds."""

    hint: float = 5.0
    """What is given as `next_poll_after_seconds`."""
    delay: float = 0.0
    """So long an answer takes."""
    base: float = 0.0
    """When job 0 is due first (Unix time) …"""
    spacing: float = 0.0
    """… and how much later each next one."""


class Stub:
    """What the connections share."""

    def __init__(self) -> None:
        self.begin({})

    def begin(self, settings: dict[str, Any]) -> None:
        """Forget what was remembered."""
        self.settings = Settings(**settings)
        self.count = 0
        self.due: dict[int, float] = {}
        # Of each read: number of the job, when it came, when it was due, when it was answered.
        self.reads: list[list[float]] = []
        # Of each submit: its prompt, when it came.
        self.submits: list[tuple[str, float]] = []
        self.status = _reply(
            200,
            {
                "request_id": "job",
                "job_id": "job",
                "status": "PROCESSING",
                "sume_status": "processing",
                "terminal": False,
                "result_ready": False,
                "next_poll_after_seconds": self.settings.hint,
                "next_action": "poll_status",
                "job": {"id": "job", "type": "image", "status": "processing", "error": None},
                "usage": {
                    "status": "reserved",
                    "currency": "USD",
                    "billable_amount_usd_micros": 90_000,
                },
            },
        )

    def read(self, job: str) -> list[float]:
        """Remember a read that has come."""
        self.count += 1
        number, now = int(job.rpartition("-")[2]), time.time()
        settings = self.settings
        due = self.due.get(number, settings.base + number * settings.spacing)
        self.due[number] = now + settings.delay + settings.hint
        entry = [number, now, due, 0.0]
        self.reads.append(entry)
        return entry

    def submit(self, body: bytes) -> bytes:
        """Accept a job."""
        self.submits.append((json.loads(body)["prompt"], time.time()))
        job = f"job-{10_000_000 + len(self.submits)}"
        return _reply(
            202, {"request_id": job, "job": {"id": job, "type": "image", "status": "queued"}}
        )

    def log(self) -> bytes:
        """All that is remembered."""
        return _reply(200, {"reads": self.reads, "submits": self.submits})


class Connection(asyncio.Protocol):
    """One client: HTTP/1.1, kept alive."""

    def __init__(self, stub: Stub) -> None:
        self._stub = stub
        self._got = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self._got += data
        while (end := self._got.find(b"\r\n\r\n")) >= 0:
            head = self._got[:end]
            length = _content_length(head)
            if len(self._got) < end + 4 + length:
                return
            body, self._got = self._got[end + 4 :][:length], self._got[end + 4 + length :]
            method, path, _ = head.split(b"\r\n", 1)[0].decode().split(" ", 2)
            self._answer(method, path, body)

    def _answer(self, method: str, path: str, body: bytes) -> None:
        stub = self._stub
        if path.endswith("/status"):
            entry = stub.read(path.split("/")[3])
            if stub.settings.delay:
                loop = asyncio.get_running_loop()
                loop.call_later(stub.settings.delay, self._tell, entry, stub.status)
            else:
                self._tell(entry, stub.status)
        elif method == "PUT":
            stub.begin(json.loads(body))
            self._transport.write(_reply(200, asdict(stub.settings)))
        elif method == "POST":
            self._transport.write(stub.submit(body))
        elif path == "/log":
            self._transport.write(stub.log())
        else:
            self._transport.write(_reply(200, {"count": stub.count}))

    def _tell(self, entry: list[float], reply: bytes) -> None:
        if not self._transport.is_closing():  # else: whoever asked is gone
            self._transport.write(reply)
            entry[3] = time.time()


def _content_length(head: bytes) -> int:
    start = head.lower().find(b"content-length:")
    return int(head[start + 15 :].split(b"\r\n", 1)[0]) if start >= 0 else 0


def _reply(status: int, data: Any) -> bytes:
    body = json.dumps({"data": data}).encode()
    return (
        f"HTTP/1.1 {status} OK\r\nContent-Type: application/json\r\n"
        f"x-sume-request-id: req_1\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode() + body


async def serve(port: int, safe_port: int, certificate: str) -> None:
    """Serve until the process ends."""
    stub = Stub()
    make: Callable[[], Connection] = lambda: Connection(stub)  # noqa: E731
    loop = asyncio.get_running_loop()
    server = await loop.create_server(make, "127.0.0.1", port, backlog=1024)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        await loop.create_server(make, "127.0.0.1", safe_port, ssl=context, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    words = [*sys.argv[1:], "0", ""]
    asyncio.run(serve(int(words[0]), int(words[1]), words[2] if len(sys.argv) > 3 else ""))
