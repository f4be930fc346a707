"""Sume's JSON → our dataclasses: both shapes, every word, and any bytes at all."""

import dataclasses
import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from renders.states import Status
from renders.sume.replies import (
    MAX_TEXT,
    ListedJob,
    clean_text,
    is_about,
    read_accepted,
    read_balance,
    read_error,
    read_jobs,
    read_named_job,
    read_ready_avatars,
    read_record_fault,
    read_result,
    read_status,
)

SIGNED = "https://media.example/a.png?X-Signature=s3cr3t&Expires=9"


def with_and_without_envelope(payload):
    return [
        pytest.param({"data": payload}, id="in the envelope"),
        pytest.param(payload, id="without the envelope"),
    ]


# --- Submit -------------------------------------------------------------------------------

ACCEPTED = {
    "request_id": "job_7",
    "idempotency_hit": True,
    "next_poll_after_seconds": 3,
    "job": {"id": "job_7", "type": "image_generation", "status": "queued"},
    "generation_limits": {"queue_capacity_remaining": 19},
}


@pytest.mark.parametrize("payload", with_and_without_envelope(ACCEPTED))
def test_an_accepted_submit_is_read_whole(payload):
    accepted = read_accepted(payload)

    assert accepted is not None
    assert accepted.job_id == "job_7"
    assert accepted.sume_status == "queued"
    assert accepted.idempotency_hit is True
    assert accepted.next_poll_after == 3.0
    assert accepted.queue_capacity_remaining == 19


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({"job": {"id": "job_7"}, "request_id": "other"}, id="job.id first"),
        pytest.param({"request_id": "job_7"}, id="request_id"),
        pytest.param({"job": None, "request_id": "job_7"}, id="no job object"),
        pytest.param({"job": {"id": ""}, "request_id": "job_7"}, id="empty job.id"),
        pytest.param({"job": {"id": 7}, "request_id": "job_7"}, id="job.id is a number"),
        pytest.param({"job_id": "job_7"}, id="job_id"),
        pytest.param({"id": "job_7"}, id="id"),
    ],
)
def test_the_job_id_is_found_wherever_it_stands(data):
    accepted = read_accepted({"data": data})

    assert accepted is not None
    assert accepted.job_id == "job_7"
    assert accepted.queue_capacity_remaining is None
    assert accepted.next_poll_after is None


@pytest.mark.parametrize(
    "payload",
    [None, [], "job_7", 7, {}, {"data": {}}, {"data": None}, {"data": []}, {"data": {"job": []}}],
    ids=repr,
)
def test_a_reply_that_names_no_job_is_not_an_accepted_submit(payload):
    assert read_accepted(payload) is None


def test_the_request_id_of_an_error_is_not_a_job():
    payload = {"error": {"code": "internal", "message": "Try again."}, "request_id": "req_1"}

    assert read_accepted(payload) is None


@pytest.mark.parametrize("hit", [None, "true", 1, [], {}], ids=repr)
def test_an_idempotency_hit_is_a_plain_true(hit):
    accepted = read_accepted({"data": {**ACCEPTED, "idempotency_hit": hit}})

    assert accepted is not None
    assert accepted.idempotency_hit is False


@pytest.mark.parametrize("left", [-1, True, "many", 1.5, 2**63, None, []], ids=repr)
def test_an_odd_capacity_counts_as_not_named(left):
    accepted = read_accepted(
        {"data": {**ACCEPTED, "generation_limits": {"queue_capacity_remaining": left}}}
    )

    assert accepted is not None
    assert accepted.queue_capacity_remaining is None


# --- Status -------------------------------------------------------------------------------

ENDED = {
    "completed": Status.COMPLETED,
    "complete": Status.COMPLETED,
    "succeeded": Status.COMPLETED,
    "success": Status.COMPLETED,
    "failed": Status.FAILED,
    "error": Status.FAILED,
    "errored": Status.FAILED,
    "expired": Status.FAILED,
    "canceled": Status.CANCELED,
    "cancelled": Status.CANCELED,
}


