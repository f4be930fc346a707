"""The forms add a render once, and say at its field what is wrong."""

import json
import re

import pytest

from renders.admin.forms import RenderAdminForm
from renders.exceptions import InvalidRender
from renders.models import Avatar, RenderJob
from renders.presentation.forms import RenderForm, new_token
from renders.services import avatars, cancel_render, create_render, retry_once
from renders.services.validation import parse_json

pytestmark = pytest.mark.django_db


def page_form(user, **data):
    return RenderForm({"kind": "image", "prompt": "A boat", "token": "t" * 20, **data}, user=user)


def admin_form(user, **data):
    form = RenderAdminForm(
        {
            "kind": "image",
            "prompt": "A boat",
            "model": "sume/auto",
            "params": "{}",
            "priority": "0",
            "token": "t" * 20,
            **data,
        }
    )
    form.user = user
    return form


def test_each_showing_of_a_form_has_a_token_of_its_own(ann):
    tokens = {RenderForm(user=ann)["token"].value() for _ in range(3)}

    assert len(tokens) == 3
    assert all(len(token) >= 16 for token in tokens)


@pytest.mark.parametrize("make_form", [page_form, admin_form])
def test_the_same_form_sent_twice_makes_one_render(ann, make_form):
    first, second = make_form(ann), make_form(ann)

    assert first.is_valid() and not first.repeated
    assert second.is_valid() and second.repeated
    assert second.made == first.made
    assert RenderJob.objects.get().created_by == ann


def test_a_form_changed_after_it_was_sent_asks_before_it_adds_another(ann):
    assert page_form(ann).is_valid()

    changed = page_form(ann, prompt="Two boats")
    assert not changed.is_valid()
    assert "Nothing was added now" in changed.non_field_errors()[0]
    fresh = changed["token"].value()
    assert fresh != "t" * 20

    again = page_form(ann, prompt="Two boats", token=fresh)
    assert again.is_valid()
    assert RenderJob.objects.count() == 2


def test_a_token_of_another_person_leads_to_a_render_of_ones_own(ann, bob):
    for user in (ann, bob):
        form = page_form(user)
        assert form.is_valid() and not form.repeated

    assert RenderJob.objects.filter(created_by=ann).count() == 1
    assert RenderJob.objects.filter(created_by=bob).count() == 1


@pytest.mark.parametrize(
    "token", ["", "short", "x" * 65, "with space and more", "t" * 20 + "\n\n."]
)
def test_a_form_without_a_right_token_adds_nothing_and_gets_a_new_one(ann, token):
    form = page_form(ann, token=token)

    assert not form.is_valid()
    assert page_form(ann, token=form["token"].value()).is_valid()


def test_a_reference_of_ones_own_is_kept_and_guards_as_well(ann):
    first = admin_form(ann, reference="order-1")
    assert first.is_valid()
    row = first.made
    again = admin_form(ann, reference="order-1", token=new_token())

    assert row.reference == "order-1"
    assert again.is_valid() and again.repeated
    assert again.made == row


