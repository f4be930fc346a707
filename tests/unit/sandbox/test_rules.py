"""The state machine, on a clock that is turned by hand."""

import json
import threading

import pytest

from renders.sandbox.replies import ApiError

from .support import START, Bench


def refusal(call, *args, **kwargs) -> ApiError:
    with pytest.raises(ApiError) as caught:
        call(*args, **kwargs)
    return caught.value


def test_a_job_goes_from_queued_over_processing_to_completed(bench):
    job_id = bench.submit()["job"]["id"]
    seen = []
    for seconds in (0, 1.9, 0.2, 4.8, 0.2):
        bench.clock.turn(seconds)
        seen.append(bench.word(job_id))
    assert seen == ["queued", "queued", "processing", "processing", "completed"]


def test_a_submit_is_answered_with_the_job_and_the_room_that_is_left(bench):
    data = bench.submit()
    assert data["request_id"] == data["job"]["id"]
    assert data["status_url"].endswith(f"/v1/jobs/{data['request_id']}/status")
    assert data["job"] == {"id": data["request_id"], "type": "image_generation", "status": "queued"}
    assert (data["idempotency_hit"], data["sync"]) == (False, None)
    assert data["generation_limits"] == {"queue_capacity_remaining": 19}


def test_the_same_key_and_body_give_the_same_job_and_no_second_bill(bench):
    first = bench.submit("k")
    again = bench.submit("k")
    assert again["job"]["id"] == first["job"]["id"]
    assert again["idempotency_hit"] is True
    assert len(bench.ledger.bills) == 1


def test_a_replay_is_answered_even_when_the_queue_is_full(bench):
    first = bench.submit_many(20)[0]
    assert bench.submit("many-0")["job"]["id"] == first


def test_the_same_key_with_another_body_is_refused(bench):
    bench.submit("k")
    error = refusal(bench.submit, "k", prompt="a wolf")
    assert (error.status, error.code, error.retryable) == (409, "idempotency_conflict", False)
    assert [note.idempotency_key for note in bench.ledger.body_conflicts] == ["k"]
    assert len(bench.ledger.bills) == 1


def test_the_same_json_in_other_bytes_is_let_in_but_noted(bench):
    job = bench.submit("k")
    body = json.dumps({"mode": "async", "prompt": "a fox"}, indent=1).encode()
    assert bench.rules.submit("image", body, "k", path="/v1/images")["job"] == job["job"]
    assert [note.idempotency_key for note in bench.ledger.reserialized] == ["k"]


def test_a_refused_request_leaves_its_key_unused(bench):
    refusal(bench.submit, "k", prompt="")
    assert bench.submit("k")["idempotency_hit"] is False


def test_without_a_key_every_submit_is_a_job(bench):
    assert bench.submit(None)["job"]["id"] != bench.submit(None)["job"]["id"]


