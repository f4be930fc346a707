"""The sandbox over real HTTP."""

import io
import logging
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
import sume_client
from PIL import Image

from renders.sandbox import Sandbox

from .support import Caller

FOX = {"prompt": "a fox", "mode": "async"}
AVATAR = {"avatar_handle": "@mara", "input": {"type": "prompt", "prompt": "a librarian"}}
SPEECH = {"avatar_handle": "demo", "script": "Hello and welcome."}


def artifact(caller: Caller, job_id: str) -> dict[str, str]:
    data = caller.get(f"/v1/jobs/{job_id}/result").json()["data"]
    return data["result"]["artifacts"][0]


def raw(sandbox: Sandbox, message: bytes) -> bytes:
    """Send bytes as they are; all that comes back until the server closes."""
    host, port = sandbox.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.sendall(message)
        connection.shutdown(socket.SHUT_WR)
        received = b""
        while piece := connection.recv(65536):
            received += piece
        return received


@pytest.fixture
def other_client(start, monkeypatch):
    """The public client that others wrote, and the sandbox it is pointed at."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    sandbox, _ = start()
    client = sume_client.SyncClient(api_key="any", base_url=sandbox.url)
    yield client, sandbox
    client._client.close()


def test_a_clients_own_subscribe_completes(other_client):
    client, sandbox = other_client
    data = client.subscribe("gpt-image-2", {"prompt": "a fox"})
    assert data["status"] == "COMPLETED"
    assert data["result"]["artifacts"][0]["content_type"] == "image/png"
    assert len(sandbox.ledger.bills) == 1


@pytest.mark.parametrize(
    ("prompt", "ending"),
    [
        ("FAIL", sume_client.Failed),
        ("FAIL:content_policy_rejected", sume_client.NSFW),
    ],
)
def test_a_clients_own_status_understands_failures(other_client, prompt, ending):
    client, _ = other_client
    controller = client.submit("a-video-model", {"prompt": prompt})
    assert isinstance(controller.status(), ending)


@pytest.mark.parametrize(
    ("path", "body", "kind", "content_type", "image_format"),
    [
        ("images", FOX, "image_generation", "image/png", "PNG"),
        ("image-router/generate", FOX, "image_generation", "image/png", "PNG"),
        ("video-router/generate", FOX, "video_generation", "image/gif", "GIF"),
        ("models/sume/avatar/v1.0/runs", AVATAR, "avatar_generation", "image/png", "PNG"),
        ("models/sume/avatar-video/v1.0/runs", SPEECH, "avatar_video", "image/gif", "GIF"),
    ],
)
def test_each_submit_path_ends_in_a_file(start, path, body, kind, content_type, image_format):
    _, caller = start()
    reply = caller.send("POST", f"/v1/{path}", json=body)
    assert reply.status_code == 202
    data = reply.json()["data"]
    assert data["job"]["type"] == kind
    assert (
        requests.get(data["status_url"], headers={"x-api-key": "k"}, timeout=5).status_code == 200
    )
    made = artifact(caller, data["job"]["id"])
    assert made["content_type"] == content_type
    media = caller.session.get(made["url"], timeout=10)
    assert media.headers["Content-Type"] == content_type
    assert Image.open(io.BytesIO(media.content)).format == image_format


def test_a_media_link_is_refused_without_the_right_signature(start):
    _, done = start()
    path = artifact(done, done.job())["url"].removeprefix(done.url)
    bare = path.partition("?")[0]
    for wrong in (bare, f"{bare}?signature=", path[:-1], path.replace("picture", "other")):
        assert done.get(wrong).status_code == 403
    assert done.get(path).status_code == 200


def test_a_job_that_still_runs_has_no_file(start):
    sandbox, caller = start(processing_seconds=60)
    job_id = caller.job()
    path = sandbox._application.signer.path(job_id, "picture.png")
    assert caller.get(path).status_code == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": ""},
        {"Authorization": "Bearer "},
        {"Authorization": "Basic abc"},
        {"Authorization": "", "x-api-key": ""},
    ],
)
def test_a_missing_or_empty_key_is_refused(start, headers):
    sandbox, caller = start()
    reply = caller.send("POST", "/v1/images", json={"prompt": "x"}, headers=headers)
    assert (reply.status_code, reply.json()["error"]["code"]) == (401, "unauthorized")
    assert sandbox.ledger.bills == []


def test_one_key_can_be_asked_for(start):
    _, caller = start(key="right")
    assert caller.get("/v1/balance").status_code == 401
    assert caller.get("/v1/balance", headers={"Authorization": "Bearer right"}).ok
    assert caller.get("/v1/balance", headers={"Authorization": "", "x-api-key": "right"}).ok
    assert caller.get("/v1/balance", headers={"Authorization": b"Bearer \xe9"}).status_code == 401


def test_the_write_budget_holds_over_http(start):
    _, caller = start(writes_per_minute=2)
    replies = [caller.submit(f"k{n}") for n in range(3)]
    assert [reply.status_code for reply in replies] == [202, 202, 429]
    assert replies[0].headers["RateLimit-Remaining"] == "1"
    assert 1 <= int(replies[2].headers["Retry-After"]) <= 60
    assert caller.get("/v1/balance").ok


def test_a_cancel_over_http_refunds(start):
    sandbox, caller = start(queued_seconds=60)
    path = f"/v1/jobs/{caller.job()}"
    reply = caller.send("POST", f"{path}/cancel", headers={"Idempotency-Key": "c"})
    assert reply.json()["data"]["canceled"] is True
    assert caller.get(path).json()["data"]["job"]["status"] == "canceled"
    assert len(sandbox.ledger.refunds) == 1
    assert sandbox.ledger.posts["c"] == 1


def test_lists_events_and_balance_are_there(start):
    _, caller = start()
    job_id = caller.job()
    assert caller.get("/v1/jobs?limit=20").json()["data"]["jobs"][0]["id"] == job_id
    assert len(caller.get(f"/v1/jobs/{job_id}/events?limit=50").json()["data"]["events"]) == 3
    assert caller.get("/v1/balance").json()["data"]["balance_usd_micros"] > 0
    assert caller.get("/v1/jobs?limit=many").status_code == 422


def test_the_list_of_jobs_is_as_long_as_asked_for_and_begins_with_the_newest(start):
    _, caller = start()
    ids = [caller.job(f"key-{number}") for number in range(3)]

    for limit, listed in ((1, ids[2:]), (2, ids[:0:-1]), (1000, ids[::-1])):
        jobs = caller.get(f"/v1/jobs?limit={limit}").json()["data"]["jobs"]
        assert [job["id"] for job in jobs] == listed
        assert {"type", "status", "created_at"} <= set(jobs[0])
    assert [caller.get(f"/v1/jobs?limit={limit}").status_code for limit in (0, 1001)] == [422, 422]


def test_the_first_page_says_that_it_is_a_stand_in(start):
    _, caller = start()
    assert "stand-in" in caller.get("/", headers={"Authorization": ""}).text


def test_the_ledger_is_there_as_json(start):
    sandbox, caller = start()
    job_id = caller.job("k")
    data = caller.get("/_sandbox/ledger").json()["data"]
    assert data == sandbox.ledger.as_json()
    assert [bill["job_id"] for bill in data["bills"]] == [job_id]
    assert data["posts"] == {"k": 1}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/nothing", 404),
        ("GET", "/v1/images", 405),
        ("PUT", "/v1/images", 405),
        ("DELETE", "/v1/jobs", 405),
        ("GET", "/v1/jobs/job_none/status", 404),
        ("GET", "/v1/jobs/%00%ff/status", 404),
    ],
)
def test_what_is_not_there_is_refused_in_the_error_envelope(start, method, path, status):
    _, caller = start()
    reply = caller.send(method, path)
    assert reply.status_code == status
    assert reply.json()["error"]["message"]


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"Content-Length: 3000000", b"413"),
        (b"Content-Length: -1", b"400"),
        (b"Content-Length: 99", b"400"),
        (b"Transfer-Encoding: chunked", b"411"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused_and_the_connection_closed(start, head, status):
    sandbox, _ = start(max_body_bytes=1000)
    received = raw(sandbox, b"POST /v1/images HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n\r\n{}")
    assert received.split()[1] == status
    assert b"Connection: close" in received


def test_a_body_a_little_too_long_gets_its_refusal(start):
    _, caller = start(max_body_bytes=100)
    reply = caller.submit(prompt="x" * 500)
    assert (reply.status_code, reply.json()["error"]["code"]) == (413, "payload_too_large")


def test_links_use_the_name_that_the_client_used(start):
    _, caller = start()
    named = caller.submit("a", path="/v1/images", prompt="a").json()["data"]["status_url"]
    assert named.startswith(caller.url)
    headers = {"Host": "sandbox:8999", "Idempotency-Key": "b"}
    reply = caller.send("POST", "/v1/images", json={"prompt": "x"}, headers=headers)
    assert reply.json()["data"]["status_url"].startswith("http://sandbox:8999/v1/jobs/")
    headers = {"Host": "evil/<x>", "Idempotency-Key": "c"}
    reply = caller.send("POST", "/v1/images", json={"prompt": "x"}, headers=headers)
    assert reply.json()["data"]["status_url"].startswith(caller.url)


def test_one_connection_serves_many_requests(start):
    _, caller = start()
    for _ in range(20):
        assert caller.get("/v1/balance").ok
    pools = caller.session.get_adapter(caller.url).poolmanager.pools
    (pool,) = [pools.get(key) for key in pools.keys()]  # noqa: SIM118 - no plain mapping
    assert (pool.num_connections, pool.num_requests) == (1, 20)


def test_a_hundred_clients_at_once_are_served(start):
    sandbox, _ = start(queued_limit=200)

    def submit(number: int) -> int:
        caller = Caller(sandbox.url)
        with caller.session:
            return caller.submit(f"k{number % 50}").status_code

    with ThreadPoolExecutor(100) as pool:
        assert set(pool.map(submit, range(100))) == {202}
    assert len(sandbox.ledger.bills) == 50


def test_stopping_is_quick_and_closes_open_connections():
    with Sandbox() as sandbox:
        caller = Caller(sandbox.url)
        assert caller.get("/v1/balance").ok
        waiting = threading.Thread(target=_read_slowly, args=(sandbox.url,))
        waiting.start()
        while not sandbox.ledger.faults:
            time.sleep(0.01)
        begun = time.monotonic()
    assert time.monotonic() - begun < 3
    waiting.join(timeout=5)
    assert not waiting.is_alive()
    with pytest.raises(requests.ConnectionError):
        caller.get("/v1/balance")
    caller.session.close()
    assert sandbox.ledger.bills == []


def _read_slowly(url: str) -> None:
    caller = Caller(url)
    with caller.session, pytest.raises(requests.ConnectionError):
        caller.get("/v1/balance", fault="slow:30")


def test_a_port_in_use_is_an_error():
    with Sandbox() as first:
        port = int(first.url.rsplit(":", 1)[1])
        with pytest.raises(OSError, match="in use"):
            Sandbox(port=port).start()


def test_there_is_no_url_before_the_start():
    with pytest.raises(RuntimeError, match="not running"):
        _ = Sandbox().url


def test_neither_keys_nor_signatures_are_logged(start, caplog):
    caplog.set_level(logging.DEBUG)
    sandbox, caller = start()
    headers = {"Authorization": "Bearer canary-key"}
    link = artifact(caller, caller.job())["url"]
    caller.get(link.removeprefix(caller.url), headers=headers)
    raw(sandbox, b"GET /media/a/b?signature=canary-signature HTTP/9.9 nonsense\r\n\r\n")
    caller.get("/media/a/b?signature=canary-signature", headers=headers)
    logged = [record for record in caplog.records if record.name.startswith("renders.sandbox")]
    assert logged
    text = "\n".join(record.getMessage() for record in logged)
    assert "canary" not in text
    assert link.partition("signature=")[2] not in text
