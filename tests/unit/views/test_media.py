"""Stored pictures and clips: for whom they are, safely, and in parts where a player asks."""

import pytest
from django.contrib.auth.models import Permission
from django.core.files.base import ContentFile
from django.urls import reverse
from django.utils import timezone

from renders.media.storage import storage
from renders.models import RenderJob
from renders.presentation.media_links import media
from tests.unit.views.support import SIGNED, ended, picture

pytestmark = pytest.mark.django_db

CLIP = bytes(range(200))


@pytest.fixture(autouse=True)
def _storage(settings):
    """One without paths and addresses: nothing but its methods can be used."""
    settings.STORAGES = {
        **settings.STORAGES,
        "media": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    }
    settings.RENDERS = {**settings.RENDERS, "MEDIA_STORAGE": "media"}


@pytest.fixture
def page(client, ann):
    client.force_login(ann)
    return client


def render(user, **changes):
    """A render with one stored artifact."""
    now = timezone.now()
    artifact = {
        "type": "video",
        "content_type": "video/mp4",
        "url": SIGNED,
        "file": storage().save("renders/x/0-abc.mp4", ContentFile(CLIP)),
        "thumbnail": storage().save("renders/x/0-abc-small.webp", ContentFile(b"SMALL")),
        "sha256": "5ba" * 20,
        "bytes": len(CLIP),
    }
    return RenderJob.objects.create(
        prompt="A boat",
        created_by=user,
        status="completed",
        sume_job_id="job-1",
        submitted_at=now,
        finished_at=now,
        result={"artifacts": [artifact | changes]},
    )


def address(row, name="artifact"):
    return reverse(f"renders:{name}", args=[row.pk, 0])


BOTH = pytest.mark.parametrize("name", ["artifact", "thumbnail"])


def test_a_clip_comes_whole_or_in_parts(page, ann):
    url = address(render(ann))

    whole = page.get(url)
    part = page.get(url, headers={"Range": "bytes=10-19"})

    assert (whole.status_code, part.status_code) == (200, 206)
    assert whole.getvalue() == CLIP
    assert part.getvalue() == CLIP[10:20]
    assert part["Content-Range"] == "bytes 10-19/200"
    for response in (whole, part):
        assert response["Content-Type"] == "video/mp4"
        assert response["Content-Disposition"].startswith('inline; filename="render-')
        assert response["Accept-Ranges"] == "bytes"
        assert_safe(response)


def assert_safe(response):
    assert response["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in response["Content-Security-Policy"]
    assert response["Cache-Control"].startswith("private")


def test_a_part_that_is_not_there_is_refused(page, ann):
    response = page.get(address(render(ann)), headers={"Range": "bytes=200-"})

    assert response.status_code == 416
    assert response["Content-Range"] == "bytes */200"
    assert_safe(response)


@BOTH
def test_what_the_browser_has_is_not_sent_again(page, ann, name):
    url = address(render(ann), name)
    etag = page.get(url)["ETag"]

    response = page.get(url, headers={"If-None-Match": etag})

    assert response.status_code == 304
    assert response.content == b""
    assert response["ETag"] == etag
    assert_safe(response)


def test_a_picture_and_its_thumbnail_are_not_taken_for_one_another(page, ann):
    row = render(ann)

    assert page.get(address(row))["ETag"] != page.get(address(row, "thumbnail"))["ETag"]


@BOTH
def test_the_head_alone_can_be_asked_for(page, ann, name):
    response = page.head(address(render(ann), name))

    assert response.status_code == 200
    assert int(response["Content-Length"]) > 0
    assert response.getvalue() == b""
    assert_safe(response)


def test_a_thumbnail_is_a_picture_whatever_the_artifact_is(page, ann):
    response = page.get(address(render(ann), "thumbnail"))

    assert response.getvalue() == b"SMALL"
    assert response["Content-Type"] == "image/webp"
    assert_safe(response)


@pytest.mark.parametrize("stored", ["", None, "gone.webp"])
def test_where_there_is_no_thumbnail_the_picture_is(page, ann, stored):
    row = render(ann, thumbnail=stored)

    assert page.get(address(row, "thumbnail"))["Location"] == address(row)


@pytest.mark.parametrize("content_type", ["text/html", "image/svg+xml", "application/octet-stream"])
def test_what_no_browser_may_show_is_a_download_in_part_too(page, ann, content_type):
    url = address(render(ann, content_type=content_type))

    for headers in ({}, {"Range": "bytes=0-1"}):
        response = page.get(url, headers=headers)
        assert b"".join(response.streaming_content)
        assert response["Content-Type"] == "application/octet-stream"
        assert response["Content-Disposition"].startswith("attachment")
        assert_safe(response)


@BOTH
def test_they_are_for_their_owner_and_for_staff_who_may_view(client, ann, django_user_model, name):
    url = address(render(ann), name)
    bob = django_user_model.objects.create_user("bob")
    sam = django_user_model.objects.create_user("sam", is_staff=True)
    sam.user_permissions.add(Permission.objects.get(codename="view_renderjob"))

    assert client.get(url)["Location"].startswith(reverse("login"))
    client.force_login(bob)
    assert client.get(url, headers={"If-None-Match": "*"}).status_code == 404
    assert client.get(url, headers={"Range": "bytes=0-1"}).status_code == 404
    client.force_login(sam)
    assert client.get(url).status_code == 200
    assert client.post(url).status_code == 405


@BOTH
def test_an_artifact_that_does_not_exist_is_not_found(page, ann, name):
    row = render(ann)

    assert page.get(reverse(f"renders:{name}", args=[row.pk, 1])).status_code == 404


@pytest.mark.parametrize(
    ("changes", "thumbnail"),
    [
        ({}, "thumbnail"),
        ({"thumbnail": ""}, ""),
        ({"thumbnail": "", "content_type": "image/png"}, "artifact"),
        ({"thumbnail": "", "content_type": "image/svg+xml"}, ""),
    ],
    ids=["thumbnail", "clip without", "picture without", "no picture"],
)
def test_pages_take_the_smallest_picture_that_there_is(ann, changes, thumbnail):
    row = render(ann, **changes)

    [item] = media(row)

    assert item.thumbnail == (address(row, thumbnail) if thumbnail else "")
    assert (item.sha256, item.bytes) == ("5ba" * 20, 200)


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
    assert b"".join(response.streaming_content)

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
