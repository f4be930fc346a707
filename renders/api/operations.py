"""The operations of the OpenAPI document, and the links between them."""

from typing import Any

from renders.api import listing, schemas
from renders.api.schemas import HEADERS, RATE, RENDER_ID, REQUESTS, Json, ref
from renders.states import Kind, Status

ID: Json = {
    "name": "id",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "format": "uuid"},
    "example": RENDER_ID,
}
INDEX: Json = {
    "name": "index",
    "in": "path",
    "required": True,
    "description": "Its place among the render's artifacts, from 0.",
    "schema": {"type": "integer", "minimum": 0},
    "example": 0,
}
KEY: Json = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "The same key with the same body gives the same renders.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"},
    "example": "b6f7c1f2-order-1",
}


def _link(operation: str) -> Json:
    return {"operationId": operation, "parameters": {"id": "$response.body#/id"}}


LINKS: Json = {
    "cancel": _link("cancelRender"),
    "retry": _link("retryRender"),
}
LINKS_OF_NEW: Json = {"read": _link("getRender"), **LINKS}


def _operation(
    name: str, summary: str, replies: Json, problems: tuple[int, ...], **more: Any
) -> Json:
    """An operation with its replies, its own problems and those that every operation has."""
    refused = {str(status): ref("responses", f"Problem{status}") for status in problems}
    usual = {str(status): ref("responses", f"Problem{status}") for status in (401, 429, 500)}
    responses = dict(sorted({**replies, **refused, **usual}.items()))
    return {
        "operationId": name,
        "summary": summary,
        "tags": ["renders"],
        **more,
        "responses": responses,
    }


def _reply(description: str, schema: str, *, links: Any = None, headers: Any = None) -> Json:
    reply: Json = {
        "description": description,
        "headers": {**(headers or {}), **RATE},
        "content": {"application/json": {"schema": ref("schemas", schema)}},
    }
    return {**reply, "links": links} if links else reply


def _query(name: str, description: str, schema: Json, **more: Any) -> Json:
    return {"name": name, "in": "query", "description": description, "schema": schema, **more}


def _several(values: list[str]) -> Json:
    return {"type": "array", "minItems": 1, "items": {"enum": values}}


def list_renders() -> Json:
    text = {"type": "string", "minLength": 1, "maxLength": listing.MOST_CHARACTERS}
    text["pattern"] = schemas.NO_NUL
    moment = {"type": "string", "format": "date-time"}
    commas: Json = {"style": "form", "explode": False}
    limit = {
        "type": "integer",
        "minimum": 1,
        "maximum": listing.MAX_LIMIT,
        "default": listing.DEFAULT_LIMIT,
    }
    cursor = {"type": "string", "minLength": 1, "format": "renders-cursor"}
    return _operation(
        "listRenders",
        "The newest renders, page by page",
        {"200": _reply("A page.", "Page", headers={"Link": ref("headers", "Link")})},
        (422,),
        parameters=[
            _query("status", "Those in one of these.", _several(list(Status.values)), **commas),
            _query("kind", "Those of one of these.", _several(list(Kind.values)), **commas),
            _query("workspace", "Those that this Sume account is billed for.", text),
            _query("reference", "The one with this reference.", text),
            _query("q", "Those with this in the prompt.", text),
            _query("created_after", "Those made after this time.", moment),
            _query("created_before", "Those made before this time.", moment),
            _query("limit", "How many on a page.", limit),
            _query("cursor", "Where to go on; part of `next`, not to be built.", cursor),
        ],
    )


