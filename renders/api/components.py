"""The OpenAPI document: headers, and the replies that tell of errors."""

from typing import Any

from renders.api.examples import LINE_FULL
from renders.api.problems import CONTENT_TYPE, STATUSES
from renders.api.schemas import ADDRESS, Json, ref


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
EXTRA = {401: "WWW-Authenticate", 405: "Allow", 429: "Retry-After"}
# A second example for a status.
OTHERS = {429: LINE_FULL}


def _examples(usual: Json) -> Json:
    if usual["status"] not in OTHERS:
        return {"example": usual}
    found = [usual, {**usual, **OTHERS[usual["status"]]}]
    return {"examples": {one["code"]: {"value": one} for one in found}}


def problem(status: int) -> Json:
    """The reply that tells of this error."""
    code, title = STATUSES[status]
    example = {"type": "about:blank", "title": title, "status": status, "code": code}
    headers = {EXTRA[status]: ref("headers", EXTRA[status])} if status in EXTRA else {}
    content = {"schema": ref("schemas", "Problem"), **_examples({**example, "detail": "…"})}
    return {
        "description": title,
        "headers": headers if status in (401, 405) else {**headers, **RATE},
        "content": {CONTENT_TYPE: content},
    }
