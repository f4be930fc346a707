"""What the body of each kind's submit may and must hold."""

import pytest

from renders.sandbox.bodies import problems, wish
from renders.sandbox.speech import spoken_seconds

PHOTO = {"type": "photo", "image_url": "https://a.example/face.jpg"}
PROPS = {"type": "props", "ethnicity": "Wasian", "sex": "female", "age": 31}
GOOD = {
    "image": {"prompt": "a fox"},
    "video": {"prompt": "a fox"},
    "avatar": {"avatar_handle": "mara", "input": {"type": "prompt", "prompt": "a librarian"}},
    "avatar_video": {"avatar_handle": "mara", "script": "Hello and welcome."},
}
OWN_BODY = ["avatar", "avatar_video"]


def paths(kind: str, without: str = "", **fields) -> list[str]:
    """What is wrong with a good body that these fields were put into, or one taken out of."""
    body = {name: value for name, value in (GOOD[kind] | fields).items() if name != without}
    return [path for path, _ in problems(kind, body)]


@pytest.mark.parametrize("kind", GOOD)
def test_the_smallest_body_of_each_kind_is_taken(kind):
    assert paths(kind) == []


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in GOOD for name in GOOD[kind]])
def test_a_required_field_that_is_missing_or_null_is_named(kind, name):
    assert paths(kind, without=name) == [name]
    assert paths(kind, **{name: None}) == [name]


@pytest.mark.parametrize("kind", ["image", "video"])
def test_a_model_may_have_further_fields_of_its_own(kind):
    assert paths(kind, model="any/model", seed=7, size={"width": 5}) == []


@pytest.mark.parametrize("kind", OWN_BODY)
@pytest.mark.parametrize("name", ["model", "prompt", "avatar", "callback_url", "seed"])
def test_what_is_not_part_of_a_kind_with_a_body_of_its_own_is_named(kind, name):
    body = GOOD[kind] | {name: "x"}
    assert list(problems(kind, body)) == [(name, f"{name} is not part of this request.")]


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("avatar", ["video", "name", "file", "file_url", "script", "quality"]),
        ("avatar_video", ["avatar_id", "voice_id", "ratio", "background", "input"]),
    ],
)
def test_what_the_public_client_refuses_or_another_kind_takes_is_refused_too(kind, names):
    assert paths(kind, **dict.fromkeys(names, "x")) == names


def test_the_body_of_every_other_kind_is_refused_for_an_avatar():
    assert paths("avatar", without="avatar_handle", model="sume/auto", prompt="a fox") == [
        "avatar_handle",
        "model",
        "prompt",
    ]


@pytest.mark.parametrize("kind", GOOD)
@pytest.mark.parametrize(
    ("delivery", "wrong"),
    [
        ({"mode": "sync", "wait_timeout_seconds": 30}, []),
        ({"mode": "subscribe"}, []),
        ({"mode": "webhook", "webhook_url": "https://a.example/hook"}, []),
        ({"mode": "webhook"}, ["webhook_url"]),
        ({"mode": "webhook", "webhook_url": "http://a.example/hook"}, ["webhook_url"]),
        ({"mode": "later"}, ["mode"]),
        ({"mode": None}, ["mode"]),
    ],
)
def test_every_kind_can_say_how_its_result_is_delivered(kind, delivery, wrong):
    assert paths(kind, **delivery) == wrong


@pytest.mark.parametrize("kind", OWN_BODY)
@pytest.mark.parametrize("handle", ["mara", "@mara", "Mara_2-b.c", "\u00fcmit"])
def test_a_handle_is_taken_with_and_without_its_sign(kind, handle):
    assert paths(kind, avatar_handle=handle) == []
    assert wish(kind, GOOD[kind] | {"avatar_handle": handle}).avatar_handle == handle.strip("@")


@pytest.mark.parametrize("kind", OWN_BODY)
@pytest.mark.parametrize("handle", ["", "@", " ", "a b", "@@a", "a@b", "a\n", "x" * 101, 5, ["a"]])
def test_what_is_no_handle_is_refused(kind, handle):
    assert paths(kind, avatar_handle=handle) == ["avatar_handle"]


