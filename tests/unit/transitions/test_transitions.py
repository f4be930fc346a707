"""Each transition wins from its own states alone, once, and says what happened."""

import uuid
from datetime import timedelta

import pytest

from renders import transitions
from renders.limits import turns
from renders.models import RenderEvent, RenderJob
from renders.states import TERMINAL, Status
from tests.rows import NOW, stored

pytestmark = pytest.mark.django_db

SOON = NOW + timedelta(seconds=30)
EARLIER = NOW - timedelta(seconds=30)
ENDED = set(TERMINAL)
RUNNING = {Status.PENDING, Status.SUBMITTING, Status.SUBMITTED}
RENDERS = RenderJob.objects


def record_submitted(pk):
    return transitions.record_submitted(
        pk, NOW, job_id="job_2", sume_status="queued", hit=False, next_poll_at=SOON
    )


def end(status):
    return lambda pk: transitions.end(pk, 0, NOW, status, sume_status="over", code="why", cost=7)


# name: the call, the states that it starts from, the state after it (None: the same), its event
TRANSITIONS = {
    "claim": (
        lambda pk: transitions.claim(pk, NOW, "default"),
        {Status.PENDING},
        Status.SUBMITTING,
        "sending",
    ),
    "freeze_request": (
        lambda pk: transitions.freeze_request(pk, NOW, "/v1/images", "{}"),
        {Status.SUBMITTING},
        None,
        None,
    ),
    "record_submitted": (
        record_submitted,
        {Status.PENDING, Status.SUBMITTING},
        Status.SUBMITTED,
        "submitted",
    ),
    "release": (
        lambda pk: transitions.release(pk, NOW, not_before=SOON, code="busy", message="Busy."),
        {Status.SUBMITTING},
        Status.PENDING,
        "put back",
    ),
    "reap": (
        lambda pk: transitions.reap(pk, NOW + timedelta(seconds=601), 600),
        {Status.SUBMITTING},
        Status.PENDING,
        "put back",
    ),
    "refuse": (
        lambda pk: transitions.refuse(pk, NOW, NOW, code="bad_prompt", message="No."),
        {Status.SUBMITTING},
        Status.FAILED,
        "failed",
    ),
    "refuse (another body)": (
        lambda pk: transitions.refuse(pk, NOW, NOW, code="taken", message="No.", key_taken=True),
        {Status.SUBMITTING},
        Status.FAILED,
        "failed",
    ),
    "give_up": (
        lambda pk: transitions.give_up(pk, NOW),
        {Status.PENDING},
        Status.FAILED,
        "failed",
    ),
    "record_read": (
        lambda pk: transitions.record_read(pk, 0, NOW, sume_status="processing", next_poll_at=SOON),
        {Status.SUBMITTED},
        None,
        None,
    ),
    "postpone_read": (
        lambda pk: transitions.postpone_read(pk, 0, NOW, SOON),
        {Status.SUBMITTED},
        None,
        None,
    ),
    "end (completed)": (
        end(Status.COMPLETED),
        {Status.SUBMITTED},
        Status.COMPLETED,
        "completed",
    ),
    "end (failed)": (end(Status.FAILED), {Status.SUBMITTED}, Status.FAILED, "failed"),
    "end (canceled)": (end(Status.CANCELED), {Status.SUBMITTED}, Status.CANCELED, "canceled"),
    "cancel_unsent": (
        lambda pk: transitions.cancel_unsent(pk, NOW),
        {Status.PENDING},
        Status.CANCELED,
        "canceled",
    ),
    "request_cancel": (
        lambda pk: transitions.request_cancel(pk, NOW),
        RUNNING,
        None,
        "cancel requested",
    ),
    "record_cancel_answer": (
        lambda pk: transitions.record_cancel_answer(pk, NOW, "Too late."),
        {Status.SUBMITTED},
        None,
        "cancel answered",
    ),
    "store": (
        lambda pk: transitions.store(pk, result={"artifacts": []}, cost_usd_micros=7),
        ENDED,
        None,
        None,
    ),
    "store_result": (
        lambda pk: transitions.store_result(pk, SOON, [], 7, ("media limited", "Many.")),
        ENDED,
        None,
        "media limited",
    ),
    "begin_media": (lambda pk: transitions.begin_media(pk, NOW, SOON, []), ENDED, None, None),
    "postpone_finish": (
        lambda pk: transitions.postpone_finish(pk, 0, SOON, "Not there."),
        ENDED,
        None,
        "finish postponed",
    ),
    "put_aside": (
        lambda pk: bool(transitions.put_aside([pk], "Too dear.")),
        {Status.PENDING},
        None,
        "put aside",
    ),
    "mark_handled": (lambda pk: transitions.mark_handled(pk, NOW), ENDED, None, "handled"),
}
EACH = [
    pytest.param(call, start, after if start in starts else None, event, start in starts, id=id)
    for name, (call, starts, after, event) in TRANSITIONS.items()
    for start in Status
    for id in [f"{name} from {start}"]
]