@pytest.mark.parametrize(
    "payload",
    with_and_without_envelope(
        {
            "request_id": "job_7",
            "status": "PROCESSING",
            "sume_status": "processing",
            "terminal": False,
            "result_ready": False,
            "next_poll_after_seconds": 5,
            "job": {"id": "job_7", "status": "processing", "error": None},
            "usage": {"status": "reserved", "billable_amount_usd_micros": 90_000},
        }
    ),
)
def test_a_running_job_is_read_whole(payload):
    status = read_status(payload)

    assert status is not None
    assert status.sume_status == "processing"
    assert status.ending is None
    assert status.result_ready is False
    assert status.next_poll_after == 5.0
    assert status.cost_usd_micros == 90_000
    assert status.fault.code == status.fault.message == ""


SPELLINGS = {"lower": str.lower, "upper": str.upper, "title": str.title, "spaces": " {} ".format}


@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS)
@pytest.mark.parametrize(("word", "ending"), ENDED.items())
def test_every_spelling_of_an_end_is_known(word, ending, spell):
    status = read_status({"data": {"sume_status": spell(word)}})

    assert status is not None
    assert status.sume_status == word
    assert status.ending == ending


@pytest.mark.parametrize("terminal", [None, False, "true", 1], ids=repr)
@pytest.mark.parametrize("word", ["queued", "processing", "running", "pending", "dreaming"])
def test_no_other_word_ends_a_job(word, terminal):
    status = read_status({"data": {"sume_status": word, "terminal": terminal}})

    assert status is not None
    assert status.ending is None


@pytest.mark.parametrize(
    ("data", "ending"),
    [
        pytest.param(
            {"sume_status": "archived", "terminal": True, "result_ready": True},
            Status.COMPLETED,
            id="unknown word, the last one, with a result",
        ),
        pytest.param(
            {"sume_status": "archived", "terminal": True},
            Status.FAILED,
            id="unknown word, the last one, no result",
        ),
        pytest.param(
            {"sume_status": "completed", "terminal": False}, None, id="completed, but not the end"
        ),
        pytest.param(
            {"sume_status": "failed", "terminal": False}, None, id="failed, but not the end"
        ),
        pytest.param(
            {"sume_status": "processing", "terminal": True}, None, id="running, but the end"
        ),
        pytest.param(
            {"sume_status": "failed", "terminal": True, "result_ready": True},
            Status.FAILED,
            id="failed, with a result",
        ),
        pytest.param(
            {"sume_status": "completed", "terminal": "no"}, Status.COMPLETED, id="odd terminal"
        ),
    ],
)
def test_a_contradiction_never_ends_a_job_too_early(data, ending):
    status = read_status({"data": data})

    assert status is not None
    assert status.ending == ending


@pytest.mark.parametrize(
    ("data", "word"),
    [
        pytest.param({"sume_status": "queued", "status": "OTHER"}, "queued", id="sume_status"),
        pytest.param({"job": {"status": "queued"}, "status": "OTHER"}, "queued", id="job.status"),
        pytest.param({"status": "QUEUED"}, "queued", id="status"),
        pytest.param({"sume_status": 7, "status": "QUEUED"}, "queued", id="sume_status a number"),
        pytest.param({"sume_status": "\x01"}, "\ufffd", id="control character"),
    ],
)
def test_the_word_is_found_wherever_it_stands(data, word):
    status = read_status({"data": data})

    assert status is not None
    assert status.sume_status == word


@pytest.mark.parametrize(
    "payload",
    [None, [], "completed", {}, {"data": {"job": {}}}, {"data": {"status": 200}}, {"error": {}}],
    ids=repr,
)
def test_a_reply_without_a_word_says_nothing_about_the_job(payload):
    assert read_status(payload) is None


@pytest.mark.parametrize("ready", [True, None, "false", 0], ids=repr)
def test_a_result_is_ready_unless_sume_says_that_it_is_not(ready):
    status = read_status({"data": {"sume_status": "completed", "result_ready": ready}})

    assert status is not None
    assert status.result_ready is True


