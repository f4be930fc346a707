"""The OpenAPI document: what comes back, as schemas."""

from typing import Any

from renders.api.examples import BUDGET, EXAMPLE
from renders.states import OVER_BUDGET, Kind, Status

Json = dict[str, Any]

MOMENT: Json = {"type": "string", "format": "date-time"}
MAYBE_MOMENT: Json = {"type": ["string", "null"], "format": "date-time"}
ADDRESS: Json = {"type": "string", "format": "uri"}
MICROS: Json = {"type": ["integer", "null"], "minimum": 0}
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
        "waiting_reason": {
            "type": ["object", "null"],
            "description": "Why it is not sent although it is pending; else null. over_budget: "
            "it does not fit into what is left of a budget, and is sent when it does.",
            "required": ["code", "message"],
            "properties": {"code": {"const": OVER_BUDGET}, "message": {"type": "string"}},
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


BUDGET_SCHEMA: Json = {
    "type": "object",
    "required": list(BUDGET),
    "properties": {
        "month": {
            "type": "string",
            "pattern": "^[0-9]{4}-[0-9]{2}$",
            "description": "Budgets are for a calendar month in UTC.",
        },
        "workspaces": {
            "type": "array",
            "description": "Those that you may use. Yours comes first.",
            "items": {
                "type": "object",
                "required": list(BUDGET["workspaces"][0]),
                "properties": {
                    "workspace": {"type": "string"},
                    "budget_usd_micros": {**MICROS, "description": "Of all its renders."},
                    "left_usd_micros": MICROS,
                    "user_budget_usd_micros": {**MICROS, "description": "Of your renders."},
                    "user_left_usd_micros": MICROS,
                },
            },
        },
    },
    "example": BUDGET,
}


def reply_schemas() -> Json:
    """Every schema of a reply by its name, and that of any JSON value."""
    return {
        "Render": RENDER,
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
        "Budget": BUDGET_SCHEMA,
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
