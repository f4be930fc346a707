"""HTTP to Sume: what each reply means, deadlines, connections, and where the key never is.

Everything goes over real HTTP, to a small server of this module that answers with given bytes.
"""

import gzip
import json
import os
import socket
import socketserver
import subprocess
import sys
import textwrap
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from renders.exceptions import (
    BackOff,
    KeyTaken,
    NotFound,
    NotReady,
    OutcomeUnknown,
    Paused,
    Rejected,
    RendersError,
    SumeError,
    Unreachable,
)
from renders.states import Status
from renders.sume.client import MAX_REPLY_BYTES, SumeClient, classify
from renders.sume.replies import MAX_TEXT, SumeFault

KEY = "sk-canary-5up3r"
BODY = '{"model": "sume/auto",  "prompt": "fox \\u00e9 é", "mode": "async"}'
ACCEPTED = {"data": {"request_id": "job_7", "job": {"id": "job_7", "status": "queued"}}}
RUNNING = {"data": {"sume_status": "processing", "terminal": False}}
ERROR = {"error": {"code": "some_code", "message": "Some message.", "request_id": "req_1"}}

# --- A server that answers with given bytes -----------------------------------------------


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int


Answer = Callable[[Callable[[bytes], None]], None]


def reply(status=200, payload=None, *, body=None, **headers) -> Answer:
    """An answer with a status and a JSON payload, or a body as it is."""
    content = json.dumps(payload).encode() if body is None else body
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(content)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    data = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + content
    return lambda send: send(data)


def raw(data: bytes) -> Answer:
    """An answer of these bytes, and then the end of the connection."""

    def answer(send):
        send(data)
        raise ConnectionAbortedError

    return answer


def trickle(head: bytes, drop: bytes = b" ", every: float = 0.05, seconds: float = 1.2) -> Answer:
    """An answer that starts with `head` and then sends one drop after the other."""

    def answer(send):
        send(head)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(every)
            send(drop)
        raise ConnectionAbortedError

    return answer


def stall(*parts: bytes, seconds: float = 1.2) -> Answer:
    """An answer that comes in parts and stops in its midst."""

    def answer(send):
        for part in parts:
            send(part)
            time.sleep(0.28)
        time.sleep(seconds)
        raise ConnectionAbortedError

    return answer


