"""One render: what it shows, how far it is, what may be done, and only by a form."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone

from renders import transitions
from renders.models import RenderJob
from renders.services import cancel_render, create_render
from renders.states import OUTCOME_UNKNOWN, Status
from tests.unit.views.support import ended, picture, submitted
from tests.unit.views.test_gallery import poll, poller_of

pytestmark = pytest.mark.django_db


def test_strangers_cannot_act(client, ann):
    row = ended(ann, Status.FAILED)
    for verb in ("cancel", "retry"):
        response = client.post(f"/renders/{row.pk}/{verb}/")
        assert response.headers["Location"].startswith("/accounts/login/")
    assert RenderJob.objects.count() == 1


def test_a_render_of_another_person_is_not_there(page, bob):
    row = ended(bob, Status.FAILED, artifacts=[picture()])

    for path in ("", "live/", "artifacts/0/", "retry/"):
        assert page.get(f"/renders/{row.pk}/{path}").status_code == 404
    assert page.post(f"/renders/{row.pk}/cancel/").status_code == 404
    assert page.post(f"/renders/{row.pk}/retry/").status_code == 404
    assert RenderJob.objects.count() == 1


@pytest.fixture
def unknown(ann):
    """Ann's, whose submit ended without a known outcome."""
    row = ended(ann, Status.FAILED)
    fields = {"error_code": OUTCOME_UNKNOWN, "request_body": "{}", "sume_job_id": ""}
    RenderJob.objects.filter(pk=row.pk).update(**fields)
    return row


def test_what_sume_may_hold_can_be_sent_again_and_the_retry_says_what_to_do_first(page, unknown):
    assert "Send again with the same key" in page.get(f"/renders/{unknown.pk}/").text
    assert "Look into your Sume account first" in page.get(f"/renders/{unknown.pk}/retry/").text

    for words in (
        "Queued to be sent again with the same key",
        "It was sent again or retried before",
    ):
        shown = page.post(f"/renders/{unknown.pk}/resend/", follow=True).text
        assert words in shown
    assert "Send again with the same key" not in shown
    assert RenderJob.objects.get().status == Status.PENDING


def test_who_may_not_retry_sends_nothing_again(client, staff, bob, unknown):
    for user, status in ((bob, 404), (staff, 403)):
        client.force_login(user)
        assert client.post(f"/renders/{unknown.pk}/resend/").status_code == status
    assert RenderJob.objects.get().status == Status.FAILED


def test_media_that_are_not_stored_can_be_fetched_again(page, ann, settings):
    settings.RENDERS = {**settings.RENDERS, "SAVE_MEDIA": True}
    row = ended(ann, artifacts=[picture(), picture(file="")])
    shown = page.get(f"/renders/{row.pk}/").text
    assert "Store media again" in shown and "No further try is planned" in shown

    shown = page.post(f"/renders/{row.pk}/store-media/", follow=True).text

    assert "What is missing is fetched again. This costs nothing." in shown
    assert "The next try to store it is due now" in shown and "Asked to store its media" in shown
    row.refresh_from_db()
    assert row.media_due_at and row.status == Status.COMPLETED
    settings.RENDERS = {**settings.RENDERS, "SAVE_MEDIA": False}
    assert "Store media again" not in page.get(f"/renders/{row.pk}/").text


def test_where_all_is_stored_nothing_is_fetched_again(page, ann):
    row = ended(ann, artifacts=[picture()])
    shown = page.get(f"/renders/{row.pk}/").text
    assert "Store media again" not in shown and "not all" not in shown.lower()

    shown = page.post(f"/renders/{row.pk}/store-media/", follow=True).text

    assert "Nothing is missing" in shown
    row.refresh_from_db()
    assert row.media_due_at is None


def test_who_may_not_retry_has_no_media_stored_again(client, staff, bob, ann):
    row = ended(ann, artifacts=[picture(file="")])
    for user, status in ((bob, 404), (staff, 403)):
        client.force_login(user)
        assert client.post(f"/renders/{row.pk}/store-media/").status_code == status
    row.refresh_from_db()
    assert row.media_due_at is None