@pytest.mark.parametrize("source", [PHOTO, PROPS, PROPS | {"age": 20}, PROPS | {"age": 80}])
def test_an_avatar_can_come_from_a_photo_or_from_properties(source):
    assert paths("avatar", input=source) == []


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("a librarian", ["input"]),
        ([], ["input"]),
        ({}, ["input.type"]),
        ({"type": "video", "prompt": "x"}, ["input.type"]),
        ({"type": ["prompt"], "prompt": "x"}, ["input.type"]),
        ({"prompt": "a librarian"}, ["input.type"]),
        ({"type": "prompt"}, ["input.prompt"]),
        ({"type": "prompt", "prompt": " "}, ["input.prompt"]),
        ({"type": "prompt", "prompt": "x", "image_url": "https://a.example/"}, ["input.image_url"]),
        ({"type": "prompt", "prompt": "x", "name": "x"}, ["input.name"]),
        ({"type": "photo"}, ["input.image_url"]),
        (PHOTO | {"image_url": "http://a.example/face.jpg"}, ["input.image_url"]),
        (PHOTO | {"image_url": "face.jpg"}, ["input.image_url"]),
        (PHOTO | {"file_url": "https://a.example/"}, ["input.file_url"]),
        (PHOTO | {"prompt": "x"}, ["input.prompt"]),
        ({"type": "props"}, ["input.ethnicity", "input.sex", "input.age"]),
        (PROPS | {"ethnicity": "asian"}, ["input.ethnicity"]),
        (PROPS | {"sex": "Female"}, ["input.sex"]),
        (PROPS | {"sex": ["female"]}, ["input.sex"]),
        (PROPS | {"age": 19}, ["input.age"]),
        (PROPS | {"age": 81}, ["input.age"]),
        (PROPS | {"age": "31"}, ["input.age"]),
        (PROPS | {"age": 31.5}, ["input.age"]),
        (PROPS | {"age": True}, ["input.age"]),
    ],
    ids=repr,
)
def test_an_avatars_input_is_exactly_one_of_its_types(source, wrong):
    assert paths("avatar", input=source) == wrong


@pytest.mark.parametrize(
    "fields",
    [
        {"quality": "standard"},
        {"quality": "max", "resolution": "720p", "aspect_ratio": "9:16", "title": "Hello"},
        {"product_image": "https://a.example/product.png"},
        {"scene": {"type": "prompt", "prompt": "a library"}},
        {"scene": PHOTO},
    ],
)
def test_an_avatar_video_takes_what_is_documented(fields):
    assert paths("avatar_video", **fields) == []


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"script": "  "}, "script"),
        ({"script": 5}, "script"),
        ({"quality": "best"}, "quality"),
        ({"quality": None}, "quality"),
        ({"resolution": "1080p"}, "resolution"),
        ({"resolution": 720}, "resolution"),
        ({"aspect_ratio": ""}, "aspect_ratio"),
        ({"title": 5}, "title"),
        ({"product_image": "product.png"}, "product_image"),
        ({"scene": "a library"}, "scene"),
        ({"scene": PROPS}, "scene.type"),
        ({"scene": PHOTO | {"prompt": "a library"}}, "scene.prompt"),
        ({"wait_timeout_seconds": 31}, "wait_timeout_seconds"),
    ],
    ids=repr,
)
def test_a_bad_field_of_an_avatar_video_is_named(fields, wrong):
    assert paths("avatar_video", **fields) == [wrong]


@pytest.mark.parametrize(
    ("script", "seconds"),
    [
        ("Hi", 4),
        ("word " * 11, 4),
        ("word " * 12, 5),
        ("word " * 33, 12),
        # One sentence too long for a clip: two of 17 words, each rounded up.
        ("word " * 34, 14),
        # Sentences share a clip as long as they fit into it.
        ("One two three. " * 11, 12),
        ("One two three. " * 12, 16),
        # A short rest joins the clip before it, if it fits there.
        ("word " * 40 + ". Bye now.", 16),
        ("word " * 165, 60),
        ("word " * 168, 60),
        ("word " * 169, 64),
    ],
    ids=lambda value: str(value)[:12],
)
def test_a_script_is_as_long_as_its_clips(script, seconds):
    assert spoken_seconds(script) == seconds
    assert paths("avatar_video", script=script) == ([] if seconds <= 60 else ["script"])


def test_a_script_without_spaces_is_never_too_long():
    script = "\u4f60\u597d\u3002" * 500
    assert spoken_seconds(script) > 60
    assert paths("avatar_video", script=script) == []


@pytest.mark.parametrize(
    ("kind", "fields", "text", "model"),
    [
        ("image", {}, "a fox", "sume/auto"),
        ("video", {"model": "m"}, "a fox", "m"),
        ("avatar", {}, "a librarian", "sume/avatar/v1.0"),
        ("avatar", {"input": PHOTO}, "@mara", "sume/avatar/v1.0"),
        ("avatar", {"input": PROPS}, "@mara", "sume/avatar/v1.0"),
        ("avatar_video", {}, "Hello and welcome.", "sume/avatar-video/v1.0"),
    ],
)
def test_each_kind_has_a_text_to_draw_and_a_model(kind, fields, text, model):
    wanted = wish(kind, GOOD[kind] | fields)
    assert (wanted.text, wanted.model) == (text, model)