def test_a_reference_of_ones_own_with_another_request_is_refused_at_its_field(ann):
    assert admin_form(ann, reference="order-1", prompt="Another prompt").is_valid()

    form = admin_form(ann, reference="order-1", token=new_token())

    assert not form.is_valid()
    assert "Another render has this reference" in form.errors["reference"][0]
    assert RenderJob.objects.count() == 1


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("prompt", "   ", "Say what the picture or clip should show."),
        ("prompt", "x" * 20_001, "Longer than 20,000 characters."),
        ("params", '{"seed": 7,}', "Not valid JSON at line 1, column 1"),
        ("params", "[1]", "A JSON object is needed"),
        ("params", '"text"', "A JSON object is needed"),
        ("params", '{"x": NaN}', "NaN is not a JSON number."),
        ("params", '{"x": 1e999}', "NaN and infinity are not JSON numbers."),
        ("params", '{"x": %s}' % ("9" * 5000), "too many digits"),
        ("params", "[" * 100_000, "Nested too deeply"),
        ("params", '{"prompt": "again"}', "Use the field prompt."),
        ("priority", "40000", ""),
        ("priority", "9" * 5_000, ""),
        ("priority", "NaN", ""),
        ("prompt", "a\x00b", "Null characters are not allowed."),
        ("prompt", "a\ud800b", "Half of a surrogate pair"),
        ("model", "\x00", "Null characters are not allowed."),
        ("model", "\udc00", "Half of a surrogate pair"),
        ("reference", "a\x00", "Null characters are not allowed."),
        ("reference", "\ud800", "Half of a surrogate pair"),
        ("kind", "\x00", ""),
        ("params", '{"a": "\\u0000"}', "NUL characters cannot be stored"),
        ("params", '{"a": "\\ud800"}', "Half of a surrogate pair"),
        ("params", '{"\x00": 1}', ""),
        ("kind", "song", "song is not one of the available choices"),
    ],
)
def test_an_error_shows_at_its_field(ann, field, value, words):
    form = admin_form(ann, **{field: value})

    assert not form.is_valid()
    assert list(form.errors) == [field]
    assert words in form.errors[field][0]
    str(form)  # what was typed can be shown again
    assert not RenderJob.objects.exists()


def test_all_errors_show_at_once(ann):
    form = admin_form(ann, prompt="x" * 20_001, params="[]", model=" ")

    assert not form.is_valid()
    assert set(form.errors) == {"prompt", "params", "model"}


def test_params_left_empty_are_an_empty_object(ann):
    form = admin_form(ann, params="")

    assert form.is_valid()
    assert form.made.params == {}


def test_line_ends_are_stored_as_one_character(ann):
    form = page_form(ann, prompt="A boat\r\non a lake")
    form.is_valid()

    assert form.made.prompt == "A boat\non a lake"


def test_a_render_is_retried_once_for_its_owner(ann, bob):
    row = create_render("A boat", user=ann)
    cancel_render(row)

    first, made = retry_once(row, bob)
    second, made_again = retry_once(row, bob)

    assert (made, made_again) == (True, False)
    assert first == second
    assert first.created_by == ann
    assert first.retry_of == row


def test_a_running_render_is_not_retried(ann):
    with pytest.raises(InvalidRender, match="failed or canceled"):
        retry_once(create_render("A boat", user=ann), ann)
    assert RenderJob.objects.count() == 1


def test_json_errors_name_line_and_column():
    with pytest.raises(ValueError, match=r"line 2, column 7"):
        parse_json('{"a": 1,\n "b": x}')


# --- Fields of one kind's own -------------------------------------------------------------

both = pytest.mark.parametrize("make_form", [page_form, admin_form])
PHOTO = "https://example.com/mara.png"
SPEAKS = {"kind": "avatar_video", "prompt": "Hello!", "avatar_handle": "@mara"}


@pytest.fixture
def mara(ann):
    return Avatar.objects.create(handle="mara", owner=ann)


def valid(form):
    assert form.is_valid(), form.errors
    return form.made


@both
def test_the_fields_of_the_kind_become_the_requests_further_fields(ann, mara, make_form):
    filled = {"quality": "max", "scene_prompt": "A bakery", "product_image": PHOTO, "title": "Hi"}
    row = valid(make_form(ann, **SPEAKS, **filled, params='{"locale": "de"}', model="sume/x"))

    assert row.params == {
        "locale": "de",
        "avatar_handle": "mara",
        "quality": "max",
        "scene": {"type": "prompt", "prompt": "A bakery"},
        "product_image": PHOTO,
        "title": "Hi",
    }
    assert row.model == ""


def test_an_avatar_needs_no_prompt_where_a_photo_or_props_say_what(ann):
    props = {"ethnicity": "White", "sex": "female", "age": "35"}
    photo = valid(page_form(ann, kind="avatar", prompt="", avatar_handle="a", image_url=PHOTO))
    other = page_form(ann, kind="avatar", prompt="", avatar_handle="b", token=new_token(), **props)

    assert photo.params == {"avatar_handle": "a", "image_url": PHOTO}
    assert valid(other).params == {"avatar_handle": "b", **props, "age": 35}