class FakeServer(socketserver.ThreadingTCPServer):
    """Gives one answer after the other; the last one stays."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.forget()

    def forget(self) -> None:
        self.requests: list[Request] = []
        self.answers: list[Answer] = [reply(200, RUNNING)]
        self.connections = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def will(self, *answers: Answer) -> None:
        self.answers = list(answers)

    def handle_error(self, request, client_address) -> None:
        pass


class Handler(socketserver.StreamRequestHandler):
    server: FakeServer
    disable_nagle_algorithm = True

    def handle(self) -> None:
        with self.server.lock:
            self.server.connections += 1
            number = self.server.connections
        with suppress(OSError):
            while self.one(number):
                pass

    def one(self, number: int) -> bool:
        first = self.rfile.readline().decode("latin-1").split()
        if not first:
            return False
        headers: dict[str, str] = {}
        while line := self.rfile.readline().decode("latin-1").strip():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        body = self.rfile.read(int(headers.get("content-length", 0)))
        with self.server.lock:
            self.server.requests.append(Request(first[0], first[1], headers, body, number))
            answers = self.server.answers
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
        answer(self.wfile.write)
        return True


@contextmanager
def serving():
    with FakeServer() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()  # or the thread never rests, though the port is closed


@pytest.fixture(scope="module")
def one_server():
    with serving() as server:
        yield server


@pytest.fixture
def server(one_server):
    one_server.forget()
    return one_server


@pytest.fixture
def client(server):
    return SumeClient(KEY, server.url, timeout=3.0)


@dataclass
class Calls:
    """Each method of the client, as one call without arguments."""

    client: SumeClient

    def submit(self):
        return self.client.submit("/v1/images", BODY, "render-job-1")

    def status(self):
        return self.client.status("job_7")

    def result(self):
        return self.client.result("job_7")

    def record(self):
        return self.client.record_fault("job_7")

    def cancel(self):
        return self.client.cancel("job_7", "render-cancel-1")


@pytest.fixture
def calls(client):
    return Calls(client)


def outcomes_of(answers: dict[str, Answer], call: Callable[[str], object]):
    """How long a call to each of these answers takes, and what it raises, all at once."""

    def one(answer):
        with serving() as server:
            server.will(answer)
            started = time.monotonic()
            try:
                return 0.0, call(server.url)
            except RendersError as error:
                return time.monotonic() - started, error

    with ThreadPoolExecutor(len(answers)) as pool:
        return dict(zip(answers, pool.map(one, answers.values()), strict=True))


# --- What is sent -------------------------------------------------------------------------


def test_a_submit_sends_body_and_key_as_given(server, calls):
    server.will(reply(202, ACCEPTED))

    calls.submit()

    [request] = server.requests
    assert (request.method, request.path) == ("POST", "/v1/images")
    assert request.body == BODY.encode()
    assert request.headers["idempotency-key"] == "render-job-1"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("name", "method", "path"),
    [
        ("status", "GET", "/v1/jobs/job_7/status"),
        ("result", "GET", "/v1/jobs/job_7/result"),
        ("record", "GET", "/v1/jobs/job_7"),
    ],
)
def test_a_read_asks_for_the_job_and_sends_nothing_else(server, calls, name, method, path):
    server.will(reply(200, {"data": {"sume_status": "completed", "result": {"artifacts": []}}}))

    getattr(calls, name)()

    [request] = server.requests
    assert (request.method, request.path) == (method, path)
    assert request.body == b""
    assert "idempotency-key" not in request.headers
    assert request.headers["authorization"] == f"Bearer {KEY}"


def test_a_cancel_has_a_key_of_its_own(server, calls):
    calls.cancel()

    [request] = server.requests
    assert (request.method, request.path) == ("POST", "/v1/jobs/job_7/cancel")
    assert request.headers["idempotency-key"] == "render-cancel-1"


@pytest.mark.parametrize(
    ("job_id", "path"),
    [
        pytest.param("a/b", "/v1/jobs/a%2Fb/status", id="slash"),
        pytest.param("a?b#c", "/v1/jobs/a%3Fb%23c/status", id="query"),
        pytest.param("é\ufffd", "/v1/jobs/%C3%A9%EF%BF%BD/status", id="not ASCII"),
        pytest.param("a b\r\nX: y", "/v1/jobs/a%20b%0D%0AX%3A%20y/status", id="line end"),
    ],
)
def test_an_odd_job_id_stays_one_part_of_the_path(server, client, job_id, path):
    client.status(job_id)

    assert server.requests[0].path == path


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/", " ", "/v1\n"], ids=repr)
def test_the_base_url_may_end_in_a_slash_or_the_version(server, suffix):
    SumeClient(KEY, f" {server.url}{suffix}", timeout=3.0).status("job_7")

    assert server.requests[0].path == "/v1/jobs/job_7/status"


def test_the_base_url_may_have_a_path(server):
    SumeClient(KEY, f"{server.url}/proxy/v1/", timeout=3.0).status("job_7")

    assert server.requests[0].path == "/proxy/v1/jobs/job_7/status"


@pytest.mark.parametrize("key", [f"{KEY}\n", f"  {KEY}\t", f"{KEY}\r\n"], ids=repr)
def test_white_space_around_the_key_is_not_sent(server, key):
    SumeClient(key, server.url, timeout=3.0).status("job_7")

    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("name", ["submit", "status", "result", "record", "cancel"])
@pytest.mark.parametrize(
    "key", ["", "   ", "sk-a\nX-Evil: 1", "sk-\x00", "sk-é", "sk-\u2026", "sk-\ud800"], ids=ascii
)
def test_an_unusable_key_pauses_and_sends_nothing(server, key, name):
    with pytest.raises(Paused) as caught:
        getattr(Calls(SumeClient(key, server.url, timeout=3.0)), name)()

    assert caught.value.code == "bad_api_key"
    assert "SUME_API_KEY" in str(caught.value)
    assert server.requests == []


def test_neither_proxy_variables_nor_netrc_change_who_is_asked(
    server, client, monkeypatch, tmp_path
):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login other password other\n")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")

    client.status("job_7")

    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


# --- What a reply means -------------------------------------------------------------------


def error(code="some_code", **fields):
    return {"error": {"code": code, "message": "Some message.", **fields}}


UNKNOWN_REPLIES = {
    "500": reply(500, ERROR),
    "500, a page": reply(500, body=b"<html>"),
    "502": reply(502, body=b"Bad gateway"),
    "504": reply(504, body=b""),
    "599": reply(599, body=b""),
    "408": reply(408, ERROR),
    "409 while the first is at work": reply(409, error("request_in_progress")),
    "200, a page": reply(200, body=b"<html>Welcome</html>"),
    "200, empty": reply(200, body=b""),
    "200, cut JSON": reply(200, body=b'{"data": {"request_id": "jo'),
    "200, not UTF-8": reply(200, body=b'{"data": "\xff\xfe"}'),
    "200, too deep": reply(200, body=b"[" * 200_000),
    "200, a number too long": reply(200, body=b'{"data": ' + b"9" * 10_000 + b"}"),
    "200, null": reply(200, body=b"null"),
    "200, too long": reply(200, body=b" " * (MAX_REPLY_BYTES + 1)),
    "204": raw(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "301": reply(301, body=b"", Location="https://elsewhere.example/"),
    "304": raw(b"HTTP/1.1 304 Not Modified\r\n\r\n"),
    "no reply": raw(b""),
    "no HTTP": raw(b"SSH-2.0-OpenSSH\r\n"),
    "half a head": raw(b"HTTP/1.1 200 OK\r\nContent-Le"),
    "an endless line": raw(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000),
    "cut body": raw(b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"data": {"request_id": "a"}}'),
    "cut chunk": raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n{}"),
    "bad chunk": raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}"),
    "bad gzip": reply(200, body=b"no gzip", Content_Encoding="gzip"),
    "two lengths": raw(b"HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\n{}"),
}


@pytest.mark.parametrize("answer", UNKNOWN_REPLIES.values(), ids=UNKNOWN_REPLIES)
@pytest.mark.parametrize("name", ["submit", "status"])
def test_no_clear_answer_is_an_unknown_outcome(server, calls, answer, name):
    server.will(answer)

    with pytest.raises(OutcomeUnknown):
        getattr(calls, name)()


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(reply(202, {"data": {"status": "ok"}}), id="no job id"),
        pytest.param(reply(200, {"data": {"job": {"id": 7}}}), id="an id that is no text"),
        pytest.param(reply(200, []), id="a list"),
        pytest.param(reply(200, {**ERROR, "request_id": "req_1"}), id="an error with status 200"),
    ],
)
def test_a_submit_without_a_readable_job_id_is_an_unknown_outcome(server, calls, answer):
    server.will(answer)

    with pytest.raises(OutcomeUnknown) as caught:
        calls.submit()

    assert caught.value.code == "unreadable_reply"


@pytest.mark.parametrize("payload", [{}, [], {"data": {"job": {}}}, ERROR], ids=repr)
def test_a_status_without_a_word_is_an_unknown_outcome(server, calls, payload):
    server.will(reply(200, payload))

    with pytest.raises(OutcomeUnknown) as caught:
        calls.status()

    assert caught.value.code == "unreadable_reply"


@pytest.mark.parametrize(
    "payload",
    [{}, [], ERROR, {"data": None}, {"data": {"status": "PROCESSING"}}],
    ids=repr,
)
def test_a_reply_that_holds_no_result_is_not_taken_for_an_empty_one(server, calls, payload):
    server.will(reply(200, payload))

    with pytest.raises(SumeError):
        calls.result()


@contextmanager
def listening(act):
    """The address of a server that does `act` with each connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            with suppress(OSError):
                while True:
                    act(server.accept()[0])

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