@pytest.mark.parametrize("length", [50, 51, 5_000])
@pytest.mark.parametrize("letter", ["x", "İ", "ẞ", "\U0001f600"], ids=ascii)
def test_a_word_of_any_length_and_letters_fits_its_column(letter, length):
    status = read_status({"data": {"sume_status": letter * length}})
    accepted = read_accepted({"data": {"request_id": "job_7", "sume_status": letter * length}})

    assert status is not None
    assert accepted is not None
    assert 0 < len(status.sume_status) <= 50
    assert 0 < len(accepted.sume_status) <= 50


# --- Usage --------------------------------------------------------------------------------

USAGE = {"usage": {"currency": "USD", "billable_amount_usd_micros": 90_000}}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(USAGE, id="data.usage"),
        pytest.param({"job": USAGE}, id="data.job.usage"),
        pytest.param({"result": {**USAGE, "artifacts": []}}, id="data.result.usage"),
        pytest.param({"usage": None, "job": {"usage": []}, "result": USAGE}, id="the odd skipped"),
        pytest.param({"usage": {}, "job": USAGE}, id="the empty skipped"),
    ],
)
def test_the_cost_is_found_wherever_it_stands(data):
    status = read_status({"data": {"sume_status": "completed", **data}})

    assert status is not None
    assert status.cost_usd_micros == 90_000
    assert read_result({"data": {"artifacts": [], **data}}).cost_usd_micros == 90_000


@pytest.mark.parametrize(
    "amount", [None, -1, True, "lots", "0.5", "nan", 0.5, 2**63, 10**400, []], ids=ascii
)
def test_an_odd_cost_counts_as_not_named(amount):
    data = {"usage": {"billable_amount_usd_micros": amount}, "sume_status": "completed"}
    status = read_status({"data": data})

    assert status is not None
    assert status.cost_usd_micros is None


@pytest.mark.parametrize("amount", [90_000, 90_000.0, 9e4, "90000", "9e4", " 90000.0 "], ids=repr)
def test_a_cost_is_read_however_it_is_written(amount):
    data = {"usage": {"billable_amount_usd_micros": amount}, "sume_status": "completed"}

    assert read_status({"data": data}).cost_usd_micros == 90_000


@pytest.mark.parametrize("place", ["data", "job", "result"])
def test_captured_money_is_seen_wherever_it_stands(place):
    usage = {"usage": {"status": "Captured", "billable_amount_usd_micros": 5}}
    data = {"sume_status": "failed", **(usage if place == "data" else {place: usage})}

    assert read_status({"data": data}).captured
    assert not read_status({"data": {"sume_status": "failed"}}).captured


@pytest.mark.parametrize(
    ("data", "about"),
    [
        ({}, True),
        ({"request_id": "job_1"}, True),
        ({"request_id": "req_9"}, True),
        ({"job_id": "job_1", "request_id": "req_9"}, True),
        ({"job": {"id": "job_1"}}, True),
        ({"job_id": 7, "job": []}, True),
        ({"id": "avatar_1", "job_id": "job_1"}, True),
        ({"id": "job_2"}, False),
        ({"job": {"job_id": "job_2"}}, False),
        ({"request_id": "job_2"}, False),
        ({"job_id": "job_2"}, False),
        ({"job": {"id": "job_2"}}, False),
    ],
    ids=repr,
)
def test_a_reply_that_names_another_job_is_not_about_this_one(data, about):
    assert is_about({"data": data}, "job_1") is about
    assert is_about(data, "job_1") is about


@pytest.mark.parametrize(
    "payload",
    [
        {"data": {"job": {"id": "job_7", "status": "queued"}}},
        {"error": {"code": "idempotency_in_progress", "details": {"job_id": "job_7"}}},
    ],
)
def test_a_conflict_can_name_the_job_of_its_key(payload):
    named = read_named_job(payload)

    assert (named.job_id, named.idempotency_hit) == ("job_7", True)


@pytest.mark.parametrize(
    "payload",
    [
        None,
        [],
        {},
        {"error": {"details": []}},
        {"data": {"job": 1}},
        {"error": {"code": "avatar_not_ready", "details": {"job_id": "job_7"}}},
    ],
)
def test_a_conflict_mostly_names_none(payload):
    assert read_named_job(payload) is None


@pytest.mark.parametrize("payload", [None, [], {}, {"data": {"avatars": {}}}], ids=repr)
def test_a_reply_without_a_list_of_avatars_is_none(payload):
    assert read_ready_avatars(payload) is None


