"""Each web request has an id."""

import pytest
from django.http import HttpResponse
from django.test import RequestFactory

from renders.telemetry import log_context
from renders.telemetry.request_ids import RequestIds


def answered(**headers):
    """The answer to a request, and what its log lines are about."""
    seen = []

    def view(request):
        seen.append((log_context.known(), request.request_id))
        return HttpResponse("x")

    response = RequestIds(view)(RequestFactory().get("/", headers=headers))
    [(known, name)] = seen
    assert known == {"request_id": name}
    assert log_context.known() == {}
    return response, name


def test_a_request_gets_an_id_of_its_own():
    (response, first), (_, second) = answered(), answered()

    assert response["X-Request-ID"] == first != second
    assert len(first) == 32


@pytest.mark.parametrize("given", ["3cf65526-7b69-4b9a-8f0e-2f6a0a5d6c11", "Root=1-5f84c7a1/x"])
def test_what_a_proxy_gives_is_kept(given):
    response, name = answered(**{"X-Request-ID": given})

    assert response["X-Request-ID"] == name == given


@pytest.mark.parametrize(
    "given", ["", "short", "x" * 101, "a b c d e f g", "<script>alert", "ä" * 9]
)
def test_what_looks_like_no_id_is_not(given):
    response, name = answered(**{"X-Request-ID": given})

    assert response["X-Request-ID"] == name != given


@pytest.mark.django_db
def test_every_page_of_the_project_has_one(client):
    assert client.get("/accounts/login/")["X-Request-ID"]