def no_certificate(connection):
    """What answers a handshake of TLS, and is none."""
    with connection:
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


@pytest.mark.parametrize("name", ["submit", "status"])
def test_what_could_not_be_connected_was_certainly_not_sent(name):
    with FakeServer() as server:
        refused = server.url
    with listening(no_certificate) as address:
        for url in (refused, "http://nowhere.invalid", f"https://{address}"):
            with pytest.raises(Unreachable, match="nothing was sent") as caught:
                getattr(Calls(SumeClient(KEY, url, timeout=3.0)), name)()

            assert (caught.value.code, caught.value.status) == ("unreachable", 0)
            assert "nowhere" not in str(caught.value)


def test_a_connection_that_was_kept_and_is_cut_now_may_have_carried_the_request():
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"

    def serve_once(connection):
        with connection:
            connection.recv(65_536)
            connection.sendall(answer)
            connection.recv(1)

    with listening(serve_once) as address:
        calls = Calls(SumeClient(KEY, f"http://{address}", timeout=3.0))
        for _ in range(2):
            with pytest.raises(OutcomeUnknown):
                calls.submit()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "nowhere",
        "ftp://127.0.0.1",
        "http://",
        "http://[::1",
        "http://127.0.0.1:99999",
        "http://a..b",
        f"http://{'x' * 70}.example",
    ],
    ids=repr,
)
def test_to_an_impossible_address_nothing_is_sent(url):
    for name in ("submit", "status"):
        with pytest.raises(Unreachable):
            getattr(Calls(SumeClient(KEY, url, timeout=1.0)), name)()


@pytest.mark.parametrize(
    "answer",
    [
        reply(429, body=b" " * (MAX_REPLY_BYTES + 1), Retry_After="70"),
        trickle(b"HTTP/1.1 429 Slow\r\nRetry-After: 70\r\nContent-Length: 99\r\n\r\n"),
        raw(b"HTTP/1.1 429 Slow\r\nRetry-After: 70\r\nContent-Length: 99\r\n\r\n{"),
    ],
    ids=["too long", "without an end", "cut"],
)
@pytest.mark.parametrize("name", ["submit", "status"])
def test_an_error_whose_body_cannot_be_read_is_judged_by_its_head(server, answer, name):
    server.will(answer)

    with pytest.raises(BackOff) as caught:
        getattr(Calls(SumeClient(KEY, server.url, timeout=0.6)), name)()

    assert caught.value.retry_after == 70


def test_a_clock_of_sumes_that_is_off_makes_no_other_wait(server, calls):
    ahead = datetime.now(UTC) + timedelta(hours=1)
    wanted = format_datetime(ahead + timedelta(seconds=20), usegmt=True)
    server.will(reply(503, ERROR, Date=format_datetime(ahead, usegmt=True), Retry_After=wanted))

    with pytest.raises(BackOff) as caught:
        calls.submit()

    assert caught.value.retry_after == 20