def row(render):
    return RenderJob.objects.filter(pk=render.pk).values().get()


def events(render):
    return [event.what for event in render.events.all()]


@pytest.mark.parametrize(("call", "start", "after", "event", "wins"), EACH)
def test_a_transition_wins_from_its_own_states_alone(call, start, after, event, wins):
    render = stored(start)
    bystander = stored(start)
    before, untouched = row(render), row(bystander)

    assert call(render.pk) is wins

    if wins:
        assert row(render) != before
        assert row(render)["status"] == (after or start)
        assert events(render) == ([event] if event else [])
    else:
        assert row(render) == before
        assert events(render) == []
    assert row(bystander) == untouched
    assert events(bystander) == []


def test_what_was_put_aside_is_taken_back_once_with_its_reason_cleared():
    aside, waiting, held = (stored() for _ in range(3))
    transitions.put_aside([aside.pk, held.pk], "Too dear.")
    transitions.hold_many([held.pk], NOW)

    assert transitions.take_back([aside.pk, waiting.pk, held.pk], NOW) == [aside.pk]
    turns.give_again(RENDERS.filter(pk=aside.pk))
    assert transitions.take_back([aside.pk], NOW) == []

    assert events(aside) == ["put aside", "back in line"] and events(waiting) == []
    taken = row(aside)
    assert (taken["error_code"], taken["error_message"], taken["released_at"]) == ("", "", NOW)
    assert row(held)["error_message"] == "Too dear."


def test_these_tests_know_every_transition():
    public = set(transitions.__all__) - {"PollUpdate", "log", "log_post"}

    others = {"mark_swept", "recall", "claim_next", "take_unfinished", "ask", "bring_forward"}
    others |= {
        "resend",
        "take_back",
        "keep_artifact",
        "record",
        "record_reads",
        "take_due",
        "give_back",
        # of handled renders: in `test_media_moves`
        "plan_late_media",
        "ask_media",
        "begin_late_media",
        "end_late_try",
        "mark_media_stored",
        "postpone_media_stored",
    }
    of_many = {name for name in public if name.endswith("_many")}
    assert {name.split(" ")[0] for name in TRANSITIONS} == public - others - of_many
    assert {name.split(" ")[0] for name in OF_MANY} == of_many


# name: the call, the states that it starts from, the state after it (None: the same), its event
OF_MANY = {
    "cancel_unsent_many": (
        lambda pks: transitions.cancel_unsent_many(pks, NOW),
        {Status.PENDING},
        Status.CANCELED,
        "canceled",
    ),
    "request_cancel_many": (
        lambda pks: transitions.request_cancel_many(pks, NOW),
        RUNNING,
        None,
        "cancel requested",
    ),
    "hold_many": (lambda pks: transitions.hold_many(pks, NOW), {Status.PENDING}, None, "held"),
    "unhold_many": (
        lambda pks: transitions.unhold_many(pks, NOW),
        {Status.PENDING},
        None,
        "released",
    ),
}


@pytest.mark.parametrize("name", OF_MANY)
def test_a_transition_of_many_moves_those_in_its_states_once_and_no_other(name):
    call, starts, after, event = OF_MANY[name]
    held = {"held_at": NOW} if name == "unhold_many" else {}
    renders = [stored(status, **(held if status in starts else {})) for status in Status] * 2
    bystanders = [stored(status) for status in Status]
    untouched = [row(render) for render in bystanders]
    starting = {render.pk for render in renders if render.status in starts}

    assert set(call([render.pk for render in renders])) == starting
    assert call([render.pk for render in renders]) == []
    assert call([]) == call([uuid.uuid4()]) == []

    for render in renders:
        moved = render.pk in starting
        assert row(render)["status"] == ((moved and after) or render.status)
        assert events(render) == ([event] if moved else [])
    assert [row(render) for render in bystanders] == untouched


# --- Held ---------------------------------------------------------------------------------


