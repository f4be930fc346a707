"""The request body for each kind: one table of fields, and the body built from it. Pure functions.

Source: Sume's public command line client and the API notes, "Bodies by kind". A field that a
kind's table does not name is sent unchanged, unless `not_part` excludes it.
"""

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from renders.states import Kind, takes_model
from renders.sume.field_values import (
    ADDRESS_SCHEMA,
    AGE_SCHEMA,
    HANDLE_SCHEMA,
    OLDEST,
    RATIO_SCHEMA,
    SCENE_SCHEMA,
    TITLE_SCHEMA,
    YOUNGEST,
    address,
    age,
    handle,
    one_of,
    ratio,
    scene,
    title,
)

ETHNICITIES = (
    "Asian",
    "South Asian",
    "Southeast Asian",
    "Black",
    "Hispanic",
    "Middle Eastern",
    "White",
    "Wasian",
)
SEXES = ("male", "female")
QUALITIES = ("standard", "plus", "max")
RESOLUTIONS = ("720p",)
# The speed of speech, and the longest clip. Source: the public client.
WORDS_PER_SECOND = 2.8
LONGEST_SECONDS = 60
# The fields that the app fills in.
OWN_FIELDS = frozenset({"prompt", "model", "mode", "webhook_url"})
PROPS = ("ethnicity", "sex", "age")


class BadField(ValueError):
    """A field of a request is not acceptable; the message says what is needed.

    `of_prompt` if the field is the prompt itself; otherwise it is one of the further fields.
    """

    def __init__(self, field: str, message: str, *, of_prompt: bool = False) -> None:
        super().__init__(message)
        self.field = field
        self.of_prompt = of_prompt


@dataclass(frozen=True)
class Field:
    """A further field of one kind's request."""

    read: Callable[[Any], Any]
    """Returns the value as it is sent. Raises `ValueError` with what is needed."""
    help: str
    choices: tuple[str, ...] = ()
    required: bool = False
    schema: Mapping[str, Any] | None = None
    """A JSON schema of the values that `read` accepts; None if `choices` lists them."""
    label: str = ""
    typed: str = "text"
    """The type of input in forms: `text`, `url` or `number`."""
    seldom: bool = False
    """Forms fold it away."""
    parts: Mapping[str, "Part"] = dataclasses.field(default_factory=dict)
    """Fields that forms and tables offer instead of this one; one of them is filled in."""


@dataclass(frozen=True)
class Part:
    """One way to fill in a field whose value is an object."""

    label: str
    help: str
    fixed: Mapping[str, str]
    key: str
    """The value is `fixed` plus the typed text under this key."""
    typed: str = "text"


@dataclass(frozen=True)
class Shape:
    """The request of one kind."""

    path: str
    fields: Mapping[str, Field]
    not_part: Mapping[str, str]
    """Refused names, each with what to do instead."""
    sources: tuple[tuple[str, ...], ...] = (("prompt",),)
    """The sets of fields to make it from: exactly one set, with all of its fields."""


