"""The pages show a person's own renders, safely, and act only when asked by a form."""

from datetime import timedelta
from pathlib import Path
from unittest import mock

import pytest
from django.contrib.auth.models import Permission
from django.contrib.staticfiles import finders
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import OperationalError
from django.template.loader import render_to_string
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from renders.models import RenderJob
from renders.services import cancel_render, create_render
from renders.states import Status
from renders.templatetags.render_facts import in_words, short, usd

pytestmark = pytest.mark.django_db
SIGNED = "https://media.example/a.png?X-Signature=hush"
GALLERY = "/renders/"


@pytest.fixture(autouse=True)
def _media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path


@pytest.fixture
def ann(django_user_model):
    return django_user_model.objects.create_user("ann")


@pytest.fixture
def bob(django_user_model):
    return django_user_model.objects.create_user("bob")


@pytest.fixture
def staff(django_user_model):
    user = django_user_model.objects.create_user("sam", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_renderjob"))
    return user


@pytest.fixture
def page(client, ann):
    client.force_login(ann)
    return client


def submitted(user, prompt="A boat"):
    row = create_render(prompt, user=user)
    now = timezone.now()
    RenderJob.objects.claim(row.pk, now)
    RenderJob.objects.record_submitted(
        row.pk, now, job_id="job-1", sume_status="processing", hit=False, next_poll_at=now
    )
    row.refresh_from_db()
    return row


def ended(user, status=Status.COMPLETED, prompt="A boat", artifacts=(), **facts):
    row = submitted(user, prompt)
    now = timezone.now()
    RenderJob.objects.end(row.pk, 0, now, status, sume_status=status, **facts)
    RenderJob.objects.store(row.pk, result={"artifacts": list(artifacts)})
    RenderJob.objects.mark_handled(row.pk, now)
    row.refresh_from_db()
    return row


def picture(**changes):
    name = default_storage.save("a.png", ContentFile(b"PNG"))
    return {"type": "image", "content_type": "image/png", "url": SIGNED, "file": name} | changes


def token_of(response):
    return response.context["form"]["token"].value()


# --- Who sees what ------------------------------------------------------------------------


def test_the_start_page_leads_to_the_gallery(page):
    assert page.get("/").headers["Location"] == GALLERY


def test_strangers_are_asked_to_log_in(client, ann):
    row = ended(ann, artifacts=[picture()])
    for url in (GALLERY, f"/renders/{row.pk}/", f"/renders/{row.pk}/artifacts/0/"):
        assert client.get(url).headers["Location"].startswith(reverse("login"))
    for verb in ("cancel", "retry"):
        assert client.post(f"/renders/{row.pk}/{verb}/").status_code == 302


def test_a_person_sees_own_renders_only(page, ann, bob):
    create_render("Ann's boat", user=ann)
    create_render("Bob's secret", user=bob)
    html = page.get(GALLERY).content.decode()

    assert "Ann&#x27;s boat" in html
    assert "Bob" not in html


def test_a_render_of_another_person_is_not_there(page, bob):
    row = ended(bob, Status.FAILED, artifacts=[picture()])

    assert page.get(f"/renders/{row.pk}/").status_code == 404
    assert page.get(f"/renders/{row.pk}/artifacts/0/").status_code == 404
    assert page.post(f"/renders/{row.pk}/cancel/").status_code == 404
    assert page.post(f"/renders/{row.pk}/retry/").status_code == 404
    assert RenderJob.objects.count() == 1


def test_staff_with_the_permission_see_all_but_do_not_act(client, staff, bob):
    row = create_render("Bob's boat", user=bob)
    client.force_login(staff)

    assert "Bob&#x27;s boat" in client.get(GALLERY).content.decode()
    assert "/cancel/" not in client.get(f"/renders/{row.pk}/").content.decode()
    assert client.post(f"/renders/{row.pk}/cancel/").status_code == 403
    staff.user_permissions.add(Permission.objects.get(codename="cancel_renderjob"))
    assert client.post(f"/renders/{row.pk}/cancel/").status_code == 302


# --- Gallery ------------------------------------------------------------------------------


def test_an_empty_gallery_says_how_to_begin(page):
    html = page.get(GALLERY).content.decode()

    assert "Nothing here yet" in html
    assert "<form" in html


def test_the_form_adds_a_render_and_leads_back(page, ann):
    token = token_of(page.get(GALLERY))
    response = page.post(
        GALLERY, {"prompt": "A boat", "kind": "video", "token": token}, follow=True
    )
    row = RenderJob.objects.get()

    assert (row.prompt, row.kind, row.created_by) == ("A boat", "video", ann)
    assert response.redirect_chain == [(GALLERY, 302)]
    assert "Added: video" in response.content.decode()


def test_a_double_click_adds_one_render(page):
    data = {"prompt": "A boat", "kind": "image", "token": token_of(page.get(GALLERY))}
    page.post(GALLERY, data)
    response = page.post(GALLERY, data, follow=True)

    assert RenderJob.objects.count() == 1
    assert "nothing was added again" in response.content.decode()


def test_a_wrong_form_keeps_what_was_typed_and_does_not_refresh_it_away(page, ann):
    create_render("Running", user=ann)
    response = page.post(GALLERY, {"prompt": "Keep me", "kind": "song", "token": "t" * 20})
    html = response.content.decode()

    assert "Keep me" in html
    assert "song is not one of the available choices" in html
    assert 'http-equiv="refresh"' not in html


def test_the_form_needs_the_csrf_token(ann):
    client = Client(enforce_csrf_checks=True)
    client.force_login(ann)

    assert client.post(GALLERY, {"prompt": "A boat", "kind": "image"}).status_code == 403


def test_the_gallery_refreshes_only_while_something_runs(page, ann):
    ended(ann, artifacts=[picture()])
    assert 'http-equiv="refresh"' not in page.get(GALLERY).content.decode()

    create_render("Running", user=ann)
    assert 'http-equiv="refresh" content="3"' in page.get(GALLERY).content.decode()
    adding = page.get(GALLERY + "?add").content.decode()
    assert 'http-equiv="refresh"' not in adding
    assert "<form" in adding


def test_a_render_that_was_never_handled_does_not_refresh_for_ever(page, ann):
    row = submitted(ann)
    long_ago = timezone.now() - timedelta(hours=1)
    RenderJob.objects.end(row.pk, 0, long_ago, Status.COMPLETED, sume_status="completed")

    assert 'http-equiv="refresh"' not in page.get(GALLERY).content.decode()


def test_the_gallery_is_paged(page, ann):
    for number in range(30):
        create_render(f"Boat {number}", user=ann)

    first = page.get(GALLERY)
    assert len(first.context["page"]) == 24
    assert "Page 1 of 2" in first.content.decode()
    assert len(page.get(GALLERY + "?page=2").context["page"]) == 6
    assert page.get(GALLERY + "?page=never").status_code == 200


def test_the_number_of_queries_does_not_grow_with_the_renders(
    client, staff, ann, django_assert_max_num_queries
):
    client.force_login(staff)
    for number in range(20):
        ended(ann, prompt=f"Boat {number}", artifacts=[picture()])
    with django_assert_max_num_queries(7):
        client.get(GALLERY)


# --- What pages show ----------------------------------------------------------------------


@pytest.mark.parametrize("path", [GALLERY, "detail"])
def test_a_prompt_is_text_and_never_markup(page, ann, path):
    row = ended(ann, Status.FAILED, prompt="<script>x</script>", code="<b>", message="<i>why</i>")
    html = page.get(row.get_absolute_url() if path == "detail" else path).content.decode()

    assert "<script" not in html
    assert "<i>why" not in html and "<b>" not in html
    assert "&lt;script&gt;x" in html


@pytest.mark.parametrize("path", [GALLERY, "detail"])
def test_pages_show_media_by_own_addresses_and_no_signed_one(page, ann, path):
    clip = {"type": "video", "content_type": "video/mp4", "url": SIGNED}
    rows = [
        ended(ann, artifacts=[picture()]),
        ended(ann, artifacts=[clip]),
        ended(ann, artifacts=[picture(content_type="image/gif")]),
    ]
    for row, tag in zip(rows, ["<img", "<video", "<img"], strict=True):
        html = page.get(row.get_absolute_url() if path == "detail" else path).content.decode()
        assert f'{tag} src="/renders/{row.pk}/artifacts/0/"' in html
        assert "hush" not in html and "media.example" not in html


def test_a_file_that_could_hold_scripts_is_only_offered_for_download(page, ann):
    row = ended(ann, artifacts=[picture(content_type="image/svg+xml")])
    html = page.get(f"/renders/{row.pk}/").content.decode()

    assert "Download image/svg+xml" in html
    assert f'src="/renders/{row.pk}' not in html


def test_the_detail_page_tells_what_happened(page, ann):
    row = ended(ann, Status.FAILED, code="content_policy", message="Change the prompt.")
    html = page.get(f"/renders/{row.pk}/").content.decode()

    for words in ("Why it failed", "Change the prompt.", "content_policy", "Accepted by Sume"):
        assert words in html
    assert f'action="/renders/{row.pk}/retry/"' in html
    assert "/cancel/" not in html


@pytest.mark.parametrize("status", Status.values)
def test_every_status_has_a_badge_with_a_colour_and_a_sentence(status):
    row = RenderJob(prompt="A boat", status=status)
    badge = render_to_string("renders/parts/badge.html", {"render": row})
    css = Path(finders.find("renders/badge.css")).read_text()

    assert f'badge-{status}">{row.get_status_display()}<' in badge
    assert f".badge-{status} {{" in css
    assert in_words(row).endswith(".")


# --- Artifacts ----------------------------------------------------------------------------


def test_a_stored_artifact_is_served_with_its_type(page, ann):
    row = ended(ann, artifacts=[picture()])
    response = page.get(f"/renders/{row.pk}/artifacts/0/")

    assert b"".join(response.streaming_content) == b"PNG"
    assert response.headers["Content-Type"] == "image/png"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in response.headers["Content-Security-Policy"]
    assert "private" in response.headers["Cache-Control"]
    assert response.headers["Content-Disposition"].startswith("inline")


@pytest.mark.parametrize("content_type", ["text/html", "image/svg+xml", "application/x-thing"])
def test_other_types_are_downloads(page, ann, content_type):
    row = ended(ann, artifacts=[picture(content_type=content_type)])
    response = page.get(f"/renders/{row.pk}/artifacts/0/")
    response.close()

    assert response.headers["Content-Type"] == "application/octet-stream"
    assert response.headers["Content-Disposition"].startswith("attachment")


@pytest.mark.parametrize("stored", [None, "gone.png"])
def test_what_is_not_stored_is_linked(page, ann, stored):
    row = ended(ann, artifacts=[picture(file=stored)])
    response = page.get(f"/renders/{row.pk}/artifacts/0/")

    assert response.status_code == 302
    assert response.headers["Location"] == SIGNED
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["Referrer-Policy"] == "no-referrer"


@pytest.mark.parametrize("url", ["javascript:alert(1)", "ftp://x/y", "//x/y", "data:,x", "", None])
def test_only_web_addresses_are_linked(page, ann, url):
    row = ended(ann, artifacts=[picture(file=None, url=url)])

    assert page.get(f"/renders/{row.pk}/artifacts/0/").status_code == 404


def test_an_artifact_that_does_not_exist_is_not_found(page, ann):
    row = ended(ann, artifacts=[picture()])

    assert page.get(f"/renders/{row.pk}/artifacts/1/").status_code == 404
    assert page.get(f"/renders/{create_render('x', user=ann).pk}/artifacts/0/").status_code == 404


# --- Cancel and retry ---------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["cancel", "retry"])
def test_following_a_link_changes_nothing(page, ann, verb):
    row = create_render("A boat", user=ann)

    assert page.get(f"/renders/{row.pk}/{verb}/").status_code == 405


def test_canceling_what_was_not_sent_cancels_it(page, ann):
    row = create_render("A boat", user=ann)
    html = page.post(f"/renders/{row.pk}/cancel/", follow=True).content.decode()

    row.refresh_from_db()
    assert row.status == Status.CANCELED
    assert "nothing is billed" in html


def test_canceling_at_sume_promises_nothing(page, ann):
    row = submitted(ann)
    html = page.post(f"/renders/{row.pk}/cancel/", follow=True).content.decode()

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
    html = page.get(f"/renders/{row.pk}/").content.decode()
    assert "Retried as" in html
    assert f'action="/renders/{row.pk}/retry/"' not in html


def test_a_running_render_is_not_retried(page, ann):
    row = submitted(ann)
    html = page.post(f"/renders/{row.pk}/retry/", follow=True).content.decode()

    assert "Only a failed or canceled render is retried" in html
    assert RenderJob.objects.count() == 1


# --- Health and words ---------------------------------------------------------------------


def test_health_needs_no_login(client):
    response = client.get("/healthz")

    is_open = {"open": True, "why": "", "until": None}
    assert response.json() == {
        "status": "ok",
        "gate": {"writes": is_open, "reads": is_open},
        "overdue": 0,
    }


def test_health_says_so_when_the_database_is_away(client):
    with mock.patch("renders.standing.gates", side_effect=OperationalError("secret dsn")):
        response = client.get("/healthz")

    assert response.status_code == 503
    assert response.json()["status"] == "unavailable"
    assert b"secret" not in response.content


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-1, "0 s"), (0, "0 s"), (59.9, "59 s"), (60, "1 min"), (7200, "2 h"), (200_000, "2 d")],
)
def test_spans_are_short(seconds, words):
    assert short(timedelta(seconds=seconds)) == words


@pytest.mark.parametrize(
    ("micros", "words"),
    [(None, "-"), (0, "$0.00"), (40_000, "$0.04"), (1_234_567, "$1.234567"), (5_500_000, "$5.50")],
)
def test_costs_are_exact(micros, words):
    assert usd(micros) == words
