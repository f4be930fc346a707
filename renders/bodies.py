"""What Sume is sent for each kind: one table, and the body that follows from it. Pure.

Source: Sume's public command line client and the API notes, "Bodies by kind". What a kind's table
does not name is sent as it is, unless it is not part of the kind's request.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from renders.states import Kind

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
YOUNGEST, OLDEST = 20, 80
QUALITIES = ("standard", "plus", "max")
RESOLUTIONS = ("720p",)
# How fast a script is spoken, and how long a clip may be. The public client's own rule.
WORDS_PER_SECOND = 2.8
LONGEST_SECONDS = 60
# What the app itself fills in.
OWN_FIELDS = frozenset({"prompt", "model", "mode", "webhook_url"})
PROPS = ("ethnicity", "sex", "age")
# What `str.strip` removes, inside brackets: `\s` isn't the same everywhere.
SPACE = r"\u0009-\u000d\u001c-\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
NOT_IN_ADDRESS = rf"\u0000-\u0020\u007f{SPACE}"
# Text with something in it. NUL cannot be stored.
FILLED = rf"^[^\u0000]*[^\u0000{SPACE}][^\u0000]*$"
HANDLE = re.compile(rf"[^\u0000{SPACE}@/?#]{{1,100}}")
RATIO = re.compile(r"[1-9][0-9]?:[1-9][0-9]?")
ADDRESS = re.compile(
    rf"https://[^{NOT_IN_ADDRESS}/?#@:\\\[\]]+(:[0-9]{{1,5}})?([/?#][^{NOT_IN_ADDRESS}]*)?",
    re.ASCII | re.IGNORECASE,
)
LONGEST_ADDRESS = 2_000
LONGEST_TITLE = 200


class BadField(ValueError):
    """A field of a request is not acceptable; the message says what is needed.

    `of_prompt` if it is the prompt itself; else it is one of the further fields.
    """

    def __init__(self, field: str, message: str, *, of_prompt: bool = False) -> None:
        super().__init__(message)
        self.field = field
        self.of_prompt = of_prompt


@dataclass(frozen=True)
class Field:
    """A further field of one kind's request."""

    read: Callable[[Any], Any]
    """The value as it is sent. Raises `ValueError` that says what is needed."""
    help: str
    choices: tuple[str, ...] = ()
    required: bool = False
    schema: Mapping[str, Any] | None = None
    """What `read` accepts, as a JSON schema; with `choices`, these say it."""


@dataclass(frozen=True)
class Shape:
    """How one kind is asked for."""

    path: str
    takes_model: bool
    fields: Mapping[str, Field]
    not_part: Mapping[str, str]
    """Names that are refused, each with what to do instead."""
    sources: tuple[tuple[str, ...], ...] = (("prompt",),)
    """What it can be made from: exactly one of these, all of its fields."""


def one_of(*choices: str) -> Callable[[Any], str]:
    """A reader of one of these words."""

    def read(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"Choose one of: {', '.join(choices)}.")
        return str(value)

    return read


def handle(value: Any) -> str:
    """An avatar's handle, without its @."""
    found = value.strip().removeprefix("@") if isinstance(value, str) else ""
    if not HANDLE.fullmatch(found):
        raise ValueError("The avatar's handle is needed: one word, with or without @.")
    return found


def address(value: Any) -> str:
    """An address that Sume can fetch."""
    text = value.strip() if isinstance(value, str) else ""
    if len(text) > LONGEST_ADDRESS or not ADDRESS.fullmatch(text):
        raise ValueError("A public address is needed: https://…")
    return text


