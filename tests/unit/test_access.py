"""Who may spend money: everybody who is logged in, or those who were given leave."""

import pytest
from django.contrib.auth.models import Permission

from renders.models import RenderJob
from renders.services import cancel_render, create_render

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann(client, django_user_model):
    ann = django_user_model.objects.create_user("ann")
    client.force_login(ann)
    return ann


@pytest.fixture
def only_with_leave(settings):
    settings.RENDERS = {**settings.RENDERS, "ANYBODY_ADDS": "0"}


def ended(user):
    """One that may be retried."""
    render = create_render("A boat", user=user)
    assert cancel_render(render)
    return render


def asked(client, render):
    """The status of each way to make a render, and what the pages offer of them."""
    body = {"prompt": "A fox"}
    new, retry = "/renders/new/", f"/renders/{render.pk}/retry/"
    api = "/api/renders/"
    tries = [
        client.get(new),
        client.post(new, body | {"kind": "image", "token": "t" * 20}),
        client.post(api, body, content_type="application/json"),
        client.post(f"{api}{render.pk}/retry/", content_type="application/json"),
        client.post(retry),
    ]
    pages = "/renders/", f"/renders/{render.pk}/", "/renders/charts/", "/renders/?q=none"
    offered = {link for page in pages for link in (new, retry) if link in client.get(page).text}
    return [response.status_code for response in tries], offered


def test_whoever_is_logged_in_may_make_renders(client, ann, followed):
    render = ended(ann)
    pages = [client.get(page).text for page in ("/renders/", f"/renders/{render.pk}/")]
    assert "/renders/new/" in pages[0] and f"/renders/{render.pk}/retry/" in pages[1]

    assert asked(client, render)[0] == [200, 302, 202, 202, 302]


@pytest.mark.usefixtures("only_with_leave")
def test_without_leave_no_way_makes_a_render_and_no_page_offers_one(client, ann, followed):
    render = ended(ann)
    statuses, offered = asked(client, render)

    assert statuses == [403] * 5
    assert offered == set()
    assert RenderJob.objects.count() == 1


@pytest.mark.usefixtures("only_with_leave")
def test_with_leave_all_ways_are_open(client, ann, followed):
    ann.user_permissions.set(Permission.objects.filter(codename="add_renderjob"))
    render = ended(ann)

    assert asked(client, render)[0] == [200, 302, 202, 202, 302]


@pytest.mark.usefixtures("only_with_leave")
def test_without_leave_ones_own_can_still_be_canceled(client, ann, followed):
    render = create_render("A boat", user=ann)

    assert client.post(f"/renders/{render.pk}/cancel/").status_code == 302
