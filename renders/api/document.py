"""The OpenAPI document, built from the values that the code itself uses."""

from django.conf import settings
from django.urls import reverse

from renders.api import operations
from renders.api.requests import request_schemas
from renders.api.schemas import HEADERS, Json, problem, reply_schemas
from renders.presentation.problems import STATUSES

ABOUT = """Makes pictures and clips from prompts, and tells how they get on.

Making a render costs money. So send an `Idempotency-Key` (any random text) with each POST that
makes renders, and repeat it with the same key until it is answered: one render is made, whatever
breaks on the way. Every error is a problem document (RFC 9457)."""


def document() -> Json:
    """The complete document."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Renders", "version": "1", "description": ABOUT},
        "servers": [{"url": _root()}],
        "security": [{"token": []}, {"session": []}],
        "tags": [{"name": "renders", "description": "One picture or clip each."}],
        "paths": {
            "/api/renders/": {
                "get": operations.list_renders(),
                "post": operations.create_renders(),
            },
            "/api/renders/{id}/": {
                "parameters": [operations.ID],
                "get": operations.get_render(),
            },
            "/api/renders/{id}/cancel/": {
                "parameters": [operations.ID],
                "post": operations.cancel_render(),
            },
            "/api/renders/{id}/resend/": {
                "parameters": [operations.ID],
                "post": operations.resend_render(),
            },
            "/api/renders/{id}/store-media/": {
                "parameters": [operations.ID],
                "post": operations.store_media(),
            },
            "/api/renders/{id}/retry/": {
                "parameters": [operations.ID],
                "post": operations.retry_render(),
            },
            "/api/renders/{id}/artifacts/{index}/": {
                "parameters": [operations.ID, operations.INDEX],
                "get": operations.get_artifact(),
            },
            "/api/renders/budget/": {"get": operations.get_budget()},
            "/api/renders/openapi.json": {"get": operations.get_document()},
        },
        "components": {
            "schemas": {**request_schemas(), **reply_schemas()},
            "headers": HEADERS,
            "responses": {f"Problem{status}": problem(status) for status in STATUSES},
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token of yours, made in the admin.",
                },
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": settings.SESSION_COOKIE_NAME,
                    "description": "POST needs the CSRF cookie's token in `X-CSRFToken`, too.",
                },
            },
        },
    }


def _root() -> str:
    """The path under which the project serves the app; all paths are relative to it."""
    return reverse("renders:api_list").removesuffix("/api/renders/") or "/"
