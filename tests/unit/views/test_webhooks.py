"""Events of Sume's: who is believed, what is kept, and what follows (a read, nothing else)."""

import hashlib
import hmac
import json
import time
from datetime import UTC, datetime, timedelta

import pytest
from django.core.exceptions import RequestDataTooBig
from django.db import OperationalError
from django.http.request import UnreadablePostError
from django.test import Client
from django.utils import timezone

from renders.conf import workspaces
from renders.lifecycle.steps import Step
from renders.models import RenderEvent, RenderJob, WebhookEvent
from renders.states import Status
from renders.views import webhooks
from tests.rows import stored

URL = "/webhooks/sume/"
OLD, NEW = "whsec-canary-of-last-year", "whsec-canary-of-this-year"
EVENT = {"id": "evt_1", "type": "job.completed", "data": {"object": {"id": "job_1"}}}


@pytest.fixture(autouse=True)
def secrets(settings):
    settings.RENDERS = {**settings.RENDERS, "WEBHOOK_SECRET": f"{OLD}, {NEW}"}


@pytest.fixture
def running(db):
    """A render that Sume has; its next read is far away."""
    return stored(
        Status.SUBMITTED, sume_job_id="job_1", next_poll_at=timezone.now() + timedelta(seconds=90)
    )


def as_body(event):
    return event if isinstance(event, bytes) else json.dumps(event).encode()


def sign(body, timestamp, secret=NEW):
    return hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def send(event=EVENT, client=None, **headers):
    """Post an event, signed unless `headers` say otherwise; None leaves one out."""
    body, now = as_body(event), str(int(time.time()))
    sent = {"X-Sume-Event-Id": "evt_header", "X-Sume-Timestamp": now}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    sent.setdefault("X-Sume-Signature", f"v1={sign(body, str(sent['X-Sume-Timestamp']))}")
    given = {name: value for name, value in sent.items() if value is not None}
    return (client or Client()).post(URL, body, content_type="application/json", headers=given)


# --- Who is believed ----------------------------------------------------------------------

NOW = "1800000000"
RIGHT = sign(as_body(EVENT), NOW)
# headers, what the log says; none of it may reach the database, which these tests do not have
REFUSED = {
    "no signature": ({"X_Sume_Signature": None}, "no signature"),
    "an empty signature": ({"X_Sume_Signature": ""}, "no signature"),
    "no scheme": ({"X_Sume_Signature": RIGHT}, "no signature"),
    "another scheme": ({"X_Sume_Signature": f"v0={RIGHT}"}, "no signature"),
    "half a signature": ({"X_Sume_Signature": f"v1={RIGHT[:32]}"}, "no signature"),
    "no hexadecimal": ({"X_Sume_Signature": f"v1={'é' * 64}"}, "no signature"),
    "another secret": (
        {"X_Sume_Signature": f"v1={sign(as_body(EVENT), NOW, 'guessed')}"},
        "signed with no secret of ours",
    ),
    "an empty secret": (
        {"X_Sume_Signature": f"v1={sign(as_body(EVENT), NOW, '')}"},
        "signed with no secret of ours",
    ),
    "another body": (
        {"X_Sume_Signature": f"v1={sign(b'{}', NOW)}"},
        "signed with no secret of ours",
    ),
    "another time": (
        {"X_Sume_Signature": f"v1={sign(as_body(EVENT), '1800000001')}"},
        "signed with no secret of ours",
    ),
    "the right one after too many": (
        {"X_Sume_Signature": ",".join([f"v1={'0' * 64}"] * 8 + [f"v1={RIGHT}"])},
        "signed with no secret of ours",
    ),
    "no time": ({"X_Sume_Timestamp": None}, "no readable timestamp"),
    "a time in words": ({"X_Sume_Timestamp": "now"}, "no readable timestamp"),
    "a negative time": ({"X_Sume_Timestamp": "-5"}, "no readable timestamp"),
    "a fraction": ({"X_Sume_Timestamp": "1800000000.5"}, "no readable timestamp"),
    "other digits": ({"X_Sume_Timestamp": "١٨٠٠٠٠٠٠٠٠"}, "no readable timestamp"),
    "a time of thousands of digits": ({"X_Sume_Timestamp": "9" * 5000}, "no readable timestamp"),
    "too old": ({"X_Sume_Timestamp": "1799999699"}, "signed 301 s ago"),
    "too far ahead": ({"X_Sume_Timestamp": "1800000301"}, "signed -301 s ago"),
}


