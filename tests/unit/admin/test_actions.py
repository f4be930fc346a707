"""Actions over any number of rows: what they do, what they say, who may."""

from datetime import timedelta

import pytest
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import LogEntry
from django.utils import timezone

from renders import services, transitions
from renders.models import RenderJob
from renders.services import bulk, cancel_render, create_render, create_renders
from renders.states import OUTCOME_UNKNOWN, Status
from tests.unit.admin.test_jobs import ADD, LIST, sent, site, staff

__all__ = ["site"]
pytestmark = pytest.mark.django_db
RENDERS = RenderJob.objects


def act(client, action, *rows, query="", **more):
    data = {"action": action, ACTION_CHECKBOX_NAME: [row.pk for row in rows], **more}
    return client.post(LIST + query, data, follow=True)


def retry(client, *rows, **more):
    """Ask, and then send the page that asks."""
    asked = act(client, "retry", *rows, **more)
    return asked.text, resend(client, asked, *rows, **more).text


def resend(client, asked, *rows, **more):
    return act(client, "retry", *rows, shown_at=asked.context["shown_at"], **more)


def notes():
    return [entry.get_change_message() for entry in LogEntry.objects.order_by("pk")]


# --- Cancel -------------------------------------------------------------------------------


def test_cancel_asks_and_claims_no_more(site, ann):
    rows = [create_render("A", user=ann), sent(ann), sent(ann)]
    gone = create_render("B", user=ann)
    cancel_render(gone)
    html = act(site, "cancel", *rows, gone).text

    assert "Cancel requested for 3; what was not sent yet is canceled already." in html
    assert "1 left alone: ended, or cancel requested before." in html
    assert RENDERS.filter(cancel_requested_at__isnull=False).count() == 4
    assert RENDERS.filter(status=Status.SUBMITTED).count() == 2
    assert notes() == ["Cancel requested for 3; what was not sent yet is canceled already."] * 3
    assert {entry.object_id for entry in LogEntry.objects.all()} == {str(row.pk) for row in rows}


def test_all_pages_of_a_filtered_list_are_meant_and_no_other(site, monkeypatch):
    monkeypatch.setattr(bulk, "BATCH", 50)
    create_renders([{"prompt": f"fox {number}"} for number in range(120)])
    first = RENDERS.first()
    other = create_render("a hen", kind="video")

    query = "?kind__exact=image"
    html = act(site, "cancel", first, query=query, select_across="1").text

    assert "Cancel requested for 120; what was not sent yet is canceled already." in html
    assert RENDERS.filter(status=Status.CANCELED).count() == 120
    other.refresh_from_db()
    assert other.status == Status.PENDING
    # One line in the history stands for so many.
    entry = LogEntry.objects.get()
    assert (entry.object_id, entry.object_repr) == (None, "120 renders")
    assert query in entry.get_change_message()
    assert "120 renders" in site.get("/admin/").text


def test_when_time_is_up_the_rest_is_named_and_taken_up_by_the_next_try(site, monkeypatch):
    monkeypatch.setattr(bulk, "BATCH", 2)
    monkeypatch.setattr(bulk, "PATIENCE_SECONDS", -1)
    rows = create_renders([{"prompt": "a fox"}] * 3)
    html = act(site, "cancel", *rows).text

    assert "Cancel requested for 2; what was not sent yet is canceled already." in html
    assert "Time was up: 1 are still to do. Do the same again for them." in html
    html = act(site, "cancel", *rows).text
    assert "Cancel requested for 1; what was not sent yet is canceled already." in html
    assert "2 left alone" in html


# --- Retry --------------------------------------------------------------------------------


def test_retry_asks_first_and_says_what_is_billed(site, ann):
    gone, again, running = create_render("A", user=ann), create_render("B"), sent(ann)
    cancel_render(gone)
    cancel_render(again)
    services.retry_render(again)
    asked, html = retry(site, gone, again, running)

    assert "1 new render would be made, and billed again." in asked
    assert "1 left alone: retried before." in asked
    assert "1 left alone: neither failed nor canceled." in asked
    assert "1 retried as new." in html
    assert "2 left alone: retried before, erased, or neither failed nor canceled." in html
    new = RENDERS.get(retry_of=gone)
    assert (new.created_by, new.prompt) == (ann, "A")
    assert LogEntry.objects.get().object_id == str(new.pk)


def test_asking_retries_nothing(site):
    gone = create_render("A")
    cancel_render(gone)
    act(site, "retry", gone)

    assert RENDERS.count() == 1


