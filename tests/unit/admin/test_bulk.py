"""Add many: shown first, added once, all or none."""

from datetime import timedelta
from unittest import mock

import pytest
from django.contrib.admin.models import LogEntry
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import resolve
from django.utils import timezone

from renders import services
from renders.admin import bulk
from renders.lifecycle.steps import Step
from renders.models import Draft, RenderEvent, RenderJob
from renders.services import drafts
from renders.services.import_files import Layout
from renders.services.references import door
from tests.unit.admin.test_jobs import LIST, site, staff

__all__ = ["site"]
pytestmark = pytest.mark.django_db
PAGE = "/admin/renders/renderjob/add-many/"
RENDERS = RenderJob.objects


def filled(client, prompts="", file=None, name="list.csv", **changes):
    form = client.get(PAGE).context["form"]
    data = {key: form[key].value() for key in ("token", "kind", "model", "priority")}
    data |= {"params": "{}", "prompts": prompts} | changes
    if file is not None:
        content = file if isinstance(file, bytes) else file.encode()
        data["sheet"] = SimpleUploadedFile(name, content)
    return data


def preview(client, *args, **changes):
    """Send the first page; the next one."""
    return client.post(PAGE, filled(client, *args, **changes), follow=True)


def address(response):
    return response.redirect_chain[0][0]


def errors(response):
    return {name: list(words) for name, words in response.context["form"].errors.items()}


# --- The way ------------------------------------------------------------------------------


def test_what_is_pasted_is_shown_and_then_added(
    site, admin_user, followed, django_capture_on_commit_callbacks
):
    shown = preview(site, "a fox\n\na hen", kind="video", params='{"seed": 7}', priority="2")

    assert "2 renders would be added. Each is billed: 2 bills." in shown.text
    assert 'value="Add 2 renders"' in shown.text
    assert not RENDERS.exists()

    with django_capture_on_commit_callbacks(execute=True):
        added = site.post(address(shown), follow=True)

    rows = list(RENDERS.order_by("created_at"))
    assert [row.prompt for row in rows] == ["a fox", "a hen"]
    assert {(row.kind, row.priority, row.params["seed"]) for row in rows} == {("video", 2, 7)}
    assert {row.created_by for row in rows} == {admin_user}
    assert RenderEvent.objects.filter(what="created").count() == 2
    assert followed == [Step("submit", row.pk) for row in rows]
    assert "2 renders added." in added.text
    assert {entry.object_id for entry in LogEntry.objects.all()} == {str(row.pk) for row in rows}


def test_afterwards_the_list_shows_those_and_no_other(site):
    services.create_render("a cat")
    added = site.post(address(preview(site, "a fox\na hen")), follow=True)

    assert {row.prompt for row in added.context["cl"].result_list} == {"a fox", "a hen"}


def test_a_table_is_shown_with_its_lines(site):
    text = 'prompt;params\r\n\r\n=1+1 <b>;"{""a"": ""<i>""}"\r\n'
    html = preview(site, file=text).text

    assert "<td>3</td>" in html
    assert "=1+1 &lt;b&gt;" in html and "<i>" not in html
    assert "1 render would be added. Each is billed." in html


def test_repeats_are_pointed_out(site):
    html = preview(site, file="a\nb\na", name="list.txt").text

    assert "Line 3 is the same as line 1." in html
    assert 'value="Add 3 renders"' in html


def test_the_button_is_on_the_list_of_who_may_add(site, client, django_user_model):
    assert PAGE in site.get(LIST).text
    staff(client, django_user_model, "view")
    assert PAGE not in client.get(LIST).text


# --- Once ---------------------------------------------------------------------------------


def test_a_double_click_a_reload_and_the_back_button_add_nothing(site):
    data = filled(site, "a fox\na hen")
    shown = site.post(PAGE, data, follow=True)
    site.post(address(shown))
    again = site.post(address(shown), follow=True)
    back = site.post(PAGE, data, follow=True)  # the first form, sent anew
    reloaded = site.get(address(shown), follow=True)

    assert RENDERS.count() == 2
    for page in (again, back, reloaded):
        assert "nothing was added again" in page.text
        assert len(page.context["cl"].result_list) == 2


