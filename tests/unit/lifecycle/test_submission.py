"""What an answer to a submit means for the row, for the money, and for the others in line."""

from types import SimpleNamespace

import pytest
from django.utils import timezone

from renders import services, transitions
from renders.conf import workspaces
from renders.exceptions import (
    KeyTaken,
    NotFound,
    OutcomeUnknown,
    Rejected,
    Unreachable,
)
from renders.lifecycle import claims, submission
from renders.lifecycle.steps import Step
from renders.limits import capacity, gate
from renders.models import Gate, RenderJob
from renders.reports import attention
from renders.states import OUTCOME_UNKNOWN, RequestType, Status
from renders.sume.replies import Accepted
from renders.telemetry import metrics
from tests.rows import stored

pytestmark = pytest.mark.django_db
LOST = OutcomeUnknown("No answer from Sume.", code="no_answer")


class Sume:
    """Answers each submit in turn, and keeps what was sent."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.sent = []

    def __call__(self, workspace):
        return self

    def submit(self, path, body, key):
        self.sent.append((path, body, key))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def submitted(render, *answers):
    """The row after a submit for each answer, and what was sent."""
    sume = Sume(*answers)
    for _ in answers:
        gate.resume("default")
        RenderJob.objects.filter(pk=render.pk).update(not_before=None)
        submission.submit(render.pk, sume)
    render.refresh_from_db()
    return sume.sent


@pytest.fixture
def render():
    return RenderJob.objects.create(prompt="a boat")


# --- The money ----------------------------------------------------------------------------

REFUSALS = [
    KeyTaken("Used with another request.", code="idempotency_conflict", status=409),
    Rejected("No.", code="bad_request", status=400),
    NotFound("No.", code="not_found", status=404),
    Rejected("No.", code="gone", status=410),
    Rejected("No.", code="validation_error", status=422),
    Rejected("No.", code="internal", status=500),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda one: f"{one.status}")
def test_a_refusal_after_an_unknown_outcome_is_itself_unknown(render, refusal):
    first, second = submitted(render, LOST, refusal)

    assert first == second
    assert (render.status, render.error_code) == (Status.FAILED, OUTCOME_UNKNOWN)
    assert render.cost_usd_micros is None
    assert "Look into your Sume account before you retry" in render.error_message
    assert f"Sume said: {refusal} ({refusal.code})" in render.error_message
    assert attention.reason(render) == "unsure"


def test_a_plain_refusal_of_the_first_request_costs_nothing(render):
    submitted(render, REFUSALS[-2])

    assert (render.error_code, render.cost_usd_micros) == ("validation_error", 0)
    assert not services.resend_render(render)


def test_another_body_for_the_key_is_never_a_free_failure(render):
    submitted(render, REFUSALS[0])

    assert (render.error_code, render.cost_usd_micros) == (OUTCOME_UNKNOWN, None)


def test_a_worker_that_lost_its_claim_before_it_sent_sends_nothing(render, monkeypatch):
    """Reaped before its request was frozen, a row counts as unsent: so it must stay unsent."""
    sume = Sume()
    claim = submission.begin(render.pk)
    transitions.reap(render.pk, timezone.now(), 0)

    submission.send(claim, sume)

    render.refresh_from_db()
    assert (sume.sent, render.status, render.outcome_unknown_at) == ([], Status.PENDING, None)


def test_a_job_that_another_render_has_is_not_adopted(render):
    other = stored(Status.SUBMITTED, sume_job_id="job_7")
    submitted(render, Accepted("job_7", "queued", True, None, None, adopted=True))

    assert (render.status, render.error_code) == (Status.FAILED, OUTCOME_UNKNOWN)
    assert "job_7, which belongs to another render" in render.error_message
    other.refresh_from_db()
    assert other.status == Status.SUBMITTED


def test_a_late_answer_is_taken_by_a_row_whose_outcome_was_unknown(render):
    """The first POST is slow: meanwhile the row was reaped, sent again, and refused."""
    claim = submission.begin(render.pk)

    class Slow(Sume):
        def submit(self, *request):
            transitions.reap(render.pk, timezone.now(), 0)
            submitted(render, REFUSALS[-2])
            return super().submit(*request)

    steps = submission.send(claim, Slow(Accepted("job_9", "queued", False, None, 1.0, None)))

    render.refresh_from_db()
    assert (render.status, render.sume_job_id, render.error_code) == ("submitted", "job_9", "")
    assert steps[0].do == "poll"


def test_an_avatar_of_an_older_release_ends_unbilled_with_what_to_do(render):
    old = RenderJob.objects.create(prompt="a baker", kind="avatar")
    assert submitted(old) == []
    submission.submit(old.pk, Sume())
    old.refresh_from_db()

    assert (old.status, old.error_code, old.cost_usd_micros) == ("failed", "invalid_request", 0)
    assert "avatar_handle: The avatar's handle is needed" in old.error_message
    assert "nothing was billed. Make a new render" in old.error_message


# --- Sent again with the same key ---------------------------------------------------------


@pytest.fixture
def unknown(render):
    submitted(render, LOST, REFUSALS[-2])
    transitions.mark_handled(render.pk, timezone.now())
    render.refresh_from_db()
    return render


def test_what_is_sent_again_has_its_key_and_body(
    unknown, followed, django_capture_on_commit_callbacks
):
    before = (unknown.request_path, unknown.request_body, unknown.idempotency_key)
    with django_capture_on_commit_callbacks(execute=True):
        assert services.resend_render(unknown)

    assert followed == [Step("submit", unknown.pk)]
    assert (unknown.status, unknown.handled_at, unknown.error_code) == (Status.PENDING, None, "")
    assert submitted(unknown, Accepted("job_7", "queued", True, None, None)) == [before]
    assert (unknown.status, unknown.sume_job_id) == (Status.SUBMITTED, "job_7")


def test_a_second_click_sends_nothing_more(unknown):
    assert services.resend_render(RenderJob.objects.get(pk=unknown.pk))
    assert not services.resend_render(unknown)


def test_refused_once_more_its_outcome_is_still_unknown(unknown):
    services.resend_render(unknown)
    submitted(unknown, REFUSALS[-2])

    assert (unknown.status, unknown.error_code) == (Status.FAILED, OUTCOME_UNKNOWN)


def test_what_was_retried_is_not_sent_again_and_the_other_way_round(unknown):
    retry = services.retry_render(unknown)
    assert not services.resend_render(unknown)

    RenderJob.objects.filter(pk=retry.pk).delete()
    assert services.resend_render(unknown)
    with pytest.raises(services.InvalidRender, match="pending"):
        services.retry_render(unknown)


@pytest.mark.parametrize(
    "fields",
    [
        {"status": Status.COMPLETED},
        {"status": Status.FAILED, "error_code": "content_policy_rejected"},
        {"status": Status.FAILED, "error_code": OUTCOME_UNKNOWN, "request_body": ""},
        {"status": Status.FAILED, "error_code": OUTCOME_UNKNOWN, "erased_at": timezone.now()},
    ],
    ids=["completed", "refused", "never sent", "erased"],
)
def test_only_what_sume_may_hold_is_sent_again(fields):
    row = stored(**{"request_body": "{}", **fields})

    assert not services.resend_render(row)


# --- What never left ----------------------------------------------------------------------

AWAY = Unreachable("Sume cannot be reached: nothing was sent.", code="unreachable")


def test_what_never_left_is_unsent_and_takes_no_place(render):
    submitted(render, AWAY)

    assert (render.status, render.outcome_unknown_at) == (Status.PENDING, None)
    limits, now = workspaces.get("default"), timezone.now()
    assert capacity.load(limits, now).unsure == capacity.in_flight("default", now) == 0
    assert services.cancel_render(render)
    assert (render.status, render.cost_usd_micros) == (Status.CANCELED, 0)


def test_while_sume_is_away_the_line_waits_for_one_that_tries(render):
    others = [RenderJob.objects.create(prompt="a boat") for _ in range(3)]
    submission.submit(render.pk, Sume(AWAY))

    assert gate.closed("default", RequestType.WRITES, timezone.now()).code == "unreachable"
    for other in others:
        assert not claims.claim(other.pk).renders
    assert set(RenderJob.objects.values_list("submit_attempts", flat=True)) == {0, 1}


def test_a_wait_that_sume_names_is_kept_where_the_outcome_is_unknown(render):
    error = OutcomeUnknown("Later.", code="http_502", status=502, retry_after=300.0)
    [step] = submission.submit(render.pk, Sume(error))

    assert step.after == 300
    assert not Gate.objects.filter(paused_until__isnull=False).exists()


# --- Noting an answer ---------------------------------------------------------------------


def test_an_accepted_job_is_noted_before_it_is_counted(monkeypatch):
    render = RenderJob.objects.create(prompt="a boat")
    answer = Accepted("job_1", "queued", False, None, None)
    client = SimpleNamespace(submit=lambda *request: answer)

    def fail(*args, **labels):
        raise OSError("the file of keys is on a disk that is gone")

    monkeypatch.setattr(metrics, "count", fail)
    with pytest.raises(OSError, match="gone"):
        submission.submit(render.pk, lambda workspace: client)

    render.refresh_from_db()
    assert (render.status, render.sume_job_id) == ("submitted", "job_1")
