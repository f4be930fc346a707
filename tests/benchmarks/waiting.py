"""Renders that Sume holds and that are to be read: put into the table, and into the sorted set."""

import time

import psycopg

from tests.benchmarks.scene import Scene

INSERT = """
INSERT INTO renders_renderjob (
    id, kind, model, prompt, params, priority, created_at, status, idempotency_key, request_path,
    request_body, by_webhook, claimed_at, submit_attempts, submitted_at, sume_job_id, sume_status,
    idempotency_hit, next_poll_at, poll_count, failed_reads, error_code, error_message
)
SELECT id, 'image', 'sume/auto', 'A picture', '{}', 0, now(), 'submitted', 'render-job-' || id,
    '/v1/images', '{"prompt": "A picture"}', false, now(), 1, now(), 'job-' || n, 'processing',
    false, to_timestamp(%(base)s::float8 + n * %(spacing)s::float8), 1, 0, '', ''
FROM (SELECT n, gen_random_uuid() AS id FROM generate_series(0, %(count)s - 1) AS n) AS numbers
"""


def insert(scene: Scene, count: int, *, base: float = 0.0, spacing: float = 0.0) -> None:
    """`count` submitted renders, the first due at `base` (default: now), then every `spacing` s."""
    values = {"count": count, "base": base or time.time(), "spacing": spacing}
    with psycopg.connect(scene.database, autocommit=True) as connection:
        connection.execute(INSERT, values)
        connection.execute("VACUUM ANALYZE renders_renderjob")


def in_set() -> None:
    """Put them all into the sorted set, as the sweep does when it has been lost."""
    from renders.coordination.connections import polls
    from renders.schedulers import due_set_upkeep

    due_set_upkeep.keep(polls())


def in_messages() -> None:
    """Send a message for each, as the chains of polls do."""
    from renders.lifecycle.steps import Step
    from renders.models import RenderJob
    from renders.schedulers import dispatch

    dispatch.follow([Step("poll", pk) for pk in RenderJob.objects.values_list("pk", flat=True)])
