"""The book of faults, and each fault over real HTTP."""

import contextlib
import json
import math
import time
from email.utils import parsedate_to_datetime

import pytest
import requests

from renders.sandbox.faults import CATALOGUE, OPERATIONS, RECOVERABLE, Fault, FaultBook
from renders.sandbox.ledger import Ledger


def codes(reply: requests.Response) -> tuple[int, str]:
    return reply.status_code, reply.json()["error"]["code"]


def posts_and_bills(ledger: Ledger) -> tuple[int, int]:
    return ledger.posts["key"], len(ledger.bills)


def test_the_script_is_met_in_order_and_as_often_as_ordered():
    book = FaultBook()
    book.add("server_error", on="submit", times=2, argument=500)
    book.add("html", on="submit")
    met = [book.pick("submit") for _ in range(4)]
    assert met == [Fault("server_error", 500), Fault("server_error", 500), Fault("html"), None]


def test_a_fault_waits_for_an_operation_that_it_makes_sense_on():
    book = FaultBook()
    book.add("odd_poll")
    assert [book.pick("submit"), book.pick("media"), book.pick("other")] == [None, None, None]
    assert book.pick("status") == Fault("odd_poll", "missing")


def test_a_fault_without_end_stays_until_it_is_cleared():
    book = FaultBook()
    book.add("forbidden", times=None)
    assert {book.pick("status") for _ in range(5)} == {Fault("forbidden")}
    book.clear()
    assert book.pick("status") is None


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ({"name": "nonsense"}, "Unknown fault"),
        ({"name": ["slow"]}, "Unknown fault"),
        ({"name": "slow", "on": "lunch"}, "Unknown operation"),
        ({"name": "odd_poll", "on": "submit"}, "makes no sense on submit"),
        ({"name": "slow", "on": "event"}, "makes no sense on event"),
        ({"name": "event_late", "on": "status"}, "makes no sense on status"),
        ({"name": "slow", "argument": -1}, "number of seconds"),
        ({"name": "slow", "argument": "soon"}, "bad argument"),
        ({"name": "slow", "argument": [1]}, "bad argument"),
        ({"name": "server_error", "argument": 200}, "from 400 to 599"),
        ({"name": "result_not_ready", "argument": 410}, "404 or 409"),
        ({"name": "odd_poll", "argument": "odd"}, "takes one of"),
        ({"name": "odd_poll", "argument": {}}, "bad argument"),
        ({"name": "status_word", "argument": 7}, "takes a word"),
        ({"name": "html", "times": 0}, "times must be"),
        ({"name": "html", "times": "2"}, "times must be"),
    ],
)
def test_an_order_that_cannot_be_met_is_refused_in_words(order, message):
    with pytest.raises(ValueError, match=message):
        FaultBook().add(**order)


def test_random_faults_come_at_their_rate_and_the_same_for_the_same_seed():
    books = [FaultBook(0.3, 7), FaultBook(0.3, 7), FaultBook(0.3, 8)]
    drawn = [[book.pick("status") for _ in range(400)] for book in books]
    assert drawn[0] == drawn[1] != drawn[2]
    met = [fault for fault in drawn[0] if fault]
    assert 80 < len(met) < 160
    assert {fault.name for fault in met} <= {name for name, _ in RECOVERABLE}


def test_every_random_fault_is_one_that_can_be_ordered():
    for name, argument in RECOVERABLE:
        FaultBook().add(name, argument=argument)


def test_a_reset_before_accepting_leaves_no_job(start):
    sandbox, caller = start()
    with pytest.raises(requests.ConnectionError) as caught:
        caller.submit(fault="reset_before")
    assert "reset" in str(caught.value).lower()
    assert posts_and_bills(sandbox.ledger) == (1, 0)
    assert caller.submit().json()["data"]["idempotency_hit"] is False


def test_a_reset_after_accepting_leaves_a_job_that_the_same_key_finds(start):
    sandbox, caller = start()
    with pytest.raises(requests.ConnectionError):
        caller.submit(fault="reset_after")
    assert posts_and_bills(sandbox.ledger) == (1, 1)
    assert caller.submit().json()["data"]["idempotency_hit"] is True
    assert posts_and_bills(sandbox.ledger) == (2, 1)


