"""The avatars of the workspace: those that were there at the start, and those that jobs made."""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from .jobs import CANCELED, COMPLETED, FAILED, Job
from .replies import ApiError
from .values import bare

READY = "ready"


@dataclass(frozen=True, eq=False)
class Avatar:
    """One avatar; `job` made it, or is about to. Without a job it was there from the start."""

    id: str
    handle: str
    created_at: float
    source_type: str
    job: Job | None = None

    @property
    def status(self) -> str:
        """`ready` when it can be used, else what its job is."""
        if self.job is None or self.job.status == COMPLETED:
            return READY
        return self.job.status

    @property
    def job_status(self) -> str:
        """What the job that made it is."""
        return COMPLETED if self.job is None else self.job.status


class Avatars:
    """Avatars by id and by handle. Not thread-safe: `Rules` holds the lock."""

    def __init__(self, handles: Iterable[str], now: float) -> None:
        self._all: dict[str, Avatar] = {}
        self._newest: dict[str, Avatar] = {}
        for handle in handles:
            self._keep(Avatar(f"avatar_{uuid.uuid4().hex}", bare(handle), now, "prompt"))

    def check(self, kind: str, handle: str) -> None:
        """Raise ApiError 422 if a submit of this kind cannot have that handle."""
        if kind == "avatar":
            self._check_free(handle)
        elif kind == "avatar_video":
            self._check_ready(handle)

    def add(self, job: Job) -> None:
        """Remember the avatar that this job is about to make."""
        avatar_id = f"avatar_{job.id.removeprefix('job_')}"
        self._keep(Avatar(avatar_id, job.avatar_handle, job.accepted_at, job.source_type, job))

    def get(self, avatar_id: str) -> Avatar | None:
        """The avatar with this id."""
        return self._all.get(avatar_id)

    def of(self, job: Job) -> Avatar | None:
        """The avatar that this job makes; None for jobs that make something else."""
        return self._all.get(f"avatar_{job.id.removeprefix('job_')}")

    def listed(self, handle: str = "", status: str = "") -> list[Avatar]:
        """The newest first; with that handle and that status, if given."""
        return [
            avatar
            for avatar in reversed(self._all.values())
            if (not handle or avatar.handle == bare(handle))
            and (not status or status in (avatar.status, avatar.job_status))
        ]

    def _check_free(self, handle: str) -> None:
        """Raise ApiError 422 if there is an avatar with this handle, or soon will be.

        What the API does then is not documented. One that failed or was canceled leaves its
        handle free, so that it can be tried again.
        """
        known = self._newest.get(handle)
        if known is not None and known.status not in (FAILED, CANCELED):
            message = f"There is an avatar with the handle {handle} already."
            raise _refusal("avatar_handle_taken", message)

    def _check_ready(self, handle: str) -> None:
        """Raise ApiError 422 if no avatar can be used under this handle.

        The API says that it must be a ready avatar's; with which code it refuses is not
        documented.
        """
        known = self._newest.get(handle)
        if known is None:
            raise _refusal("avatar_not_found", f"There is no avatar with the handle {handle}.")
        if known.status != READY:
            message = f"The avatar {handle} is not ready; it is {known.status}."
            raise _refusal("avatar_not_ready", message)

    def _keep(self, avatar: Avatar) -> None:
        self._all[avatar.id] = self._newest[avatar.handle] = avatar


def _refusal(code: str, message: str) -> ApiError:
    errors = [("avatar_handle", message)]
    return ApiError(422, code, message, retryable=False, errors=errors)
