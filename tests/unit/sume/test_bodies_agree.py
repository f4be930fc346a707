"""The app's table of bodies and the stand-in's, written apart from one source, agree."""

import pytest

from renders.sandbox import bodies as sandbox
from renders.states import Kind
from renders.sume import bodies
from renders.sume.bodies import SHAPES, BadField
from tests.unit.sume.test_bodies import MARA, PROPS, URL, VIDEO_FIELDS

SENT = [
    ("image", "a fox", {"seed": 7}),
    ("video", "a fox", {}),
    ("avatar", "A baker", MARA),
    ("avatar", "", {**MARA, "image_url": URL}),
    ("avatar", "", {**MARA, **PROPS}),
    ("avatar_video", "Hello!", {**MARA, **VIDEO_FIELDS}),
    ("avatar_video", "Hello!", {**MARA, "scene": {"type": "prompt", "prompt": "A kitchen"}}),
    *(("avatar", "", {**MARA, **PROPS, "ethnicity": one}) for one in bodies.ETHNICITIES),
    *(("avatar", "", {**MARA, **PROPS, "sex": one}) for one in bodies.SEXES),
    *(("avatar", "", {**MARA, **PROPS, "age": one}) for one in (bodies.YOUNGEST, bodies.OLDEST)),
    *(("avatar_video", "Hi", {**MARA, "quality": one}) for one in bodies.QUALITIES),
    *(("avatar_video", "Hi", {**MARA, "resolution": one}) for one in bodies.RESOLUTIONS),
]
# What the door refuses, as it would go out.
REFUSED = [
    ("avatar", {"input": {"type": "prompt", "prompt": "A baker"}}),
    ("avatar", {**MARA}),
    ("avatar", {**MARA, "input": {"type": "props", **PROPS, "age": 19}}),
    ("avatar", {**MARA, "input": {"type": "props", **PROPS, "age": 81}}),
    ("avatar", {**MARA, "input": {"type": "props", **PROPS, "sex": "other"}}),
    ("avatar", {**MARA, "input": {"type": "photo", "image_url": "a.png"}}),
    ("avatar", {"model": "sume/auto", "prompt": "A baker"}),
    ("avatar_video", {"script": "Hello!"}),
    ("avatar_video", {**MARA}),
    ("avatar_video", {**MARA, "script": "Hello!", "quality": "best"}),
    ("avatar_video", {**MARA, "script": "Hello!", "resolution": "1080p"}),
    ("avatar_video", {**MARA, "script": "word " * 200}),
]


def wrong(kind, body):
    return list(sandbox.problems(kind, body))


@pytest.mark.parametrize(("kind", "prompt", "params"), SENT)
def test_what_the_app_sends_the_stand_in_takes(kind, prompt, params):
    body = bodies.body(Kind(kind), "sume/auto", prompt, params)

    assert wrong(kind, {**body, "mode": "async"}) == []


@pytest.mark.parametrize(("kind", "body"), REFUSED)
def test_what_the_app_never_sends_the_stand_in_refuses(kind, body):
    assert wrong(kind, body)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (kind, name)
        for kind in (Kind.AVATAR, Kind.AVATAR_VIDEO)
        for name in sorted(
            SHAPES[kind].not_part.keys() - {"mode", "webhook_url", "input", "script"}
        )
    ],
)
def test_what_is_not_part_for_the_one_is_not_for_the_other(kind, name):
    body = bodies.body(kind, "", "Hello!", MARA)

    assert [path for path, _ in wrong(kind, {**body, name: "x"})] == [name]
    with pytest.raises(BadField):
        bodies.body(kind, "", "Hello!", {**MARA, name: "x"})


def test_both_know_the_same_fields():
    shape = sandbox.BODIES["avatar_video"]
    known = {*shape.required, *shape.optional} - {*sandbox.DELIVERY, "script"}

    assert known == set(SHAPES[Kind.AVATAR_VIDEO].fields)
    assert tuple(sandbox.ETHNICITIES) == bodies.ETHNICITIES