def test_two_tabs_of_one_preview_add_once(site):
    data = filled(site, "a fox")
    tabs = [address(site.post(PAGE, data, follow=True)) for _ in range(2)]
    for tab in tabs:
        site.post(tab)

    assert RENDERS.count() == 1


def test_a_form_that_was_gone_back_to_and_filled_anew_is_another(site):
    data = filled(site, "a fox")
    site.post(address(site.post(PAGE, data, follow=True)))
    shown = site.post(PAGE, data | {"prompts": "a hen"}, follow=True)
    assert "1 render would be added" in shown.text
    site.post(address(shown))

    assert {row.prompt for row in RENDERS.all()} == {"a fox", "a hen"}


def test_each_tab_adds_what_it_shows(site):
    """The list that is shown in one tab is not exchanged from another, or by going back."""
    data = filled(site, "a fox")
    first = site.post(PAGE, data, follow=True)
    second = site.post(PAGE, data | {"prompts": "a hen\na cow"}, follow=True)
    assert 'value="Add 1 render"' in first.text and 'value="Add 2 renders"' in second.text

    site.post(address(first))
    assert [row.prompt for row in RENDERS.all()] == ["a fox"]

    site.post(address(second))
    site.post(address(second))
    assert RENDERS.count() == 3


def test_a_click_that_reads_the_list_while_the_first_one_adds_it_says_so(site, monkeypatch):
    shown = preview(site, file="prompt,reference\na fox,r1")
    check, draft = drafts.check, Draft.objects.get()

    def slowly(*args):
        monkeypatch.setattr(drafts, "check", check)
        drafts.add(draft, draft.created_by)  # the first click
        return check(*args)

    monkeypatch.setattr(drafts, "check", slowly)

    assert "nothing was added again" in site.post(address(shown), follow=True).text
    assert RENDERS.count() == 1


def test_the_same_list_from_another_form_is_pointed_out(site):
    site.post(address(preview(site, "a fox\na hen")))

    assert "You added a list with exactly these lines" in preview(site, "a fox\na hen").text


def test_the_draft_of_another_is_not_there(site, client, django_user_model, admin_user):
    token = "t" * 24
    drafts.keep(admin_user, token, "a fox", drafts.Layout.LINES, {})
    staff(client, django_user_model, "view", "add")
    response = client.post(f"{PAGE}{token}/", follow=True)

    assert "This list is no longer kept. Nothing was added" in response.text
    mine = client.post(PAGE, filled(client, "a hen", token=token))
    assert "Open this page anew." in mine.text
    assert not RENDERS.exists()


def test_a_draft_is_kept_for_a_day(site):
    shown = preview(site, "a fox")
    Draft.objects.update(created_at=timezone.now() - timedelta(days=1, minutes=1))
    preview(site, "a hen")

    assert "no longer kept" in site.post(address(shown), follow=True).text
    assert not RENDERS.exists()


# --- What is wrong ------------------------------------------------------------------------


def test_one_bad_line_adds_none_and_all_are_told(site):
    response = preview(site, file="prompt,params\na fox,\na hen,{\n,\nb,[1]")

    assert "Nothing was added: 2 things must be put right first." in response.text
    assert "Line 3, params: Not valid JSON at line 1, column 2" in response.text
    assert "Line 5, params: A JSON object is needed" in response.text
    assert not Draft.objects.exists()


def test_a_reference_of_another_render_is_a_fault_before_and_after_the_preview(site, admin_user):
    services.create([{"prompt": "a cat", "reference": "r1"}], admin_user, door(admin_user))
    assert (
        "Line 2, reference: Another render has this"
        in preview(site, file="prompt,reference\na fox,r1").text
    )

    shown = preview(site, file="prompt,reference\na hen,\na fox,r2")
    services.create([{"prompt": "a dog", "reference": "r2"}], admin_user, door(admin_user))
    response = site.post(address(shown))
    assert "Nothing was added." in response.text
    assert "Line 3, reference: Another render has this reference." in response.text
    assert RENDERS.count() == 2


