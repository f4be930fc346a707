"""The admin adds renders through the services, once, and edits and deletes none."""

import json
import re
from unittest import mock

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django.utils.html import escape

from renders import services, transitions
from renders.models import RenderEvent, RenderJob
from renders.presentation import kind_fields
from renders.presentation.widgets import EXAMPLES, HELP
from renders.services import create_render
from renders.states import Kind, Status

pytestmark = pytest.mark.django_db
LIST = "/admin/renders/renderjob/"
ADD = "/admin/renders/renderjob/add/"


@pytest.fixture
def site(admin_client):
    return admin_client


def staff(client, django_user_model, *permissions):
    user = django_user_model.objects.create_user("sam", is_staff=True)
    codenames = [f"{name}_renderjob" for name in permissions]
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client.force_login(user)
    return user


def sent(user, artifacts=(), prompt="A boat"):
    row = create_render(prompt, user=user)
    now = timezone.now()
    transitions.claim(row.pk, now, "default")
    transitions.record_submitted(
        row.pk, now, job_id="job-1", sume_status="processing", hit=False, next_poll_at=now
    )
    if artifacts:
        transitions.end(row.pk, 0, now, Status.COMPLETED, sume_status="completed", cost=40_000)
        transitions.store(row.pk, result={"artifacts": list(artifacts)})
    return row


def filled(client, **changes):
    form = client.get(ADD).context["adminform"].form
    data = {name: form[name].value() for name in ("token", "kind", "model", "priority")}
    return data | {"prompt": "A boat", "params": "{}", "reference": ""} | changes


# --- Adding -------------------------------------------------------------------------------


def test_the_field_for_a_priority_is_shown_to_those_who_may_give_one(client, django_user_model):
    staff(client, django_user_model, "add")
    assert 'name="priority"' in client.get(ADD).text

    with mock.patch("renders.services.permissions.may_prioritize", return_value=False):
        shown = client.get(ADD)
        data = {"token": shown.context["adminform"].form["token"].value(), "kind": "image"}
        data |= {"prompt": "A boat", "model": "sume/auto", "params": "{}", "priority": "5"}
        client.post(ADD, data)

    assert 'name="priority"' not in shown.text
    assert RenderJob.objects.get().priority == 0


def test_adding_goes_through_the_services(site, admin_user):
    with mock.patch.object(services, "create", wraps=services.create) as create:
        data = filled(site, params='{"seed": 7}', priority="5", kind="video")
        response = site.post(ADD, data, follow=True)
    row = RenderJob.objects.get()

    assert create.call_count == 1
    assert (row.kind, row.params, row.priority) == ("video", {"seed": 7}, 5)
    assert row.created_by == admin_user
    assert list(row.events.values_list("what", flat=True)) == ["created"]
    assert response.redirect_chain == [(f"{LIST}{row.pk}/change/", 302)]
    assert LogEntry.objects.get().object_id == str(row.pk)


def test_a_render_is_sent_after_the_commit(site, django_capture_on_commit_callbacks):
    with (
        mock.patch("renders.schedulers.dispatch._send", return_value=True) as send,
        django_capture_on_commit_callbacks(execute=True),
    ):
        site.post(ADD, filled(site))
    row = RenderJob.objects.get()

    assert send.call_count == 1
    assert str(row.pk) in str(send.call_args)


def test_a_double_click_makes_one_render(site):
    data = filled(site)
    first = site.post(ADD, data)
    second = site.post(ADD, data, follow=True)

    assert RenderJob.objects.count() == 1
    assert second.redirect_chain[0][0] == first.headers["Location"]
    assert "nothing was added again" in second.content.decode()
    assert LogEntry.objects.count() == 1


def test_a_double_click_with_a_reference_of_ones_own_makes_one_render(site):
    data = filled(site, reference="order-1")
    site.post(ADD, data)
    site.post(ADD, data)

    assert RenderJob.objects.get().reference == "order-1"