def test_many_threads_with_one_key_make_one_job(bench):
    answers = []
    threads = [
        threading.Thread(target=lambda: answers.append(bench.submit("k"))) for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({answer["job"]["id"] for answer in answers}) == 1
    assert [answer["idempotency_hit"] for answer in answers].count(False) == 1
    assert len(bench.ledger.bills) == 1


def test_four_are_processed_and_twenty_wait_and_the_next_is_refused(bench):
    bench.submit_many(4)
    bench.clock.turn(2)
    late = [bench.submit(f"late-{index}") for index in range(20)]
    assert late[-1]["generation_limits"] == {"queue_capacity_remaining": 0}
    error = refusal(bench.submit, "one-too-many")
    assert (error.status, error.code, error.retryable) == (429, "queue_full", True)
    assert error.retry_after == "5"
    bench.clock.turn(5)
    assert bench.submit("one-too-many")["idempotency_hit"] is False


def test_the_limits_of_admission_can_be_set():
    bench = Bench(processing_limit=1, queued_limit=2)
    jobs = bench.submit_many(2)
    assert refusal(bench.submit, "more").code == "queue_full"
    bench.clock.turn(2)
    assert [bench.word(job) for job in jobs] == ["processing", "queued"]


def test_waiting_jobs_start_in_order_as_places_become_free():
    bench = Bench(processing_limit=2)
    jobs = bench.submit_many(5)
    bench.clock.turn(8)
    words = [bench.word(job) for job in jobs]
    assert words == ["completed", "completed", "processing", "processing", "queued"]
    bench.clock.turn(100)
    finished = [bench.rules.finished_job(job).finished_at - START for job in jobs]
    assert finished == [7, 7, 12, 12, 17]


def test_one_long_look_away_gives_the_same_times_as_many_short_ones():
    finished = []
    for steps in (1, 400):
        bench = Bench(processing_limit=3)
        jobs = bench.submit_many(10)
        for _ in range(steps):
            bench.clock.turn(64 / steps)
            bench.rules.settle()
        finished.append([bench.rules.finished_job(job).finished_at for job in jobs])
    assert finished[0] == finished[1]


def test_a_status_says_how_long_to_wait_and_no_longer_once_terminal(bench):
    job_id = bench.submit()["job"]["id"]
    assert bench.rules.status(job_id)["next_poll_after_seconds"] == 7
    bench.clock.turn(6.5)
    assert bench.rules.status(job_id)["next_poll_after_seconds"] == 1
    bench.clock.turn(1)
    status = bench.rules.status(job_id)
    assert "next_poll_after_seconds" not in status
    assert (status["terminal"], status["result_ready"]) == (True, True)
    assert (status["status"], status["sume_status"]) == ("COMPLETED", "completed")


@pytest.mark.parametrize(("maximum", "hint"), [(30, 30), (3, 3), (0.25, 0.25)])
def test_the_hint_never_exceeds_the_configured_maximum(maximum, hint):
    bench = Bench(processing_seconds=500, poll_seconds=maximum)
    given = bench.rules.status(bench.submit()["job"]["id"])["next_poll_after_seconds"]
    assert given == hint


def test_jobs_far_back_in_the_line_are_told_to_wait_longer():
    bench = Bench(processing_limit=1, poll_seconds=1000)
    hints = [bench.rules.status(job)["next_poll_after_seconds"] for job in bench.submit_many(3)]
    assert hints == [7, 12, 17]


def test_the_result_names_the_artifact_and_what_it_cost(bench):
    job_id = bench.submit(kind="video")["job"]["id"]
    bench.clock.turn(7)
    data = bench.rules.result(job_id, base_url="http://box")
    url = f"http://box/m/{job_id}/clip.gif"
    artifact = {"url": url, "type": "video", "content_type": "image/gif"}
    assert data["result"] == {"artifacts": [artifact]}
    assert data["usage"] == {
        "status": "charged",
        "currency": "USD",
        "billable_amount_usd_micros": 90_000,
    }


def test_a_result_that_is_not_ready_is_refused_but_may_be_asked_for_again(bench):
    error = refusal(bench.rules.result, bench.submit()["job"]["id"])
    assert (error.status, error.code, error.retryable) == (409, "result_not_ready", True)


def test_a_result_can_come_later_than_the_end():
    bench = Bench(result_seconds=10)
    job_id = bench.submit()["job"]["id"]
    bench.clock.turn(7)
    status = bench.rules.status(job_id)
    assert (status["terminal"], status["result_ready"]) == (True, False)
    assert refusal(bench.rules.result, job_id).code == "result_not_ready"
    bench.clock.turn(10)
    assert bench.rules.status(job_id)["result_ready"] is True
    assert bench.rules.result(job_id)["status"] == "COMPLETED"


@pytest.mark.parametrize("early", [True, False])
def test_a_result_can_be_held_back_before_and_after_the_end(bench, early):
    job_id = bench.submit()["job"]["id"]
    if early:
        bench.rules.hold_result(job_id, 3)
        bench.clock.turn(7)
    else:
        bench.clock.turn(7)
        bench.rules.hold_result(job_id, 3)
    assert bench.rules.status(job_id)["result_ready"] is False
    bench.clock.turn(3)
    assert bench.rules.status(job_id)["result_ready"] is True


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [
        ("FAIL please", "generation_failed"),
        ("FAIL:content_policy_rejected x", "content_policy_rejected"),
    ],
)
def test_a_prompt_that_begins_with_fail_ends_failed_and_is_refunded(bench, prompt, reason):
    job_id = bench.submit(prompt=prompt)["job"]["id"]
    bench.clock.turn(7)
    status = bench.rules.status(job_id)
    assert (status["terminal"], status["result_ready"]) == (True, False)
    assert status["job"]["error"]["public_reason"] == reason
    assert status["job"]["error"]["code"] and status["job"]["error"]["message"]
    assert status["usage"]["status"] == "refunded"
    assert [refund.job_id for refund in bench.ledger.refunds] == [job_id]
    assert bench.ledger.net_usd_micros == 0
    assert refusal(bench.rules.result, job_id).code == "job_failed"


def test_a_prompt_that_begins_with_reject_is_refused_for_good(bench):
    error = refusal(bench.submit, prompt="REJECT this")
    assert (error.status, error.retryable) == (422, False)
    assert bench.ledger.bills == []


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"prompt": ""}, "prompt"),
        ({"prompt": " \n"}, "prompt"),
        ({"prompt": 5}, "prompt"),
        ({"prompt": None}, "prompt"),
        ({"model": ""}, "model"),
        ({"mode": "later"}, "mode"),
        ({"mode": ["async"]}, "mode"),
        ({"mode": "webhook"}, "webhook_url"),
        ({"mode": "webhook", "webhook_url": "http://x"}, "webhook_url"),
    ],
)
def test_a_bad_field_is_named(bench, fields, path):
    error = refusal(bench.submit, **fields)
    assert error.status == 422
    assert [where for where, _ in error.errors] == [path]


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[1]", b"null", b"\xff", b'{"prompt": NaN}', b"[" * 100_000]
)
def test_a_body_that_is_no_json_object_is_refused(bench, body):
    error = refusal(bench.rules.submit, "image", body, "k")
    assert (error.status, error.code) == (400, "invalid_json")