@both
def test_what_is_hidden_and_filled_for_another_kind_is_ignored(ann, make_form):
    others = {"avatar_handle": "two words", "age": "old", "quality": "best", "image_url": "x"}

    assert valid(make_form(ann, **others)).params == {}


@both
@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("avatar_handle", {"avatar_handle": ""}),
        ("avatar_handle", {"avatar_handle": "two words"}),
        ("avatar_handle", {"avatar_handle": "nora"}),
        ("avatar_handle", {"params": '{"avatar_handle": "mara"}'}),
        ("quality", {"quality": "best"}),
        ("scene_image_url", {"scene_image_url": "a kitchen"}),
        ("scene_image_url", {"scene_prompt": "A kitchen", "scene_image_url": PHOTO}),
        ("scene_prompt", {"params": '{"scene": 7}'}),
        ("aspect_ratio", {"aspect_ratio": "wide"}),
        ("title", {"title": "Hi", "params": '{"title": "Ho"}'}),
        ("params", {"params": '{"resolution": "1080p"}'}),
        ("params", {"params": '{"script": "Hello"}'}),
        ("prompt", {"prompt": ""}),
    ],
)
def test_an_error_of_a_kinds_own_field_shows_there(
    ann, mara, django_user_model, make_form, field, changes
):
    Avatar.objects.create(handle="nora", owner=django_user_model.objects.create_user("nora"))
    form = make_form(ann, **{**SPEAKS, **changes})

    assert not form.is_valid()
    assert list(form.errors) == [field]
    assert not RenderJob.objects.exists()


def test_a_field_that_is_given_twice_is_told_in_words(ann, mara):
    form = page_form(ann, **SPEAKS, params='{"avatar_handle": "mara"}')

    assert form.errors["avatar_handle"] == [
        "params has avatar_handle too. Give it in one place only."
    ]


def test_more_opens_for_a_seldom_field_that_is_wrong_or_filled(ann, mara):
    assert not page_form(ann, **SPEAKS, params="{}").more_open
    assert page_form(ann, **SPEAKS, aspect_ratio="wide").more_open
    assert page_form(ann, **SPEAKS, title="Hi").more_open
    assert not page_form(ann, title="Hi", params="{}").more_open  # of another kind


@pytest.mark.parametrize("where", ["page", "admin"])
def test_a_form_begins_with_the_fields_of_another_render(ann, where):
    params = {
        "avatar_handle": "mara",
        "scene": {"type": "photo", "image_url": PHOTO},
        "quality": "ultra",
        "locale": "de",
    }
    initial = {"kind": "avatar_video", "params": params}
    if where == "page":
        form = RenderForm(user=ann, initial=initial)
    else:
        form = RenderAdminForm(initial=initial)

    assert form["avatar_handle"].value() == "mara"
    assert form["scene_image_url"].value() == PHOTO
    assert json.loads(form["params"].value()) == {"quality": "ultra", "locale": "de"}  # no choices


def test_the_prompt_is_called_what_it_is_for_the_kind(ann):
    html = str(RenderForm(user=ann)["prompt"].label_tag())

    assert re.findall(r'data-kinds="([\w ]+)">(\w+)<', html) == [
        ("image video", "Prompt"),
        ("avatar", "Description"),
        ("avatar_video", "Script"),
    ]


# --- Avatars that are offered -------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch):
    """How often Sume is asked for its list."""
    calls = []
    monkeypatch.setattr(avatars, "_asked", lambda *args: calls.append(args) or ["mara", "nora"])
    avatars.forget()
    yield calls
    avatars.forget()


def offered(form):
    return re.findall('<option value="(\\w+)">', str(form["avatar_handle"]))


def test_ready_avatars_are_offered_and_any_other_text_can_be_typed(ann, mara, asked):
    Avatar.objects.create(handle="nora")
    Avatar.objects.create(handle="olga", owner=ann)
    form = RenderForm(user=ann, initial={"kind": "avatar_video"})

    assert offered(form) == ["mara"]  # nora is somebody else's, olga is not ready
    assert offered(form) == ["mara"] and len(asked) == 1
    assert 'list="suggestions_avatar_handle"' in str(form["avatar_handle"])
    assert str(form["avatar_handle"]).startswith('<input type="text"')


