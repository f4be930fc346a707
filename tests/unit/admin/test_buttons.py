"""A render's page: its buttons do what the list's actions do, as permitted; its links lead on."""

from itertools import combinations
from unittest import mock
from uuid import uuid4

import pytest
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.test import Client
from django.utils import timezone

from renders import transitions
from renders.models import RenderJob
from renders.services import cancel_render, create_render, retry_render
from renders.states import Status

pytestmark = pytest.mark.django_db
LIST = "/admin/renders/renderjob/"


def page(client, row):
    response = client.get(f"{LIST}{row.pk}/change/")
    assert response.status_code == 200
    return response.content.decode()


def act(client, row, action):
    data = {"action": action, "shown_at": timezone.now().isoformat()}
    return client.post(f"{LIST}{row.pk}/act/", data, follow=True)


def canceled(user=None):
    row = create_render("A boat", user=user)
    cancel_render(row)
    return row


def test_cancel_asks_and_comes_back(admin_client):
    row = create_render("A boat")
    assert 'value="cancel"' in page(admin_client, row)

    response = act(admin_client, row, "cancel")

    row.refresh_from_db()
    assert row.status == Status.CANCELED
    assert response.redirect_chain == [(f"{LIST}{row.pk}/change/", 302)]
    assert 'value="cancel"' not in response.content.decode()


def test_media_that_are_not_stored_have_a_button(admin_client, ended):
    linked = ended(artifacts=[{"url": "https://a.example/0", "type": "image"}])
    stored = ended(artifacts=[{"url": "https://a.example/0", "type": "image", "file": "a"}])
    assert 'value="store_media"' in page(admin_client, linked)
    assert 'value="store_media"' not in page(admin_client, stored)

    act(admin_client, linked, "store_media")

    linked.refresh_from_db()
    assert linked.media_due_at


def test_retry_says_that_it_is_billed_anew_and_is_done_once(admin_client):
    row = canceled()
    html = page(admin_client, row)
    assert "A retry is a new render with a new bill" in html

    act(admin_client, row, "retry")
    after = act(admin_client, row, "retry").content.decode()

    new = RenderJob.objects.get(retry_of=row)
    assert f'href="{LIST}{new.pk}/change/"' in after
    assert 'value="retry"' not in after
    assert f'href="{LIST}{row.pk}/change/"' in page(admin_client, new)


def test_a_retry_that_was_not_confirmed_asks_first(admin_client):
    row = canceled()
    response = admin_client.post(f"{LIST}{row.pk}/act/", {"action": "retry"})

    assert "1 new render would be made" in response.content.decode()
    assert not RenderJob.objects.filter(retry_of=row).exists()


def test_hold_keeps_it_and_release_lets_it_go(admin_client):
    row = create_render("A boat")
    assert 'value="hold"' in page(admin_client, row)

    html = act(admin_client, row, "hold").content.decode()
    assert 'value="release"' in html and 'value="hold"' not in html
    html = act(admin_client, row, "release").content.decode()

    assert 'value="hold"' in html and 'value="release"' not in html
    row.refresh_from_db()
    assert row.held_at is None


@pytest.mark.parametrize("status", Status)
def test_each_status_has_the_buttons_that_make_sense(admin_client, sent, ended, status):
    match status:
        case Status.PENDING:
            row = create_render("A boat")
        case Status.SUBMITTING:
            row = create_render("A boat")
            transitions.claim(row.pk, row.created_at, "default")
        case Status.SUBMITTED:
            row = sent()
        case _:
            row = ended(status)
    html = page(admin_client, row)
    running = status in {Status.PENDING, Status.SUBMITTING, Status.SUBMITTED}

    assert ('value="cancel"' in html) == running
    assert ('value="retry"' in html) == (status in {Status.FAILED, Status.CANCELED})


def test_a_button_for_a_render_that_has_ended_meanwhile_says_so(admin_client, ended):
    row = ended()

    assert "1 left alone" in act(admin_client, row, "cancel").content.decode()
    assert "1 left alone" in act(admin_client, row, "retry").content.decode()
    assert RenderJob.objects.count() == 1


@pytest.mark.parametrize("action", ["", "delete_selected", "check", "__class__", "get_urls"])
def test_nothing_but_the_buttons_can_be_asked_for(admin_client, action):
    row = create_render("A boat")

    assert act(admin_client, row, action).status_code == 403


def test_reading_the_address_of_a_button_does_nothing(admin_client):
    row = create_render("A boat")
    response = admin_client.get(f"{LIST}{row.pk}/act/", {"action": "cancel"})

    assert response.headers["Location"] == f"{LIST}{row.pk}/change/"
    row.refresh_from_db()
    assert row.status == Status.PENDING


def test_a_button_needs_the_token_of_a_form_of_this_site(admin_user):
    client = Client(enforce_csrf_checks=True)
    client.force_login(admin_user)
    row = create_render("A boat")

    assert act(client, row, "cancel").status_code == 403