def test_avatars_that_can_be_used_are_read_by_their_handles():
    listed = [
        {"handle": "@mara", "status": "ready"},
        {"handle": "otto", "status": "completed", "resource_status": "ready"},
        {"handle": "rosa", "status": "processing"},
        {"name": "no handle", "status": "ready"},
        "junk",
    ]

    assert read_ready_avatars({"data": {"avatars": listed}}) == ["mara", "otto"]
    assert read_ready_avatars({"avatars": listed}) == ["mara", "otto"]


@pytest.mark.parametrize(
    ("payload", "amount"),
    [
        ({"data": {"currency": "USD", "balance_usd_micros": 5}}, 5),
        ({"balance_usd_micros": -3}, -3),
        ({"data": {"balance": {"available_usd_micros": 7, "currency": "USD"}}}, 7),
        ({"data": {"workspace": {"balance_usd_micros": 0}}}, 0),
        ({"data": {"available_usd_micros": 1, "balance_usd_micros": 9}}, 1),
        ({"data": {"balance_usd_micros": "5.0"}}, 5),
        ({"data": {"balance": 12.5}}, None),
        ({"data": {"balance_usd_micros": True}}, None),
        ({"data": None}, None),
        ([], None),
        (None, None),
    ],
)
def test_the_balance_is_read_leniently(payload, amount):
    assert read_balance(payload) == amount


def test_a_cost_of_nothing_is_a_cost():
    payload = {"result": {"artifacts": []}, "usage": {"billable_amount_usd_micros": 0}}

    assert read_result(payload).cost_usd_micros == 0


# --- Result and record --------------------------------------------------------------------


@pytest.mark.parametrize(
    "payload",
    [
        *with_and_without_envelope(
            {"status": "COMPLETED", "result": {"artifacts": [{"url": SIGNED, "type": "image"}]}}
        ),
        pytest.param({"data": {"artifacts": [{"url": SIGNED, "type": "image"}]}}, id="flat"),
    ],
)
def test_artifacts_are_read_with_their_whole_address(payload):
    assert read_result(payload).artifacts == [{"url": SIGNED, "type": "image", "content_type": ""}]


@pytest.mark.parametrize(
    "item", [None, 7, "https://x/y", [], {}, {"url": None}, {"url": ""}, {"url": 7}], ids=repr
)
def test_an_artifact_without_an_address_is_left_out(item):
    good = {"url": "https://media.example/b.png", "type": "image", "content_type": "image/png"}

    assert read_result({"data": {"result": {"artifacts": [item, good]}}}).artifacts == [good]


@pytest.mark.parametrize("data", [{"job": {"error": "x"}}, {"job": 7}, {}, [], None], ids=repr)
def test_a_record_without_a_reason_gives_none(data):
    fault = read_record_fault({"data": data})

    assert (fault.code, fault.message, fault.retryable, fault.request_id) == ("", "", None, "")


@pytest.mark.parametrize(
    "payload",
    [
        *with_and_without_envelope({"job": {"error": {"code": "bad", "message": "No."}}}),
        pytest.param({"data": {"error": {"code": "bad", "message": "No."}}}, id="a bare job"),
    ],
)
def test_a_record_says_why_the_job_failed(payload):
    fault = read_record_fault(payload)

    assert (fault.code, fault.message) == ("bad", "No.")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({"job": {"error": {"code": "bad", "public_reason": "No."}}}, id="job.error"),
        pytest.param({"job": {}, "error": {"code": "bad", "message": "No."}}, id="error"),
    ],
)
def test_a_status_says_why_the_job_failed(data):
    status = read_status({"data": {"sume_status": "failed", **data}})

    assert status is not None
    assert (status.fault.code, status.fault.message) == ("bad", "No.")


def test_the_reason_for_people_comes_before_the_message_for_developers():
    error = {"code": "bad", "message": "E_POLICY_7", "public_reason": "Against the rules."}

    assert read_record_fault({"job": {"error": error}}).message == "Against the rules."


# --- Errors -------------------------------------------------------------------------------