def test_what_is_held_is_in_no_line():
    render = stored(created_at=EARLIER, cancel_requested_at=None, held_at=NOW)

    assert not RENDERS.due(NOW).exists()
    assert not RENDERS.expired(NOW, NOW).exists()
    assert not transitions.claim(render.pk, NOW, "default")
    assert not transitions.give_up(render.pk, NOW)
    assert (
        transitions.claim_next(
            RENDERS.due(NOW), NOW, render.pk, workspace="default", within=9, limit=9
        )
        == []
    )
    assert transitions.cancel_unsent(render.pk, NOW)
    assert row(render)["held_at"] is None


@pytest.mark.parametrize(
    "fields",
    [{"outcome_unknown_at": NOW}, {"cancel_requested_at": NOW}],
    ids=["Sume may hold it", "to be canceled"],
)
def test_what_cannot_wait_is_not_held(fields):
    render = stored(**fields)

    assert transitions.hold_many([render.pk], NOW) == []


def test_a_released_render_has_all_its_time_again():
    render = stored(created_at=EARLIER, held_at=EARLIER)
    transitions.unhold_many([render.pk], NOW)

    before = NOW - timedelta(seconds=1)
    assert not RENDERS.expired(before, before).exists()
    assert RENDERS.due(SOON).unexpired(before, before).exists()
    assert RENDERS.expired(NOW, NOW).exists()
    assert not RENDERS.due(SOON).unexpired(NOW, NOW).exists()


def test_a_try_without_an_answer_is_not_made_again_after_the_key_s_time():
    """However long the clock of its deadline stood still."""
    before = NOW - timedelta(days=1)
    stored(created_at=NOW, outcome_unknown_at=before)

    assert RENDERS.expired(before, before).exists()
    assert not RENDERS.due(NOW).unexpired(before, before).exists()


def test_one_that_a_person_sends_again_has_the_key_s_time_once_more():
    before = NOW - timedelta(days=1)
    stored(created_at=before, outcome_unknown_at=before, released_at=NOW)

    assert not RENDERS.expired(before, before).exists()
    assert RENDERS.due(NOW).unexpired(before, before).exists()


def test_what_ended_without_sume_is_taken_by_one():
    first, second = (
        stored(Status.CANCELED, sume_job_id="", submitted_at=None, next_poll_at=at)
        for at in (EARLIER, NOW)
    )
    stored(Status.CANCELED), stored(Status.CANCELED, sume_job_id="", handled_at=NOW)

    assert [transitions.take_unfinished(NOW, 60) for _ in range(3)] == [first.pk, second.pk, None]
    assert transitions.take_unfinished(NOW + timedelta(seconds=61), 60) == first.pk


@pytest.mark.parametrize("call", [call for call, *_ in TRANSITIONS.values()], ids=list(TRANSITIONS))
def test_a_render_that_is_not_there_loses(call):
    assert call(uuid.uuid4()) is False
    assert not RenderEvent.objects.exists()


REPEATABLE = {"store"}


@pytest.mark.parametrize(
    ("name", "call", "start"),
    [
        (name, call, sorted(starts)[0])
        for name, (call, starts, *_) in TRANSITIONS.items()
        if name not in REPEATABLE
    ],
)
def test_of_two_equal_calls_one_wins(name, call, start):
    render = stored(start)

    assert [call(render.pk), call(render.pk)] == [True, False]
    assert len(events(render)) <= 1


# --- Claim --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("not_before", "wins"),
    [
        pytest.param(None, True, id="never held back"),
        pytest.param(EARLIER, True, id="held back until earlier"),
        pytest.param(NOW, True, id="held back until now"),
        pytest.param(NOW + timedelta(microseconds=1), False, id="held back a moment longer"),
    ],
)
def test_a_claim_waits_for_its_time(not_before, wins):
    render = stored(not_before=not_before)

    assert transitions.claim(render.pk, NOW, "default") is wins


def test_a_claim_notes_when_and_how_often():
    render = stored(submit_attempts=2)

    transitions.claim(render.pk, NOW, "default")

    render.refresh_from_db()
    assert render.claimed_at == NOW
    assert render.submit_attempts == 3


def test_a_request_is_frozen_once():
    render = stored(Status.SUBMITTING)
    transitions.freeze_request(render.pk, NOW, "/v1/images", '{"a": 1}')

    assert not transitions.freeze_request(render.pk, NOW, "/v1/other", '{"b": 2}')

    render.refresh_from_db()
    assert (render.request_path, render.request_body) == ("/v1/images", '{"a": 1}')


