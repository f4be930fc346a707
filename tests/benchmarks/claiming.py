"""How many renders four workers claim in a second, one at a time and in batches.

`python -m tests.benchmarks.claiming` fills a PostgreSQL of its own and prints the table.
"""

import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

import psycopg

from renders.demo.embedded_redis import EmbeddedRedis
from tests.benchmarks.databases import filled
from tests.benchmarks.filling import Filling

WORKERS = 4
SECONDS = 5.0
LIMITS = (1, 50)
# Nothing but the database shall be the limit.
SETTINGS = {
    "DJANGO_SETTINGS_MODULE": "project.settings",
    "DJANGO_ENV_FILE": "",
    "DJANGO_DEBUG": "",
    "DJANGO_SECRET_KEY": "measured with, and for nothing else",
    "DJANGO_ALLOWED_HOSTS": "localhost",
    "SUME_API_KEY": "none",
    "RENDERS_WRITES_PER_MINUTE": "10000000",
    "RENDERS_MAX_IN_FLIGHT": "10000000",
}
PUT_BACK = (
    "UPDATE renders_renderjob SET status = 'pending', claimed_at = NULL, submit_attempts = 0 "
    "WHERE status = 'submitting' AND claimed_at > %(since)s",
    "DELETE FROM renders_renderevent WHERE what = 'sending' AND at > %(since)s",
)


def claims_per_second(
    url: str,
    limits: Sequence[int] = LIMITS,
    *,
    workers: int = WORKERS,
    seconds: float = SECONDS,
) -> dict[int, float]:
    """Claims per second for each limit; the database holds enough that may be sent.

    What was claimed is put back after each.
    """
    rates = {}
    with EmbeddedRedis() as redis:
        environment = {**SETTINGS, "DATABASE_URL": url, "REDIS_URL": redis.url}
        for limit in limits:
            with psycopg.connect(url, autocommit=True) as connection:
                since = connection.execute("SELECT clock_timestamp()").fetchone()
                rates[limit] = _rate(environment, limit, workers, seconds)
                for statement in PUT_BACK:
                    connection.execute(statement, {"since": since and since[0]})
                for table in ("renders_renderjob", "renders_renderevent", "renders_gate"):
                    connection.execute(f"VACUUM ANALYZE {table}")
    return rates


def _rate(environment: dict[str, str], limit: int, workers: int, seconds: float) -> float:
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(workers), context.Queue()
    processes = [
        context.Process(
            target=_work, args=(environment, limit, seconds, barrier, results), daemon=True
        )
        for _ in range(workers)
    ]
    for process in processes:
        process.start()
    # Each by its own time: the last claim of one may end after that of another.
    found = [results.get(timeout=seconds + 60) for _ in processes]
    for process in processes:
        process.join()
    pks = [pk for taken, _ in found for pk in taken]
    if len(set(pks)) < len(pks):
        raise AssertionError("Two workers claimed one render.")
    return sum(len(taken) / spent for taken, spent in found)


def _work(
    environment: dict[str, str], limit: int, seconds: float, barrier: Any, results: Any
) -> None:
    os.environ.update(environment)
    import django

    django.setup()
    from django.db import connection

    from renders.lifecycle import claims
    from renders.models import RenderJob

    named = RenderJob.objects.pending().pks(1)[0]
    taken: list[Any] = []
    barrier.wait(60)
    start = time.monotonic()
    while (spent := time.monotonic() - start) < seconds:
        claimed = claims.claim(named, limit).renders
        if not claimed:
            raise AssertionError("Too few wait to be sent.")
        taken += claimed
    connection.close()
    results.put((taken, spent))


def main() -> int:
    """Fill, measure, print."""
    os.environ.update(SETTINGS)
    with filled(Filling(pending=100_000)) as url:
        rates = claims_per_second(url)
    for limit, rate in rates.items():
        sys.stdout.write(f"limit {limit:>3}: {rate:>10,.0f} claims per second\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