@pytest.mark.parametrize("status", [408, 409, 502])
def test_a_wait_that_sume_asks_for_is_kept_with_each_error(server, calls, status):
    server.will(reply(status, error("busy"), Retry_After="30"))

    for name in ("submit", "status", "result"):
        with pytest.raises(SumeError) as caught:
            getattr(calls, name)()
        assert caught.value.retry_after == 30


@pytest.mark.parametrize("name", ["status", "result", "record"])
def test_a_reply_about_another_job_is_no_answer(server, calls, name):
    server.will(reply(200, {"data": {**RUNNING["data"], "result": {}, "job": {"id": "job_8"}}}))

    with pytest.raises(OutcomeUnknown, match="about another job"):
        getattr(calls, name)()


@pytest.mark.parametrize(
    "payload",
    [
        error("idempotency_in_progress", details={"job_id": "job_9"}),
        {**error("duplicate_request"), "data": {"job": {"id": "job_9", "status": "queued"}}},
    ],
)
def test_a_conflict_that_names_its_job_is_an_answer(server, calls, payload):
    server.will(reply(409, payload))

    accepted = calls.submit()

    assert (accepted.job_id, accepted.idempotency_hit, accepted.adopted) == ("job_9", True, True)


@pytest.mark.parametrize(
    ("code", "kind"),
    [("idempotency_conflict", KeyTaken), ("avatar_not_ready", OutcomeUnknown)],
    ids=["another body", "not about the key"],
)
def test_a_job_of_another_request_is_not_adopted(server, calls, code, kind):
    server.will(reply(409, error(code, details={"job_id": "job_of_another"})))

    with pytest.raises(kind):
        calls.submit()


@pytest.mark.parametrize("code", ["idempotency_conflict", "idempotency_in_progress"])
def test_a_cancel_whose_key_is_refused_is_asked_again(server, calls, code):
    server.will(reply(409, error(code)))

    with pytest.raises(OutcomeUnknown):
        calls.cancel()


def test_a_problem_document_is_read_as_an_error(server, calls):
    problem = {"title": "Idempotency-Key is already used", "detail": "Use another one."}
    server.will(reply(422, problem))

    with pytest.raises(KeyTaken, match="already used Use another"):
        calls.submit()


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        pytest.param(reply(429, error("queue_full")), "queue_full", id="429 queue_full"),
        pytest.param(reply(429, error("rate_limit_exceeded")), "rate_limit_exceeded", id="429"),
        pytest.param(reply(429, body=b"<html>"), "http_429", id="429, a page"),
        pytest.param(reply(503, ERROR), "some_code", id="503"),
        pytest.param(reply(503, body=b""), "http_503", id="503, empty"),
    ],
)
@pytest.mark.parametrize("name", ["submit", "status", "result", "record", "cancel"])
def test_a_full_or_busy_sume_makes_everybody_wait(server, calls, name, answer, code):
    server.will(answer)

    with pytest.raises(BackOff) as caught:
        getattr(calls, name)()

    assert caught.value.code == code
    assert caught.value.retry_after is None


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        pytest.param("7", 7.0, id="seconds"),
        pytest.param("Mon, 04 May 2020 12:00:00 GMT", 0.0, id="date gone by"),
        pytest.param("-7", None, id="negative"),
        pytest.param("soon", None, id="word"),
        pytest.param("\xe9\xff", None, id="hostile bytes"),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_handed_on(server, calls, status, header, seconds):
    server.will(reply(status, ERROR, Retry_After=header))

    with pytest.raises(BackOff) as caught:
        calls.submit()

    assert caught.value.retry_after == seconds


def test_retry_after_as_a_date_counts_from_now(server, calls):
    at = datetime.now(UTC) + timedelta(seconds=60)
    server.will(reply(429, ERROR, Retry_After=format_datetime(at, usegmt=True)))

    with pytest.raises(BackOff) as caught:
        calls.submit()

    assert 50 < caught.value.retry_after <= 60


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        pytest.param(reply(401, error("invalid_api_key")), "invalid_api_key", id="401"),
        pytest.param(reply(401, error(retryable=False)), "some_code", id="401, not retryable"),
        pytest.param(reply(402, error("insufficient_credits")), "insufficient_credits", id="402"),
        pytest.param(reply(403, body=b"Forbidden"), "http_403", id="403"),
    ],
)
@pytest.mark.parametrize("name", ["submit", "status", "result", "record", "cancel"])
def test_a_refused_key_or_account_pauses(server, calls, name, answer, code):
    server.will(answer)

    with pytest.raises(Paused) as caught:
        getattr(calls, name)()

    assert caught.value.code == code


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        pytest.param(reply(400, error("invalid_request")), "invalid_request", id="400"),
        pytest.param(reply(404, error("model_not_found")), "model_not_found", id="404"),
        pytest.param(
            reply(409, error("idempotency_key_reused")), "idempotency_key_reused", id="409"
        ),
        pytest.param(reply(409, error("body_mismatch")), "body_mismatch", id="409 mismatch"),
        pytest.param(
            reply(409, error("Idempotency_Mismatch")), "Idempotency_Mismatch", id="409 Case"
        ),
        pytest.param(reply(409, error(retryable=False)), "some_code", id="409, not retryable"),
        pytest.param(reply(422, error("bad_prompt")), "bad_prompt", id="422"),
        pytest.param(reply(500, error(retryable=False)), "some_code", id="500, not retryable"),
    ],
)
def test_a_request_that_never_passes_is_rejected(server, calls, answer, code):
    server.will(answer)

    with pytest.raises(Rejected) as caught:
        calls.submit()

    assert caught.value.code == code


