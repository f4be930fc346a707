"""Each kind's body is what Sume's public client sends; what is not part of it is refused."""

import pytest

from renders.states import Kind, takes_model
from renders.sume.bodies import SHAPES, BadField, body, clean

URL = "https://example.com/mara.png"
MARA = {"avatar_handle": "mara"}
PROPS = {"ethnicity": "South Asian", "sex": "female", "age": 35}
VIDEO_FIELDS = {
    "quality": "max",
    "scene": {"type": "photo", "image_url": URL},
    "product_image": URL,
    "aspect_ratio": "9:16",
    "title": "Spring",
    "resolution": "720p",
}


@pytest.mark.parametrize(
    ("kind", "prompt", "params", "expected"),
    [
        ("image", "a fox", {"seed": 7}, {"model": "m", "prompt": "a fox", "seed": 7}),
        ("video", "a fox", {}, {"model": "m", "prompt": "a fox"}),
        ("avatar", "A baker", MARA, {**MARA, "input": {"type": "prompt", "prompt": "A baker"}}),
        (
            "avatar",
            "",
            {**MARA, "image_url": URL},
            {**MARA, "input": {"type": "photo", "image_url": URL}},
        ),
        ("avatar", "", {**MARA, **PROPS}, {**MARA, "input": {"type": "props", **PROPS}}),
        ("avatar_video", "Hello!", MARA, {**MARA, "script": "Hello!"}),
        (
            "avatar_video",
            "Hello!",
            {**MARA, **VIDEO_FIELDS},
            {**MARA, **VIDEO_FIELDS, "script": "Hello!"},
        ),
    ],
)
def test_each_kind_is_asked_for_in_its_own_way(kind, prompt, params, expected):
    assert body(Kind(kind), "m", prompt, params) == expected


def test_a_handle_is_sent_without_its_sign():
    assert body(Kind.AVATAR, "", "A baker", {"avatar_handle": " @mara "})["avatar_handle"] == "mara"


@pytest.mark.parametrize(
    "url", ["Https://example.com", " https://bücher.example:8443/a?b=%20#c\n", "https://a.b?c"]
)
def test_an_address_is_sent_as_it_is_without_white_space_around_it(url):
    assert clean(Kind.AVATAR, "", {**MARA, "image_url": url})["image_url"] == url.strip()


def test_a_whole_number_may_be_written_with_a_point():
    sent = body(Kind.AVATAR, "", "", {**MARA, **PROPS, "age": 35.0})["input"]["age"]

    assert (sent, type(sent)) == (35, int)


def test_what_the_table_does_not_name_is_sent_as_it_is():
    assert clean(Kind.AVATAR, "A baker", {**MARA, "locale": "de"})["locale"] == "de"


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in Kind for name in SHAPES[kind].not_part]
)
def test_what_is_not_part_is_refused_by_its_name(kind, name):
    with pytest.raises(BadField, match=f"{name} is not part of the params of kind {kind}") as bad:
        clean(kind, "Hello", {**({} if takes_model(kind) else MARA), name: "x"})

    assert bad.value.field == name


@pytest.mark.parametrize(
    ("kind", "prompt", "params", "field"),
    [
        ("avatar", "A baker", {}, "avatar_handle"),
        ("avatar_video", "Hello", {}, "avatar_handle"),
        ("avatar_video", "Hello", {"avatar_handle": "two words"}, "avatar_handle"),
        ("avatar_video", "Hello", {"avatar_handle": ["mara"]}, "avatar_handle"),
        ("avatar", "A baker", {**MARA, "image_url": URL}, "image_url"),
        ("avatar", "A baker", {**MARA, **PROPS}, "ethnicity"),
        ("avatar", "", {**MARA, "image_url": URL, **PROPS}, "ethnicity"),
        ("avatar", "", MARA, "prompt"),
        ("avatar", "", {**MARA, "sex": "male"}, "ethnicity"),
        ("avatar", "", {**MARA, "image_url": "http://example.com/a.png"}, "image_url"),
        ("avatar", "", {**MARA, "image_url": "https://"}, "image_url"),
        ("avatar", "", {**MARA, "image_url": "\x01https://example.com/a.png"}, "image_url"),
        ("avatar", "", {**MARA, "image_url": "https://ann:pw@example.com/a.png"}, "image_url"),
        ("avatar", "", {**MARA, "image_url": "https://[example.com/a.png"}, "image_url"),
        ("avatar", "", {**MARA, "image_url": f"https://a.example/{'a' * 2_000}"}, "image_url"),
        ("avatar", "", {**MARA, **PROPS, "age": 19}, "age"),
        ("avatar", "", {**MARA, **PROPS, "age": 35.5}, "age"),
        ("avatar", "", {**MARA, **PROPS, "age": True}, "age"),
        ("avatar", "", {**MARA, **PROPS, "sex": "other"}, "sex"),
        ("avatar", "", {**MARA, **PROPS, "ethnicity": "Martian"}, "ethnicity"),
        ("avatar_video", "Hello", {**MARA, "quality": "best"}, "quality"),
        ("avatar_video", "Hello", {**MARA, "resolution": "1080p"}, "resolution"),
        ("avatar_video", "Hello", {**MARA, "aspect_ratio": "wide"}, "aspect_ratio"),
        ("avatar_video", "Hello", {**MARA, "title": " "}, "title"),
        ("avatar_video", "Hello", {**MARA, "product_image": "a.png"}, "product_image"),
        ("avatar_video", "Hello", {**MARA, "scene": "a kitchen"}, "scene"),
        ("avatar_video", "Hello", {**MARA, "scene": {"type": "prompt"}}, "scene"),
        (
            "avatar_video",
            "Hello",
            {**MARA, "scene": {"type": "prompt", "prompt": "x", "image_url": URL}},
            "scene",
        ),
    ],
)
def test_what_sume_would_refuse_is_refused_with_the_field_named(kind, prompt, params, field):
    with pytest.raises(BadField) as bad:
        clean(Kind(kind), prompt, params)

    assert bad.value.field == field
    assert str(bad.value).endswith((".", "…", '"}', "}."))


def test_a_script_that_takes_more_than_a_minute_is_refused():
    clean(Kind.AVATAR_VIDEO, "word " * 168, MARA)

    with pytest.raises(BadField, match="about 61 s of speech; the limit is 60 s"):
        clean(Kind.AVATAR_VIDEO, "word " * 170, MARA)


def test_of_a_script_without_spaces_nobody_can_tell_how_long_it_takes():
    clean(Kind.AVATAR_VIDEO, "你好" * 500, MARA)


def test_a_kind_that_only_another_release_knows_is_named():
    with pytest.raises(BadField, match="music is not known to this release") as bad:
        body("music", "", "a song", {})

    assert bad.value.field == "kind"
