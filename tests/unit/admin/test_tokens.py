"""API tokens in the admin: made for oneself, shown once, revoked; kept nowhere in clear."""

import re
from datetime import timedelta

import pytest
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.utils import timezone

from renders.models import ApiToken

pytestmark = pytest.mark.django_db
LIST = "/admin/renders/apitoken/"
CLEAR = re.compile(r"renders_[\w-]{43}")


@pytest.fixture
def staff(client, django_user_model):
    """Logs in somebody of the staff with these permissions for tokens."""

    def log_in(*names):
        user = django_user_model.objects.create_user("sam", is_staff=True)
        codenames = [f"{name}_apitoken" for name in names]
        user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
        client.force_login(user)
        client.user = user
        return client

    return log_in


def add(client, **fields):
    return client.post(
        f"{LIST}add/", {"name": "Shop", "expires_at_0": "", "expires_at_1": ""} | fields
    )


def test_a_new_token_is_shown_in_the_reply_and_kept_nowhere(staff):
    client = staff("add", "view")
    response = add(client)
    [clear] = set(CLEAR.findall(response.content.decode()))
    token = ApiToken.objects.get()

    assert response.status_code == 200
    assert "no-store" in response.headers["Cache-Control"]
    assert ApiToken.objects.of(clear, timezone.now()) == token
    assert (token.user, token.name, token.hint) == (client.user, "Shop", clear[:14])
    for page in (LIST, f"{LIST}{token.pk}/change/", f"{LIST}{token.pk}/history/", "/admin/"):
        html = client.get(page).content.decode()
        assert clear not in html and clear[:20] not in html and token.token_hash not in html
    for model in apps.get_models(include_auto_created=True):
        assert clear not in str(list(model.objects.values()))
    assert clear not in str(dict(client.session)) + str(client.cookies)
    assert LogEntry.objects.get().object_repr == str(token)


def test_the_same_form_sent_again_makes_no_second_token(staff):
    client = staff("add")
    add(client)
    again = add(client)

    assert "There is a valid token of this name" in again.content.decode()
    assert ApiToken.objects.count() == 1

    ApiToken.objects.revoke(timezone.now())
    assert CLEAR.search(add(client).content.decode())


def test_people_make_tokens_for_themselves_alone(staff, bob):
    client = staff("add")
    assert 'name="user"' not in client.get(f"{LIST}add/").content.decode()
    add(client, user=bob.pk)

    assert ApiToken.objects.get().user == client.user


def test_superusers_make_them_for_others_too(admin_client, admin_user, bob):
    html = admin_client.get(f"{LIST}add/").content.decode()
    assert f'<option value="{admin_user.pk}" selected>' in html
    response = add(admin_client, user=bob.pk)

    assert CLEAR.search(response.content.decode())
    assert ApiToken.objects.get().user == bob
    # Of the same name, each may have one.
    assert CLEAR.search(add(admin_client, user=admin_user.pk).content.decode())


def test_without_the_permission_none_is_made(staff):
    assert add(staff("view", "change")).status_code == 403
    assert not ApiToken.objects.exists()


def test_a_time_that_is_over_is_refused(staff):
    past = timezone.now() - timedelta(days=1)
    response = add(staff("add"), expires_at_0=f"{past:%Y-%m-%d}", expires_at_1="12:00:00")

    assert "This time is over." in response.content.decode()
    assert not ApiToken.objects.exists()


def test_tokens_of_others_are_for_superusers(staff, bob, admin_user):
    theirs, _ = ApiToken.issue(user=bob, name="Bob's")
    client = staff("view", "change", "delete")

    assert "Bob&#x27;s" not in client.get(LIST).content.decode()
    assert client.get(f"{LIST}{theirs.pk}/change/").status_code == 302
    assert client.post(f"{LIST}{theirs.pk}/change/").status_code == 403
    client.post(LIST, {"action": "revoke", "_selected_action": [theirs.pk]})
    theirs.refresh_from_db()
    assert theirs.revoked_at is None

    client.force_login(admin_user)
    assert "Bob&#x27;s" in client.get(LIST).content.decode()


@pytest.mark.parametrize("way", ["button", "action"])
def test_a_token_is_revoked_once_and_it_is_noted(staff, way):
    client = staff("view", "change")
    token, clear = ApiToken.issue(user=client.user, name="Shop")
    page = f"{LIST}{token.pk}/change/"
    assert 'value="Revoke this token"' in client.get(page).content.decode()

    for _ in range(2):
        if way == "button":
            response = client.post(page, {"_revoke": "1"}, follow=True)
        else:
            data = {"action": "revoke", "_selected_action": [token.pk]}
            response = client.post(LIST, data, follow=True)
        assert response.status_code == 200

    assert "Nothing to do: revoked before." in response.content.decode()
    token.refresh_from_db()
    assert token.state(timezone.now()) == "revoked"
    assert ApiToken.objects.of(clear, timezone.now()) is None
    assert [entry.change_message for entry in LogEntry.objects.all()] == ["Revoked."]
    assert "Revoke this token" not in client.get(page).content.decode()


def test_to_see_a_token_is_not_to_revoke_it(staff):
    client = staff("view")
    token, _ = ApiToken.issue(user=client.user, name="Shop")
    page = f"{LIST}{token.pk}/change/"

    assert "Revoke this token" not in client.get(page).content.decode()
    assert client.post(page, {"_revoke": "1"}).status_code == 403
    token.refresh_from_db()
    assert token.revoked_at is None


@pytest.mark.parametrize(
    ("fields", "state"),
    [({}, "valid"), ({"expires_at": 1}, "valid"), ({"expires_at": -1}, "expired")],
    ids=["no end", "later", "over"],
)
def test_the_list_says_how_a_token_stands(staff, fields, state):
    client = staff("view")
    moments = {name: timezone.now() + timedelta(days=days) for name, days in fields.items()}
    ApiToken.issue(user=client.user, name="Shop", **moments)

    assert f'field-state">{state}<' in client.get(LIST).content.decode()