def test_an_error_keeps_what_names_it_and_what_it_says(server, calls):
    payload = error("bad_prompt", details={"errors": [{"path": "prompt", "message": "too rude"}]})
    server.will(reply(422, payload, X_Sume_Request_Id="req_9"))

    with pytest.raises(Rejected) as caught:
        calls.submit()

    assert str(caught.value) == "Some message. prompt: too rude"
    assert caught.value.status == 422
    assert caught.value.request_id == "req_9"


def test_an_error_without_words_names_its_status(server, calls):
    server.will(reply(418, {}))

    with pytest.raises(Rejected, match=r"^Sume answered with HTTP status 418\.$"):
        calls.submit()


@pytest.mark.parametrize("status", [400, 404, 405, 409, 413, 422])
@pytest.mark.parametrize("body", [b"<html>", b"", b'["not", "an object"]'])
def test_a_page_of_a_proxy_is_not_sumes_word(server, calls, status, body):
    server.will(reply(status, body=body))

    with pytest.raises(OutcomeUnknown) as caught:
        calls.submit()

    assert caught.value.status == status


TABLE = [
    (100, None, "", OutcomeUnknown),
    (302, None, "", OutcomeUnknown),
    (302, True, "", OutcomeUnknown),
    (400, None, "", Rejected),
    (400, True, "", Rejected),
    (401, None, "", Paused),
    (402, False, "", Paused),
    (403, True, "", Paused),
    (404, None, "", NotFound),
    (404, False, "", NotFound),
    (408, None, "", OutcomeUnknown),
    (409, None, "", OutcomeUnknown),
    (409, None, "idempotency_conflict", KeyTaken),
    (409, None, "different_body", KeyTaken),
    (409, False, "idempotency_in_progress", OutcomeUnknown),
    (422, False, "idempotency_in_progress", OutcomeUnknown),
    (409, False, "avatar_handle_conflict", Rejected),
    (400, False, "idempotency_key_invalid", Rejected),
    (422, False, "idempotency_key_in_use", KeyTaken),
    (422, False, "idempotency_error", KeyTaken),
    (409, None, "idempotency_error", OutcomeUnknown),
    (409, False, "", Rejected),
    (410, None, "", Rejected),
    (422, None, "", Rejected),
    (422, None, "different_aspect_ratio", Rejected),
    (422, None, "idempotency_key_reused", KeyTaken),
    (400, False, "idempotency_mismatch", KeyTaken),
    (425, None, "", OutcomeUnknown),
    (429, None, "queue_full", BackOff),
    (429, True, "rate_limit_exceeded", BackOff),
    (429, False, "plan_forbids", Rejected),
    (500, None, "", OutcomeUnknown),
    (500, True, "", OutcomeUnknown),
    (500, False, "", Rejected),
    (502, None, "", OutcomeUnknown),
    (503, None, "", BackOff),
    (503, False, "", BackOff),
    (504, None, "", OutcomeUnknown),
    (599, None, "", OutcomeUnknown),
    (999, None, "", OutcomeUnknown),
]


@pytest.mark.parametrize(
    ("status", "retryable", "code", "kind"), TABLE, ids=[f"{s}-{r}-{c}" for s, r, c, _ in TABLE]
)
def test_the_table_of_replies(status, retryable, code, kind):
    fault = SumeFault(code=code, message="Why.", retryable=retryable, request_id="req_1")

    found = classify(status, fault, 7.0)

    assert type(found) is kind
    assert (found.code, found.status, found.request_id) == (
        code or f"http_{status}",
        status,
        "req_1",
    )
    assert found.retry_after == 7.0


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("This Idempotency-Key was used before with another request.", KeyTaken),
        ("The idempotency key is still bound to another request body.", KeyTaken),
        ("The body does not match the first one sent with this idempotency key.", KeyTaken),
        ("Parameters differ from the first request with this idempotency key.", KeyTaken),
        ("A request with this Idempotency-Key is still under way.", OutcomeUnknown),
        ("Another request with this Idempotency-Key is in progress.", OutcomeUnknown),
        ("Another request with this Idempotency-Key is being processed.", OutcomeUnknown),
        ("Another request with the same idempotency key is already running.", OutcomeUnknown),
        ("This idempotency key is locked by another request.", OutcomeUnknown),
        ("Idempotency-Key: must be a UUID, try a different one", KeyTaken),
        ("The queue is locked.", OutcomeUnknown),
    ],
)
def test_the_words_of_a_conflict_tell_another_body_from_a_request_under_way(words, kind):
    assert type(classify(409, SumeFault(message=words), None)) is kind


