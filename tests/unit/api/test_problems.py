"""Every error has one shape, whatever went wrong, and says nothing of what is inside."""

import pytest

from renders.services import create_render
from tests.unit.api.support import problem

pytestmark = pytest.mark.django_db
NOBODY = "0b7e4f0a-0000-4000-8000-000000000000"


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "DISPATCH"])
@pytest.mark.parametrize(
    "path",
    [
        "/api/renders",
        "none/",
        f"{NOBODY}",
        f"{NOBODY}/none/",
        f"{NOBODY}/artifacts/",
        "1/2/",
        "a%00",
    ],
)
def test_an_unknown_address_is_a_problem_and_leads_nowhere(ann, method, path):
    problem(ann.call(method, path), 404)


@pytest.mark.parametrize(
    ("path", "allow"),
    [
        ("", "GET, POST, HEAD, OPTIONS"),
        ("openapi.json", "GET, HEAD, OPTIONS"),
        (f"{NOBODY}/", "GET, HEAD, OPTIONS"),
        (f"{NOBODY}/cancel/", "POST, OPTIONS"),
        (f"{NOBODY}/retry/", "POST, OPTIONS"),
        (f"{NOBODY}/artifacts/0/", "GET, HEAD, OPTIONS"),
    ],
)
def test_what_an_address_can_do_is_told(ann, client, path, allow):
    asked = client.options(f"/api/renders/{path}")
    assert (asked.status_code, asked.content, asked.headers["Allow"]) == (204, b"", allow)

    for method in ("DELETE", "PUT", "DISPATCH", "HTTP_METHOD_NOT_ALLOWED"):
        response = ann.call(method, path, {})
        problem(response, 405)
        assert response.headers["Allow"] == allow


def test_a_fault_of_ours_is_logged_and_not_told(ann, monkeypatch, caplog):
    def fail(*args, **kwargs):
        raise RuntimeError("the secret reason")

    monkeypatch.setattr("renders.api.views.represent", fail)
    response = ann.post(body={"prompt": "A boat"})

    problem(response, 500, "internal_error")
    assert b"secret" not in response.content
    assert "the secret reason" in caplog.text
    assert ann.clear not in caplog.text


def test_a_body_that_breaks_off_is_a_problem(ann, monkeypatch):
    from django.core.handlers.wsgi import WSGIRequest
    from django.http import UnreadablePostError

    def broken(self):
        raise UnreadablePostError("gone")

    monkeypatch.setattr(WSGIRequest, "body", property(broken))

    problem(ann.post(body={"prompt": "A boat"}), 400)


def test_a_large_body_is_refused_before_it_is_read(ann):
    row = create_render("A boat", user=ann.user)

    problem(ann.post(f"{row.pk}/cancel/", body="x" * 10_000_001), 413)


def test_no_reply_is_kept_by_caches_or_taken_for_something_else(ann):
    for response in (ann.get(), ann.get("none/")):
        assert response.headers["Cache-Control"] == "private, no-store"
        assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_a_query_of_too_many_parameters_is_no_fault_of_ours(ann, caplog):
    problem(ann.get("?" + "&".join(["limit=1"] * 1_001)), 400, "bad_request")
    assert "failed" not in caplog.text


def test_a_body_above_the_limit_of_the_project_is_no_fault_of_ours(ann, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 10

    problem(ann.post(body={"prompt": "A boat"}), 413, "too_large")


def test_a_host_that_is_not_ours_is_a_problem_too(ann, settings):
    settings.ALLOWED_HOSTS = ["renders.example"]

    problem(ann.get(Host="evil.example"), 400, "bad_request")
    assert ann.client.get("/renders/", headers={"Host": "evil.example"}).status_code == 400


def test_a_fault_of_ours_outside_any_view_is_a_problem_too(ann, monkeypatch):
    def fail(*args):
        raise RuntimeError("the secret reason")

    monkeypatch.setattr("django.middleware.common.CommonMiddleware.process_request", fail)

    assert b"secret" not in ann.get().content
    problem(ann.get(), 500, "internal_error")
    assert ann.get("/renders/").headers["Content-Type"].startswith("text/html")