@pytest.fixture
def clock(monkeypatch):
    """It is `NOW`."""
    now = datetime.fromtimestamp(int(NOW), UTC)
    monkeypatch.setattr("renders.views.webhooks.timezone.now", lambda: now)


@pytest.mark.parametrize(("headers", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_sumes_is_refused_before_the_database_is_asked(clock, caplog, headers, reason):
    """Without the mark `django_db`, any query fails the test."""
    answer = send(**{"X_Sume_Timestamp": NOW, **headers})

    assert (answer.status_code, answer.content) == (401, b"Not accepted.\n")
    assert f"Webhook refused: {reason}." in caplog.text
    assert not [word for word in ("canary", RIGHT, "job_1", "evt_") if word in caplog.text]


@pytest.mark.django_db
def test_a_refusal_costs_no_query(django_assert_num_queries):
    with django_assert_num_queries(0):
        assert send(X_Sume_Signature="v1=" + 64 * "0").status_code == 401


@pytest.mark.django_db
@pytest.mark.parametrize("age", [-300, -1, 0, 1, 300])
def test_an_event_is_taken_while_it_is_young(clock, age):
    assert send(X_Sume_Timestamp=str(int(NOW) - age)).status_code == 200


def test_how_old_an_event_may_be_is_a_setting(clock, settings):
    settings.RENDERS = {**settings.RENDERS, "WEBHOOK_MAX_AGE_SECONDS": "10"}

    assert send(X_Sume_Timestamp=str(int(NOW) - 11)).status_code == 401


@pytest.mark.django_db
@pytest.mark.parametrize("secret", [OLD, NEW], ids=["the old one", "the new one"])
@pytest.mark.parametrize(
    "header", ["v1={right}", "v1={wrong},v1={right}", "v0=x, v1={right} , v1={wrong}"]
)
def test_while_secrets_are_exchanged_each_is_good(secret, header):
    now = str(int(time.time()))
    signature = header.format(right=sign(as_body(EVENT), now, secret), wrong=64 * "0")

    assert send(X_Sume_Timestamp=now, X_Sume_Signature=signature).status_code == 200


@pytest.mark.parametrize("secret", ["", " , "], ids=["none", "commas only"])
def test_without_a_secret_webhooks_are_off(settings, secret):
    settings.RENDERS = {**settings.RENDERS, "WEBHOOK_SECRET": secret}

    assert send(X_Sume_Signature=f"v1={sign(as_body(EVENT), NOW, '')}").status_code == 404


def test_a_workspace_that_is_taken_out_just_now_holds_up_no_event(monkeypatch, running):
    monkeypatch.setattr(workspaces, "names", lambda: ["default", "gone"])

    assert send().status_code == 200


@pytest.mark.parametrize("method", ["get", "head", "put", "delete", "options"])
def test_only_post_is_answered(method):
    assert getattr(Client(), method)(URL).status_code == 405


@pytest.mark.django_db
def test_no_csrf_token_is_asked_for():
    assert send(client=Client(enforce_csrf_checks=True)).status_code == 200


def test_a_body_that_is_too_large_is_not_read(monkeypatch):
    def refuse(self):
        raise RequestDataTooBig

    monkeypatch.setattr("django.http.HttpRequest.body", property(refuse))

    assert send(b"x" * (webhooks.MAX_BODY_BYTES + 1)).status_code == 413


def test_a_body_that_breaks_off_is_no_fault_of_ours(monkeypatch):
    def refuse(self):
        raise UnreadablePostError

    monkeypatch.setattr("django.http.HttpRequest.body", property(refuse))

    assert send().status_code == 400


def test_a_secret_is_not_shown():
    assert "canary" not in repr(workspaces.get("default"))


# --- What is kept -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[1]",
        b"null",
        b"\xff",
        b'{"id": NaN}',
        b"[" * 100_000,
        b'{"id": 1' + b"0" * 9000,
    ],
    ids=lambda body: repr(body[:8]),
)
def test_a_signed_body_that_is_no_object_is_told(body):
    assert send(body).status_code == 400


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("named", "header", "kept"),
    [
        ("evt_1", "evt_2", "evt_1"),  # a header is not signed
        (None, "evt_2", "evt_2"),
        (7, "evt_2", "evt_2"),
        (["evt"], "evt_2", "evt_2"),
        ("evt\x00", "evt_2", "evt_2"),
        ("é", "evt_2", "evt_2"),
        ("x" * 201, "evt_2", "evt_2"),
        ("x" * 200, None, "x" * 200),
        ("\ud800", None, None),
        ("", "", None),
        ("x" * 201, "y" * 201, None),
        ({}, None, None),
    ],
    ids=str,
)
def test_an_event_is_known_by_its_id(named, header, kept):
    answer = send({**EVENT, "id": named}, X_Sume_Event_Id=header)

    assert answer.status_code == (200 if kept else 400)
    assert list(WebhookEvent.objects.values_list("event_id", flat=True)) == [kept] * bool(kept)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("data", "job_id"),
    [
        ({"object": {"id": "job_1"}}, "job_1"),
        ({"object": {"id": "x", "job_id": "job_1"}}, "job_1"),
        ({"object": {"job": {"id": "job_1"}, "request_id": "y"}}, "job_1"),
        ({"job_id": "job_1"}, "job_1"),
        ({"request_id": "job_1", "object": "job"}, "job_1"),
        ({"id": "job_1", "object": {}}, "job_1"),
        ({"object": {"id": 7, "job": [1], "request_id": "job_1"}}, "job_1"),
        ({"object": {"id": "job\x00_1"}}, ""),
        ({"object": {"id": "x" * 201}}, ""),
        ({"object": {"id": {"id": "job_1"}}}, ""),
        ([], ""),
        ("job_1", ""),
        (None, ""),
    ],
    ids=str,
)
def test_an_event_names_its_job_in_several_ways_or_none(data, job_id):
    assert send({**EVENT, "data": data}).status_code == 200

    event = WebhookEvent.objects.get()
    assert (event.event_id, event.type, event.job_id) == ("evt_1", "job.completed", job_id)
    assert str(event) == "job.completed evt_1"


