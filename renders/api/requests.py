"""The request schemas of the OpenAPI document, made from each kind's rules in `sume.bodies`."""

from renders.api import reading
from renders.api.schemas import NO_NUL, Json, ref
from renders.conf import conf, workspaces
from renders.presentation.widgets import HELP
from renders.services.validation import SAY_WHAT
from renders.states import AUTO, Kind, takes_model
from renders.sume.bodies import LONGEST_SECONDS, SHAPES, WORDS_PER_SECOND, Field
from renders.sume.field_values import FILLED, SPACE

# A schema's name for each of a kind's alternatives.
NAMES: dict[tuple[Kind, str], str] = {
    (Kind.IMAGE, "prompt"): "ImageRequest",
    (Kind.VIDEO, "prompt"): "VideoRequest",
    (Kind.AVATAR, "prompt"): "AvatarFromPromptRequest",
    (Kind.AVATAR, "image_url"): "AvatarFromPhotoRequest",
    (Kind.AVATAR, "ethnicity"): "AvatarFromPropsRequest",
    (Kind.AVATAR_VIDEO, "prompt"): "AvatarVideoRequest",
}
# Rules that a schema cannot express.
BEYOND: dict[Kind, str] = {
    Kind.AVATAR: "422: somebody else has this `avatar_handle`.",
    Kind.AVATAR_VIDEO: "422: the avatar is neither yours nor released to everybody, or the script "
    f"is too long. At most {LONGEST_SECONDS} seconds are spoken, "
    f"{round(LONGEST_SECONDS * WORDS_PER_SECOND)} words.",
}
WORKSPACE: Json = {
    "type": ["string", "null"],
    "description": "The Sume account that is billed. Default: yours. Another one needs a "
    "permission.",
}


def request_schemas() -> Json:
    """The schemas of requests, by name."""
    alternatives = {
        NAMES[kind, source[0]]: _alternative(kind, source)
        for kind in Kind
        for source in SHAPES[kind].sources
    }
    return {
        "RenderRequest": {
            "description": "One render. `kind` decides which fields it takes.",
            "oneOf": [ref("schemas", name) for name in alternatives],
        },
        **alternatives,
        "RenderBatch": {
            "type": "object",
            "required": ["renders"],
            "additionalProperties": False,
            "properties": {
                "renders": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": reading.MOST_RENDERS,
                    "items": ref("schemas", "RenderRequest"),
                }
            },
        },
    }


def _alternative(kind: Kind, source: tuple[str, ...]) -> Json:
    """The schema of a request of this kind from this source."""
    with_params = any(field.required for field in SHAPES[kind].fields.values())
    required = {
        "kind": kind != Kind.IMAGE,  # the default
        "prompt": "prompt" in source,
        "params": with_params,
        "model": takes_model(kind) and "default" not in _model(),
    }
    properties = {
        "kind": {"const": kind.value},
        "prompt": _prompt(kind, source),
        "model": _model(),
        "params": _params(kind, source, required=with_params),
        "priority": {
            "type": "integer",
            "minimum": -32_000,
            "maximum": 32_000,
            "default": 0,
            "description": "Higher goes first. Above 0 needs a permission (422).",
        },
        "reference": {
            "type": ["string", "null"],
            "pattern": NO_NUL,
            "maxLength": 200,
            "description": "A unique name of your own. The same request with the same reference "
            "returns the same render. Another request with it is refused.",
        },
    }
    if kind == Kind.IMAGE:
        properties["kind"]["default"] = kind.value
    if not takes_model(kind):
        del properties["model"]
    if workspaces.several():
        properties["workspace"] = WORKSPACE
    return {
        "type": "object",
        "description": " ".join(filter(None, [HELP[kind], BEYOND.get(kind)])),
        "required": [name for name, needed in required.items() if needed],
        "additionalProperties": False,
        "properties": properties,
    }


def _model() -> Json:
    words = "Sume's name for it. 422: not allowed here, or without a price under a budget."
    schema: Json = {"type": "string", "description": words}
    if not conf.MODELS or AUTO in conf.MODELS:
        schema["default"] = AUTO
    if conf.MODELS:
        return {**schema, "enum": list(conf.MODELS)}
    return {**schema, "pattern": FILLED, "maxLength": 100}


def _prompt(kind: Kind, source: tuple[str, ...]) -> Json:
    pattern, words = FILLED, SAY_WHAT[kind]
    if "prompt" not in source:
        pattern, words = f"^[{SPACE}]*$", "Leave it out: `params` say it all."
    return {
        "type": "string",
        "pattern": pattern,
        "maxLength": conf.MAX_PROMPT_LENGTH,
        "description": words,
    }


def _params(kind: Kind, source: tuple[str, ...], *, required: bool) -> Json:
    shape = SHAPES[kind]
    others = {name for other in shape.sources if other != source for name in other}
    fields = {name: field for name, field in shape.fields.items() if name not in others}
    needed = [name for name, field in fields.items() if field.required or name in source]
    refused = sorted(shape.not_part.keys() | others)
    schema: Json = {
        "type": "object" if required else ["object", "null"],
        "maxProperties": 100,
        "propertyNames": {"maxLength": 200, "pattern": NO_NUL, "not": {"enum": refused}},
        "additionalProperties": ref("schemas", "Value"),
        "description": "Further fields of Sume's request; 100,000 bytes at most.",
    }
    if fields:
        schema["properties"] = {name: _field(field) for name, field in fields.items()}
    if needed:
        schema["required"] = needed
    return schema


def _field(field: Field) -> Json:
    schema = {"enum": list(field.choices)} if field.choices else dict(field.schema or {})
    return {**schema, "description": field.help}
