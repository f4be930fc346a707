"""Cancel and retry: what happened, and who may."""

import pytest
from django.contrib.auth.models import Permission
from django.utils import timezone

from renders import transitions
from renders.models import RenderJob
from renders.services import create_render
from renders.states import OUTCOME_UNKNOWN
from tests.unit.api.support import completed, failed, problem, submitted

pytestmark = pytest.mark.django_db


def canceled(caller, row):
    response = caller.post(f"{row.pk}/cancel/")
    assert response.status_code == 202
    body = response.json()
    assert body["render"]["id"] == str(row.pk)
    return body["outcome"], body["render"]["status"]


def test_what_was_never_sent_is_canceled_at_once(ann):
    row = create_render("A boat", user=ann.user)

    assert canceled(ann, row) == ("canceled", "canceled")
    assert canceled(ann, row) == ("ended_before", "canceled")


def test_of_what_sume_has_a_cancel_is_requested(ann):
    row = submitted(ann.user)

    assert canceled(ann, row) == ("requested", "submitted")
    assert canceled(ann, row) == ("requested_before", "submitted")
    assert ann.get(f"{row.pk}/").json()["cancel_requested_at"]


def test_what_has_ended_is_left_alone(ann):
    assert canceled(ann, failed(ann.user)) == ("ended_before", "failed")


def test_a_failed_render_is_retried_once(ann):
    row = failed(ann.user)
    first, again = (ann.post(f"{row.pk}/retry/") for _ in range(2))

    assert first.status_code == again.status_code == 202
    assert first.json() == again.json()
    assert first.json()["retry_of"] == str(row.pk)
    assert first.headers["Location"] == first.json()["url"] == again.headers["Location"]
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true"
    assert RenderJob.objects.count() == 2


def test_what_has_not_failed_is_not_retried(ann):
    row = create_render("A boat", user=ann.user)

    problem(ann.post(f"{row.pk}/retry/"), 409, "not_retryable")
    assert RenderJob.objects.count() == 1


def test_a_render_of_unknown_outcome_is_sent_again_once(ann):
    row = failed(ann.user)
    RenderJob.objects.filter(pk=row.pk).update(error_code=OUTCOME_UNKNOWN, request_body="{}")

    response = ann.post(f"{row.pk}/resend/")

    assert (response.status_code, response.json()["status"]) == (202, "pending")
    problem(ann.post(f"{row.pk}/resend/"), 409, "not_resendable")


def test_who_may_only_see_a_render_does_not_send_it_again(ann, bob, sam):
    row = failed(ann.user)

    problem(sam.post(f"{row.pk}/resend/"), 403, "not_allowed")
    problem(bob.post(f"{row.pk}/resend/"), 404)


def linked(user):
    row = completed(user, {"url": "https://a.example/0", "type": "image"})
    transitions.mark_handled(row.pk, timezone.now())
    return row


def test_media_that_are_not_stored_are_fetched_again(ann):
    row = linked(ann.user)

    response = ann.post(f"{row.pk}/store-media/")

    assert (response.status_code, response.json()["status"]) == (202, "completed")
    row.refresh_from_db()
    assert row.media_due_at
    problem(ann.post(f"{failed(ann.user).pk}/store-media/"), 409, "nothing_to_store")


def test_who_may_only_see_a_render_has_no_media_fetched(ann, bob, sam):
    row = linked(ann.user)

    problem(sam.post(f"{row.pk}/store-media/"), 403, "not_allowed")
    problem(bob.post(f"{row.pk}/store-media/"), 404)


@pytest.mark.parametrize("action", ["cancel", "retry"])
def test_of_a_render_of_others_nothing_is_told(ann, bob, action):
    problem(bob.post(f"{failed(ann.user).pk}/{action}/"), 404)


@pytest.mark.parametrize("action", ["cancel", "retry"])
def test_to_see_a_render_is_not_to_change_it(ann, sam, action):
    row = failed(ann.user)
    problem(sam.post(f"{row.pk}/{action}/"), 403, "not_allowed")

    sam.user.user_permissions.add(Permission.objects.get(codename=f"{action}_renderjob"))
    assert sam.post(f"{row.pk}/{action}/").status_code == 202


@pytest.mark.parametrize("action", ["cancel", "retry"])
def test_no_body_is_needed_and_none_but_json_is_taken(ann, action):
    row, now = create_render("A boat", user=ann.user), timezone.now()
    transitions.cancel_unsent(row.pk, now)
    path = f"{row.pk}/{action}/"

    assert ann.post(path, body={}).status_code == 202
    form = {"data": "a=1", "content_type": "application/x-www-form-urlencoded"}
    headers = {"Authorization": f"Bearer {ann.clear}"}
    problem(ann.client.post(f"/api/renders/{path}", headers=headers, **form), 415)
    problem(ann.get(path), 405)
