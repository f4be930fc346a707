"""The form adds a render once, keeps what was typed, and begins as it is asked to."""

import json
import re

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from renders.models import RenderJob
from renders.presentation import kind_fields
from renders.presentation.widgets import HELP
from renders.services import cancel_render, create_render

pytestmark = pytest.mark.django_db
NEW = "/renders/new/"


def token_of(response):
    return response.context["form"]["token"].value()


def test_it_adds_a_render_and_leads_to_its_card(page, ann):
    create_render("Older", user=ann)
    token = token_of(page.get(NEW))
    response = page.post(NEW, {"prompt": "A boat", "kind": "video", "token": token}, follow=True)
    row = RenderJob.objects.get(prompt="A boat")

    assert (row.kind, row.created_by, row.model, row.params) == ("video", ann, "sume/auto", {})
    assert response.redirect_chain == [("/renders/", 302)]
    assert "Added: video" in response.text
    assert response.text.index("A boat") < response.text.index("Older")
    assert "every 3s" in response.text


@pytest.mark.parametrize("again", ["double click", "back button"])
def test_the_same_form_adds_one_render(page, again):
    data = {"prompt": "A boat", "kind": "image", "token": token_of(page.get(NEW))}
    page.post(NEW, data)
    if again == "back button":
        page.get(NEW)
    response = page.post(NEW, data, follow=True)

    assert RenderJob.objects.count() == 1
    assert "nothing was added again" in response.text


def test_a_wrong_form_keeps_what_was_typed_and_says_so_at_the_field(page):
    data = {"prompt": "Keep me", "kind": "song", "params": '{"seed": }', "token": "t" * 20}
    html = page.post(NEW, data).text

    assert "Keep me" in html and "{&quot;seed&quot;: }" in html
    assert "song is not one of the available choices" in html
    assert "<details open>" in html
    assert 'aria-describedby="id_params_helptext id_params_error"' in html
    assert RenderJob.objects.count() == 0


def test_what_is_seldom_needed_is_folded_away_and_used(page):
    first = page.get(NEW)
    assert "<details>" in first.text
    page.post(
        NEW,
        {
            "prompt": "A boat",
            "kind": "image",
            "model": "sume/fine",
            "params": '{"seed": 7}',
            "reference": "order-1",
            "priority": "9",
            "token": token_of(first),
        },
    )
    row = RenderJob.objects.get()

    assert (row.model, row.params, row.reference) == ("sume/fine", {"seed": 7}, "order-1")
    assert row.priority == 0  # without the permission, there is no such field


def test_with_the_permission_one_sets_a_priority(page, ann):
    assert 'name="priority"' not in page.get(NEW).text
    ann.user_permissions.add(Permission.objects.get(codename="prioritize_renderjob"))

    first = page.get(NEW)
    data = {"prompt": "A boat", "kind": "image", "priority": "9", "token": token_of(first)}
    page.post(NEW, data)

    assert 'name="priority"' in first.text
    assert RenderJob.objects.get().priority == 9


def test_when_the_line_is_full_nothing_that_was_typed_is_lost(page, ann, settings):
    settings.RENDERS = {**settings.RENDERS, "MAX_WAITING_PER_USER": 1}
    waiting = create_render("Older", user=ann)
    data = {"prompt": "Keep me", "kind": "image", "params": '{"seed": 7}'}
    data["token"] = token_of(page.get(NEW))
    refused = page.post(NEW, data)

    assert "You have 1 render waiting, and at most 1 may wait" in refused.text
    assert "Keep me" in refused.text and "{&quot;seed&quot;: 7}" in refused.text
    assert RenderJob.objects.count() == 1
    # The same form is good once there is space.
    cancel_render(waiting)
    page.post(NEW, {**data, "token": token_of(refused)})
    assert RenderJob.objects.get(prompt="Keep me").params == {"seed": 7}


def test_staff_set_a_priority(client, staff):
    client.force_login(staff)
    first = client.get(NEW)
    data = {"prompt": "A boat", "kind": "image", "priority": "9", "token": token_of(first)}
    client.post(NEW, data)

    assert 'name="priority"' in first.text
    assert RenderJob.objects.get().priority == 9


def test_every_kind_says_what_it_is(page):
    html = page.get(NEW + "?kind=avatar").text

    assert all(words in html for words in HELP.values())
    assert re.search('value="avatar"[^>]* checked', html)


def test_an_own_render_is_a_start(page, ann):
    row = create_render("A <boat>", user=ann, kind="video", params={"seed": 7}, priority=3)
    html = page.get(f"{NEW}?from={row.pk}").text

    assert "A &lt;boat&gt;</textarea>" in html
    assert "&quot;seed&quot;: 7" in html and "<details open>" in html
    assert re.search('value="video"[^>]* checked', html)


@pytest.mark.parametrize("whose", ["bob's", "nobody's", "not an id"])
def test_other_peoples_renders_are_no_start(page, bob, whose):
    known = create_render("Secret", user=bob).pk
    pk = {"bob's": known, "nobody's": "0" * 32, "not an id": "boat"}[whose]

    assert page.get(f"{NEW}?from={pk}").status_code == 404


def test_the_form_needs_the_csrf_token(ann):
    client = Client(enforce_csrf_checks=True)
    client.force_login(ann)

    assert client.post(NEW, {"prompt": "A boat", "kind": "image"}).status_code == 403


def test_strangers_add_nothing(client):
    response = client.post(NEW, {"prompt": "A boat", "kind": "image", "token": "t" * 20})

    assert response.headers["Location"].startswith("/accounts/login/")
    assert RenderJob.objects.count() == 0


def test_an_avatar_is_a_start_also_for_its_video(page, ann):
    params = {"avatar_handle": "mara", "image_url": "https://example.com/a.png", "locale": "de"}
    row = create_render("", user=ann, kind="avatar", params=params)
    same, video = (page.get(f"{NEW}?from={row.pk}{more}") for more in ("", "&kind=avatar_video"))

    assert same.context["form"]["image_url"].value() == params["image_url"]
    assert video.context["form"]["avatar_handle"].value() == "mara"
    assert json.loads(video.context["form"]["params"].value()) == {"locale": "de"}
    assert re.search('value="avatar_video"[^>]* checked', video.text)


def test_every_field_of_a_kind_is_on_the_page_once_and_says_whose_it_is(page):
    html = page.get(NEW).text

    for name, kinds in kind_fields.FORM_KINDS.items():
        assert len(re.findall(f'name="{name}"', html)) == 1
        assert re.search(f'name="{name}"[^>]* data-kinds="{" ".join(kinds)}"', html), name
