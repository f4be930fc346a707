"""A database as it looks after a long time: any number of renders, made by PostgreSQL itself.

The newest wait, run or have just ended; nearly all the others are completed. The indexes are taken
away while the rows go in.
"""

from dataclasses import dataclass

import psycopg

# What has ended was made in so many days; what waits or runs in the last hours.
SPAN_DAYS = 365


@dataclass(frozen=True)
class Filling:
    """How many renders stand where; all others have ended and are handled."""

    rows: int = 1_000_000
    users: int = 1_000
    pending: int = 6_000
    """Of ten, one is held; some wait after an error, some are maybe at Sume."""
    submitting: int = 20
    submitted: int = 4_000
    """One in a hundred is overdue, one in a hundred cannot be read."""
    unhandled: int = 400


FACTS = """
WITH numbers AS (
    SELECT n, age, now() - interval '1 minute' - CASE
           WHEN age < moving THEN age::float / moving * interval '5 hours'
           ELSE interval '5 hours'
                + (age - moving)::float / %(rows)s * %(days)s * interval '1 day'
           END AS made
    FROM generate_series(1, %(rows)s) AS n,
         LATERAL (SELECT %(rows)s - n AS age,  -- 0: the newest
                         %(pending)s + %(submitting)s + %(submitted)s AS moving) AS ages
), standing AS (
    SELECT n, made,
           CASE WHEN age < %(pending)s THEN 'pending'
                WHEN age < %(pending)s + %(submitting)s THEN 'submitting'
                WHEN age < %(pending)s + %(submitting)s + %(submitted)s THEN 'submitted'
                WHEN n %% 25 = 0 THEN 'failed'
                WHEN n %% 100 = 1 THEN 'canceled'
                ELSE 'completed' END AS status,
           age < %(pending)s + %(submitting)s + %(submitted)s + %(unhandled)s AS fresh
    FROM numbers
), facts AS (
    SELECT *, gen_random_uuid() AS id, status IN ('completed', 'failed', 'canceled') AS ended,
           status IN ('submitted', 'completed') OR (status = 'failed' AND n %% 2 = 0) AS taken,
           status = 'pending' AND n %% 10 = 3 AS held,
           status = 'pending' AND n %% 50 = 1 AS unsure,
           status = 'failed' AND n %% 5000 = 0 AS unclear
    FROM standing
)
"""
RENDERS = (
    """
INSERT INTO renders_renderjob (
    id, kind, model, prompt, params, priority, reference, created_by_id, created_at, status,
    not_before, held_at, idempotency_key, request_path, request_body, by_webhook, claimed_at,
    submit_attempts, outcome_unknown_at, submitted_at, sume_job_id, sume_status, idempotency_hit,
    next_poll_at, poll_count, failed_reads, finished_at, handled_at, error_code, error_message,
    result, cost_usd_micros
)
{FACTS}
SELECT id,
    CASE WHEN n %% 50 = 7 THEN 'video' WHEN n %% 50 = 8 THEN 'avatar'
         WHEN n %% 50 = 9 THEN 'avatar_video' ELSE 'image' END,
    'sume/auto',
    'A picture of number ' || n || ': a red boat on a quiet lake, early in the morning',
    '{{}}', CASE WHEN n %% 97 = 0 THEN 5 ELSE 0 END,
    CASE WHEN n %% 3 = 0 THEN 'order-' || n END,
    CASE WHEN n %% 20 > 0
         THEN (SELECT min(id) FROM auth_user) + (n * 7919::bigint) %% %(users)s END,
    made, status,
    CASE WHEN status = 'pending' AND n %% 10 = 5 THEN now() + interval '1 hour' END,
    CASE WHEN held THEN made END,
    'render-job-' || id,
    CASE WHEN taken THEN '/v1/images' ELSE '' END,
    CASE WHEN taken THEN '{{"model": "sume/auto", "mode": "async", "prompt": "number ' || n || '"}}'
         ELSE '' END,
    false,
    CASE WHEN status <> 'pending' AND status <> 'canceled' THEN made + interval '5 seconds' END,
    CASE WHEN status = 'pending' THEN 0 ELSE 1 END,
    CASE WHEN unsure AND NOT held OR unclear THEN made END,
    CASE WHEN status = 'submitted' AND n %% 100 = 4 THEN made - interval '7 hours'
         WHEN taken THEN made + interval '6 seconds' END,
    CASE WHEN taken THEN 'job-' || md5(n::text) ELSE '' END,
    CASE WHEN taken THEN 'processing' ELSE '' END,
    false,
    CASE WHEN status = 'submitted' THEN now() + (n %% 30 - 5) * interval '1 second'
         WHEN ended AND fresh THEN now() - (n %% 300) * interval '1 second' END,
    CASE WHEN taken THEN 4 ELSE 0 END,
    CASE WHEN status = 'submitted' AND n %% 100 = 6 THEN 3 ELSE 0 END,
    CASE WHEN ended THEN made + interval '30 seconds' END,
    CASE WHEN ended AND NOT fresh THEN made + interval '40 seconds' END,
    CASE WHEN unclear THEN 'submit_outcome_unknown' WHEN status = 'failed' THEN 'content_refused'
         WHEN status = 'pending' AND n %% 50 = 2 THEN 'queue_full' ELSE '' END,
    CASE WHEN status = 'failed' THEN 'Sume could not make it.' ELSE '' END,
    CASE WHEN status = 'completed' THEN jsonb_build_object('artifacts', jsonb_build_array(
        jsonb_build_object('type', 'image', 'content_type', 'image/png', 'bytes', 84000,
            'file', 'renders/' || id || '/0.png', 'sha256', md5(n::text) || md5(n::text),
            'url', 'https://media.example/' || id || '/0.png'))) END,
    CASE WHEN status = 'completed' THEN 40000 WHEN ended THEN 0 END
FROM facts
""".replace("{FACTS}", FACTS)
    .replace("{{", "{")
    .replace("}}", "}")
)
RETRIES = """
UPDATE renders_renderjob SET retry_of_id = other.id
FROM (SELECT id, row_number() OVER (ORDER BY id) AS place FROM renders_renderjob
      WHERE status = 'failed' LIMIT 5000) AS other
JOIN (SELECT id, row_number() OVER (ORDER BY id) AS place FROM renders_renderjob
      WHERE status = 'completed' LIMIT 5000) AS again USING (place)
WHERE renders_renderjob.id = again.id
"""
EVENTS = """
INSERT INTO renders_renderevent (render_id, at, what, detail)
SELECT id, at, what, '' FROM renders_renderjob, LATERAL (VALUES
    (created_at, 'created'), (claimed_at, 'sending'), (handled_at, 'handled'),
    (CASE WHEN status = 'completed' AND idempotency_key LIKE '%%0a'
          THEN handled_at END, 'media not stored')
) AS lines(at, what) WHERE at IS NOT NULL
"""
USERS = """
INSERT INTO auth_user (username, password, is_superuser, is_staff, is_active, first_name,
                       last_name, email, date_joined)
SELECT 'user' || n, '', false, false, true, '', '', '', now() FROM generate_series(1, %(users)s) n
"""
TABLES = ("renders_renderjob", "renders_renderevent")


def fill(url: str, filling: Filling | None = None) -> None:
    """Fill the migrated, empty database of this address, and have it analyzed."""
    wanted = filling or Filling()
    values = {**vars(wanted), "days": SPAN_DAYS}
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(USERS, values)
        with connection.transaction():
            # No look at each foreign key: needs the rights of a superuser.
            connection.execute("SET LOCAL session_replication_role = replica")
            # Those that stand for a constraint stay.
            indexes = connection.execute(
                "SELECT indexname, indexdef FROM pg_indexes "
                "LEFT JOIN pg_constraint ON conname = indexname "
                "WHERE tablename = ANY(%s) AND conname IS NULL",
                [list(TABLES)],
            ).fetchall()
            for name, _ in indexes:
                connection.execute(f'DROP INDEX "{name}"')
            for statement in (RENDERS, RETRIES, EVENTS):
                connection.execute(statement, values)
            for _, definition in indexes:
                connection.execute(definition)
        for table in (*TABLES, "auth_user"):
            connection.execute(f"VACUUM ANALYZE {table}")