@pytest.mark.parametrize(("fault", "status"), [("server_error", 502), ("server_error:408", 408)])
def test_a_server_error_is_a_page_and_accepts_nothing(start, fault, status):
    sandbox, caller = start()
    reply = caller.submit(fault=fault)
    assert (reply.status_code, reply.text[:9]) == (status, "<!doctype")
    assert sandbox.ledger.bills == []


def test_a_gateway_timeout_hides_an_accepted_job(start):
    sandbox, caller = start()
    reply = caller.submit(fault="gateway_timeout")
    assert (reply.status_code, reply.headers["Content-Type"][:9]) == (504, "text/html")
    assert len(sandbox.ledger.bills) == 1


def test_a_slow_reply_comes_late_but_the_job_is_made_at_once(start):
    sandbox, caller = start()
    begun = time.monotonic()
    assert caller.submit(fault="slow:0.2").status_code == 202
    assert time.monotonic() - begun >= 0.2
    with pytest.raises(requests.ReadTimeout):
        caller.get("/v1/balance", fault="slow:9", timeout=0.05)
    assert len(sandbox.ledger.bills) == 1


def test_a_trickling_reply_arrives_whole(start):
    _, caller = start()
    begun = time.monotonic()
    assert caller.get("/v1/balance", fault="trickle:0.25").json()["data"]
    assert time.monotonic() - begun >= 0.2


def test_a_reply_that_is_cut_short_cannot_be_read(start):
    sandbox, caller = start()
    with pytest.raises((requests.ConnectionError, requests.exceptions.ChunkedEncodingError)):
        caller.submit(fault="cut_short")
    assert len(sandbox.ledger.bills) == 1


def test_rate_limited_names_a_moment_in_the_future(start):
    _, caller = start()
    reply = caller.submit(fault="rate_limited:3")
    assert codes(reply) == (429, "rate_limit_exceeded")
    wait = parsedate_to_datetime(reply.headers["Retry-After"]).timestamp() - time.time()
    assert 2.5 < wait <= 4.5


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [("queue_full:7", 429, "queue_full"), ("unavailable:7", 503, "service_unavailable")],
)
def test_back_off_faults_name_seconds(start, fault, status, code):
    _, caller = start()
    reply = caller.submit(fault=fault)
    assert codes(reply) == (status, code)
    assert reply.headers["Retry-After"] == "7"
    assert reply.json()["error"]["retryable"] is True


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [
        ("unauthorized", 401, "unauthorized"),
        ("insufficient_credits", 402, "insufficient_credits"),
        ("forbidden", 403, "forbidden"),
        ("not_found", 404, "job_not_found"),
        ("idempotency_in_progress", 409, "idempotency_in_progress"),
    ],
)
def test_a_refusing_fault_answers_in_the_error_envelope(start, fault, status, code):
    sandbox, caller = start()
    reply = caller.submit(fault=fault)
    assert codes(reply) == (status, code)
    assert reply.json()["error"].get("retryable") is not False
    assert reply.headers["x-sume-request-id"] == reply.json()["request_id"]
    assert sandbox.ledger.bills == []


def test_an_html_page_can_come_with_success(start):
    sandbox, caller = start()
    submitted = caller.submit(fault="html")
    assert (submitted.status_code, submitted.text[:9]) == (202, "<!doctype")
    assert len(sandbox.ledger.bills) == 1
    read = caller.get(f"/v1/jobs/{caller.job()}/status", fault="html")
    assert (read.status_code, read.text[:9]) == (200, "<!doctype")


def test_a_submit_can_be_accepted_without_naming_the_job(start):
    sandbox, caller = start()
    reply = caller.submit(fault="no_job_id")
    assert reply.status_code == 202
    assert "job_" not in reply.text
    assert len(sandbox.ledger.bills) == 1


def test_a_reply_can_come_without_its_envelope(start):
    _, caller = start()
    job_id = caller.submit(fault="no_envelope").json()["job"]["id"]
    assert caller.get(f"/v1/jobs/{job_id}/status", fault="no_envelope").json()["terminal"] is True