SET_ELSEWHERE = {
    "prompt": "Use the field prompt.",
    "model": "Use the field model.",
    **dict.fromkeys(("mode", "webhook_url"), "The app sets it."),
}
# Avatars have kinds of their own, which check the avatar's owner.
NO_AVATAR = {
    **SET_ELSEWHERE,
    **dict.fromkeys(("avatar_handle", "avatar_id"), "Choose the kind avatar_video."),
}
NO_MODEL = {**SET_ELSEWHERE, "model": "This kind has no model."}
SCENE_PARTS = {
    "scene_prompt": Part(
        "Scene, described", "Where the clip plays, in your words.", {"type": "prompt"}, "prompt"
    ),
    "scene_image_url": Part(
        "Scene, as a photo",
        "Or the address of a photo of the place: https://…",
        {"type": "photo"},
        "image_url",
        "url",
    ),
}
SHAPES: dict[Kind, Shape] = {
    Kind.IMAGE: Shape("/v1/images", {}, NO_AVATAR),
    Kind.VIDEO: Shape("/v1/video-router/generate", {}, NO_AVATAR),
    Kind.AVATAR: Shape(
        "/v1/models/sume/avatar/v1.0/runs",
        {
            "avatar_handle": Field(
                handle,
                "A new name for it: one word, with or without @.",
                required=True,
                label="Avatar",
                schema=HANDLE_SCHEMA,
            ),
            "image_url": Field(
                address,
                "The address of a photo to make it from, instead of a description: https://…",
                label="Photo",
                typed="url",
                schema=ADDRESS_SCHEMA,
            ),
            "ethnicity": Field(
                one_of(*ETHNICITIES),
                "With sex and age, instead of a description.",
                ETHNICITIES,
                label="Ethnicity",
            ),
            "sex": Field(one_of(*SEXES), "With ethnicity and age.", SEXES, label="Sex"),
            "age": Field(
                age,
                f"{YOUNGEST} to {OLDEST}, with ethnicity and sex.",
                label="Age",
                typed="number",
                schema=AGE_SCHEMA,
            ),
        },
        {
            **NO_MODEL,
            "input": "Give the prompt, or image_url, or ethnicity, sex and age.",
            **dict.fromkeys(("avatar", "name"), "Use avatar_handle."),
            **dict.fromkeys(("file", "file_url"), "Use image_url."),
            "video": "An avatar is made from a prompt, a photo or props.",
            "callback_url": "The app sets up webhooks itself.",
        },
        (("prompt",), ("image_url",), PROPS),
    ),
    Kind.AVATAR_VIDEO: Shape(
        "/v1/models/sume/avatar-video/v1.0/runs",
        {
            "avatar_handle": Field(
                handle,
                "The avatar that speaks: its name, with or without @.",
                required=True,
                label="Avatar",
                schema=HANDLE_SCHEMA,
            ),
            "quality": Field(
                one_of(*QUALITIES), "Left empty, Sume uses plus.", QUALITIES, label="Quality"
            ),
            "scene": Field(
                scene,
                "Where it plays: described, or a photo.",
                label="Scene",
                parts=SCENE_PARTS,
                schema=SCENE_SCHEMA,
            ),
            "product_image": Field(
                address,
                "The address of a picture of what the avatar shows: https://…",
                label="Product picture",
                typed="url",
                seldom=True,
                schema=ADDRESS_SCHEMA,
            ),
            "aspect_ratio": Field(
                ratio,
                "Width to height, for instance 9:16.",
                label="Aspect ratio",
                seldom=True,
                schema=RATIO_SCHEMA,
            ),
            "title": Field(
                title,
                "Sume's name for the clip.",
                label="Title",
                seldom=True,
                schema=TITLE_SCHEMA,
            ),
            "resolution": Field(
                one_of(*RESOLUTIONS), "Only 720p.", RESOLUTIONS, label="Resolution", seldom=True
            ),
        },
        {
            **NO_MODEL,
            "script": "The prompt is the script.",
            **dict.fromkeys(("avatar", "avatar_id"), "Use avatar_handle."),
            "ratio": "Use aspect_ratio.",
            "background": "Use scene.",
            "voice_id": "The avatar has its voice.",
            "callback_url": "The app sets up webhooks itself.",
        },
    ),
}
# The names of all kinds' fields.
FIELDS = frozenset(name for shape in SHAPES.values() for name in shape.fields)


