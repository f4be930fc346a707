"""Who may spend money, and who may be sent first: everybody, or those who were given leave."""

import pytest
from django.contrib.auth.models import Permission

from renders import services
from renders.exceptions import InvalidRender
from renders.models import RenderJob
from renders.services import cancel_render, create_render, permissions
from renders.services.references import door

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


# --- Priorities ---------------------------------------------------------------------------


def allowed(user):
    user.user_permissions.add(Permission.objects.get(codename="prioritize_renderjob"))
    return type(user).objects.get(pk=user.pk)


def test_staff_and_those_with_the_permission_may_give_a_priority(ann, django_user_model):
    sam = django_user_model.objects.create_user("sam", is_staff=True)

    assert not permissions.may_prioritize(ann)
    assert permissions.may_prioritize(sam)
    assert permissions.may_prioritize(allowed(ann))


def test_the_permission_to_go_first_is_none_to_have_many_waiting(ann):
    assert not permissions.may_exceed_waiting_limit(allowed(ann))


@pytest.mark.parametrize("priority", [1, 32_000])
def test_without_leave_no_door_takes_a_priority_above_0(ann, priority):
    requests = [{"prompt": "A boat"}, {"prompt": "A fox", "priority": priority}]
    with pytest.raises(InvalidRender) as caught:
        services.create(requests, ann, door(ann))

    assert (caught.value.field, caught.value.index) == ("priority", 1)
    assert caught.value.message.startswith("A priority above 0 needs a permission.")
    assert not RenderJob.objects.exists()


@pytest.mark.parametrize("priority", [0, -1, -32_000])
def test_everybody_may_let_others_go_first(ann, priority):
    [(render, _)] = services.create([{"prompt": "A", "priority": priority}], ann, door(ann))

    assert render.priority == priority


def test_with_leave_a_priority_is_taken(ann):
    user = allowed(ann)
    [(render, _)] = services.create([{"prompt": "A", "priority": 9}], user, door(user))

    assert render.priority == 9


def test_a_known_reference_passes_whatever_priority_is_asked_for(ann):
    known = {"prompt": "A boat", "reference": "order-1"}
    [(render, _)] = services.create([known], ann, door(ann))

    assert services.create([{**known, "priority": 9}], ann, door(ann)) == [(render, False)]
    assert RenderJob.objects.get().priority == 0


def test_the_sites_code_gives_any_priority_and_a_retry_keeps_it(ann):
    render = create_render("A boat", user=ann, priority=9)
    cancel_render(render)

    assert services.retry_render(render, user=ann).priority == 9