def create_renders() -> Json:
    new = [ref("schemas", "RenderRequest"), ref("schemas", "RenderBatch")]
    made: Json = {
        "description": "Stored; sent to Sume within moments. Many: in the order of the request.",
        "headers": {
            "Idempotency-Replayed": ref("headers", "Idempotency-Replayed"),
            "Location": {**HEADERS["Location"], "required": False},
            **RATE,
        },
        "content": {
            "application/json": {
                "schema": {"anyOf": [ref("schemas", "Render"), ref("schemas", "Renders")]}
            }
        },
        "links": LINKS_OF_NEW,
    }
    return _operation(
        "createRenders",
        "Make one render, or up to 10,000: all or none",
        {"202": made},
        (400, 403, 409, 413, 415, 422),
        description="409: the key was sent with another body, or a reference with another "
        "request (`code` says which). 422: `errors` names the field, for instance "
        "`renders[3].params.avatar_handle`. A request that conforms to the schema gets it if a "
        "script is too long, if you may not use an avatar or its handle or give a priority above "
        "0, or if a list is longer than the number of renders that you may have waiting. 429 with "
        "the code `too_many_waiting`: that number is reached until some have been sent; send the "
        "request again with the same key.",
        parameters=[KEY],
        requestBody={
            "required": True,
            "content": {
                "application/json": {
                    "schema": {"oneOf": new},
                    "examples": {name: {"value": value} for name, value in REQUESTS.items()},
                }
            },
        },
    )


def cancel_render() -> Json:
    return _operation(
        "cancelRender",
        "Ask for a render to be canceled",
        {"202": _reply("What became of that.", "Cancellation")},
        (403, 404, 413, 415),
        description="Takes no body. May be repeated: `outcome` says what happened.",
    )


def resend_render() -> Json:
    return _operation(
        "resendRender",
        "Send a render of unknown outcome again, with its own key",
        {"202": _reply("The render, queued.", "Render", links=LINKS)},
        (403, 404, 409, 413, 415),
        description="Takes no body. For a render that failed with `submit_outcome_unknown`: if "
        "Sume has made it, it answers with that job and bills nothing more. 409: its outcome is "
        "known, or it was retried or erased.",
    )


def store_media() -> Json:
    return _operation(
        "storeMedia",
        "Fetch the pictures and clips of a completed render that are not stored",
        {"202": _reply("The render, whose media are fetched again.", "Render", links=LINKS)},
        (403, 404, 409, 413, 415),
        description="Takes no body, and costs nothing. 409: the render is not completed, nothing "
        "is missing, or it is being fetched just now.",
    )


def retry_render() -> Json:
    headers = {name: ref("headers", name) for name in ("Location", "Idempotency-Replayed")}
    return _operation(
        "retryRender",
        "Make a new render from one that failed or was canceled",
        {"202": _reply("The new one.", "Render", links=LINKS_OF_NEW, headers=headers)},
        (403, 404, 409, 413, 415),
        description="Takes no body. It is billed again, and done once: repeated, it gives the "
        "same new render. 409: it has not failed, and was not canceled. 429 with the code "
        "`too_many_waiting`: it does not fit into the number of renders that you may have waiting.",
    )


def get_render() -> Json:
    reply = _reply("The render.", "Render", links=LINKS)
    return _operation("getRender", "One render", {"200": reply}, (404,))


def get_artifact() -> Json:
    media: Json = {"schema": {"type": "string", "format": "binary"}}
    file: Json = {
        "description": "The file.",
        "headers": RATE,
        "content": dict.fromkeys(("image/*", "video/*", "application/octet-stream"), media),
    }
    elsewhere: Json = {
        "description": "The file is not stored here: where it is, for a while.",
        "headers": {"Location": ref("headers", "Location"), **RATE},
    }
    return _operation(
        "getArtifact", "A finished picture or clip", {"200": file, "302": elsewhere}, (404,)
    )


def get_budget() -> Json:
    reply = _reply("The budgets.", "Budget")
    return _operation(
        "getBudget",
        "What is left of this month's budgets",
        {"200": reply},
        (),
        description="In millionths of a US dollar; null where there is no such budget. What is "
        "under way counts with its price. The sums may be some seconds old.",
    )


def get_document() -> Json:
    reply: Json = {
        "description": "OpenAPI 3.1.",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
    responses = {"200": reply, "500": ref("responses", "Problem500")}
    return {
        "operationId": "getDocument",
        "summary": "This document",
        "tags": ["renders"],
        "security": [],
        "responses": responses,
    }