def test_an_error_is_read_whole():
    fault = read_error(
        {
            "error": {
                "code": "invalid_request",
                "message": "The request is invalid.",
                "retryable": False,
                "request_id": "req_1",
                "details": {"errors": [{"path": "body.size", "message": "must be 1024"}]},
            },
            "request_id": "req_2",
        },
        "req_3",
    )

    assert fault.code == "invalid_request"
    assert fault.message == "The request is invalid. body.size: must be 1024"
    assert fault.retryable is False
    assert fault.request_id == "req_1"


@pytest.mark.parametrize(
    ("payload", "request_id"),
    [
        pytest.param({"error": {}, "request_id": "req_2"}, "req_2", id="beside the error"),
        pytest.param({"error": {}}, "req_3", id="in the header"),
        pytest.param(None, "req_3", id="no body"),
        pytest.param("<html>", "req_3", id="a page"),
    ],
)
def test_the_request_id_is_found_wherever_it_stands(payload, request_id):
    assert read_error(payload, "req_3").request_id == request_id


def test_an_error_that_is_only_text_is_shown():
    assert read_error({"error": "Bad gateway"}).message == "Bad gateway"


@pytest.mark.parametrize("retryable", ["false", 0, None, []], ids=repr)
def test_retryable_is_a_plain_boolean_or_not_said(retryable):
    assert read_error({"error": {"retryable": retryable}}).retryable is None


def test_a_long_list_of_details_is_cut():
    errors = [{"path": str(number), "message": "no"} for number in range(100)]

    message = read_error({"error": {"details": {"errors": errors}}}).message

    assert message.startswith("0: no 1: no")
    assert "5: no" not in message


def test_a_reason_of_some_sentences_is_kept_whole():
    reason = "This prompt asks for something that we do not make. " * 12

    assert read_error({"error": {"message": reason}}).message == reason.strip()


@pytest.mark.parametrize(
    "error",
    [
        pytest.param({"message": f"Cannot read {SIGNED}"}, id="message"),
        pytest.param({"public_reason": f"Cannot read {SIGNED}, sorry"}, id="public reason"),
        pytest.param({"message": f"See {SIGNED}#s3cr3t and {SIGNED}"}, id="twice"),
        pytest.param(
            {"details": {"errors": [{"path": SIGNED, "message": SIGNED}]}}, id="in the details"
        ),
        pytest.param({"message": SIGNED.replace("https", "HTTPS")}, id="capitals"),
        pytest.param({"message": "x" * 150 + SIGNED}, id="at the place of a cut"),
        pytest.param(f"Cannot read {SIGNED}", id="only text"),
    ],
)
def test_no_error_text_keeps_a_signature(error):
    for fault in (read_error({"error": error}), read_record_fault({"job": {"error": error}})):
        assert "s3cr3t" not in fault.message


def test_an_error_text_keeps_the_path_of_an_address():
    message = read_error({"error": {"message": f"Cannot read {SIGNED}."}}).message

    assert message == "Cannot read https://media.example/a.png?[removed]"


# --- The list of jobs ---------------------------------------------------------------------

ONE = {"id": "job_1", "type": "image_generation", "status": "Queued", "created_at": "2026-05-04"}
TWO = {"id": "job_2", "prompt": "a fox", "result_url": SIGNED}
LISTED = [
    ListedJob("job_1", "image_generation", "queued", "2026-05-04"),
    ListedJob("job_2", "", "", ""),
]


@pytest.mark.parametrize(
    "entries", [[ONE, TWO], [{"job": ONE}, {"job": TWO}]], ids=["jobs", "jobs in objects"]
)
@pytest.mark.parametrize(
    "wrap",
    [
        lambda entries: {"data": {"jobs": entries}},
        lambda entries: {"jobs": entries},
        lambda entries: {"data": entries},
        lambda entries: entries,
    ],
    ids=["in the envelope", "without the envelope", "as the data", "as the reply"],
)
def test_jobs_are_read_from_every_shape_of_a_list(wrap, entries):
    assert read_jobs(wrap(entries)) == LISTED


@pytest.mark.parametrize(
    "entry", [None, 7, "job_3", [], {}, {"id": 3}, {"id": ""}, {"job": {"id": None}}], ids=repr
)
def test_entries_that_name_no_job_are_skipped(entry):
    assert read_jobs({"data": {"jobs": [entry, ONE]}}) == LISTED[:1]