def age(value: Any) -> int:
    """An age in years."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    whole = whole or (isinstance(value, float) and value.is_integer())  # as JSON has it
    if not whole or not YOUNGEST <= value <= OLDEST:
        raise ValueError(f"A whole number from {YOUNGEST} to {OLDEST} is needed.")
    return int(value)


def ratio(value: Any) -> str:
    """Width to height."""
    if not isinstance(value, str) or not RATIO.fullmatch(value.strip()):
        raise ValueError("Width to height is needed, for instance 9:16.")
    return value.strip()


def title(value: Any) -> str:
    """A short text."""
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_TITLE:
        raise ValueError(f"A text of at most {LONGEST_TITLE} characters is needed.")
    return value.strip()


def scene(value: Any) -> dict[str, str]:
    """Where an avatar video plays: described, or shown by a photo."""
    needed = '{"type": "prompt", "prompt": "…"} or {"type": "photo", "image_url": "https://…"}'
    if not isinstance(value, dict):
        raise ValueError(f"An object is needed: {needed}.")
    match value:
        case {"type": "prompt", "prompt": str(words), **rest} if words.strip() and not rest:
            return {"type": "prompt", "prompt": words.strip()}
        case {"type": "photo", "image_url": url, **rest} if not rest:
            return {"type": "photo", "image_url": address(url)}
    raise ValueError(f"It must be {needed}.")


SET_ELSEWHERE = dict.fromkeys(OWN_FIELDS, "It is set elsewhere.")
NO_MODEL = {**SET_ELSEWHERE, "model": "This kind has no model."}
ADDRESS_SCHEMA = {
    "type": "string",
    "pattern": f"^{ADDRESS.pattern}$",
    "maxLength": LONGEST_ADDRESS,
    "examples": ["https://example.com/mara.png"],
}
SCENE_SCHEMA = {
    "oneOf": [
        {
            "type": "object",
            "required": ["type", name],
            "additionalProperties": False,
            "properties": {"type": {"const": word}, name: schema},
        }
        for word, name, schema in (
            ("prompt", "prompt", {"type": "string", "pattern": FILLED}),
            ("photo", "image_url", ADDRESS_SCHEMA),
        )
    ]
}
HANDLE_FIELD = Field(
    handle,
    "The avatar's name, with or without @.",
    required=True,
    schema={
        "type": "string",
        "pattern": f"^[{SPACE}]*@?{HANDLE.pattern}[{SPACE}]*$",
        "examples": ["@mara"],
    },
)
SHAPES: dict[Kind, Shape] = {
    Kind.IMAGE: Shape("/v1/images", True, {}, SET_ELSEWHERE),
    Kind.VIDEO: Shape("/v1/video-router/generate", True, {}, SET_ELSEWHERE),
    Kind.AVATAR: Shape(
        "/v1/models/sume/avatar/v1.0/runs",
        False,
        {
            "avatar_handle": HANDLE_FIELD,
            "image_url": Field(
                address, "A photo to make it from, instead of a prompt.", schema=ADDRESS_SCHEMA
            ),
            "ethnicity": Field(one_of(*ETHNICITIES), "With sex and age: no prompt.", ETHNICITIES),
            "sex": Field(one_of(*SEXES), "With ethnicity and age: no prompt.", SEXES),
            "age": Field(
                age,
                f"{YOUNGEST} to {OLDEST}, with ethnicity and sex: no prompt.",
                schema={"type": "integer", "minimum": YOUNGEST, "maximum": OLDEST},
            ),
        },
        {
            **NO_MODEL,
            "input": "Give the prompt, or image_url, or ethnicity, sex and age.",
            **dict.fromkeys(("avatar", "name"), "Use avatar_handle."),
            **dict.fromkeys(("file", "file_url", "fileUrl"), "Use image_url."),
            "video": "An avatar is made from a prompt, a photo or props.",
            "callback_url": "The app itself asks for events.",
        },
        (("prompt",), ("image_url",), PROPS),
    ),
    Kind.AVATAR_VIDEO: Shape(
        "/v1/models/sume/avatar-video/v1.0/runs",
        False,
        {
            "avatar_handle": HANDLE_FIELD,
            "quality": Field(one_of(*QUALITIES), "Sume's default is plus.", QUALITIES),
            "scene": Field(scene, "Where it plays: described, or a photo.", schema=SCENE_SCHEMA),
            "product_image": Field(
                address, "A picture of what the avatar shows.", schema=ADDRESS_SCHEMA
            ),
            "aspect_ratio": Field(
                ratio,
                "Width to height, for instance 9:16.",
                schema={"type": "string", "pattern": f"^{RATIO.pattern}$"},
            ),
            "title": Field(
                title,
                "Sume's name for the clip.",
                schema={"type": "string", "pattern": FILLED, "maxLength": LONGEST_TITLE},
            ),
            "resolution": Field(one_of(*RESOLUTIONS), "Only 720p.", RESOLUTIONS),
        },
        {
            **NO_MODEL,
            "script": "The prompt is the script.",
            **dict.fromkeys(("avatar", "avatar_id"), "Use avatar_handle."),
            "ratio": "Use aspect_ratio.",
            "background": "Use scene.",
            "voice_id": "The avatar has its voice.",
            "callback_url": "The app itself asks for events.",
        },
    ),
}


# All that some kind's table names.
FIELDS = frozenset(name for shape in SHAPES.values() for name in shape.fields)


def clean(kind: Kind, prompt: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """The further fields as they are sent, for a request of this kind. Raises `BadField`."""
    shape = SHAPES[kind]
    for name in sorted(params.keys() & shape.not_part.keys()):
        words = f"{name} is not part of a request of kind {kind}."
        raise BadField(name, f"{words} {shape.not_part[name]}")
    cleaned = dict(params)
    for name, field in shape.fields.items():
        if name in params or field.required:
            try:
                cleaned[name] = field.read(params.get(name))
            except ValueError as error:
                raise BadField(name, str(error)) from None
    if kind == Kind.AVATAR:
        _source(prompt, cleaned)
    if kind == Kind.AVATAR_VIDEO:
        _speakable(prompt)
    return cleaned


def needs_prompt(kind: Kind, params: Mapping[str, Any]) -> bool:
    """Whether the request says nothing without a prompt."""
    others = {name for source in SHAPES[kind].sources for name in source} - {"prompt"}
    return not params.keys() & others


def body(kind: Kind, model: str, prompt: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """What is sent, but for `mode`. Raises `BadField` where the row cannot be sent."""
    fields = clean(kind, prompt, params)
    if SHAPES[kind].takes_model:
        return {**fields, "model": model, "prompt": prompt}
    if kind == Kind.AVATAR_VIDEO:
        return {**fields, "script": prompt}
    source = _source(prompt, fields)
    rest = {name: value for name, value in fields.items() if name not in {"image_url", *PROPS}}
    return {**rest, "input": source}


def _source(prompt: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """What an avatar is made from: a prompt, a photo or props; exactly one of them."""
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
    words = len(script.split())
    seconds = round(words / WORDS_PER_SECOND)
    if words > round(LONGEST_SECONDS * WORDS_PER_SECOND):
        raise BadField(
            "prompt",
            f"Spoken, {words} words take some {seconds} s; at most {LONGEST_SECONDS} s are made. "
            "Shorten the script, or make several clips.",
            of_prompt=True,
        )
