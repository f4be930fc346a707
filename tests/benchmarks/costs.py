"""(h) What one poll costs in SQL statements and in commands to Redis: counted, so never by chance.

Used by a test too: nothing here measures time. A command is what the client sends; those that a
script runs inside Redis are no round trips.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import redis
from django.db import connection

from renders.coordination.connections import poll_leases, polls
from renders.lifecycle import polling
from renders.models import RenderJob
from renders.schedulers.queues import SetQueue
from renders.schedulers.reader import BATCH, Reader
from renders.sume.clients import sume

# The goals.
COUNTDOWN_SQL, COUNTDOWN_REDIS, BUSY_REDIS = 2, 8, 2


@dataclass
class Cost:
    """Counts for one poll, or on average for many."""

    sql: float = 0
    redis: float = 0

    def per(self, polls: int) -> "Cost":
        """For each of so many polls."""
        return Cost(self.sql / polls, self.redis / polls)


@contextmanager
def counting() -> Iterator[Cost]:
    """What this thread does meanwhile."""
    cost = Cost()
    execute = redis.Redis.execute_command

    def ask(client: Any, *words: Any, **options: Any) -> Any:
        cost.redis += 1
        return execute(client, *words, **options)

    def query(execute: Any, *words: Any) -> Any:
        cost.sql += 1
        return execute(*words)

    with (
        patch.object(redis.Redis, "execute_command", ask),
        connection.execute_wrapper(query),
    ):
        yield cost


def of_countdown(render: RenderJob, again: RenderJob) -> Cost:
    """One hop of a chain, Celery's own messages apart; both are due. The first one warms up."""
    polling.poll(render.pk, None, sume, poll_leases())
    with counting() as cost:
        polling.poll(again.pk, None, sume, poll_leases())
    return cost


def of_sorted_set(reads: int, slots: int = BATCH) -> Cost:
    """A reader that is busy: so many are due, and in the sorted set. Each on average."""
    reader = Reader(SetQueue(polls(), poll_leases()), sume, slots=slots, follow=list)
    done = 0
    with counting() as cost:
        while done < reads:
            done += reader.turn(0.1)
    return cost.per(done)