@pytest.mark.parametrize(
    ("which", "accepts"),
    [
        ("missing", lambda data: "next_poll_after_seconds" not in data),
        ("string", lambda data: data["next_poll_after_seconds"] == "soon"),
        ("negative", lambda data: data["next_poll_after_seconds"] == -5),
        ("zero", lambda data: data["next_poll_after_seconds"] == 0),
        ("nan", lambda data: math.isnan(data["next_poll_after_seconds"])),
        ("huge", lambda data: data["next_poll_after_seconds"] == 1e12),
        ("bool", lambda data: data["next_poll_after_seconds"] is True),
        ("list", lambda data: data["next_poll_after_seconds"] == [5]),
        ("null", lambda data: data["next_poll_after_seconds"] is None),
    ],
)
def test_the_hint_can_be_odd_and_is_then_not_held_against_the_reader(start, which, accepts):
    sandbox, caller = start(processing_seconds=60)
    job_id = caller.job()
    reply = caller.get(f"/v1/jobs/{job_id}/status", fault=f"odd_poll:{which}")
    # json.loads reads NaN, which requests' own .json() may refuse.
    assert accepts(json.loads(reply.text)["data"])
    caller.get(f"/v1/jobs/{job_id}/status")
    assert sandbox.ledger.early_reads == []


def test_a_status_can_be_spelled_otherwise(start):
    _, caller = start()
    data = caller.get(f"/v1/jobs/{caller.job()}/status", fault="status_word:success").json()["data"]
    assert (data["sume_status"], data["job"]["status"]) == ("success", "success")
    assert data["terminal"] is True


@pytest.mark.parametrize("status", [404, 409])
def test_a_result_can_be_said_to_be_not_ready(start, status):
    _, caller = start()
    path = f"/v1/jobs/{caller.job()}/result"
    assert codes(caller.get(path, fault=f"result_not_ready:{status}")) == (
        status,
        "result_not_ready",
    )
    assert caller.get(path).status_code == 200


def test_a_job_can_be_terminal_before_its_result_is_ready(start):
    sandbox, caller = start()
    job_id = caller.job()
    path = f"/v1/jobs/{job_id}"
    data = caller.get(f"{path}/status", fault="result_late:60").json()["data"]
    assert (data["terminal"], data["result_ready"]) == (True, False)
    assert codes(caller.get(f"{path}/result")) == (409, "result_not_ready")
    sandbox.rules.hold_result(job_id, 0)
    assert caller.get(f"{path}/status").json()["data"]["result_ready"] is True
    assert caller.get(f"{path}/result").status_code == 200


@pytest.mark.parametrize("prompt", ["a fox", "FAIL"])
def test_hostile_characters_come_as_escapes_in_free_texts_only(start, prompt):
    _, caller = start()
    job_id = caller.job(prompt=prompt)
    reply = caller.get(f"/v1/jobs/{job_id}/status", fault="hostile")
    assert b"\\u0000" in reply.content and b"\\ud800" in reply.content
    assert b"\x00" not in reply.content
    data = json.loads(reply.text)["data"]
    assert data["request_id"] == job_id
    assert data["sume_status"] == ("failed" if prompt == "FAIL" else "completed")
    if prompt == "FAIL":
        assert data["job"]["error"]["message"].endswith("\x00\ud800")


def test_every_fault_and_operation_gets_some_answer_or_a_broken_connection(start):
    sandbox, caller = start()
    quick = {"slow": "0.01", "trickle": "0.01", "result_late": "0"}
    job_id = caller.job()
    media = caller.get(f"/v1/jobs/{job_id}/result").json()["data"]["result"]["artifacts"][0]["url"]
    paths = {
        "status": f"/v1/jobs/{job_id}/status",
        "result": f"/v1/jobs/{job_id}/result",
        "record": f"/v1/jobs/{job_id}",
        "cancel": f"/v1/jobs/{job_id}/cancel",
        "submit": "/v1/images",
        "media": media.removeprefix(caller.url),
    }
    assert set(paths) == set(OPERATIONS) - {"event"}
    asked = {name for name, shape in CATALOGUE.items() if shape.on != {"event"}}
    for name in asked:
        for operation, path in paths.items():
            fault = f"{name}:{quick[name]}" if name in quick else name
            method = "POST" if operation in ("submit", "cancel") else "GET"
            try:
                caller.send(method, path, fault, json={"prompt": "a fox"})
            except requests.RequestException:
                assert name in ("reset_before", "reset_after", "cut_short")
    assert caller.get(f"/v1/jobs/{job_id}/status").status_code == 200
    assert {note.fault for note in sandbox.ledger.faults} == asked