@pytest.mark.django_db
@pytest.mark.parametrize("word", [None, 5, "\x00", "x" * 500, {"a": 1}], ids=repr)
def test_a_type_that_is_no_word_is_not_kept(word):
    assert send({**EVENT, "type": word}).status_code == 200
    assert WebhookEvent.objects.get().type == ""


@pytest.mark.django_db
def test_where_the_database_is_away_sume_may_send_it_again(monkeypatch):
    def fail(*args, **kwargs):
        raise OperationalError("gone: password=canary")

    monkeypatch.setattr("renders.services.webhook_events.take", fail)

    answer = send()

    assert (answer.status_code, b"canary" in answer.content) == (503, False)


# --- What follows -------------------------------------------------------------------------


def test_an_event_brings_the_next_read_forward_and_changes_nothing_else(
    running, followed, django_capture_on_commit_callbacks
):
    before = RenderJob.objects.values().get()
    with django_capture_on_commit_callbacks(execute=True):
        assert send().status_code == 200

    after = RenderJob.objects.values().get()
    assert followed == [Step("poll", running.pk)]
    assert {name for name in after if after[name] != before[name]} == {"next_poll_at", "asked_at"}
    assert after["next_poll_at"] <= timezone.now()
    assert str(running.events.get()) == "webhook: job.completed"