def clean(kind: Kind, prompt: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """The further fields as they are sent in a request of this kind. Raises `BadField`."""
    cleaned, errors = check(kind, prompt, params)
    if errors:
        raise errors[0]
    return cleaned


def check(
    kind: Kind, prompt: str, params: Mapping[str, Any]
) -> tuple[dict[str, Any], list[BadField]]:
    """As `clean`, but returns all errors instead of raising the first."""
    shape, cleaned = SHAPES[kind], dict(params)
    errors = list(_misnamed(kind, params))
    for name, field in shape.fields.items():
        if name in params or field.required:
            try:
                cleaned[name] = field.read(params.get(name))
            except ValueError as error:
                errors.append(BadField(name, str(error)))
    try:
        if kind == Kind.AVATAR:
            _source(prompt, cleaned)
        if kind == Kind.AVATAR_VIDEO:
            _speakable(prompt)
    except BadField as error:
        if error.field not in {earlier.field for earlier in errors}:
            errors.append(error)
    return cleaned, errors


def needs_prompt(kind: Kind, params: Mapping[str, Any]) -> bool:
    """Whether the prompt is required because no other source is given."""
    others = {name for source in SHAPES[kind].sources for name in source} - {"prompt"}
    return not params.keys() & others


def body(kind: str, model: str, prompt: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """The request body without `mode`. Raises `BadField` if the row cannot be sent."""
    if kind not in SHAPES:
        raise BadField("kind", f"{kind} is not known to this release.")
    kind = Kind(kind)
    fields = clean(kind, prompt, params)
    if takes_model(kind):
        return {**fields, "model": model, "prompt": prompt}
    if kind == Kind.AVATAR_VIDEO:
        return {**fields, "script": prompt}
    source = _source(prompt, fields)
    rest = {name: value for name, value in fields.items() if name not in {"image_url", *PROPS}}
    return {**rest, "input": source}


def _misnamed(kind: Kind, params: Mapping[str, Any]) -> Iterator[BadField]:
    """An error for each misspelled name and each name excluded from this kind's request."""
    shape = SHAPES[kind]
    spelled = {_folded(name): name for name in (*shape.not_part, *shape.fields)}
    for name in sorted(params.keys() - spelled.values()):
        if meant := spelled.get(_folded(name)):
            yield BadField(name, f"Unknown field {name}. Do you mean {meant}?")
    for name in sorted(params.keys() & shape.not_part.keys()):
        words = f"{name} is not part of the params of kind {kind}."
        yield BadField(name, f"{words} {shape.not_part[name]}")


def _folded(name: str) -> str:
    """A name without case and separators, so that avatarId and AVATAR_ID are equal."""
    return name.lower().replace("_", "").replace("-", "")


def _source(prompt: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The `input` of an avatar: exactly one of a prompt, a photo or props. Raises `BadField`."""
    props = [name for name in PROPS if name in fields]
    if missing := [name for name in PROPS if props and name not in fields]:
        raise BadField(missing[0], f"Ethnicity, sex and age go together: {missing[0]} is missing.")
    given = [
        name
        for name, is_given in (
            ("prompt", bool(prompt.strip())),
            ("image_url", "image_url" in fields),
            ("ethnicity", bool(props)),
        )
        if is_given
    ]
    if len(given) != 1:
        words = "An avatar is made from one of: a prompt, a photo, or ethnicity, sex and age."
        raise BadField(given[-1] if given else "prompt", words, of_prompt=not given)
    match given[0]:
        case "prompt":
            return {"type": "prompt", "prompt": prompt}
        case "image_url":
            return {"type": "photo", "image_url": fields["image_url"]}
        case _:
            return {"type": "props", **{name: fields[name] for name in PROPS}}


def _speakable(script: str) -> None:
    """Raises `BadField` if the script is too long for a clip."""
    words = len(script.split())
    seconds = round(words / WORDS_PER_SECOND)
    if words > round(LONGEST_SECONDS * WORDS_PER_SECOND):
        raise BadField(
            "prompt",
            f"The script has {words} words, about {seconds} s of speech; the limit is "
            f"{LONGEST_SECONDS} s. Shorten it, or make several clips.",
            of_prompt=True,
        )


def canonical(value: Any) -> str:
    """JSON text that is equal for equal values, no matter which database they come from."""
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"))


def _plain(value: Any) -> Any:
    """The value with whole floats as integers: PostgreSQL returns 1e2 as 100, its equal in JSON."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value