def test_a_request_is_frozen_only_by_who_holds_the_claim():
    """So one that was reaped without a request was never sent, even if its worker wakes up."""
    render = stored(Status.SUBMITTING)

    assert not transitions.freeze_request(render.pk, SOON, "/v1/images", "{}")


# --- The outcome of a submit --------------------------------------------------------------


@pytest.mark.parametrize("start", [Status.PENDING, Status.SUBMITTING])
def test_an_accepted_submit_is_kept_whole(start):
    render = stored(start, error_code="busy", error_message="Busy.", swept_at=NOW, not_before=SOON)

    transitions.record_submitted(
        render.pk, NOW, job_id="job_2", sume_status="queued", hit=True, next_poll_at=SOON
    )

    render.refresh_from_db()
    assert (render.sume_job_id, render.sume_status) == ("job_2", "queued")
    assert (render.submitted_at, render.next_poll_at) == (NOW, SOON)
    assert render.idempotency_hit is True
    assert (render.error_code, render.error_message, render.swept_at) == ("", "", None)
    assert render.events.get().detail == "Sume job job_2 (it had this request already)"


@pytest.mark.parametrize(
    "late",
    [
        pytest.param(
            lambda pk: transitions.release(pk, EARLIER, not_before=SOON, code="x", message="x"),
            id="release",
        ),
        pytest.param(
            lambda pk: transitions.refuse(pk, EARLIER, NOW, code="x", message="x"), id="refuse"
        ),
    ],
)
def test_a_late_submitter_cannot_undo_a_later_claim(late):
    render = stored(Status.SUBMITTING, claimed_at=NOW)
    before = row(render)

    assert not late(render.pk)

    assert row(render) == before
    assert events(render) == []


def test_a_late_submitter_whose_row_was_put_back_still_brings_the_job():
    render = stored(Status.SUBMITTING)
    transitions.reap(render.pk, NOW + timedelta(seconds=601), 600)

    assert record_submitted(render.pk)

    render.refresh_from_db()
    assert (render.status, render.sume_job_id) == (Status.SUBMITTED, "job_2")


def test_a_late_submitter_does_not_replace_the_job():
    render = stored(Status.SUBMITTED, sume_job_id="job_1")

    assert not record_submitted(render.pk)

    render.refresh_from_db()
    assert render.sume_job_id == "job_1"


@pytest.mark.parametrize("unknown_at", [None, NOW])
def test_a_released_row_says_why_and_waits(unknown_at):
    render = stored(Status.SUBMITTING, swept_at=NOW)

    transitions.release(
        render.pk, NOW, not_before=SOON, code="x" * 200, message="Busy.", unknown_at=unknown_at
    )

    render.refresh_from_db()
    assert render.not_before == SOON
    assert (render.claimed_at, render.swept_at) == (None, None)
    assert (render.error_code, render.error_message) == ("x" * 100, "Busy.")
    assert render.outcome_unknown_at == unknown_at


def test_a_release_does_not_forget_that_sume_may_hold_the_job():
    render = stored(Status.SUBMITTING, outcome_unknown_at=EARLIER)

    transitions.release(render.pk, NOW, not_before=SOON, code="busy", message="Busy.")

    render.refresh_from_db()
    assert render.outcome_unknown_at == EARLIER


@pytest.mark.parametrize(("age", "wins"), [(599, True), (600, False), (601, False)])
def test_a_row_is_reaped_once_it_is_older_than_the_age(age, wins):
    render = stored(Status.SUBMITTING, claimed_at=NOW)
    later = NOW + timedelta(seconds=600)

    assert transitions.reap(render.pk, later, age) is wins


def test_a_reaped_row_that_was_not_frozen_was_not_sent():
    render = stored(Status.SUBMITTING)
    later = NOW + timedelta(seconds=601)

    transitions.reap(render.pk, later, 600)

    render.refresh_from_db()
    assert (render.claimed_at, render.outcome_unknown_at, render.swept_at) == (None, None, later)
    assert transitions.cancel_unsent(render.pk, later)


def test_a_reaped_row_may_be_known_to_sume():
    render = stored(Status.SUBMITTING, request_body="{}")
    later = NOW + timedelta(seconds=601)

    transitions.reap(render.pk, later, 600)

    render.refresh_from_db()
    assert (render.claimed_at, render.outcome_unknown_at, render.swept_at) == (None, later, later)


