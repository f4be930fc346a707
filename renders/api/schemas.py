"""The reply schemas, headers and examples of the OpenAPI document."""

from typing import Any

from renders.presentation.problems import CONTENT_TYPE, STATUSES
from renders.states import OVER_BUDGET, Kind, Status

RENDER_ID = "5f0c7a52-4c52-4f0e-9f6d-6f1f6a1d2b3c"

EXAMPLE: dict[str, Any] = {
    "id": RENDER_ID,
    "workspace": "default",
    "kind": "image",
    "model": "sume/auto",
    "prompt": "A boat",
    "params": {"seed": 7},
    "priority": 0,
    "reference": "order-1",
    "status": "completed",
    "sume_status": "completed",
    "created_at": "2026-01-31T09:30:00.000000Z",
    "submitted_at": "2026-01-31T09:30:01.000000Z",
    "cancel_requested_at": None,
    "finished_at": "2026-01-31T09:30:21.000000Z",
    "erased_at": None,
    "error": None,
    "waiting_reason": None,
    "artifacts": [
        {
            "type": "image",
            "content_type": "image/png",
            "url": f"https://example.com/api/renders/{RENDER_ID}/artifacts/0/",
        }
    ],
    "cost_usd_micros": 90_000,
    "retry_of": None,
    "url": f"https://example.com/api/renders/{RENDER_ID}/",
    "html_url": f"https://example.com/renders/{RENDER_ID}/",
}

BUDGET: dict[str, Any] = {
    "month": "2026-01",
    "workspaces": [
        {
            "workspace": "default",
            "budget_usd_micros": 200_000_000,
            "left_usd_micros": 58_300_000,
            "user_budget_usd_micros": 500_000,
            "user_left_usd_micros": 140_000,
        }
    ],
}

REQUESTS: dict[str, dict[str, Any]] = {
    "image": {"prompt": "A boat", "params": {"seed": 7}, "reference": "order-1"},
    "video": {"kind": "video", "prompt": "A paper boat drifts down a rainy street."},
    "avatar_from_prompt": {
        "kind": "avatar",
        "prompt": "A friendly librarian in her fifties, round glasses, green cardigan.",
        "params": {"avatar_handle": "@mara"},
    },
    "avatar_from_photo": {
        "kind": "avatar",
        "params": {"avatar_handle": "@mara", "image_url": "https://example.com/mara.png"},
    },
    "avatar_from_props": {
        "kind": "avatar",
        "params": {"avatar_handle": "@mara", "ethnicity": "White", "sex": "female", "age": 52},
    },
    "avatar_video": {
        "kind": "avatar_video",
        "prompt": "Welcome! What shall we read today?",
        "params": {
            "avatar_handle": "@mara",
            "quality": "plus",
            "scene": {"type": "prompt", "prompt": "A quiet library in the morning."},
            "aspect_ratio": "9:16",
        },
    },
    "many": {"renders": [{"prompt": "A boat"}, {"prompt": "A fox", "kind": "video"}]},
}

LINE_FULL = {
    "code": "too_many_waiting",
    "detail": "Nothing was made. You have 998 renders waiting, and at most 1,000 may wait: 5 more "
    "do not fit. Wait until some have been sent, or cancel some.",
}


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
    """The schemas of replies, and the schema of any JSON value, by name."""
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


def header(description: str, required: bool = False, **schema: Any) -> Json:
    """A header of a reply."""
    return {"description": description, "required": required, "schema": schema}


RATE: Json = {
    f"RateLimit-{name}": ref("headers", f"RateLimit-{name}")
    for name in ("Limit", "Remaining", "Reset")
}
HEADERS: Json = {
    "RateLimit-Limit": header("Requests in a minute.", type="integer"),
    "RateLimit-Remaining": header("What is left of them.", type="integer", minimum=0),
    "RateLimit-Reset": header("Seconds until the next minute begins.", type="integer", minimum=1),
    "Idempotency-Replayed": header("An earlier request made this.", const="true"),
    "Location": header("The render's address.", required=True, **ADDRESS),
    "Link": header('The next page: `<…>; rel="next"` (RFC 8288).', type="string"),
    "Retry-After": header("Seconds to wait.", required=True, type="integer", minimum=1),
    "WWW-Authenticate": header("Bearer, and why it was refused.", required=True, type="string"),
    "Allow": header("What is possible here.", required=True, type="string"),
}
# The header that a status adds.
EXTRA = {401: "WWW-Authenticate", 405: "Allow", 429: "Retry-After"}
# A second example for a status.
OTHERS = {429: LINE_FULL}


def _examples(usual: Json) -> Json:
    """The example of a problem, or several if its status has a second one."""
    if usual["status"] not in OTHERS:
        return {"example": usual}
    bodies = [usual, {**usual, **OTHERS[usual["status"]]}]
    return {"examples": {body["code"]: {"value": body} for body in bodies}}


def problem(status: int) -> Json:
    """The reply with this status, a problem document."""
    code, title = STATUSES[status]
    example = {"type": "about:blank", "title": title, "status": status, "code": code}
    headers = {EXTRA[status]: ref("headers", EXTRA[status])} if status in EXTRA else {}
    content = {"schema": ref("schemas", "Problem"), **_examples({**example, "detail": "…"})}
    return {
        "description": title,
        "headers": headers if status in (401, 405) else {**headers, **RATE},
        "content": {CONTENT_TYPE: content},
    }
