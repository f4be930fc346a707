"""Signed links to results, and the files behind them."""

import hashlib
import hmac
import secrets
from functools import lru_cache

from .jobs import KINDS, Job
from .pictures import draw_clip, draw_picture
from .replies import ApiError, Reply
from .rules import Rules


class Signer:
    """Makes and checks the `signature` of media links, with a secret of its own."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)

    def path(self, job_id: str, file_name: str) -> str:
        """The path and query under which a result lies."""
        return f"/media/{job_id}/{file_name}?signature={self._signature(job_id, file_name)}"

    def valid(self, job_id: str, file_name: str, signature: str) -> bool:
        """Whether the signature was made here for this file."""
        made = self._signature(job_id, file_name).encode()
        return hmac.compare_digest(made, signature.encode("utf-8", "replace"))

    def _signature(self, job_id: str, file_name: str) -> str:
        message = f"{job_id}/{file_name}".encode("utf-8", "replace")
        return hmac.new(self._secret, message, hashlib.sha256).hexdigest()


def media_reply(rules: Rules, signer: Signer, job_id: str, file_name: str, signature: str) -> Reply:
    """The file of a completed job. ApiError 403 for a wrong signature, 404 for no file."""
    if not signer.valid(job_id, file_name, signature):
        raise ApiError(403, "invalid_signature", "The link's signature is missing or wrong.")
    job = rules.finished_job(job_id)
    if job is None or job.kind.file_name != file_name:
        raise ApiError(404, "not_found", "There is no such file.")
    return Reply(200, body=_drawn(job), content_type=job.kind.content_type)


def _drawn(job: Job) -> bytes:
    return _draw(job.prompt, job.kind.content_type)


@lru_cache(maxsize=32)
def _draw(prompt: str, content_type: str) -> bytes:
    moving = content_type == KINDS["video"].content_type
    return draw_clip(prompt) if moving else draw_picture(prompt)