def test_two_tabs_are_two_forms_and_a_way_back_is_none(site):
    tabs = [filled(site), filled(site)]
    for data in tabs:
        site.post(ADD, data)
    assert RenderJob.objects.count() == 2

    back = site.post(ADD, tabs[0] | {"prompt": "A boat, but red"})
    assert "Nothing was added now" in back.content.decode()
    assert RenderJob.objects.count() == 2

    again = {name: back.context["adminform"].form[name].value() for name in tabs[0]}
    site.post(ADD, again)
    assert RenderJob.objects.count() == 3


def test_a_form_sent_after_the_session_ended_adds_nothing_until_it_is_sent_again(
    client, django_user_model
):
    user = django_user_model.objects.create_superuser("ann")
    client.force_login(user)
    data = filled(client)
    client.logout()
    refused = client.post(ADD, data)
    assert refused.headers["Location"] == f"/admin/login/?next={ADD}"
    assert not RenderJob.objects.exists()

    client.force_login(user)
    for _ in range(2):
        client.post(ADD, data)
    assert RenderJob.objects.count() == 1


@pytest.mark.parametrize(("asked", "chosen"), [("video", "video"), ("", "image"), ("x", "image")])
def test_the_address_may_choose_the_kind(site, asked, chosen):
    html = site.get(ADD, {"kind": asked, "prompt": "A fox"}).content.decode()

    assert re.findall(r'name="kind" value="(\w+)"[^>]*checked', html) == [chosen]
    assert "A fox</textarea>" in html
    for kind in Kind:
        assert HELP[kind] in html and EXAMPLES[kind] in html


def test_a_refused_form_keeps_what_was_typed_and_points_at_the_json(site):
    bad = '{"seed": 7,\n "style": soft}'
    html = site.post(ADD, filled(site, params=bad, kind="avatar")).content.decode()

    assert "Not valid JSON at line 2, column 11" in html
    assert 'data-error-line="2"' in html and 'data-error-column="11"' in html
    assert "renders/json-editor.js" in html and "renders/json-editor.css" in html
    assert re.findall(r'name="kind" value="(\w+)"[^>]*checked', html) == ["avatar"]
    assert escape(bad) in html


def test_adding_another_shows_a_fresh_form(site):
    response = site.post(ADD, filled(site, _addanother="1"))

    assert response.headers["Location"] == ADD
    site.post(ADD, filled(site))
    assert RenderJob.objects.count() == 2


def test_errors_show_at_their_fields(site):
    response = site.post(ADD, filled(site, params="[1]", prompt="x" * 20_001))
    errors = response.context["adminform"].form.errors

    assert set(errors) == {"params", "prompt"}
    assert "A JSON object is needed" in response.content.decode()
    assert not RenderJob.objects.exists()


def test_only_the_request_can_be_given(site):
    form = site.get(ADD).context["adminform"].form
    shown = {"token", "kind", "prompt", "model", "params", "priority", "reference"}

    assert set(form.fields) - {*kind_fields.FORM_KINDS} == shown - {"model"}


def test_who_may_only_add_is_led_to_the_render(client, django_user_model):
    user = staff(client, django_user_model, "add")
    response = client.post(ADD, filled(client))
    row = RenderJob.objects.get()

    assert row.created_by == user
    assert response.headers["Location"] == f"/renders/{row.pk}/"
    assert client.get(response.headers["Location"]).status_code == 200


# --- Reading ------------------------------------------------------------------------------


def test_a_render_is_read_only(site, ann):
    row = create_render("A boat", user=ann)
    page = site.get(f"{LIST}{row.pk}/change/").content.decode()

    assert 'name="prompt"' not in page
    assert 'name="_save"' not in page
    assert site.post(f"{LIST}{row.pk}/change/", {"prompt": "x"}).status_code == 403
    assert site.get(f"{LIST}{row.pk}/delete/").status_code == 403
    assert "delete_selected" not in site.get(LIST).content.decode()