def test_a_reference_that_is_taken_in_the_last_moment_adds_none(site, admin_user, monkeypatch):
    shown = preview(site, file="prompt,reference\na hen,\na fox,r2")
    services.create([{"prompt": "a dog", "reference": "r2"}], admin_user, door(admin_user))
    monkeypatch.setattr(drafts, "_taken", lambda references, user: set())

    assert "A reference was taken meanwhile" in site.post(address(shown)).text
    assert RENDERS.count() == 1
    assert not Draft.objects.filter(added_at__isnull=False).exists()


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({}, "prompts", "Type prompts or choose a file."),
        ({"prompts": " \n"}, "prompts", "Type prompts or choose a file."),
        ({"prompts": "a", "file": "prompt\nb"}, "prompts", "not both"),
        ({"file": "prompt\n"}, "sheet", "There is no render in it."),
        ({"file": b"prompt\nA caf\xe9\n"}, "sheet", "not UTF-8: line 2"),
        ({"file": "x", "name": "a.xlsx"}, "sheet", "must end in one of"),
        ({"prompts": "a", "params": "[1"}, "params", "Not valid JSON at line 1"),
        (
            {"prompts": "a", "params": '{"mode": 1}'},
            "params",
            "not part of the params of kind image",
        ),
        ({"prompts": "a", "kind": "hologram"}, "kind", "hologram"),
        ({"prompts": "a", "token": ""}, "token", "Send the form again."),
    ],
    ids=lambda value: "-" if isinstance(value, dict) else value,
)
def test_a_form_that_cannot_be_read_says_why(site, changes, field, words):
    [text] = errors(preview(site, **changes))[field]

    assert words in text
    assert not Draft.objects.exists()


def test_a_file_that_is_too_large_is_refused(site, monkeypatch):
    monkeypatch.setattr("renders.admin.bulk.MAX_BYTES", 5)

    assert "larger than" in errors(preview(site, file="prompt\na"))["sheet"][0]


def test_a_long_paste_is_taken_and_one_too_long_is_refused_in_words(site, settings, monkeypatch):
    assert settings.DATA_UPLOAD_MAX_MEMORY_SIZE >= 4 * bulk.MOST_TYPED
    assert "maxlength" not in str(site.get(PAGE).context["form"]["prompts"])

    monkeypatch.setattr(bulk, "MOST_TYPED", 9)
    assert errors(preview(site, "a fox\na hen"))["prompts"] == [
        "More than 9 characters: send them as a .txt file."
    ]
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 2_000
    refused = site.post(PAGE, {"prompts": "a fox\n" * 1_000})
    assert (refused.status_code, RENDERS.count()) == (413, 0)
    assert "A form holds up to 0.002 MB" in refused.text


def test_what_was_typed_stays_where_a_line_is_wrong(site, settings):
    settings.RENDERS = {"MAX_PROMPT_LENGTH": 5}
    response = preview(site, "a fox\na lion")

    assert "Line 2, prompt: Longer than 5 characters." in response.text
    assert "a fox\na lion</textarea>" in response.text


# --- Who may ------------------------------------------------------------------------------


def test_no_address_of_a_preview_holds_what_a_database_does_not(site):
    """PostgreSQL cannot even look for a NUL."""
    preview_name = "renders_renderjob_add_many_preview"
    assert resolve(f"{PAGE}{'t' * 24}/").url_name == preview_name
    assert resolve(f"{PAGE}\0/").url_name != preview_name


def test_others_may_not(client, django_user_model):
    staff(client, django_user_model, "view")

    assert client.get(PAGE).status_code == 403
    assert client.post(PAGE, {"prompts": "a"}).status_code == 403
    assert client.post(f"{PAGE}{'t' * 24}/").status_code == 403


def test_who_may_only_add_is_led_to_the_gallery(client, django_user_model):
    staff(client, django_user_model, "add")
    added = client.post(address(preview(client, "a fox")), follow=True)

    assert added.redirect_chain[-1][0] == "/renders/"
    assert "1 render added." in added.text


def test_fields_of_one_kinds_own_are_columns_and_shown(site):
    text = "prompt,kind,avatar_handle,image_url\n,avatar,@mara,https://example.com/a.png\n"
    shown = preview(site, file=text)

    assert "<div>avatar_handle: mara</div><div>image_url: https://example.com/a.png</div>" in (
        shown.text
    )
    site.post(address(shown))
    row = RENDERS.get()
    assert (row.prompt, row.model, row.params["avatar_handle"]) == ("", "", "mara")
    assert "Line 2, image_url" in preview(site, file=text.replace("https", "http")).text


