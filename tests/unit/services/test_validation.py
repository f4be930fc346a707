"""The door: what is refused, with the field named, and what comes through."""

import json
import math

import pytest

from renders.exceptions import InvalidRender
from renders.services.validation import (
    MAX_DEPTH,
    MAX_PARAMS_BYTES,
    clean_params,
    clean_request,
    request_errors,
)
from renders.states import Kind


def nested(levels):
    value = 1
    for _ in range(levels):
        value = {"a": value}
    return value


BAD = {
    "no prompt": ("prompt", {"prompt": ""}),
    "a prompt of white space": ("prompt", {"prompt": " \n\t "}),
    "a missing prompt": ("prompt", {"prompt": None}),
    "a prompt that is a number": ("prompt", {"prompt": 7}),
    "a prompt of bytes": ("prompt", {"prompt": b"fox"}),
    "a prompt with NUL": ("prompt", {"prompt": "a fox\x00"}),
    "a prompt with half a surrogate pair": ("prompt", {"prompt": "a fox \ud83d"}),
    "a prompt that is too long": ("prompt", {"prompt": "x" * 20_001}),
    "an unknown kind": ("kind", {"kind": "hologram"}),
    "a kind in capitals": ("kind", {"kind": "IMAGE"}),
    "no kind": ("kind", {"kind": None}),
    "a kind that is a list": ("kind", {"kind": ["image"]}),
    "an empty model": ("model", {"model": " "}),
    "a model that is a list": ("model", {"model": ["sume/auto"]}),
    "a model with NUL": ("model", {"model": "sume/\x00"}),
    "a model with half a surrogate pair": ("model", {"model": "\udc00"}),
    "a model that is too long": ("model", {"model": "x" * 101}),
    "a priority that is text": ("priority", {"priority": "1"}),
    "a priority that is a fraction": ("priority", {"priority": 1.0}),
    "a priority that is true": ("priority", {"priority": True}),
    "no priority": ("priority", {"priority": None}),
    "a priority that is too high": ("priority", {"priority": 32_001}),
    "a priority that is too low": ("priority", {"priority": -32_001}),
    "a reference that is a number": ("reference", {"reference": 7}),
    "a reference with NUL": ("reference", {"reference": "\x00"}),
    "a reference that is too long": ("reference", {"reference": "x" * 201}),
    "params that are a list": ("params", {"params": []}),
    "params that are text": ("params", {"params": "{}"}),
    "params that are a number": ("params", {"params": 0}),
    "params with our prompt": ("params.prompt", {"params": {"prompt": "x"}}),
    "params with our model": ("params.model", {"params": {"model": "x"}}),
    "params with our mode": ("params.mode", {"params": {"mode": "sync"}}),
    "params with a webhook": ("params.webhook_url", {"params": {"webhook_url": "https://x"}}),
    "params with NaN": ("params", {"params": {"a": math.nan}}),
    "params with infinity": ("params", {"params": {"a": [math.inf]}}),
    "params with minus infinity": ("params", {"params": {"a": {"b": -math.inf}}}),
    "params with a huge number": ("params", {"params": {"a": 2**63}}),
    "params with a very huge number": ("params", {"params": {"a": -(10**400)}}),
    # PostgreSQL gives it back as a whole number, and that would be refused at a retry.
    "params with a huge fraction": ("params", {"params": {"a": 1e20}}),
    "params with NUL": ("params", {"params": {"a": "\x00"}}),
    "params with half a surrogate pair": ("params", {"params": {"a": ["\ud800"]}}),
    "params with NUL in a name": ("params", {"params": {"a": {"\x00": 1}}}),
    "params with a name that is too long": ("params", {"params": {"x" * 201: 1}}),
    "params with a name that is a number": ("params", {"params": {7: 1}}),
    "params with a name that is nothing": ("params", {"params": {"a": {None: 1}}}),
    "params with a set": ("params", {"params": {"a": {1}}}),
    "params with bytes": ("params", {"params": {"a": b"x"}}),
    "params with an object": ("params", {"params": {"a": object()}}),
    "params that are too deep": ("params", {"params": nested(MAX_DEPTH + 2)}),
    "params that are much too deep": ("params", {"params": nested(100_000)}),
    "params that are too long": ("params", {"params": {"a": "x" * MAX_PARAMS_BYTES}}),
    "params that are too many": ("params", {"params": {str(n): n for n in range(20_000)}}),
}


@pytest.mark.parametrize(("field", "arguments"), BAD.values(), ids=BAD)
def test_bad_input_is_refused_with_the_field_named(field, arguments):
    with pytest.raises(InvalidRender) as caught:
        clean_request(**{"prompt": "a fox", **arguments})

    assert caught.value.field == field
    assert caught.value.message
    assert str(caught.value) == f"{field}: {caught.value.message}"