def test_the_page_shows_timeline_and_picture_and_no_signed_address(site, ann):
    url = "https://media.example/a.png?X-Signature=hush"
    image = {"type": "image", "content_type": "image/png", "url": url, "file": "a.png"}
    row = sent(ann, [image, {"type": "video", "content_type": "video/mp4", "url": url}])
    pages = [
        site.get(LIST),
        site.get(f"{LIST}{row.pk}/change/"),
        site.get(f"{LIST}{row.pk}/history/"),
    ]
    html = pages[1].content.decode()

    assert f'<img src="/renders/{row.pk}/artifacts/0/"' in html
    assert f'<video src="/renders/{row.pk}/artifacts/1/"' in html
    assert "Accepted by Sume" in html and "Sume job job-1" in html
    for page in pages:
        assert b"hush" not in page.content and b"media.example" not in page.content


def test_a_prompt_is_text_and_never_markup(site, ann):
    row = create_render("<script>x</script>", user=ann, params={"a": "<script>y"})
    for url in (LIST, f"{LIST}{row.pk}/change/"):
        html = site.get(url).content.decode()
        assert "<script>x" not in html and "<script>y" not in html
        assert "&lt;script&gt;x" in html


def test_a_picture_is_named_by_its_prompt_as_text(site, ann):
    image = {"type": "image", "content_type": "image/png", "file": "a.png"}
    row = sent(ann, [image], prompt='A "boat" onerror=x')

    assert 'alt="A &quot;boat&quot; onerror=x"' in site.get(f"{LIST}{row.pk}/change/").text


def test_a_hundred_rows_take_as_many_queries_as_one(
    site, ann, django_user_model, django_assert_num_queries
):
    image = {"type": "image", "content_type": "image/png", "file": "a.png"}
    sent(ann, [image])
    site.get(LIST)
    with CaptureQueriesContext(connection) as few:
        site.get(LIST)
    users = django_user_model.objects.bulk_create(
        [django_user_model(username=f"user-{number}") for number in range(99)]
    )
    RenderJob.objects.bulk_create(
        [
            RenderJob(prompt="A boat", created_by=user, result={"artifacts": [image]})
            for user in users
        ]
    )
    with django_assert_num_queries(len(few)) as many:
        html = site.get(LIST).content.decode()
    assert html.count('<img class="renders-thumbnail"') == 100
    assert not any("request_body" in query["sql"] for query in many.captured_queries)


def test_events_have_no_admin_of_their_own():
    assert not admin.site.is_registered(RenderEvent)


# --- Kinds with fields of their own -------------------------------------------------------

MARA = {"avatar_handle": "mara", "image_url": "https://example.com/mara.png"}


def test_the_admin_begins_with_what_another_render_asks_for(site, admin_user):
    row = create_render("", user=admin_user, kind="avatar", params={**MARA, "locale": "de"})
    link = f"{ADD}?from={row.pk}"
    assert f'href="{link}"' in site.get(f"{LIST}{row.pk}/change/").text
    form = site.get(link).context["adminform"].form

    assert form["kind"].value() == "avatar"
    assert form["avatar_handle"].value() == "mara"
    assert form["image_url"].value() == MARA["image_url"]
    assert json.loads(form["params"].value()) == {"locale": "de"}
    assert site.get(f"{ADD}?from=boat").status_code == 404
    assert site.get(f"{ADD}?from={'0' * 32}").status_code == 404


def test_a_kind_is_added_by_its_fields(site):
    site.post(ADD, filled(site, kind="avatar", prompt="", **MARA, quality="best"))
    row = RenderJob.objects.get()

    assert (row.kind, row.prompt, row.model, row.params) == ("avatar", "", "", MARA)


def test_an_avatar_without_a_prompt_has_a_title_and_no_model(site):
    row = create_render("", kind="avatar", params=MARA)
    page = site.get(f"{LIST}{row.pk}/change/").text

    assert "@mara, from a photo" in page and "@mara, from a photo" in site.get(LIST).text
    assert "field-model" not in page
    assert "field-model" in site.get(f"{LIST}{create_render('A boat').pk}/change/").text