# --- What this person may ask for ---------------------------------------------------------


def kept(user, text, **common):
    fields = {"kind": "image", "model": "sume/auto", "priority": 0, "params": {}, **common}
    return drafts.keep(user, "t" * 24, text, Layout.LINES, fields)


def test_a_priority_without_the_permission_is_wrong_at_its_line(ann):
    text = "prompt,priority\na fox,0\na hen,2\na cow,-1\n"

    [fault] = drafts.check(text, Layout.TABLE, {}, ann).faults
    assert str(fault).startswith("Line 3, priority: A priority above 0 needs a permission.")
    with pytest.raises(drafts.Faulty):
        drafts.add(kept(ann, "a fox", priority=1), ann)
    assert not RENDERS.exists()


def test_the_field_for_a_priority_is_shown_to_those_who_may_give_one(site, ann):
    assert 'name="priority"' in site.get(PAGE).text

    form = bulk.AddManyForm(user=ann)
    assert "priority" not in form.fields
    assert "priority" not in str(bulk._fieldsets(form))
    data = {"token": "t" * 24, "prompts": "a fox", "kind": "image", "model": "m", "params": "{}"}
    form = bulk.AddManyForm(data, user=ann)
    assert form.is_valid(), form.errors
    assert form.cleaned_data["common"]["priority"] == 0


def test_a_list_that_can_never_fit_is_refused_before_it_is_shown(ann, settings):
    settings.RENDERS = {**settings.RENDERS, "MAX_WAITING_PER_USER": 2}

    [fault] = drafts.check("a fox\na hen\na cow", Layout.LINES, {}, ann).faults
    assert str(fault).startswith("These are 3 new renders, and you may have at most 2 waiting.")


def test_a_list_that_does_not_fit_now_is_kept_and_can_be_added_later(
    client, django_user_model, settings
):
    settings.RENDERS = {**settings.RENDERS, "MAX_WAITING_PER_USER": 2}
    sam = staff(client, django_user_model, "add")
    waiting = services.create_render("older", user=sam)
    draft = kept(sam, "a fox\na hen")
    page = f"{PAGE}{draft.token}/"
    staff_as_limited = mock.patch(
        "renders.services.permissions.may_exceed_waiting_limit", return_value=False
    )
    with staff_as_limited:
        refused = client.post(page)

        assert "Nothing was added. You have 1 render waiting, and at most 2 may" in refused.text
        assert 'value="Add 2 renders"' in refused.text
        assert RENDERS.count() == 1
        services.cancel_render(waiting)
        client.post(page)
    assert RENDERS.pending().count() == 2


def test_a_model_that_is_refused_is_told_once_and_again_at_the_last_moment(site, settings):
    own = settings.RENDERS
    settings.RENDERS = {**own, "BUDGET_USD": 1, "PRICES": "image:sume/auto=0.09,image:b=5"}
    text = preview(site, file="prompt,model\na,\nb,b\nc,b\nd,dear\n").text

    assert "Nothing was added: 2 things must be put right first." in text
    assert "Line 3, model: One render costs about $5.00, more than the month" in text
    assert "Line 5, model: The model dear has no price" in text
    settings.RENDERS = own
    shown = preview(site, "a\nb")
    settings.RENDERS = {**own, "MODELS": "gpt-image-2"}
    response = site.post(address(shown))
    assert "Line 1, model: The model sume/auto is not allowed here." in response.text
    assert not RENDERS.exists()


def test_the_form_begins_with_an_allowed_model_and_offers_all(site, settings):
    settings.RENDERS = {**settings.RENDERS, "MODELS": "gpt-image-2,other"}
    text = site.get(PAGE).text

    assert 'value="gpt-image-2"' in text and '<option value="other">' in text


def test_the_preview_adds_up_the_prices_of_each_model(site, settings):
    settings.RENDERS = {**settings.RENDERS, "PRICES": "image=0.09,image:b=0.20"}

    assert "about $0.49 in all" in preview(site, file="prompt,model\na,\nb,b\nc,b\n").text
