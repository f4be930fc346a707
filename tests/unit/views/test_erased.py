"""An erased render, and one whose media are gone, on every page: decently, and not retried."""

import pytest
from django.contrib.auth.models import Permission

from renders.housekeeping import removal
from renders.housekeeping.erasing import erase
from renders.models import RenderJob
from renders.states import Status
from renders.templatetags.render_facts import in_words
from tests.rows import over, pictured

pytestmark = pytest.mark.django_db
WORDS = "Erased: what was asked for and what was made is no longer kept."


@pytest.fixture
def erased(ann):
    render = over(Status.FAILED, created_by=ann, prompt="a fox of Ann's", reference="order-7")
    erase(ann)
    render.refresh_from_db()
    return render


def test_the_page_says_that_it_was_erased(page, erased):
    html = page.get(erased.get_absolute_url()).text

    assert "<title>Erased" in html and ">Erased</h1>" in html and WORDS in html
    for gone in ("api-call", "New from this", "Retry", "a fox", "order-7", "erased:"):
        assert gone not in html


def test_the_gallery_says_so_too(page, erased):
    html = page.get("/renders/").text

    assert ">Erased</a>" in html and WORDS in html


def test_it_cannot_be_retried(page, erased):
    for answer in (
        page.get(f"/renders/{erased.pk}/retry/", follow=True),
        page.post(f"/renders/{erased.pk}/retry/", follow=True),
    ):
        assert "It was erased: what was asked for is no longer known." in answer.text
    answer = page.post(f"/api/renders/{erased.pk}/retry/", "", content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (409, "not_retryable")
    assert answer.json()["detail"].startswith("It was erased")
    assert RenderJob.objects.count() == 1


def test_the_api_says_when(page, erased):
    body = page.get(f"/api/renders/{erased.pk}/").json()

    assert body["erased_at"].startswith(f"{erased.erased_at:%Y-%m-%dT%H:%M}")
    assert (body["prompt"], body["params"], body["reference"]) == ("", {}, None)
    assert body["artifacts"] == []


def test_the_admin_says_so(client, staff, erased):
    staff.user_permissions.add(Permission.objects.get(codename="retry_renderjob"))
    client.force_login(staff)

    assert ">Erased</a>" in client.get("/admin/renders/renderjob/").text
    html = client.get(f"/admin/renders/renderjob/{erased.pk}/change/").text
    assert WORDS in html and 'renders-prompt">Erased<' in html
    assert 'value="retry"' not in html


def test_where_only_the_media_are_gone_the_page_says_that(page, ann):
    render = pictured(created_by=ann, prompt="a fox")
    removal.clear([render.pk])

    html = page.get(render.get_absolute_url()).text

    assert "It was made; its pictures and clips are no longer kept." in html
    assert "Media deleted" in html and "a fox" in html
    assert page.get(f"/renders/{render.pk}/artifacts/0/").status_code == 404


def test_while_they_are_being_deleted_too(ann):
    render = pictured(created_by=ann)
    render.removing_at = render.finished_at

    assert in_words(render) == "It was made; its pictures and clips are no longer kept."
