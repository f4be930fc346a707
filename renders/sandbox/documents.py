"""Job to JSON: the `data` of each reply. Reads a job, changes nothing."""

from datetime import UTC, datetime
from typing import Any

from .avatars import READY, Avatar
from .jobs import COMPLETED, FAILED, TERMINAL, Job

NEXT_ACTIONS = {True: "fetch_result", False: "poll_status"}


def submitted(job: Job, *, base_url: str, hit: bool, capacity: int) -> dict[str, Any]:
    """The reply to a submit. `capacity` is how many more jobs may wait."""
    return {
        "request_id": job.id,
        "status_url": f"{base_url}/v1/jobs/{job.id}/status",
        "result_url": f"{base_url}/v1/jobs/{job.id}/result",
        "idempotency_hit": hit,
        "sync": None,
        "job": {"id": job.id, "type": job.kind.job_type, "status": job.status},
        "generation_limits": {"queue_capacity_remaining": capacity},
    }


def status(job: Job, *, now: float, hint: float | None) -> dict[str, Any]:
    """The reply to a status read. `hint` is `next_poll_after_seconds`, None once ended."""
    ready = job.result_ready(now)
    data: dict[str, Any] = {
        "request_id": job.id,
        "job_id": job.id,
        "status": job.status.upper(),
        "sume_status": job.status,
        "terminal": job.terminal,
        "result_ready": ready,
    }
    if hint is not None:
        data["next_poll_after_seconds"] = int(hint) if hint == int(hint) else hint
    waits_for_result = job.status == COMPLETED or not job.terminal
    data["next_action"] = NEXT_ACTIONS[ready] if waits_for_result else "none"
    data["job"] = summary(job)
    data["usage"] = usage(job)
    return data


def result(job: Job, *, url: str) -> dict[str, Any]:
    """The reply to a result read. `url` is where the artifact lies."""
    return {
        "request_id": job.id,
        "status": job.status.upper(),
        "result": {"artifacts": [artifact(job, url)]},
        "usage": usage(job),
    }


def artifact(job: Job, url: str) -> dict[str, str]:
    """What a job made."""
    return {"url": url, "type": job.kind.artifact_type, "content_type": job.kind.content_type}


def avatar(avatar: Avatar, *, url: str) -> dict[str, Any]:
    """An avatar. `url` is where its picture lies, once the job that made it is completed."""
    job = avatar.job
    data: dict[str, Any] = {
        "id": avatar.id,
        "handle": avatar.handle,
        "name": avatar.handle,
        "status": avatar.status,
        "resource_status": avatar.status,
        "job_status": avatar.job_status,
        "source_type": avatar.source_type,
        "created_at": iso(avatar.created_at),
    }
    if job is not None:
        data |= {"job_id": job.id, "updated_at": iso(job.events[-1][1])}
        if job.status == COMPLETED:
            data |= {"preview_url": url, "artifacts": [artifact(job, url)]}
    return data


def avatar_video_id(job: Job) -> str:
    """The id under which an avatar video is listed."""
    return f"avatar_video_{job.id.removeprefix('job_')}"


def avatar_video(job: Job, *, url: str) -> dict[str, Any]:
    """An avatar video. `url` is where it lies, once it is completed."""
    ready = job.status == COMPLETED
    data: dict[str, Any] = {
        "id": avatar_video_id(job),
        "status": READY if ready else job.status,
        "job_id": job.id,
        "job_status": job.status,
        "avatar_handle": job.avatar_handle,
        "created_at": iso(job.accepted_at),
        "updated_at": iso(job.events[-1][1]),
    }
    if ready:
        data |= {"video_url": url, "artifacts": [artifact(job, url)]}
    return data


def usage_entry(job: Job) -> dict[str, Any]:
    """A job's line in the list of what was used."""
    row = {"job_id": job.id, "type": job.kind.job_type, "created_at": iso(job.accepted_at)}
    return {**row, **usage(job)}


def record(job: Job) -> dict[str, Any]:
    """The job record."""
    times = {
        "created_at": iso(job.accepted_at),
        "started_at": iso(job.started_at),
        "finished_at": iso(job.finished_at),
    }
    return {"job": {**summary(job), "model": job.model, **times, "usage": usage(job)}}


def canceled(job: Job) -> dict[str, Any]:
    """The reply to a cancel that worked."""
    return {"request_id": job.id, "status": "CANCELED", "canceled": True}


def events(job: Job, limit: int) -> dict[str, Any]:
    """The newest `limit` events, oldest first; no prompt in them."""
    rows = [
        {"id": f"{job.id}-{number}", "type": f"job.{name}", "created_at": iso(at)}
        for number, (name, at) in enumerate(job.events, start=1)
    ]
    return {"job_id": job.id, "events": rows[-limit:]}


def event(job: Job) -> dict[str, Any]:
    """What a webhook tells once the job has ended."""
    return {
        "id": f"evt_{job.id.removeprefix('job_')}_{job.status}",
        "type": f"job.{job.status}",
        "created_at": iso(job.finished_at),
        "data": {"object": summary(job)},
    }


def summary(job: Job) -> dict[str, Any]:
    """The `job` object that several replies hold."""
    error = None
    if job.status == FAILED and job.error is not None:
        error = {
            "code": job.error.code,
            "message": job.error.message,
            "public_reason": job.error.public_reason,
        }
    return {"id": job.id, "type": job.kind.job_type, "status": job.status, "error": error}


def usage(job: Job) -> dict[str, Any]:
    """What the job costs: reserved while it runs, then charged or refunded."""
    word = "reserved"
    if job.status in TERMINAL:
        word = "charged" if job.status == COMPLETED else "refunded"
    amount = 0 if word == "refunded" else job.amount_usd_micros
    return {"status": word, "currency": "USD", "billable_amount_usd_micros": amount}


def iso(at: float | None) -> str | None:
    """Unix seconds as an ISO 8601 time in UTC."""
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat()
