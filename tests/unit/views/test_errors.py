"""What people see where there is no page."""

import pytest

from renders.views import errors
from renders.views.policy import PAGE_POLICY

pytestmark = pytest.mark.django_db
POLICY = "Content-Security-Policy"


@pytest.mark.parametrize("path", ["/none/", "/renders/00000000-0000-0000-0000-000000000000/"])
def test_an_address_that_is_not_there_gets_a_page_that_leads_on(page, path):
    answer = page.get(path)

    assert answer.status_code == 404
    assert "<h1>Nothing is here</h1>" in answer.text
    assert 'href="/renders/">To the gallery</a>' in answer.text
    assert '<span class="who">ann</span>' in answer.text
    assert answer.headers[POLICY] == PAGE_POLICY


def test_a_stranger_gets_it_too(client):
    assert "<h1>Nothing is here</h1>" in client.get("/none/").text


def test_a_program_gets_no_page(rf):
    answer = errors.page_not_found(rf.get("/api/renders/none"), Exception())

    assert answer.status_code == 404
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_a_fault_of_ours_gets_a_page_that_needs_no_database(
    page, monkeypatch, django_assert_num_queries
):
    def fail(*args):
        raise RuntimeError("the secret reason")

    monkeypatch.setattr("django.middleware.common.CommonMiddleware.process_request", fail)
    page.raise_request_exception = False
    with django_assert_num_queries(0):
        answer = page.get("/renders/")

    assert answer.status_code == 500
    assert "<h1>This did not work</h1>" in answer.text
    assert "secret" not in answer.text
    assert answer.headers[POLICY] == PAGE_POLICY


def test_scripts_of_others_run_on_no_page_of_errors(client, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 10
    settings.ALLOWED_HOSTS = ["renders.example"]

    foreign = client.get("/renders/", headers={"Host": "evil.example"})
    large = client.post(
        "/accounts/login/", {"username": "x" * 20}, headers={"Host": "renders.example"}
    )

    assert (foreign.status_code, foreign.headers[POLICY]) == (400, PAGE_POLICY)
    assert (large.status_code, large.headers[POLICY]) == (413, PAGE_POLICY)


def test_nor_on_the_page_where_the_password_is_typed(client):
    answer = client.get("/accounts/login/")

    assert (answer.status_code, answer.headers[POLICY]) == (200, PAGE_POLICY)