def test_sume_is_not_asked_for_a_picture_or_where_the_form_is_not_shown(ann, mara, asked):
    assert offered(RenderForm(user=ann)) == ["mara"]  # from our own table
    assert page_form(ann, **SPEAKS).is_valid()

    assert asked == []


def test_without_the_list_the_field_still_works(ann, monkeypatch):
    monkeypatch.setattr(avatars, "_asked", lambda *args: None)
    form = RenderForm(user=ann, initial={"kind": "avatar_video"})

    assert "<datalist" not in str(form["avatar_handle"]) and "list=" not in str(
        form["avatar_handle"]
    )


# --- What this person may ask for -----------------------------------------------------------


def test_a_priority_without_the_permission_is_refused_at_its_field(ann):
    form = admin_form(ann, priority="1")

    assert list(form.errors) == ["priority"]
    assert not RenderJob.objects.exists()


@pytest.mark.parametrize("make_form", [page_form, admin_form])
def test_a_full_line_is_an_error_of_the_form_which_can_be_sent_again(ann, make_form, settings):
    settings.RENDERS = {**settings.RENDERS, "MAX_WAITING_PER_USER": 1}
    waiting = create_render("A fox", user=ann)
    form = make_form(ann)

    [words] = form.non_field_errors()
    assert words.startswith("You have 1 render waiting, and at most 1 may wait")
    assert form["prompt"].value() == "A boat"
    cancel_render(waiting)
    assert make_form(ann).is_valid()


# --- Models and budgets -------------------------------------------------------------------


@pytest.fixture
def told(settings):
    def tell(**changes):
        settings.RENDERS = {**settings.RENDERS, **changes}

    return tell


@pytest.mark.parametrize("form", [page_form, admin_form])
def test_a_model_that_is_refused_is_told_at_its_field_and_nothing_typed_is_lost(form, ann, told):
    told(MODELS="sume/auto,a", BUDGET_USD=1, PRICES="image:a=5")
    for model, words in {
        "dear": "The model dear is not allowed here. Choose one of: sume/auto, a.",
        "sume/auto": "add image:sume/auto=… to RENDERS_PRICES",
        "a": "about $5.00",
    }.items():
        wrong = form(ann, model=model)
        assert not wrong.is_valid()
        assert list(wrong.errors) == ["model"] and words in wrong.errors["model"][0]
        assert (wrong["model"].value(), wrong["prompt"].value()) == (model, "A boat")
    assert not RenderJob.objects.exists()


def test_a_kind_without_models_that_has_no_price_is_told_at_the_kind(ann, told):
    told(BUDGET_USD=1, PRICES="image:sume/auto=0.09")
    wrong = page_form(ann, kind="avatar", avatar_handle="mara", model="ignored")

    assert list(wrong.errors) == ["kind"]
    assert "add avatar=… to RENDERS_PRICES" in wrong.errors["kind"][0]


@pytest.mark.parametrize(
    ("models", "begins"), [("", "sume/auto"), ("a,sume/auto", "sume/auto"), ("a,b", "a")]
)
def test_a_form_begins_with_an_allowed_model_and_offers_all(ann, told, models, begins):
    told(MODELS=models)
    in_admin = type("Form", (RenderAdminForm,), {"user": ann})
    for form in (RenderForm(user=ann), in_admin()):
        html = str(form["model"])
        assert form["model"].value() == begins
        assert html.count("<option") == len(models.split(",")) * bool(models)
        assert 'data-kinds="image video"' in html
        assert bool(models) is (form.fields["model"].help_text.startswith("One of: a, "))
    assert not RenderForm(user=ann).more_open


def test_a_form_that_begins_with_another_render_keeps_its_model(ann, told):
    told(MODELS="a,b")

    assert RenderForm(user=ann, initial={"model": "dear"})["model"].value() == "dear"
    assert RenderForm(user=ann, initial={"model": "dear"}).more_open