def test_an_event_that_comes_again_is_taken_and_nothing_follows(
    running, followed, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        send()
    RenderJob.objects.update(next_poll_at=timezone.now() + timedelta(seconds=90), asked_at=None)
    before = RenderJob.objects.values().get()

    with django_capture_on_commit_callbacks(execute=True):
        answer = send(X_Sume_Event_Id="changed-on-the-way")

    assert (answer.status_code, answer.content) == (200, b"Known already.\n")
    assert RenderJob.objects.values().get() == before
    assert len(followed) == WebhookEvent.objects.count() == RenderEvent.objects.count() == 1


@pytest.mark.parametrize("status", [s for s in Status if s != Status.SUBMITTED])
def test_an_event_of_a_render_that_is_not_with_sume_changes_nothing(
    db, followed, django_capture_on_commit_callbacks, status
):
    stored(status, sume_job_id="job_1")
    before = RenderJob.objects.values().get()

    with django_capture_on_commit_callbacks(execute=True):
        assert send().status_code == 200

    assert RenderJob.objects.values().get() == before
    assert followed == []


def test_an_event_of_a_job_that_nobody_knows_is_kept(running, followed):
    assert send({**EVENT, "data": {"object": {"id": "job_2"}}}).status_code == 200

    assert WebhookEvent.objects.get().job_id == "job_2"
    assert followed == []


@pytest.mark.django_db
def test_a_row_that_is_written_while_its_event_is_taken_is_found_after_the_commit(
    followed, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        send()
        render = stored(
            Status.SUBMITTED,
            sume_job_id="job_1",
            next_poll_at=timezone.now() + timedelta(seconds=90),
        )

    assert followed == [Step("poll", render.pk)]


@pytest.mark.django_db
def test_old_events_are_deleted_a_few_at_a_time():
    now = timezone.now()
    for days in (1, 29, 31, 32, 33):
        received = now - timedelta(days=days)
        WebhookEvent.objects.create(event_id=f"evt_{days}", received_at=received)
    month_ago = now - timedelta(days=30)

    assert [WebhookEvent.objects.prune(month_ago, 2) for _ in range(3)] == [2, 1, 0]
    assert set(WebhookEvent.objects.values_list("event_id", flat=True)) == {"evt_1", "evt_29"}


# --- Workspaces ---------------------------------------------------------------------------

ACME = "whsec-canary-of-the-account-acme"


def sent_by(secret, event=EVENT):
    now = str(int(time.time()))
    return send(
        event, X_Sume_Timestamp=now, X_Sume_Signature=f"v1={sign(as_body(event), now, secret)}"
    )


def test_an_event_speaks_of_the_renders_of_the_workspace_whose_secret_signed_it(
    running, settings, followed, django_capture_on_commit_callbacks
):
    settings.RENDERS |= {"WORKSPACES": {"acme": {"WEBHOOK_SECRET": ACME}}}
    theirs = stored(
        Status.SUBMITTED,
        sume_job_id="job_1",
        workspace="acme",
        next_poll_at=timezone.now() + timedelta(seconds=90),
    )
    with django_capture_on_commit_callbacks(execute=True):
        assert sent_by(ACME).status_code == 200
    assert {step.render_id for step in followed} == {theirs.pk}

    # Its id is not taken from the event of that id of another account.
    with django_capture_on_commit_callbacks(execute=True):
        assert sent_by(NEW).content == b"Taken.\n"
        assert sent_by(NEW).content == b"Known already.\n"
    assert {step.render_id for step in followed} == {theirs.pk, running.pk}
    assert set(WebhookEvent.objects.values_list("workspace", flat=True)) == {"acme", "default"}


def test_with_a_secret_of_one_workspace_alone_webhooks_are_on(db, settings):
    settings.RENDERS |= {"WEBHOOK_SECRET": "", "WORKSPACES": {"acme": {"WEBHOOK_SECRET": ACME}}}

    assert sent_by(ACME).status_code == 200
    assert sent_by(NEW).status_code == 401