# --- Reads, result, cancel ----------------------------------------------------------------


def test_a_submit_returns_what_was_accepted(server, calls):
    server.will(reply(202, ACCEPTED))

    assert calls.submit().job_id == "job_7"


def test_a_reply_is_read_compressed_chunked_and_without_length(server, calls):
    content = json.dumps(RUNNING).encode()
    chunks = b"".join(b"%x\r\n%c\r\n" % (1, byte) for byte in content) + b"0\r\n\r\n"
    head = b"HTTP/1.1 200 OK\r\n"
    server.will(
        reply(200, body=gzip.compress(content), Content_Encoding="gzip"),
        lambda send: send(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks),
        raw(head + b"Connection: close\r\n\r\n" + content),
    )

    assert [calls.status().sume_status for _ in range(3)] == ["processing"] * 3


def test_a_status_returns_the_end(server, calls):
    server.will(reply(200, {"data": {"sume_status": "canceled", "terminal": True}}))

    assert calls.status().ending == Status.CANCELED


@pytest.mark.parametrize("name", ["status", "record", "cancel"])
def test_a_job_that_sume_does_not_know_is_not_found(server, calls, name):
    server.will(reply(404, error("job_not_found")))

    with pytest.raises(NotFound):
        getattr(calls, name)()


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(reply(404, error("job_not_found")), id="404"),
        pytest.param(reply(409, error("job_not_complete")), id="409"),
        pytest.param(reply(409, error("conflict")), id="409 conflict"),
        pytest.param(reply(409, error(retryable=False)), id="409, not retryable"),
    ],
)
def test_a_result_that_is_not_there_yet_is_not_ready(server, calls, answer):
    server.will(answer)

    with pytest.raises(NotReady) as caught:
        calls.result()

    assert caught.value.status in {404, 409}
    assert caught.value.code


def test_a_result_returns_the_artifacts(server, calls):
    artifact = {"url": "https://media.example/a.png", "type": "image", "content_type": "image/png"}
    server.will(reply(200, {"data": {"result": {"artifacts": [artifact]}}}))

    assert calls.result().artifacts == [artifact]


def test_a_record_returns_the_reason(server, calls):
    server.will(reply(200, {"data": {"job": {"error": {"code": "bad", "message": "No."}}}}))

    assert calls.record().code == "bad"


def test_a_cancel_returns_once_sume_canceled(server, calls):
    server.will(reply(200, {"data": {"request_id": "job_7", "canceled": True}}))

    assert calls.cancel() is None


@pytest.mark.parametrize("code", ["job_generation_already_started", "job_not_cancelable"])
def test_a_cancel_that_comes_too_late_is_rejected_with_sumes_code(server, calls, code):
    server.will(reply(409, error(code)))

    with pytest.raises(Rejected) as caught:
        calls.cancel()

    assert (caught.value.code, caught.value.status) == (code, 409)


def test_a_reply_that_denies_the_cancel_is_not_taken_for_one(server, calls):
    server.will(reply(200, {"data": {"request_id": "job_7", "canceled": False}}))

    with pytest.raises(SumeError):
        calls.cancel()


# --- Deadlines ----------------------------------------------------------------------------