def test_a_queued_job_can_be_canceled_and_is_refunded(bench):
    job_id = bench.submit()["job"]["id"]
    answer = bench.rules.cancel(job_id, "cancel-key")
    assert answer == {"request_id": job_id, "status": "CANCELED", "canceled": True}
    assert bench.rules.cancel(job_id, "cancel-key") == answer
    assert bench.word(job_id) == "canceled"
    assert len(bench.ledger.refunds) == 1
    bench.clock.turn(100)
    assert bench.word(job_id) == "canceled"
    assert refusal(bench.rules.result, job_id).code == "job_canceled"


@pytest.mark.parametrize(
    ("seconds", "code"), [(2, "job_generation_already_started"), (7, "job_not_cancelable")]
)
def test_a_cancel_that_comes_too_late_says_why(bench, seconds, code):
    job_id = bench.submit()["job"]["id"]
    bench.clock.turn(seconds)
    error = refusal(bench.rules.cancel, job_id, "cancel-key")
    assert (error.status, error.code) == (409, code)
    assert bench.ledger.refunds == []


def test_a_canceled_job_makes_room_in_the_queue():
    bench = Bench(queued_limit=1)
    bench.rules.cancel(bench.submit("a")["job"]["id"], None)
    assert bench.submit("b")["generation_limits"] == {"queue_capacity_remaining": 0}


def test_the_key_of_a_submit_does_not_serve_for_a_cancel(bench):
    job_id = bench.submit("k")["job"]["id"]
    assert refusal(bench.rules.cancel, job_id, "k").code == "idempotency_conflict"


@pytest.mark.parametrize("read", ["status", "result", "record", "events"])
def test_an_unknown_job_is_not_found(bench, read):
    assert refusal(getattr(bench.rules, read), "job_none").status == 404
    assert refusal(bench.rules.cancel, "job_none", None).status == 404


def test_jobs_are_listed_newest_first(bench):
    ids = bench.submit_many(3)
    assert [job["id"] for job in bench.rules.jobs(limit=2)["jobs"]] == [ids[2], ids[1]]


def test_events_tell_what_happened_without_the_prompt(bench):
    job_id = bench.submit(prompt="a secret fox")["job"]["id"]
    bench.clock.turn(7)
    data = bench.rules.events(job_id)
    names = [event["type"] for event in data["events"]]
    assert names == ["job.queued", "job.processing", "job.completed"]
    assert "secret" not in json.dumps(data)
    assert len(bench.rules.events(job_id, limit=1)["events"]) == 1


def test_the_balance_falls_with_each_job_until_none_is_left():
    bench = Bench(balance_usd_micros=200_000)
    bench.submit_many(2)
    assert bench.rules.balance() == {"currency": "USD", "balance_usd_micros": 20_000}
    assert refusal(bench.submit, "k").status == 402


def test_writes_have_a_budget_per_minute_and_key():
    bench = Bench(writes_per_minute=2)
    headers = [bench.rules.spend("a", write=True) for _ in range(2)]
    assert [h["RateLimit-Remaining"] for h in headers] == ["1", "0"]
    bench.clock.turn(20)
    error = refusal(bench.rules.spend, "a", write=True)
    assert (error.status, error.code) == (429, "rate_limit_exceeded")
    assert error.retry_after == "40"
    assert bench.rules.spend("b", write=True)
    bench.clock.turn(40)
    assert bench.rules.spend("a", write=True)


def test_reads_have_forty_times_the_budget_of_writes():
    bench = Bench(writes_per_minute=1)
    for _ in range(40):
        bench.rules.spend("a", write=False)
    assert refusal(bench.rules.spend, "a", write=False).code == "rate_limit_exceeded"


def test_the_ledger_holds_every_read_with_its_time(bench):
    job_id = bench.submit()["job"]["id"]
    bench.rules.status(job_id)
    bench.clock.turn(7)
    bench.rules.status(job_id)
    bench.rules.result(job_id)
    reads = [(read.what, read.at - START) for read in bench.ledger.reads[job_id]]
    assert reads == [("status", 0), ("status", 7), ("result", 7)]
    assert bench.ledger.early_reads == []
    json.dumps(bench.ledger.as_json())


def test_a_read_before_its_time_is_noted(bench):
    job_id = bench.submit()["job"]["id"]
    bench.rules.status(job_id)
    bench.clock.turn(6.5)
    bench.rules.status(job_id)
    (early,) = bench.ledger.early_reads
    assert (early.job_id, early.at - START, early.due - START) == (job_id, 6.5, 7)


@pytest.mark.parametrize(
    "options",
    [
        {"queued_seconds": -1},
        {"processing_seconds": float("nan")},
        {"poll_seconds": 0},
        {"writes_per_minute": 0},
        {"processing_limit": 0},
        {"queued_limit": -1},
        {"fault_rate": 1.1},
        {"key": " "},
    ],
)
def test_an_option_out_of_range_is_refused_by_name(options):
    (name,) = options
    with pytest.raises(ValueError, match=name):
        Bench(**options)
