"""Inputs follow from the table of bodies: a new field of a kind is asked for everywhere."""

import pytest

from renders.exceptions import InvalidRender
from renders.services.inputs import COLUMNS, INPUTS, merge, place, split
from renders.services.validation import REQUEST_FIELDS, WORKSPACE_FIELD
from renders.states import Kind
from renders.sume.bodies import SHAPES

PHOTO = "https://example.com/mara.png"


def test_every_field_of_the_table_can_be_given_and_has_a_name_and_words():
    for kind, shape in SHAPES.items():
        assert {one.param for one in INPUTS[kind].values()} == set(shape.fields)
        assert all(one.label and one.help for one in INPUTS[kind].values())


def test_no_input_has_the_name_of_what_every_request_has():
    assert not {*COLUMNS} & {*REQUEST_FIELDS, WORKSPACE_FIELD, "token"}


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        ("avatar", {"avatar_handle": "mara", "image_url": PHOTO}),
        ("avatar", {"avatar_handle": "mara", "ethnicity": "White", "sex": "male", "age": 42}),
        ("avatar_video", {"avatar_handle": "m", "scene": {"type": "prompt", "prompt": "A bar"}}),
        ("avatar_video", {"avatar_handle": "m", "scene": {"type": "photo", "image_url": PHOTO}}),
        ("avatar_video", {"quality": "max", "locale": "de", "seed": 7}),
        ("image", {"title": "a", "age": 3}),
    ],
)
def test_what_is_split_is_merged_to_the_same(kind, params):
    texts, rest = split(Kind(kind), params)

    assert merge(Kind(kind), texts, rest) == (params, [])


@pytest.mark.parametrize(
    "params",
    [
        {"age": True},
        {"age": "42"},
        {"age": 4.5},
        {"sex": "other"},
        {"image_url": ["x"]},
        {"avatar_handle": "a\nb"},
    ],
)
def test_what_no_input_can_hold_is_left_over(params):
    texts, rest = split(Kind.AVATAR, params)

    assert merge(Kind.AVATAR, texts, rest) == (params, [])
    assert rest == params


@pytest.mark.parametrize(
    ("field", "filled", "expected"),
    [
        ("params.scene", {"scene_image_url"}, "scene_image_url"),
        ("params.scene", set(), "scene_prompt"),
        ("params.age", set(), "age"),
        ("params.script", set(), "params.script"),
        ("prompt", set(), "prompt"),
    ],
)
def test_an_error_has_a_place(field, filled, expected):
    assert place(InvalidRender(field, "No."), filled) == expected