DEADLINE = 0.3
OK = b"HTTP/1.1 200 OK\r\n"
SLOW = {
    "silent": stall(),
    "stops in the head": stall(OK),
    "stops in the body": stall(OK + b"Content-Length: 99\r\n\r\n{"),
    "trickles a body": trickle(OK + b"Connection: close\r\n\r\n"),
    "trickles a body on a connection that stays": trickle(OK + b"Content-Length: 999\r\n\r\n"),
    "trickles chunks": trickle(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "trickles one size of a chunk": trickle(
        OK + b"Transfer-Encoding: chunked\r\n\r\n1;", b"x", every=0.05
    ),
    "trickles the head": trickle(OK + b"X-Slow: ", b"x"),
    "trickles lines of the head": trickle(OK, b"X-Slow: x\r\n"),
    "trickles a body of nothing in gzip": trickle(
        # A file name in the head of the format: bytes that decode to nothing.
        OK + b"Content-Encoding: gzip\r\nContent-Length: 999\r\n\r\n\x1f\x8b\x08\x08" + bytes(6),
        b"x",
    ),
    "trickles the body of a redirect": trickle(
        b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 999\r\n\r\n"
    ),
    "comes late and stops": stall(OK + b"Connection: close\r\n\r\n", b"{"),
}


@pytest.fixture(scope="module")
def outcomes():
    return outcomes_of(SLOW, lambda url: SumeClient(KEY, url, timeout=DEADLINE).status("job_7"))


@pytest.mark.parametrize("name", SLOW)
def test_no_reply_outlives_the_deadline(outcomes, name):
    seconds, found = outcomes[name]

    assert seconds < DEADLINE + 0.2
    assert isinstance(found, OutcomeUnknown)
    assert found.code == "no_answer"


def test_a_slow_reply_within_the_deadline_is_read(server):
    content = json.dumps(RUNNING).encode()
    server.will(
        trickle(OK + b"Content-Length: %d\r\n\r\n" % (len(content) + 2) + content, every=0.05)
    )

    assert SumeClient(KEY, server.url, timeout=2.0).status("job_7").sume_status == "processing"


def test_a_body_without_end_is_not_read_to_its_end(server, calls):
    sent = []

    def flood(send):
        send(OK + b"Connection: close\r\n\r\n")
        while True:
            send(b" " * 2**20)
            sent.append(1)

    server.will(flood)

    with pytest.raises(OutcomeUnknown):
        calls.status()

    assert len(sent) * 2**20 < 5 * MAX_REPLY_BYTES


# --- Redirects ----------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("name", ["submit", "status"])
def test_no_redirect_is_followed(server, calls, name, status):
    server.will(reply(status, ACCEPTED, Location=f"{server.url}/v1/elsewhere"))

    with pytest.raises(OutcomeUnknown) as caught:
        getattr(calls, name)()

    assert len(server.requests) == 1
    assert caught.value.code == f"http_{status}"


@pytest.mark.parametrize(
    "location", ["http://[::1", "http://a:b/", "\xff\xfe", "", "//", "x" * 9_000], ids=ascii
)
def test_a_redirect_to_an_odd_address_is_an_unknown_outcome(server, calls, location):
    server.will(reply(302, body=b"", Location=location))

    with pytest.raises(OutcomeUnknown):
        calls.submit()


# --- Connections --------------------------------------------------------------------------


def test_many_reads_use_one_connection_beside_that_of_the_writes(server, calls):
    server.will(
        reply(202, ACCEPTED),
        reply(200, RUNNING),
        reply(404, error()),
        reply(429, body=b"<html>"),
        reply(500, body=b""),
        reply(200, body=b"no JSON"),
        reply(302, body=b"gone", Location="/elsewhere"),
        reply(200, RUNNING),
    )
    calls.submit()
    for _ in range(6):
        with suppress(SumeError):
            calls.status()
    calls.status()

    assert [request.connection for request in server.requests] == [1] + [2] * 7


def test_a_connection_that_the_server_closed_is_not_used_again(server, calls):
    content = json.dumps(RUNNING).encode()
    server.will(
        raw(OK + b"Content-Length: %d\r\n\r\n" % len(content) + content), reply(200, RUNNING)
    )
    calls.status()
    time.sleep(0.05)  # the end of the connection is on its way

    assert calls.status().sume_status == "processing"
    assert server.connections == 2


def test_what_is_left_of_a_broken_reply_never_answers_the_next_call(server):
    done = {"data": {"sume_status": "completed"}}
    server.will(stall(OK + b"Content-Length: 99\r\n\r\n{", seconds=0.5), reply(200, done))
    client = SumeClient(KEY, server.url, timeout=DEADLINE)
    with pytest.raises(OutcomeUnknown):
        client.status("job_7")

    assert client.status("job_7").sume_status == "completed"
    assert [request.connection for request in server.requests] == [1, 2]


def test_threads_that_read_at_once_have_a_connection_each_and_keep_it_for_all(server, calls):
    content = json.dumps(RUNNING).encode()
    head = OK + b"Content-Length: %d\r\n\r\n" % len(content)

    def slowly(send):
        send(head)
        time.sleep(0.2)
        send(content)

    server.will(slowly, slowly, reply(200, RUNNING))
    threads = [threading.Thread(target=calls.status) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    calls.status()

    assert server.connections == 2
    assert len(server.requests) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="This platform cannot fork.")
def test_a_forked_process_has_a_connection_of_its_own(server):
    script = """
        import os, sys
        from renders.sume.client import SumeClient

        client = SumeClient("key", sys.argv[1], timeout=3.0)
        client.status("parent")
        child = os.fork()
        if not child:
            client.status("child")
            client.status("child")
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        client.status("parent")
    """
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), server.url],
        check=True,
        capture_output=True,
        timeout=20,
    )

    assert [(request.path, request.connection) for request in server.requests] == [
        ("/v1/jobs/parent/status", 1),
        ("/v1/jobs/child/status", 2),
        ("/v1/jobs/child/status", 2),
        ("/v1/jobs/parent/status", 1),
    ]


# --- The key ------------------------------------------------------------------------------

LEAKS = {
    "no answer": raw(b""),
    "cut body": raw(OK + b"Content-Length: 99\r\n\r\n{"),
    "401 that repeats the key": reply(401, error(message=f"The key {KEY} is wrong.")),
    "422 that repeats the key": reply(422, error(code=KEY, details={"errors": [{"path": KEY}]})),
    "500, a page that repeats the key": reply(500, body=f"<html>{KEY}".encode()),
    "200 that repeats the key": reply(200, {"data": {"key": KEY}}),
    "200, a page that repeats the key": reply(200, body=f"<html>{KEY}".encode()),
    "302 to an address with the key": reply(302, body=b"", Location=f"http://[{KEY}"),
    "429": reply(429, error(), X_Sume_Request_Id=KEY, Retry_After=KEY),
}