def test_a_retry_that_is_sent_twice_makes_one_set(site):
    rows = create_renders([{"prompt": "a fox"}] * 3)
    bulk.cancel_renders(RENDERS.all())
    asked = act(site, "retry", rows[0], select_across="1")
    resend(site, asked, rows[0], select_across="1")
    # Meanwhile the new ones have ended as well; the old page means the old ones.
    bulk.cancel_renders(RENDERS.all())
    html = resend(site, asked, rows[0], select_across="1").text

    assert RENDERS.count() == 6
    assert "6 left alone" in html


@pytest.mark.parametrize("shown_at", ["", "yesterday", "2026-01-01T00:00:00"])
def test_a_retry_without_the_moment_that_was_shown_is_asked_for(site, shown_at):
    gone = create_render("A")
    cancel_render(gone)
    response = act(site, "retry", gone, shown_at=shown_at)

    assert "would be made, and billed again" in response.text
    assert RENDERS.count() == 1


def test_where_nothing_can_be_retried_the_page_says_so(site):
    html = act(site, "retry", create_render("A")).text

    assert "None of them can be retried." in html
    assert 'value="Retry' not in html


# --- Hold, release, check -----------------------------------------------------------------


def test_what_is_held_waits_until_it_is_released(site):
    row, running = create_render("A"), sent(None)
    html = act(site, "hold", row, running).text

    assert "1 held: not sent until released." in html
    assert "1 left alone: sent, being sent, held before, or to be canceled." in html
    assert (
        "Held: it is not sent until somebody releases it." in site.get(f"/renders/{row.pk}/").text
    )
    html = act(site, "release", row, running).text
    assert "1 released: sent to Sume in their turn." in html
    assert "1 left alone: not held." in html
    assert [event.what for event in row.events.all()] == ["created", "held", "released"]
    assert len(notes()) == 2


def test_check_now_asks_about_what_sume_holds(site):
    row, waiting = sent(None), create_render("A")
    later = timezone.now() + timedelta(hours=1)
    RENDERS.filter(pk=row.pk).update(next_poll_at=later)
    html = act(site, "check_now", row, waiting).text

    assert "Sume is asked about 1 within moments." in html
    assert "1 left alone: not at Sume." in html
    row.refresh_from_db()
    assert row.next_poll_at < later
    assert notes() == []


def test_what_sume_may_hold_is_sent_again_with_its_key(site):
    unknown, refused = create_render("A"), create_render("B")
    for row, code in ((unknown, OUTCOME_UNKNOWN), (refused, "bad_prompt")):
        transitions.claim(row.pk, now := timezone.now(), "default")
        transitions.freeze_request(row.pk, now, "/v1/images", "{}")
        transitions.refuse(
            row.pk, now, now, code=code, message="No.", key_taken=code == OUTCOME_UNKNOWN
        )

    shown = act(site, "resend", unknown, refused).text

    assert "1 queued to be sent again, each with its own key." in shown
    assert "1 left alone" in shown
    assert RENDERS.get(status=Status.PENDING) == unknown


def test_media_that_are_not_stored_are_fetched_again(site, ended):
    linked = ended(artifacts=[{"url": "https://a.example/0", "type": "image"}])
    stored = ended(artifacts=[{"url": "https://a.example/0", "type": "image", "file": "a"}])
    waiting = create_render("A")

    shown = act(site, "store_media", linked, stored, waiting).text

    assert "Media of 1 are fetched again." in shown
    assert "2 left alone" in shown
    assert list(RENDERS.filter(media_due_at__isnull=False)) == [linked]
    assert notes() == ["Media of 1 are fetched again."]


# --- Who may ------------------------------------------------------------------------------

NEEDED = {
    "cancel": "cancel",
    "retry": "retry",
    "resend": "retry",
    "store_media": "retry",
    "hold": "hold",
    "release": "hold",
    "check_now": "view",
}


@pytest.mark.parametrize("action", NEEDED)
def test_an_action_is_hidden_and_refused_without_its_permission(client, django_user_model, action):
    staff(client, django_user_model, "view", *(set(NEEDED.values()) - {NEEDED[action]}))
    row = create_render("A")
    if action == "release":
        bulk.hold_renders(RENDERS.all())
    before = RENDERS.values().get()
    html = client.get(LIST).text

    assert (f'value="{action}"' in html) is (action == "check_now")
    if action != "check_now":
        act(client, action, row, shown_at=timezone.now().isoformat())
        assert RENDERS.values().get() == before
    assert client.get(ADD).status_code == 403


@pytest.mark.parametrize("action", NEEDED)
def test_an_action_needs_no_other_permission(client, django_user_model, action):
    staff(client, django_user_model, "view", NEEDED[action])
    create_render("A")
    html = client.get(LIST).text

    for name, permission in NEEDED.items():
        assert (f'value="{name}"' in html) is (permission in {"view", NEEDED[action]})