def test_a_refused_row_says_why_and_is_to_be_finished_now():
    render = stored(Status.SUBMITTING)

    transitions.refuse(render.pk, NOW, SOON, code="x" * 200, message="No.")

    render.refresh_from_db()
    assert (render.error_code, render.error_message) == ("x" * 100, "No.")
    assert render.finished_at == render.next_poll_at == SOON


# --- Reads --------------------------------------------------------------------------------


def test_a_read_is_kept_whole():
    render = stored(Status.SUBMITTED, poll_count=3, failed_reads=2, swept_at=EARLIER)

    transitions.record_read(
        render.pk, 3, NOW, next_poll_at=SOON, sume_status="processing", failed_reads=0
    )

    render.refresh_from_db()
    assert (render.poll_count, render.failed_reads) == (4, 0)
    assert (render.last_polled_at, render.next_poll_at) == (NOW, SOON)
    assert (render.sume_status, render.swept_at) == ("processing", None)


def test_a_read_that_told_nothing_keeps_what_is_known():
    render = stored(Status.SUBMITTED, sume_status="queued", failed_reads=2)

    transitions.record_read(render.pk, 0, NOW, next_poll_at=SOON, not_found_since=EARLIER)

    render.refresh_from_db()
    assert (render.sume_status, render.failed_reads) == ("queued", 2)
    assert (render.poll_count, render.not_found_since) == (1, EARLIER)


@pytest.mark.parametrize("sequence", [2, 4], ids=["an old sequence", "a sequence to come"])
@pytest.mark.parametrize(
    "write",
    [
        pytest.param(
            lambda pk, sequence: transitions.record_read(
                pk, sequence, NOW, sume_status="x", next_poll_at=SOON
            ),
            id="record_read",
        ),
        pytest.param(
            lambda pk, sequence: transitions.end(
                pk, sequence, NOW, Status.COMPLETED, sume_status="completed"
            ),
            id="end",
        ),
    ],
)
def test_a_read_that_another_one_overtook_writes_nothing(write, sequence):
    render = stored(Status.SUBMITTED, poll_count=3)
    before = row(render)

    assert not write(render.pk, sequence)

    assert row(render) == before
    assert events(render) == []


def test_an_end_is_kept_whole():
    render = stored(Status.SUBMITTED, poll_count=3, failed_reads=2, swept_at=EARLIER)

    transitions.end(
        render.pk,
        3,
        SOON,
        Status.FAILED,
        sume_status="expired",
        code="x" * 200,
        message="No.",
        cost=0,
    )

    render.refresh_from_db()
    assert (render.status, render.sume_status) == (Status.FAILED, "expired")
    assert (render.error_code, render.error_message) == ("x" * 100, "No.")
    assert render.finished_at == render.next_poll_at == render.last_polled_at == SOON
    assert (render.poll_count, render.failed_reads, render.swept_at) == (4, 0, None)
    assert render.cost_usd_micros == 0
    assert render.events.get().detail == "No."


# --- Cancel -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unknown_at", "wins"),
    [(None, True), (EARLIER, False)],
    ids=["never sent", "Sume may hold the job"],
)
def test_a_pending_row_is_canceled_at_once_only_if_sume_holds_no_job(unknown_at, wins):
    render = stored(outcome_unknown_at=unknown_at)
    before = row(render)

    assert transitions.cancel_unsent(render.pk, NOW) is wins

    render.refresh_from_db()
    if wins:
        assert render.status == Status.CANCELED
        assert render.error_code == "canceled_before_submit"
        assert "nothing was billed" in render.error_message
        assert render.cancel_requested_at == render.finished_at == NOW
    else:
        assert row(render) == before


@pytest.mark.parametrize("start", sorted(RUNNING))
@pytest.mark.parametrize("unknown_at", [None, EARLIER])
def test_a_wish_to_cancel_is_noted_once_and_changes_no_state(start, unknown_at):
    render = stored(start, outcome_unknown_at=unknown_at)

    assert transitions.request_cancel(render.pk, NOW)
    assert not transitions.request_cancel(render.pk, SOON)

    render.refresh_from_db()
    assert (render.status, render.cancel_requested_at) == (start, NOW)
    assert events(render) == ["cancel requested"]


def test_an_answer_to_a_cancel_is_in_the_timeline():
    render = stored(Status.SUBMITTED)

    transitions.record_cancel_answer(render.pk, NOW, "Too late.")

    render.refresh_from_db()
    assert render.cancel_answered_at == NOW
    assert render.events.get().detail == "Too late."