def raised_by(call) -> Exception:
    try:
        call()
    except Exception as error:  # noqa: BLE001 (whatever it raises must not show the key)
        return error
    raise AssertionError("Nothing was raised.")


@pytest.mark.parametrize("answer", LEAKS.values(), ids=LEAKS)
def test_no_error_shows_the_key(server, calls, answer):
    server.will(answer)

    found = raised_by(calls.submit)

    assert isinstance(found, RendersError)
    assert KEY not in f"{found} {found!r} {vars(found)}"
    assert KEY not in "".join(traceback.format_exception(found))


@pytest.mark.parametrize("answer", LEAKS.values(), ids=LEAKS)
def test_no_variable_of_a_traceback_shows_the_key(server, calls, answer):
    server.will(answer)

    found = raised_by(calls.submit)
    shown = traceback.TracebackException.from_exception(found, capture_locals=True)

    frames = [frame for frame in shown.stack if frame.filename.endswith("client.py")]
    assert frames
    assert [frame.name for frame in shown.stack if KEY in str(frame.locals)] == []
    assert KEY not in "".join(shown.format())


@pytest.mark.parametrize("answer", LEAKS.values(), ids=LEAKS)
def test_no_hidden_cause_holds_the_key(server, calls, answer):
    """Some collectors of errors follow `__context__` even where it is suppressed."""
    server.will(answer)

    found = raised_by(calls.submit)

    while found.__context__ or found.__cause__:
        found = found.__context__ or found.__cause__
        shown = traceback.TracebackException.from_exception(found, capture_locals=True)
        assert [frame.name for frame in shown.stack if KEY in str(frame.locals)] == []


def test_the_key_is_taken_out_before_a_text_is_cut(server, calls):
    server.will(reply(401, error(message="x" * (MAX_TEXT - 9) + KEY)))

    assert KEY[:8] not in str(raised_by(calls.submit))


@pytest.mark.parametrize("name", ["sume_status", "request_id"])
def test_no_word_of_a_reply_is_the_key(server, calls, name):
    server.will(reply(200, {"data": {"sume_status": "a", "request_id": "b", name: KEY}}))

    assert KEY not in repr(calls.submit())


def test_an_unusable_key_is_not_shown_either():
    client = SumeClient(f"{KEY}\n{KEY}", "http://127.0.0.1:9")

    found = raised_by(lambda: client.status("job_7"))
    shown = traceback.TracebackException.from_exception(found, capture_locals=True)

    assert KEY not in "".join(shown.format())


def test_a_client_shows_where_it_talks_to_and_not_the_key(client, server):
    assert repr(client) == f"SumeClient('{server.url}')"
    assert KEY not in f"{client} {client!r}"


@pytest.mark.parametrize("key", ["a", "job", "data", "1", "queued", "id"])
def test_any_key_will_do_for_a_try(server, key):
    payload = {"data": {**ACCEPTED["data"], "generation_limits": {"queue_capacity_remaining": 11}}}
    server.will(reply(202, payload))

    accepted = Calls(SumeClient(key, server.url, timeout=3.0)).submit()

    assert accepted.job_id == "job_7"
    assert accepted.sume_status == "queued"
    assert accepted.queue_capacity_remaining == 11


# --- The list of jobs -----------------------------------------------------------------------


def listing(number):
    return {"data": {"jobs": [{"id": f"job_{one}", "status": "queued"} for one in range(number)]}}


def test_the_newest_jobs_are_asked_for_by_one_free_read(server, client):
    server.will(reply(200, listing(2)))

    assert [job.id for job in client.jobs(20)] == ["job_0", "job_1"]
    [request] = server.requests
    assert (request.method, request.path, request.body) == ("GET", "/v1/jobs?limit=20", b"")
    assert "idempotency-key" not in request.headers


def test_no_more_jobs_are_returned_than_were_asked_for(server, client):
    server.will(reply(200, listing(3)))

    assert [job.id for job in client.jobs(2)] == ["job_0", "job_1"]


def test_a_reply_without_a_list_of_jobs_is_not_taken_for_an_empty_list(server, client):
    server.will(reply(200, {"data": {"count": 0}}))

    with pytest.raises(OutcomeUnknown, match="no list of jobs") as caught:
        client.jobs(20)
    assert caught.value.code == "unreadable_reply"


# --- The account ----------------------------------------------------------------------------


def test_the_balance_is_told_with_the_time_by_sumes_clock(server, client):
    when = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
    date = format_datetime(when, usegmt=True)
    server.will(reply(200, {"data": {"balance_usd_micros": 5}}, Date=date))

    balance = client.balance()

    assert (balance.usd_micros, balance.at) == (5, when)
    assert server.requests[-1].path == "/v1/balance"
