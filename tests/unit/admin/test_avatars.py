"""Staff see whose avatars there are, release them and take them back."""

import pytest
from django.contrib.admin.models import LogEntry

from renders.models import Avatar

pytestmark = pytest.mark.django_db
LIST = "/admin/renders/avatar/"
ALL = ("view_avatar", "add_avatar", "change_avatar", "delete_avatar")


@pytest.fixture
def mara(django_user_model):
    owner = django_user_model.objects.create_user("ann")
    return Avatar.objects.create(handle="mara", owner=owner)


def act(client, action, *rows):
    data = {"action": action, "_selected_action": [row.pk for row in rows]}
    return client.post(LIST, data, follow=True)


def test_the_list_shows_whose_each_is_and_searches(admin_client, mara):
    Avatar.objects.create(handle="nora")
    html = admin_client.get(LIST).text
    assert "mara" in html and "nora" in html and "ann" in html

    found = admin_client.get(f"{LIST}?q=mar").context["cl"].result_list
    assert [row.handle for row in found] == ["mara"]
    assert "Workspace" not in html


def test_an_avatar_is_released_and_taken_back(admin_client, mara):
    nora = Avatar.objects.create(handle="nora", released=True)
    assert "Released: 1." in act(admin_client, "release", mara, nora).text
    mara.refresh_from_db()
    assert mara.released

    assert "Taken back: 2." in act(admin_client, "take_back", mara, nora).text
    assert not Avatar.objects.filter(released=True).exists()
    assert "Nothing to do." in act(admin_client, "take_back", mara).text
    assert {entry.change_message for entry in LogEntry.objects.all()} == {
        "Released.",
        "Taken back.",
    }


def test_one_that_exists_at_sume_is_added_by_hand(admin_client, mara):
    admin_client.post(f"{LIST}add/", {"handle": " @olga ", "owner": "", "released": "on"})
    olga = Avatar.objects.get(handle="olga")
    assert (olga.workspace, olga.owner, olga.released) == ("default", None, True)

    again = admin_client.post(f"{LIST}add/", {"handle": "@mara"})
    assert "This avatar is in the list already." in again.text
    wrong = admin_client.post(f"{LIST}add/", {"handle": "two words"})
    assert "one word, with or without @" in wrong.text
    assert Avatar.objects.count() == 2


def test_owner_and_release_can_be_changed_and_no_more(admin_client, mara):
    data = {"handle": "other", "owner": "", "released": "on"}
    admin_client.post(f"{LIST}{mara.pk}/change/", data)
    mara.refresh_from_db()

    assert (mara.handle, mara.owner, mara.released) == ("mara", None, True)


def test_each_permission_allows_its_own(client, log_in, mara):
    log_in("view_avatar")
    assert client.get(LIST).status_code == 200
    assert "take_back" not in client.get(LIST).text
    act(client, "release", mara)
    mara.refresh_from_db()
    assert not mara.released
    assert client.get(f"{LIST}add/").status_code == 403

    log_in(name="nobody")
    assert client.get(LIST).status_code == 403


def test_where_there_are_several_workspaces_one_is_chosen(
    admin_client, mara, settings, monkeypatch
):
    monkeypatch.setattr("renders.conf.workspaces.several", lambda: True)
    monkeypatch.setattr("renders.conf.workspaces.names", lambda: ["default", "acme"])
    assert "Workspace" in admin_client.get(LIST).text
    response = admin_client.post(f"{LIST}add/", {"handle": "mara", "workspace": "acme"})

    assert response.status_code == 302
    assert Avatar.objects.get(workspace="acme").handle == "mara"
    assert admin_client.get(f"{LIST}{mara.pk}/change/").status_code == 200
