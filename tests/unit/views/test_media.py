"""The files of finished renders, for those who may see them, so that nothing in them runs."""

import pytest

from renders.services import create_render
from tests.unit.views.support import SIGNED, ended, picture

pytestmark = pytest.mark.django_db


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