def test_a_render_that_is_not_there_is_not_found(admin_client):
    assert admin_client.post(f"{LIST}{uuid4()}/act/", {"action": "cancel"}).status_code == 404
    assert admin_client.get(f"{LIST}{uuid4()}/change/").headers["Location"] == "/admin/"


# --- Permissions --------------------------------------------------------------------------

PERMISSIONS = ("view", "add", "cancel", "retry")
TABLE = [
    (owner, names)
    for owner in (False, True)
    for size in range(len(PERMISSIONS) + 1)
    for names in combinations(PERMISSIONS, size)
]


@pytest.fixture
def answer(rf):
    """What a view of the admin answers to a person: a response that is not made yet, or None."""
    site = admin.site.get_model_admin(RenderJob)

    def answer(user, view, *args, **data):
        request = rf.post("/", data) if data else rf.get("/")
        request.user = user
        request._messages = mock.Mock()
        request.csrf_processing_done = True
        try:
            response = getattr(site, view)(request, *args)
        except PermissionDenied:
            return None
        return response if response.status_code == 200 or data else None

    return answer


@pytest.mark.parametrize(
    ("owner", "names"),
    TABLE,
    ids=["owner" * owner + "+".join(("", *names)) for owner, names in TABLE],
)
def test_each_permission_allows_its_own_and_nothing_else(log_in, answer, owner, names):
    user = log_in(*(f"{name}_renderjob" for name in names))
    running, gone = create_render("A", user=user if owner else None), canceled()
    views, cancels, retries = (name in names for name in ("view", "cancel", "retry"))

    assert bool(answer(user, "changelist_view")) == views
    assert bool(answer(user, "history_view", str(running.pk))) == views
    assert bool(answer(user, "add_view")) == ("add" in names)
    for row, action, allowed in ((running, "cancel", cancels), (gone, "retry", retries)):
        shown = answer(user, "change_view", str(row.pk))
        assert bool(shown) == views
        if shown:
            buttons = [button.action for button in shown.context_data["buttons"]]
            assert buttons == ([action] if allowed else [])
        data = {"action": action, "shown_at": timezone.now().isoformat()}
        assert bool(answer(user, "act_view", row.pk, **data)) == (views and allowed)
    running.refresh_from_db()
    assert (running.status == Status.CANCELED) == (views and cancels)
    assert RenderJob.objects.filter(retry_of=gone).exists() == (views and retries)


def test_the_permission_to_change_shows_nothing(client, log_in):
    log_in("change_renderjob", "delete_renderjob")
    row = create_render("The secret boat")

    for page in (LIST, f"{LIST}{row.pk}/change/", f"{LIST}{row.pk}/history/"):
        response = client.get(page, follow=True)
        assert "secret boat" not in response.text


def test_whoever_is_not_staff_or_not_logged_in_is_asked_to_log_in(client, django_user_model):
    row = create_render("A boat")
    for user in (None, django_user_model.objects.create_user("ann")):
        if user:
            client.force_login(user)
        for url in (LIST, f"{LIST}{row.pk}/change/", f"{LIST}{row.pk}/act/", f"{LIST}add/"):
            assert client.get(url).headers["Location"].startswith("/admin/login/")
        assert "/login/" in act(client, row, "cancel").redirect_chain[0][0]
    row.refresh_from_db()
    assert row.status == Status.PENDING


# --- Links --------------------------------------------------------------------------------


def test_task_results_are_linked_for_who_may_view_them(client, log_in):
    row = create_render("A boat")
    address = f'href="/admin/django_celery_results/taskresult/?q={row.pk}"'

    log_in("view_renderjob")
    assert address not in page(client, row)
    log_in("view_renderjob", "view_taskresult", name="tom")
    assert address in page(client, row)


@pytest.mark.parametrize("slash", ["", "/"])
def test_flower_is_linked_where_it_is_known(admin_client, settings, slash):
    row = create_render("A boat")
    assert "Flower" not in page(admin_client, row)

    settings.RENDERS = {"FLOWER_URL": f"https://flower.example/f{slash}"}
    query = f"name=renders.tasks%20args:{row.pk}"
    assert f'href="https://flower.example/f/tasks?{query}"' in page(admin_client, row)


def test_flower_understands_what_the_link_asks_for():
    search = pytest.importorskip("flower.utils.search")

    found = search.parse_query(f"name:renders.tasks args:{uuid4()}")
    assert [term.field for term in found.children] == ["name", "args"]


def test_a_retry_of_a_retry_leads_both_ways(admin_client):
    first = canceled()
    second = retry_render(first)
    cancel_render(second)
    third = retry_render(second)
    html = page(admin_client, second)

    assert f'href="{LIST}{first.pk}/change/">The render that it retries' in html
    assert f'href="{LIST}{third.pk}/change/">Its retry' in html
