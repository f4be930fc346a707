"""Each kind's request: the document accepts what the API accepts, and errors name the field."""

import json
import sys

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from renders.api.document import document
from renders.api.requests import request_schemas
from renders.api.schemas import REQUESTS
from renders.models import Avatar, RenderJob
from renders.services import create_render
from renders.services.validation import request_errors
from renders.states import Kind, takes_model
from renders.sume.bodies import SHAPES
from renders.sume.field_values import FILLED, SPACE
from tests.unit.api.support import problem

pytestmark = pytest.mark.django_db
MARA = {"avatar_handle": "mara"}
PHOTO = "https://example.com/mara.png"
PROPS = {"ethnicity": "White", "sex": "female", "age": 52}
SCHEMAS = request_schemas()
VIDEO = {"kind": "avatar_video", "prompt": "Hello"}


def validator(name):
    components = document()["components"]
    schema = {"$ref": f"#/components/schemas/{name}", "components": components}
    return jsonschema_rs.Draft202012Validator(schema)


VALID = validator("RenderRequest")

# For each field: what is right, and what is wrong.
VALUES = {
    "avatar_handle": (
        ["mara", "@mara", " @mara\n", "玛拉", "m" * 100],
        ["", "@", "a b", 7, "m" * 101],
    ),
    "image_url": (
        [PHOTO, "https://bücher.example:8443?q=1#x"],
        ["http://a.example", "https://", "https:///a", "https://u@a.example", "a.png", None],
    ),
    "ethnicity": (["Asian", "Wasian"], ["asian", "", None]),
    "sex": (["male", "female"], ["other", 1]),
    "age": ([20, 80, 52.0], [19, 81, 20.5, True, "30"]),
    "quality": (["standard", "plus", "max"], ["best", None]),
    "scene": (
        [{"type": "prompt", "prompt": "A kitchen"}, {"type": "photo", "image_url": PHOTO}],
        [
            "A kitchen",
            {},
            {"type": "prompt", "prompt": "\u3000"},
            {"type": "photo", "prompt": "A kitchen"},
            {"type": "photo", "image_url": PHOTO, "prompt": "A kitchen"},
        ],
    ),
    "product_image": ([PHOTO], ["ftp://example.com/a", "https://a b"]),
    "aspect_ratio": (["9:16", "21:9"], ["wide", "0:1", "9:160", 1]),
    "title": (["Spring", "春" * 200], ["", " ", "x" * 201, 7]),
    "resolution": (["720p"], ["1080p", 720]),
}
PROMPTS = (["A boat", "こんにちは", " x "], ["", " \u3000", "x\0", 7, None])


@st.composite
def requests(draw):
    """Requests that are nearly right: often enough quite right, for each kind."""
    kind = draw(st.sampled_from(Kind))
    shape = SHAPES[kind]

    def pick(values):
        right, wrong = values
        return draw(st.sampled_from(wrong if draw(st.integers(0, 11)) == 11 else right))

    source = draw(st.sampled_from(shape.sources))
    names = {name for name, field in shape.fields.items() if field.required or name in source}
    of_sources = {name for one in shape.sources for name in one}
    names |= draw(st.sets(st.sampled_from(sorted({*shape.fields, "seed"} - of_sources))))
    odd = draw(st.sampled_from([None] * 12 + [*VALUES, *shape.not_part]))
    names ^= {odd} - {None}
    params = {name: pick(VALUES.get(name, ([7], [None]))) for name in names}
    request = {"kind": kind.value, "params": params}
    if kind == Kind.IMAGE and draw(st.booleans()):
        del request["kind"]
    if not params and draw(st.booleans()):
        request["params"] = None
    if "prompt" in source or draw(st.integers(0, 5)) == 5:
        request["prompt"] = pick(PROMPTS)
    if takes_model(kind) and draw(st.booleans()):
        request["model"] = pick((["sume/fast", "模型"], ["", " ", 7]))
    return request


