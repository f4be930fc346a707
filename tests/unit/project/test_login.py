"""An ordinary user, who is not staff, comes in and goes out."""

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db
LOGIN, LOGOUT, GALLERY = "/accounts/login/", "/accounts/logout/", "/renders/"
ANN = {"username": "ann", "password": "boats"}


@pytest.fixture(autouse=True)
def ann(django_user_model):
    return django_user_model.objects.create_user(**ANN)


def test_a_page_sends_a_stranger_to_the_login_and_back(client):
    asked = client.get(GALLERY + "?page=2", follow=True)
    assert asked.redirect_chain == [(f"{LOGIN}?next=/renders/%3Fpage%3D2", 302)]
    assert 'name="next" value="/renders/?page=2"' in asked.text
    assert "Log out" not in asked.text

    back = client.post(LOGIN, {**ANN, "next": asked.context["next"]})
    assert back.headers["Location"] == "/renders/?page=2"


def test_an_ordinary_user_logs_in_and_lands_in_the_gallery(client):
    page = client.post(LOGIN, ANN, follow=True)

    assert page.redirect_chain == [(GALLERY, 302)]
    assert page.status_code == 200
    assert '<span class="who">ann</span>' in page.text
    assert f'action="{LOGOUT}"' in page.text


def test_a_wrong_password_is_refused_in_words(client):
    page = client.post(LOGIN, {**ANN, "password": "ships"})

    assert "correct username and password" in page.text
    assert "ships" not in page.text
    assert client.get(GALLERY).status_code == 302


def test_whoever_is_in_already_is_not_asked_again(client, ann):
    client.force_login(ann)

    assert client.get(LOGIN).headers["Location"] == GALLERY


def test_logging_out_ends_the_session(client, ann):
    client.force_login(ann)
    page = client.post(LOGOUT, follow=True)

    assert page.redirect_chain == [(LOGIN, 302)]
    assert client.get(GALLERY).status_code == 302


def test_following_a_link_logs_nobody_out(client, ann):
    client.force_login(ann)

    assert client.get(LOGOUT).status_code == 405
    assert client.get(GALLERY).status_code == 200


@pytest.mark.parametrize("path", [LOGIN, LOGOUT])
def test_the_forms_need_the_csrf_token(ann, path):
    client = Client(enforce_csrf_checks=True)
    client.force_login(ann)

    assert client.post(path, ANN).status_code == 403


@pytest.mark.parametrize(
    "elsewhere", ["https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:x"]
)
def test_the_login_leads_to_no_other_site(client, elsewhere):
    page = client.post(LOGIN, {**ANN, "next": elsewhere})

    assert page.headers["Location"] == GALLERY