def test_an_empty_list_holds_no_jobs():
    assert read_jobs({"data": {"jobs": []}}) == []


@pytest.mark.parametrize(
    "payload",
    [None, 7, "jobs", {}, {"data": {}}, {"data": None}, {"jobs": {}}, {"jobs": [{"name": "x"}]}],
    ids=repr,
)
def test_a_reply_that_holds_no_readable_list_is_no_empty_list(payload):
    assert read_jobs(payload) is None


# --- Any bytes ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param("a\x00b", "a\ufffdb", id="NUL"),
        pytest.param("a\x1bb\r", "a\ufffdb\ufffd", id="control characters"),
        pytest.param("a\tb\nc", "a\tb\nc", id="tab and line end stay"),
        pytest.param("a\ud800b", "a?b", id="half a surrogate pair"),
        pytest.param("  a  ", "a", id="white space around"),
        pytest.param("😀" * 10, "😀" * 10, id="beyond the basic plane"),
        pytest.param("x" * 10**6, "x" * MAX_TEXT, id="a megabyte"),
        pytest.param(None, "", id="missing"),
        pytest.param(7, "", id="number"),
        pytest.param(["a"], "", id="list"),
        pytest.param(b"a", "", id="bytes"),
    ],
)
def test_text_is_such_as_any_database_holds(value, text):
    assert clean_text(value) == text


WORDS = st.sampled_from(
    ["completed", "FAILED", "cancelled", "queued", "İ" * 60, "\x00", "\ud800", "x" * 9_000, SIGNED]
)
NAMES = st.sampled_from(
    [
        *("data", "job", "error", "result", "usage", "artifacts", "generation_limits", "details"),
        *("id", "job_id", "request_id", "status", "sume_status", "terminal", "result_ready"),
        *("next_poll_after_seconds", "queue_capacity_remaining", "billable_amount_usd_micros"),
        *("errors", "path", "code", "message", "public_reason", "retryable", "idempotency_hit"),
        *("url", "type", "content_type", "jobs", "created_at", "unknown"),
    ]
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, 2**63, -1])
    | st.floats()
    | WORDS
    | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=8),
    max_leaves=40,
)
LONGEST = {
    "id": 200,
    "status": 50,
    "created_at": 50,
    "job_id": 200,
    "sume_status": 50,
    "code": 100,
    "request_id": 100,
    "message": MAX_TEXT,
    "url": 8_000,
    "type": 50,
    "content_type": 100,
}


def assert_storable(value, name=""):
    """Every text fits its column and any encoding; every number fits a 64-bit column."""
    if dataclasses.is_dataclass(value):
        value = dataclasses.asdict(value)
    if isinstance(value, dict):
        for key, inner in value.items():
            assert_storable(inner, key)
    elif isinstance(value, list):
        for inner in value:
            assert_storable(inner)
    elif isinstance(value, Status):
        assert name == "ending"
    elif isinstance(value, str):
        assert "\x00" not in value
        assert value.encode().decode() == value
        assert len(value) <= LONGEST[name]
    elif isinstance(value, int):
        assert -(2**63) <= value < 2**63
    elif isinstance(value, float):
        assert value >= 0
        assert name == "next_poll_after"
    else:
        assert value is None


@settings(deadline=None, database=None)
@given(JSON)
@example({"data": {"sume_status": "İ" * 50}})
@example(
    {"error": {"code": 1, "message": {"a": []}, "details": {"errors": [None, 1, {"path": 2}]}}}
)
@example(json.loads('{"data": {"job": {"id": "a\\u0000\\ud800"}, "request_id": [1]}}'))
@example({"data": {"result": {"artifacts": {"url": "x"}}}})
def test_no_json_raises_and_all_that_is_read_can_be_stored(payload):
    for read in (
        read_accepted,
        read_named_job,
        read_status,
        read_result,
        read_record_fault,
        read_error,
        read_jobs,
    ):
        assert_storable(read(payload))
    is_about(payload, "job_1")
    read_balance(payload)
    read_ready_avatars(payload)