# --- Finish -------------------------------------------------------------------------------


@pytest.mark.parametrize("status", TERMINAL)
@pytest.mark.parametrize(
    "name", ["store", "store_result", "begin_media", "postpone_finish", "mark_handled"]
)
def test_nothing_changes_after_a_render_was_handled(status, name):
    render = stored(status, handled_at=NOW)
    before = row(render)

    assert not TRANSITIONS[name][0](render.pk)

    assert row(render) == before
    assert events(render) == []


def test_what_is_found_about_an_ended_render_is_stored_and_the_rest_stays():
    render = stored(Status.FAILED, cost_usd_micros=5)

    transitions.store(render.pk, error_code="why", error_message="Why.")

    render.refresh_from_db()
    assert (render.error_code, render.error_message) == ("why", "Why.")
    assert (render.result, render.cost_usd_micros) == (None, 5)


@pytest.mark.parametrize(("failures", "wins"), [(1, False), (2, True), (3, False)])
def test_a_finish_is_postponed_by_the_one_who_knows_the_count(failures, wins):
    render = stored(Status.COMPLETED, failed_reads=2)

    assert transitions.postpone_finish(render.pk, failures, SOON, "Not there.") is wins

    render.refresh_from_db()
    assert render.failed_reads == (3 if wins else 2)
    assert render.next_poll_at == (SOON if wins else NOW)


@pytest.mark.parametrize("known", [EARLIER, NOW, SOON, None], ids=["before", "same", "after", "no"])
def test_media_are_begun_by_the_one_who_knows_when_they_were_due(known):
    render = stored(Status.COMPLETED)

    assert transitions.begin_media(render.pk, known, SOON, []) is (known == NOW)

    render.refresh_from_db()
    assert render.next_poll_at == (SOON if known == NOW else NOW)


def with_two_artifacts(**changes):
    artifacts = [{"url": "https://a.example/0"}, {"url": "https://a.example/1"}]
    return stored(Status.COMPLETED, result={"artifacts": artifacts}, **changes)


def test_what_became_of_one_artifact_is_kept_beside_the_others():
    render = with_two_artifacts()

    assert transitions.keep_artifact(render.pk, 1, SOON, None, file="one")
    assert transitions.keep_artifact(render.pk, 0, SOON, ("media postponed", "No."), failures=1)

    render.refresh_from_db()
    assert render.result["artifacts"] == [
        {"url": "https://a.example/0", "failures": 1},
        {"url": "https://a.example/1", "file": "one"},
    ]
    assert render.next_poll_at == SOON
    assert events(render) == ["media postponed"]


@pytest.mark.parametrize("facts", [{"file": "two"}, {"failures": 1}], ids=["stored", "failed"])
def test_of_two_that_store_an_artifact_the_first_counts(facts):
    render = with_two_artifacts()
    transitions.keep_artifact(render.pk, 0, SOON, None, file="one")
    before = row(render)

    assert not transitions.keep_artifact(render.pk, 0, EARLIER, ("media postponed", ""), **facts)

    assert row(render) == before
    assert events(render) == []


@pytest.mark.parametrize(
    ("changes", "index"),
    [({"handled_at": NOW}, 0), ({}, 2), ({"result": None}, 0)],
    ids=["handled", "no such artifact", "no result"],
)
def test_of_an_artifact_that_is_not_waited_for_nothing_is_kept(changes, index):
    render = with_two_artifacts()
    RenderJob.objects.filter(pk=render.pk).update(**changes)
    before = row(render)

    assert not transitions.keep_artifact(render.pk, index, SOON, None, file="one")

    assert row(render) == before


def test_a_handled_render_is_due_no_more():
    render = stored(Status.COMPLETED)

    transitions.mark_handled(render.pk, SOON)

    render.refresh_from_db()
    assert (render.handled_at, render.next_poll_at) == (SOON, None)


# --- Timeline -----------------------------------------------------------------------------


def test_a_long_detail_is_cut():
    render = stored()

    transitions.log(render.pk, "note", "x" * 9_000)

    assert render.events.get().detail == "x" * 500


def test_a_transition_whose_event_cannot_be_written_did_not_happen(monkeypatch):
    def fail(*args):
        raise OSError("disk full")

    render = stored()
    before = row(render)
    monkeypatch.setattr("renders.transitions.moves.log", fail)

    with pytest.raises(OSError, match="disk full"):
        transitions.claim(render.pk, NOW, "default")

    assert row(render) == before
