"""The reads that are about the workspace and its avatars, not about one job. They change nothing.

What a reply holds beyond the documented fields is small and invented here.
"""

from typing import Any

from . import documents
from .avatars import READY, Avatar
from .jobs import CANCELED, COMPLETED, FAILED, KINDS, PROCESSING, QUEUED, Job
from .replies import ApiError, Reply
from .request import Request, bad_query
from .routes import SUBMITS
from .rules import Rules

AVATAR_STATUSES = (READY, QUEUED, PROCESSING, COMPLETED, FAILED, CANCELED)
MOST_AVATARS = 100


class Reads:
    """Each method answers one path of `routes.READS`."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def health(self, request: Request) -> Reply:
        """That it runs. Public clients read these fields without the `data` envelope."""
        return Reply(200, {"status": "ok", "service": "sume-sandbox", "build": {}})

    def catalog(self, request: Request) -> Reply:
        """What can be made, and where to ask for it."""
        made = [
            {"kind": kind, "type": KINDS[kind].job_type, "method": "POST", "path": path}
            for path, kind in SUBMITS.items()
        ]
        return _ok({"capabilities": made})

    def model(self, request: Request, model: str) -> Reply:
        """What kind of model this is: any name is fine."""
        return _ok({"id": model, "kind": "video" if "video" in model.lower() else "image"})

    def me(self, request: Request) -> Reply:
        """Whose key this is."""
        workspace = {"id": "ws_sandbox", "name": "Sandbox", "plan": "sandbox"}
        return _ok({"id": "acct_sandbox", "name": "Sandbox", "workspace": workspace})

    def balance(self, request: Request) -> Reply:
        """What the account still holds."""
        return _ok(self._rules.balance())

    def usage(self, request: Request) -> Reply:
        """What the newest jobs cost, newest first."""
        with self._rules.settled() as jobs:
            rows = [documents.usage_entry(job) for job in jobs[::-1][: request.limit(20)]]
        return _ok({"usage": rows, "next_cursor": None})

    def jobs(self, request: Request) -> Reply:
        """The newest jobs, newest first."""
        return _ok(self._rules.jobs(request.limit(20)))

    def avatars(self, request: Request) -> Reply:
        """The avatars, newest first, filtered by handle and status."""
        status, limit = request.query.get("status", ""), request.limit(20, MOST_AVATARS)
        if status and status not in AVATAR_STATUSES:
            raise bad_query("status", f"Must be one of {', '.join(AVATAR_STATUSES)}.")
        with self._rules.settled():
            found = self._rules.avatars.listed(request.query.get("handle", ""), status)
            rows = [self._avatar(avatar, request) for avatar in found[:limit]]
        return _ok({"avatars": rows})

    def avatar(self, request: Request, avatar_id: str) -> Reply:
        """One avatar, and the job that makes it."""
        with self._rules.settled():
            avatar = self._rules.avatars.get(avatar_id)
            if avatar is None:
                raise ApiError(404, "avatar_not_found", "There is no such avatar.")
            data: dict[str, Any] = {"avatar": self._avatar(avatar, request)}
            if avatar.job is not None:
                data["job"] = documents.summary(avatar.job)
        return _ok(data)

    def avatar_videos(self, request: Request) -> Reply:
        """The avatar videos, newest first."""
        limit = request.limit(20)
        with self._rules.settled() as jobs:
            videos = [job for job in reversed(jobs) if job.kind is KINDS["avatar_video"]]
            rows = [self._video(job, request) for job in videos[:limit]]
        return _ok({"avatar_videos": rows})

    def avatar_video(self, request: Request, video_id: str) -> Reply:
        """One avatar video, and the job that makes it."""
        with self._rules.settled() as jobs:
            for job in jobs:
                video = job.kind is KINDS["avatar_video"]
                if video and documents.avatar_video_id(job) == video_id:
                    found = {"avatar_video": self._video(job, request)}
                    return _ok(found | {"job": documents.summary(job)})
        raise ApiError(404, "avatar_video_not_found", "There is no such avatar video.")

    def _avatar(self, avatar: Avatar, request: Request) -> dict[str, Any]:
        return documents.avatar(avatar, url=self._url(avatar.job, request))

    def _video(self, job: Job, request: Request) -> dict[str, Any]:
        return documents.avatar_video(job, url=self._url(job, request))

    def _url(self, job: Job | None, request: Request) -> str:
        return "" if job is None else self._rules.url_of(job, request.base_url)


def _ok(data: dict[str, Any]) -> Reply:
    return Reply(200, {"data": data})