@pytest.mark.parametrize(("verb", "status"), [("cancel", "pending"), ("retry", "failed")])
def test_staff_who_see_all_act_only_with_the_permission(client, staff, bob, verb, status):
    row = create_render("A", user=bob) if status == "pending" else ended(bob, Status.FAILED)
    client.force_login(staff)

    assert f"/{verb}/" not in client.get(f"/renders/{row.pk}/").text
    assert client.post(f"/renders/{row.pk}/{verb}/").status_code == 403
    staff.user_permissions.add(Permission.objects.get(codename=f"{verb}_renderjob"))
    assert f"/{verb}/" in client.get(f"/renders/{row.pk}/").text
    assert client.post(f"/renders/{row.pk}/{verb}/").status_code == 302


def test_buttons_need_the_csrf_token(ann):
    client = Client(enforce_csrf_checks=True)
    client.force_login(ann)
    row = create_render("A boat", user=ann)

    assert client.post(f"/renders/{row.pk}/cancel/").status_code == 403
    token = re.search(
        'name="csrfmiddlewaretoken" value="([^"]*)"', client.get(row.get_absolute_url()).text
    )
    data = {"csrfmiddlewaretoken": token.group(1)}
    assert client.post(f"/renders/{row.pk}/cancel/", data).status_code == 302


# --- What it shows ------------------------------------------------------------------------


def test_it_tells_what_happened(page, ann):
    row = ended(ann, Status.FAILED, code="content_policy", message="Change the prompt.")
    html = page.get(f"/renders/{row.pk}/").text

    for words in ("Why it failed", "Change the prompt.", "content_policy", "Accepted by Sume"):
        assert words in html
    assert f'href="/renders/{row.pk}/retry/"' in html


def test_a_message_that_is_the_code_is_told_once(page, ann):
    row = ended(ann, Status.FAILED, code="content_policy", message="content_policy")

    html = page.get(f"/renders/{row.pk}/").text
    assert "<p>content_policy</p>" in html and "<code>content_policy</code>" not in html
    assert "/cancel/" not in html


def test_a_file_that_could_hold_scripts_is_only_offered_for_download(page, ann):
    row = ended(ann, artifacts=[picture(content_type="image/svg+xml")])
    html = page.get(f"/renders/{row.pk}/").text

    assert "Download SVG" in html
    assert f'src="/renders/{row.pk}' not in html


def test_pictures_say_what_they_show_and_can_be_downloaded(page, ann):
    row = ended(ann, prompt='A "boat"', artifacts=[picture()])
    html = page.get(f"/renders/{row.pk}/").text

    assert 'alt="A &quot;boat&quot;"' in html
    assert f'href="/renders/{row.pk}/artifacts/0/" download' in html


def test_the_api_call_is_there_with_this_sites_address(page, ann, settings):
    row = create_render("A boat", user=ann)

    assert "curl -X POST http://testserver/api/renders/" in page.get(row.get_absolute_url()).text
    settings.RENDERS = {**settings.RENDERS, "PUBLIC_URL": "https://renders.example"}
    assert "POST https://renders.example/api/renders/" in page.get(row.get_absolute_url()).text


def test_one_that_waits_for_the_budget_says_why_and_no_place_in_the_line(page, ann, bob):
    create_render("First", user=bob)
    row = create_render("Second", user=ann)
    transitions.put_aside([row.pk], "It costs up to $1.20, but $0.30 is left.")

    html = page.get(row.get_absolute_url()).text
    assert "Waits for the budget: It costs up to $1.20, but $0.30 is left." in html
    assert "It is sent once it fits" in html and "Put aside until the budget has room" in html
    for words in ("in the line", "Next in line", "The last try", "over_budget", "words moving"):
        assert words not in html


def test_one_that_waits_says_how_many_are_before_it(page, ann, bob):
    create_render("First", user=bob)
    row = create_render("Second", user=ann)

    assert "1 before it in the line" in page.get(row.get_absolute_url()).text


