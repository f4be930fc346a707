"""Tokens: whose they are, what they open, and that they are kept nowhere."""

import logging
from datetime import timedelta

import pytest
from django.apps import apps
from django.db.utils import DatabaseError
from django.test import Client
from django.utils import timezone

from renders.api.authentication import authenticate
from renders.models import ApiToken, RenderJob
from renders.services import create_render
from tests.unit.api.support import URL, completed, problem

pytestmark = pytest.mark.django_db


def test_a_token_acts_as_its_user_without_a_csrf_token(ann):
    response = ann.post(body={"prompt": "A boat"})

    assert response.status_code == 202
    assert RenderJob.objects.get().created_by == ann.user
    assert not response.cookies


def test_the_scheme_is_read_in_any_case(ann):
    assert ann.get(Authorization=f"bEARER  {ann.clear}").status_code == 200


def test_what_is_in_a_token():
    tokens = [ApiToken().renew() for _ in range(2)]

    assert tokens[0] != tokens[1]
    for clear in tokens:
        assert clear.startswith("renders_")
        assert len(clear) == len("renders_") + 43  # 32 random bytes
        assert repr(clear) == "'[hidden]'"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda token, user: token.filter(pk__gt=0).delete(),
        lambda token, user: token.update(revoked_at=timezone.now()),
        lambda token, user: token.update(expires_at=timezone.now() - timedelta(seconds=1)),
        lambda token, user: type(user).objects.update(is_active=False),
    ],
    ids=["deleted", "revoked", "expired", "user may not log in"],
)
def test_a_token_that_is_not_valid_opens_nothing(ann, spoil):
    spoil(ApiToken.objects.all(), ann.user)

    response = ann.get()

    problem(response, 401, "invalid_token")
    assert response.headers["WWW-Authenticate"] == 'Bearer realm="renders", error="invalid_token"'


@pytest.mark.parametrize(
    "text", ["", " ", "x", "renders_", "renders_ä\ud800", "a b", "\x00"], ids=ascii
)
def test_a_wrong_token_opens_nothing(ann, text):
    problem(ann.get(Authorization=f"Bearer {text}"), 401, "invalid_token")


def test_a_token_that_expires_later_is_valid(ann):
    ApiToken.objects.update(expires_at=timezone.now() + timedelta(minutes=1))

    assert ann.get().status_code == 200


def test_beside_a_token_a_session_counts_for_nothing(ann, bob):
    theirs = create_render("Bob's", user=bob.user)
    ann.client.force_login(bob.user)

    problem(ann.get(f"{theirs.pk}/"), 404)
    problem(ann.get(Authorization="Bearer wrong"), 401)
    # Another scheme is that of a proxy in between.
    assert ann.get(f"{theirs.pk}/", Authorization="Basic eDp5").status_code == 200


def test_without_anything_the_reply_names_the_way_in(client):
    response = client.get(URL)

    problem(response, 401, "not_authenticated")
    assert response.headers["WWW-Authenticate"] == 'Bearer realm="renders"'


def test_the_last_use_is_written_once_a_minute(ann, django_assert_num_queries):
    ann.get()
    first = ApiToken.objects.get().last_used_at
    with django_assert_num_queries(2):  # the token with its user, the list
        ann.get()

    assert first is not None
    assert ApiToken.objects.get().last_used_at == first

    earlier = first - timedelta(seconds=61)
    ApiToken.objects.update(last_used_at=earlier)
    ann.get()
    assert ApiToken.objects.get().last_used_at > earlier


def test_a_token_is_in_no_table_and_no_log(ann, caplog):
    caplog.set_level(logging.DEBUG)
    ann.post(body={"prompt": "A boat"}, Idempotency_Key="one")
    ann.get("none/")
    secret = ann.clear.removeprefix("renders_")

    for model in apps.get_models(include_auto_created=True):
        for row in model.objects.values():
            assert secret not in str(row)
    assert secret not in caplog.text
    assert ApiToken.objects.get().hint == ann.clear[:14]


def test_media_are_opened_by_a_token_too(ann, bob, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    (tmp_path / "a.png").write_bytes(b"\x89PNG")
    row = completed(ann.user, {"type": "image", "content_type": "image/png", "file": "a.png"})
    [artifact] = ann.get(f"{row.pk}/").json()["artifacts"]

    assert b"".join(ann.get(artifact["url"])) == b"\x89PNG"
    problem(bob.get(artifact["url"]), 404)
    problem(ann.get(f"{row.pk}/artifacts/1/"), 404)
    problem(Client().get(artifact["url"]), 401)


def test_no_frame_of_a_traceback_holds_the_token(ann, rf, monkeypatch):
    """Collectors of errors, and Django's own mails, print the variables of every frame."""

    def fail(*args):
        raise DatabaseError("away")

    monkeypatch.setattr(type(ApiToken.objects.all()), "of", fail)
    request = rf.get(URL, headers={"Authorization": f"Bearer {ann.clear}"})
    with pytest.raises(DatabaseError) as caught:
        authenticate(request)

    frames = [entry.frame.f_locals for entry in caught.traceback[1:]]
    assert ann.clear[len("renders_") :] not in repr(frames)