@pytest.mark.parametrize(("field", "arguments"), BAD.values(), ids=BAD)
def test_a_refusal_can_be_printed_and_stored(field, arguments):
    with pytest.raises(InvalidRender) as caught:
        clean_request(**{"prompt": "a fox", **arguments})

    assert caught.value.message.encode().decode() == caught.value.message
    assert "\x00" not in caught.value.message
    assert len(caught.value.message) < 500


def test_params_that_hold_themselves_are_refused():
    params = {}
    params["a"] = params

    with pytest.raises(InvalidRender, match="deeper"):
        clean_params(params)


def test_what_is_not_given_has_a_default():
    assert clean_request("a fox") == {
        "prompt": "a fox",
        "kind": Kind.IMAGE,
        "model": "sume/auto",
        "params": {},
        "priority": 0,
        "reference": None,
    }


def test_white_space_around_texts_is_cut():
    cleaned = clean_request("  a fox\n", model=" sume/auto ", reference=" order-7 ")

    assert cleaned["prompt"] == "a fox"
    assert cleaned["model"] == "sume/auto"
    assert cleaned["reference"] == "order-7"


@pytest.mark.parametrize("reference", [None, "", "   "], ids=repr)
def test_an_empty_reference_is_none(reference):
    assert clean_request("a fox", reference=reference)["reference"] is None


@pytest.mark.parametrize("kind", [*Kind, *Kind.values], ids=repr)
def test_every_kind_is_accepted_as_word_and_as_member(kind):
    params = {"avatar_handle": "mara"} if kind in {Kind.AVATAR, Kind.AVATAR_VIDEO} else {}

    assert clean_request("a fox", kind=kind, params=params)["kind"] is Kind(kind)


def test_a_kind_without_models_has_none():
    request = clean_request("Hello", kind="avatar_video", params={"avatar_handle": "@mara"})

    assert (request["model"], request["params"]) == ("", {"avatar_handle": "mara"})
    with pytest.raises(InvalidRender, match="takes no model"):
        clean_request("Hello", kind="avatar", model="gpt-image-2", params=request["params"])


def test_a_prompt_may_be_empty_where_a_photo_says_what():
    photo = {"avatar_handle": "mara", "image_url": "https://example.com/a.png"}

    assert clean_request("", kind="avatar", params=photo)["prompt"] == ""
    with pytest.raises(InvalidRender, match="Describe the avatar"):
        clean_request("", kind="avatar", params={"avatar_handle": "mara"})


def test_all_that_is_wrong_with_a_request_is_told_once():
    errors = request_errors({"kind": "avatar", "prompt": "", "priority": "high", "model": "m"})

    fields = [error.field for error in errors]
    assert fields == ["model", "priority", "prompt", "params.avatar_handle"]
    assert [error.field for error in request_errors({"kind": "avatar"})] == ["params.avatar_handle"]


@pytest.mark.parametrize(
    "prompt",
    [
        pytest.param("x" * 20_000, id="as long as may be"),
        pytest.param("Füchse 🦊 in\nzwei\tZeilen", id="any language, signs, lines"),
        pytest.param("\u202eright to left\u200d", id="invisible signs"),
        pytest.param("<script>alert(1)</script> {{ x }} %s '; --", id="looks like code"),
    ],
)
def test_any_other_prompt_is_accepted_as_it_is(prompt):
    assert clean_request(prompt)["prompt"] == prompt


def test_the_longest_prompt_is_a_setting(settings):
    settings.RENDERS = {"MAX_PROMPT_LENGTH": "5"}

    assert clean_request("a fox")["prompt"] == "a fox"
    with pytest.raises(InvalidRender, match="Longer than 5 characters"):
        clean_request("a foxy")


@pytest.mark.parametrize("priority", [-32_000, -1, 0, 32_000])
def test_a_priority_within_bounds_is_accepted(priority):
    assert clean_request("a fox", priority=priority)["priority"] == priority


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"seed": 7, "size": "1024x1024", "steps": 2.5, "hd": True, "mask": None},
        {"a": [1, [2, {"b": []}]], "": 0},
        {"a": 2**63 - 1, "b": -(2**63 - 1), "c": 1e15, "d": -1e-300},
        {"größe": "🦊"},
        nested(MAX_DEPTH),
        {"x" * 200: "x" * 90_000},
    ],
    ids=[
        "nothing",
        "plain",
        "nested",
        "large numbers",
        "any language",
        "as deep as may be",
        "long",
    ],
)
def test_a_json_object_of_modest_size_is_accepted_as_it_is(params):
    assert clean_params(params) == params
    assert json.loads(json.dumps(params)) == params


def test_every_field_of_a_kind_that_is_wrong_is_told():
    params = {"quality": "best", "aspect_ratio": "wide", "script": "x"}
    fields = {"prompt": "", "kind": "avatar_video", "params": params}

    assert [error.field for error in request_errors(fields)] == [
        "prompt",
        "params.script",
        "params.avatar_handle",
        "params.quality",
        "params.aspect_ratio",
    ]