def test_one_at_sume_is_measured_by_the_usual_time(page, ann):
    long_ago = timezone.now() - timedelta(hours=1)
    for _ in range(3):
        RenderJob.objects.filter(pk=ended(ann).pk).update(
            submitted_at=long_ago, finished_at=long_ago + timedelta(seconds=40)
        )
    row = submitted(ann)
    assert "<progress" in page.get(row.get_absolute_url()).text

    RenderJob.objects.filter(pk=row.pk).update(submitted_at=timezone.now() - timedelta(seconds=60))
    html = page.get(row.get_absolute_url()).text
    assert "longer than usual (usually 40 s)" in html
    assert "<progress" not in html


# --- Keeping itself new -------------------------------------------------------------------


def test_its_end_is_sent_and_told_and_then_it_asks_no_more(page, ann):
    row = submitted(ann)
    first = page.get(row.get_absolute_url())
    assert poller_of(first.text)["again"]
    now = timezone.now()
    transitions.end(row.pk, 0, now, Status.FAILED, sume_status="failed", message="No.")
    transitions.mark_handled(row.pk, now)
    response = poll(page, first)

    for name in ("standing", "trouble", "actions", "timeline", "news"):
        assert f'hx-swap-oob="innerHTML:#{name}"' in response.text
    assert "Now: failed.</div>" in response.text
    assert not poller_of(response.text)["again"]
    assert poll(page, response).status_code == 304


def test_nothing_new_is_304_and_the_csrf_token_is_nothing_new(page, ann):
    row = create_render("A boat", user=ann)
    cancel_render(row)
    first = page.get(row.get_absolute_url())

    assert poll(page, first).status_code == 304


# --- Cancel and retry ---------------------------------------------------------------------


def test_following_a_link_cancels_nothing(page, ann):
    row = create_render("A boat", user=ann)

    assert page.get(f"/renders/{row.pk}/cancel/").status_code == 405


def test_a_retry_is_asked_for_first_and_says_that_it_is_billed(page, ann):
    row = ended(ann, Status.FAILED)
    html = page.get(f"/renders/{row.pk}/retry/").text

    assert "It is billed again" in html and "csrfmiddlewaretoken" in html
    assert RenderJob.objects.count() == 1


def test_canceling_what_was_not_sent_cancels_it(page, ann):
    row = create_render("A boat", user=ann)
    html = page.post(f"/renders/{row.pk}/cancel/", follow=True).text

    row.refresh_from_db()
    assert row.status == Status.CANCELED
    assert "nothing is billed" in html


def test_canceling_at_sume_promises_nothing(page, ann):
    row = submitted(ann)
    html = page.post(f"/renders/{row.pk}/cancel/", follow=True).text

    row.refresh_from_db()
    assert row.status == Status.SUBMITTED
    assert "Cancel requested. Sume decides" in html
    assert f'action="/renders/{row.pk}/cancel/"' not in html
    assert "requested before" in page.post(row.get_absolute_url() + "cancel/", follow=True).text


def test_a_double_click_on_retry_makes_one_new_render(page, ann):
    row = create_render("A boat", user=ann)
    cancel_render(row)
    first = page.post(f"/renders/{row.pk}/retry/")
    second = page.post(f"/renders/{row.pk}/retry/")

    assert first.headers["Location"] == second.headers["Location"]
    assert RenderJob.objects.count() == 2
    html = page.get(f"/renders/{row.pk}/").text
    assert "Retried as" in html
    assert f'href="/renders/{row.pk}/retry/"' not in html


def test_a_running_render_is_not_retried(page, ann):
    row = submitted(ann)
    for ask in (page.get, page.post):
        html = ask(f"/renders/{row.pk}/retry/", follow=True).text
        assert "Only a failed or canceled render is retried" in html
    assert RenderJob.objects.count() == 1


def test_a_retry_that_does_not_fit_into_the_line_is_not_made_and_the_page_says_why(
    page, ann, settings
):
    settings.RENDERS = {**settings.RENDERS, "MAX_WAITING_PER_USER": 1}
    row = ended(ann, Status.FAILED)
    create_render("A fox", user=ann)
    html = page.post(f"/renders/{row.pk}/retry/", follow=True).text

    assert "You have 1 render waiting, and at most 1 may wait" in html
    assert f'href="/renders/{row.pk}/retry/"' in html
    assert RenderJob.objects.count() == 2