def test_a_job_that_shall_fail_is_accepted_billed_and_refunded(start):
    sandbox, caller = start()
    sandbox.faults.add("job_fails", on="submit", argument="too_odd")
    failing, other = caller.job("first"), caller.job("second")
    job = caller.get(f"/v1/jobs/{failing}/status").json()["data"]["job"]
    assert (job["status"], job["error"]["code"]) == ("failed", "too_odd")
    assert caller.get(f"/v1/jobs/{other}/status").json()["data"]["terminal"]
    assert [refund.job_id for refund in sandbox.ledger.refunds] == [failing]


def test_a_job_that_shall_take_long_is_processed_for_so_long(start):
    sandbox, caller = start(poll_seconds=900)
    sandbox.faults.add("job_takes", on="submit", argument=600)
    status = caller.get(f"/v1/jobs/{caller.job()}/status").json()["data"]
    assert (status["sume_status"], status["next_poll_after_seconds"]) == ("processing", 600)


def test_a_refused_request_is_not_billed(start):
    sandbox, caller = start()
    reply = caller.submit(fault="rejected:too_odd")
    assert codes(reply) == (422, "too_odd")
    assert reply.json()["error"]["retryable"] is False
    assert sandbox.ledger.bills == []


def test_faults_are_ordered_and_cleared_through_the_control_endpoint(start):
    sandbox, caller = start()
    order = {"fault": "server_error", "on": "status", "times": 2, "argument": 503}
    assert caller.send("POST", "/_sandbox/faults", json=order).status_code == 200
    path = f"/v1/jobs/{caller.job()}/status"
    assert caller.get(path).status_code == 503
    assert [entry["times"] for entry in sandbox.faults.pending()] == [1]
    assert caller.send("DELETE", "/_sandbox/faults").json()["data"]["faults"] == []
    assert caller.get(path).status_code == 200
    assert [(note.fault, note.on) for note in sandbox.ledger.faults] == [("server_error", "status")]


@pytest.mark.parametrize("order", [{"fault": "nonsense"}, {}, {"fault": "slow", "at": "submit"}])
def test_a_bad_order_through_the_control_endpoint_is_explained(start, order):
    _, caller = start()
    reply = caller.send("POST", "/_sandbox/faults", json=order)
    assert codes(reply) == (422, "unknown_fault")


def test_a_bad_fault_header_is_explained(start):
    _, caller = start()
    assert codes(caller.submit(fault="nonsense")) == (422, "unknown_fault")


def test_faults_are_ordered_in_process(start):
    sandbox, caller = start()
    sandbox.faults.add("forbidden", on="media", times=1)
    job_id = caller.job()
    url = caller.get(f"/v1/jobs/{job_id}/result").json()["data"]["result"]["artifacts"][0]["url"]
    path = url.removeprefix(caller.url)
    assert [caller.get(path).status_code for _ in range(2)] == [403, 200]


def test_a_read_that_met_a_fault_is_still_counted(start):
    sandbox, caller = start()
    job_id = caller.job()
    caller.get(f"/v1/jobs/{job_id}/status", fault="server_error")
    assert [read.what for read in sandbox.ledger.reads[job_id]] == ["status"]


def test_random_faults_are_met_over_http(start):
    sandbox, caller = start(fault_rate=1.0, seed=3)
    for _ in range(5):
        with contextlib.suppress(requests.RequestException):
            caller.get("/v1/jobs/job_none")
    # A client may send a broken request again by itself.
    assert len(sandbox.ledger.faults) >= 5
