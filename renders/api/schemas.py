"""The OpenAPI document: what is sent and what comes back, as schemas."""

from typing import Any

from renders import workspaces
from renders.api import reading
from renders.api.examples import EXAMPLE
from renders.bodies import OWN_FIELDS
from renders.conf import conf
from renders.states import Kind, Status

Json = dict[str, Any]

MOMENT: Json = {"type": "string", "format": "date-time"}
MAYBE_MOMENT: Json = {"type": ["string", "null"], "format": "date-time"}
ADDRESS: Json = {"type": "string", "format": "uri"}
# Text with something in it: white space is cut off at both ends, and NUL cannot be stored.
FILLED = r"^[^\u0000]*[!-~\u00a1-\u1fff][^\u0000]*$"
NO_NUL = r"^[^\u0000]*$"


def ref(kind: str, name: str) -> Json:
    """A reference to a component."""
    return {"$ref": f"#/components/{kind}/{name}"}


RENDER: Json = {
    "type": "object",
    "required": list(EXAMPLE),
    "properties": {
        "id": {"type": "string", "format": "uuid"},
        "workspace": {"type": "string", "description": "The Sume account that is billed."},
        "kind": {"enum": list(Kind.values)},
        "model": {"type": ["string", "null"], "description": "null: this kind has no model."},
        "prompt": {"type": "string"},
        "params": {"type": "object"},
        "priority": {"type": "integer"},
        "reference": {"type": ["string", "null"]},
        "status": {
            "enum": list(Status.values),
            "description": "completed, failed and canceled are final.",
        },
        "sume_status": {"type": "string", "description": "Sume's own word."},
        "created_at": MOMENT,
        "submitted_at": MAYBE_MOMENT,
        "cancel_requested_at": MAYBE_MOMENT,
        "finished_at": MAYBE_MOMENT,
        "erased_at": {
            **MAYBE_MOMENT,
            "description": "Since then, prompt, params, reference and artifacts are not kept.",
        },
        "error": {
            "type": ["object", "null"],
            "required": ["code", "message"],
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
        },
        "artifacts": {
            "type": "array",
            "description": "The finished media; their addresses need the token, too.",
            "items": {
                "type": "object",
                "required": ["type", "content_type", "url"],
                "properties": {
                    "type": {"type": "string"},
                    "content_type": {"type": "string"},
                    "url": ADDRESS,
                },
            },
        },
        "cost_usd_micros": {
            "type": ["integer", "null"],
            "description": "In millionths of a US dollar.",
        },
        "retry_of": {"type": ["string", "null"], "format": "uuid"},
        "url": ADDRESS,
        "html_url": ADDRESS,
    },
    "example": EXAMPLE,
}


WORKSPACE: Json = {
    "type": ["string", "null"],
    "description": "The Sume account that is billed; left out: yours. Another needs a permission.",
}


def request_schema() -> Json:
    """What makes one render."""
    schema = _request_schema()
    if workspaces.several():
        schema["properties"]["workspace"] = WORKSPACE
    return schema


def _request_schema() -> Json:
    return {
        "type": "object",
        "required": ["prompt"],
        "additionalProperties": False,
        "properties": {
            "prompt": {
                "type": "string",
                "pattern": FILLED,
                "maxLength": conf.MAX_PROMPT_LENGTH,
                "description": "What the picture or clip should show.",
            },
            "kind": {"enum": list(Kind.values), "default": "image"},
            "model": {
                "type": "string",
                "pattern": FILLED,
                "maxLength": 100,
                "default": "sume/auto",
            },
            "params": {
                "type": ["object", "null"],
                "maxProperties": 100,
                "propertyNames": {
                    "maxLength": 200,
                    "pattern": NO_NUL,
                    "not": {"enum": sorted(OWN_FIELDS)},
                },
                "additionalProperties": ref("schemas", "Value"),
                "description": "Further fields of Sume's request; 100,000 bytes at most.",
            },
            "priority": {
                "type": "integer",
                "minimum": -32_000,
                "maximum": 32_000,
                "default": 0,
                "description": "Higher goes first.",
            },
            "reference": {
                "type": ["string", "null"],
                "pattern": NO_NUL,
                "maxLength": 200,
                "description": "A unique name of your own. The same request with the same "
                "reference gives the same render, for ever; another request with it is refused.",
            },
        },
        "example": {"prompt": "A boat", "params": {"seed": 7}, "reference": "order-1"},
    }


def all_schemas() -> Json:
    """Every schema by its name."""
    return {
        "Render": RENDER,
        "RenderRequest": request_schema(),
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
            "example": {"renders": [{"prompt": "A boat"}, {"prompt": "A fox", "kind": "video"}]},
        },
        "Renders": {
            "type": "object",
            "required": ["renders"],
            "properties": {"renders": {"type": "array", "items": ref("schemas", "Render")}},
        },
        "Page": {
            "type": "object",
            "required": ["renders", "next"],
            "properties": {
                "renders": {"type": "array", "items": ref("schemas", "Render")},
                "next": {
                    "type": ["string", "null"],
                    "format": "uri",
                    "description": "The next page; null on the last one.",
                },
            },
        },
        "Cancellation": {
            "type": "object",
            "required": ["outcome", "render"],
            "properties": {
                "outcome": {
                    "enum": ["canceled", "requested", "requested_before", "ended_before"],
                    "description": "canceled: it was never sent, nothing is billed. requested: "
                    "Sume decides; read the render. The others: nothing changed.",
                },
                "render": ref("schemas", "Render"),
            },
        },
        "Value": {
            "description": "Any JSON, nested up to 20 levels.",
            "type": ["null", "boolean", "number", "string", "array", "object"],
            "pattern": NO_NUL,
            "exclusiveMinimum": -(2**63),
            "exclusiveMaximum": 2**63,
            "items": ref("schemas", "Value"),
            "propertyNames": {"maxLength": 200, "pattern": NO_NUL},
            "additionalProperties": ref("schemas", "Value"),
        },
        "Problem": {
            "type": "object",
            "required": ["type", "title", "status", "code", "detail"],
            "properties": {
                "type": {"type": "string"},
                "title": {"type": "string"},
                "status": {"type": "integer"},
                "code": {"type": "string", "description": "For programs; it does not change."},
                "detail": {"type": "string", "description": "For people: what to do now."},
                "errors": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["field", "message"],
                        "properties": {
                            "field": {"type": "string", "examples": ["renders[3].prompt"]},
                            "message": {"type": "string"},
                        },
                    },
                },
            },
        },
    }