@settings(max_examples=1_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(requests())
def test_a_request_conforms_to_the_document_if_and_only_if_it_is_accepted(request):
    errors = request_errors({"prompt": "", **request})

    assert VALID.is_valid(request) == (not errors), (request, [str(error) for error in errors])


def test_white_space_is_in_the_schemas_what_it_is_in_the_code():
    characters = map(chr, range(sys.maxunicode + 1))
    spaces = [character for character in characters if not character.strip()]
    alone = jsonschema_rs.Draft202012Validator({"pattern": f"^[{SPACE}]$"})
    filled = jsonschema_rs.Draft202012Validator({"pattern": FILLED})

    assert all(alone.is_valid(space) and not filled.is_valid(space) for space in spaces)
    assert not any(alone.is_valid(other) for other in ("\0", "\u200b", "\ufeff", "x", "、"))


def test_every_kind_and_field_of_the_table_is_in_the_document():
    told = {}
    for reference in SCHEMAS["RenderRequest"]["oneOf"]:
        properties = SCHEMAS[reference["$ref"].rsplit("/", 1)[1]]["properties"]
        told.setdefault(properties["kind"]["const"], []).append(properties)

    assert told.keys() == set(Kind.values)
    for kind, alternatives in told.items():
        shape = SHAPES[Kind(kind)]
        fields = {}
        for properties in alternatives:
            assert ("model" in properties) == takes_model(kind)
            refused = properties["params"]["propertyNames"]["not"]["enum"]
            assert shape.not_part.keys() <= set(refused)
            fields |= properties["params"].get("properties", {})
        assert fields.keys() == shape.fields.keys()
        for name, field in shape.fields.items():
            assert fields[name]["description"] == field.help
            assert fields[name].keys() & {"type", "enum", "oneOf"}, name
            assert tuple(fields[name].get("enum", ())) == field.choices


@pytest.mark.parametrize("name", REQUESTS)
def test_the_examples_are_accepted(name, sam):
    response = sam.post(body=REQUESTS[name])

    assert response.status_code == 202, response.content
    assert validator("RenderBatch" if name == "many" else "RenderRequest").is_valid(REQUESTS[name])
    shown = response.json()
    assert validator("Renders" if name == "many" else "Render").is_valid(shown)


def test_there_is_an_example_of_every_kind_and_source():
    conforming = {
        name
        for name in SCHEMAS
        if name.endswith("Request") and any(map(validator(name).is_valid, REQUESTS.values()))
    }

    assert conforming == {name for name in SCHEMAS if name.endswith("Request")}


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        ({"kind": "avatar", "prompt": "A baker"}, "params.avatar_handle"),
        ({**VIDEO, "params": {}}, "params.avatar_handle"),
        ({**VIDEO, "params": {**MARA, "quality": "best"}}, "params.quality"),
        ({**VIDEO, "params": {**MARA, "script": "Hello"}}, "params.script"),
        ({**VIDEO, "params": MARA, "model": "sume/fast"}, "model"),
        ({**VIDEO, "params": MARA, "prompt": "word " * 170}, "prompt"),
        ({"kind": "avatar", "params": MARA}, "prompt"),
        ({"kind": "avatar", "params": {**MARA, "sex": "male"}}, "params.ethnicity"),
        ({"kind": "avatar", "params": {**MARA, **PROPS, "image_url": PHOTO}}, "params.ethnicity"),
        ({"prompt": "A boat", "params": {"model": "m"}}, "params.model"),
    ],
)
def test_an_error_names_the_field_within_params_and_the_place_in_the_list(sam, request_, field):
    errors = problem(sam.post(body=request_), 422)["errors"]
    assert [error["field"] for error in errors] == [field]

    many = {"renders": [{"prompt": "A boat"}] * 3 + [request_]}
    errors = problem(sam.post(body=many), 422)["errors"]
    assert [error["field"] for error in errors] == [f"renders[3].{field}"]
    assert not RenderJob.objects.exists()


def test_a_missing_prompt_hides_no_fault_of_params(ann):
    errors = problem(ann.post(body={"kind": "avatar_video"}), 422)["errors"]

    assert [error["field"] for error in errors] == ["prompt", "params.avatar_handle"]


def test_an_avatar_of_others_is_refused_by_its_field_and_place(ann, bob, sam):
    Avatar.objects.create(handle="mara", owner=bob.user)
    speaks = {**VIDEO, "params": {"avatar_handle": "@mara"}}
    made_again = {"kind": "avatar", "prompt": "A baker", "params": MARA}

    for request in (speaks, made_again, {**speaks, "params": {"avatar_handle": "nobody"}}):
        [error] = problem(ann.post(body=request), 422)["errors"]
        assert error["field"] == "params.avatar_handle"
        assert request["params"]["avatar_handle"].lstrip("@") in error["message"]
        many = {"renders": [{"prompt": "A boat"}, {"prompt": "A fox"}, request]}
        [error] = problem(ann.post(body=many, Idempotency_Key="one"), 422)["errors"]
        assert error["field"] == "renders[2].params.avatar_handle"
    assert not RenderJob.objects.exists()

    # Its owner and staff may; everybody, once it is released.
    assert bob.post(body=speaks).status_code == sam.post(body=speaks).status_code == 202
    Avatar.objects.update(released=True)
    assert ann.post(body=speaks, Idempotency_Key="one").status_code == 202


@pytest.mark.parametrize("kind", Kind)
def test_a_kind_without_models_shows_null(ann, kind):
    params = MARA if "avatar_handle" in SHAPES[kind].fields else {}
    row = create_render("Hello", kind=kind, params=params, user=ann.user)
    RenderJob.objects.update(model="sume/auto")  # as rows of earlier versions have it
    shown = ann.get(f"{row.pk}/").json()

    assert shown["model"] == ("sume/auto" if takes_model(kind) else None)
    assert validator("Render").is_valid(shown)


def test_the_document_says_what_its_schemas_cannot():
    text = json.dumps(SCHEMAS["AvatarVideoRequest"]["description"])

    assert "168 words" in text
    assert "neither yours nor released" in text


@pytest.mark.parametrize(
    ("models", "right", "wrong"),
    [
        ("", [None, "sume/auto", "any"], [""]),
        ("sume/auto,a", [None, "sume/auto", "a"], ["b"]),
        ("a", ["a"], [None, "sume/auto", "b"]),
    ],
)
def test_the_document_names_the_allowed_models(ann, settings, models, right, wrong):
    settings.RENDERS = {**settings.RENDERS, "MODELS": models}
    valid = validator("RenderRequest")

    for model in (*right, *wrong):
        request = {"prompt": "A boat"} | ({} if model is None else {"model": model})
        answer = ann.post(body=request)
        assert valid.is_valid(request) is (answer.status_code == 202) is (model in right)
    assert valid.is_valid({"kind": "avatar", "prompt": "A baker", "params": MARA})
