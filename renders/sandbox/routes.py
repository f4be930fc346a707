"""Which path is which operation. Knows nothing of what is done then."""

import re
from dataclasses import dataclass, replace
from urllib.parse import unquote

from .replies import ApiError


@dataclass(frozen=True)
class Route:
    """Where a request goes: `action` names a method of `Application`, or of `Reads`.

    `operation` is the word that faults use; `kind` is a key of `jobs.KINDS` for submits.
    """

    method: str
    pattern: re.Pattern[str]
    action: str
    operation: str = "other"
    kind: str = ""
    of_reads: bool = False


def _route(method: str, path: str, action: str, operation: str = "other", kind: str = "") -> Route:
    # `{id}` matches one segment, `{rest}` matches several.
    pattern = re.escape(path).replace(r"\{id\}", "([^/]+)").replace(r"\{rest\}", "(.+)")
    return Route(method, re.compile(pattern), action, operation, kind)


SUBMITS = {
    "/v1/images": "image",
    "/v1/image-router/generate": "image",
    "/v1/video-router/generate": "video",
    "/v1/models/sume/avatar/v1.0/runs": "avatar",
    "/v1/models/sume/avatar-video/v1.0/runs": "avatar_video",
}
# Not about one job: see `reads`. Which of them need a key is not documented; here all do.
READS = {
    "/health": "health",
    "/v1/health": "health",
    "/v1/catalog": "catalog",
    "/v1/open/catalog/{rest}": "model",
    "/v1/me": "me",
    "/v1/balance": "balance",
    "/v1/usage": "usage",
    "/v1/jobs": "jobs",
    "/v1/avatars": "avatars",
    "/v1/avatars/{id}": "avatar",
    "/v1/avatar-videos": "avatar_videos",
    "/v1/avatar-videos/{id}": "avatar_video",
}
ROUTES = [
    *(_route("POST", path, "submit", "submit", kind) for path, kind in SUBMITS.items()),
    _route("GET", "/v1/jobs/{id}/status", "status", "status"),
    _route("GET", "/v1/jobs/{id}/result", "result", "result"),
    _route("GET", "/v1/jobs/{id}/events", "events"),
    _route("GET", "/v1/jobs/{id}", "record", "record"),
    _route("POST", "/v1/jobs/{id}/cancel", "cancel", "cancel"),
    *(replace(_route("GET", path, action), of_reads=True) for path, action in READS.items()),
    _route("GET", "/media/{id}/{id}", "media", "media"),
    _route("GET", "/", "welcome", "control"),
    _route("GET", "/_sandbox/ledger", "show_ledger", "control"),
    _route("GET", "/_sandbox/faults", "show_faults", "control"),
    _route("POST", "/_sandbox/faults", "add_fault", "control"),
    _route("DELETE", "/_sandbox/faults", "clear_faults", "control"),
]


def find_route(method: str, path: str) -> tuple[Route, list[str]]:
    """The route and the unquoted parts of the path. ApiError 404, or 405 for the method."""
    known_path = False
    for route in ROUTES:
        match = route.pattern.fullmatch(path)
        if match and route.method == method:
            return route, [unquote(part) for part in match.groups()]
        known_path = known_path or match is not None
    if known_path:
        raise ApiError(405, "method_not_allowed", "This path does not take that method.")
    raise ApiError(404, "not_found", "There is no such path in the sandbox.")
