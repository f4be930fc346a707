"""What one poll costs, counted: SQL statements, and commands to Redis."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from renders.coordination.connections import polls
from renders.demo.embedded_redis import EmbeddedRedis
from renders.models import RenderJob
from renders.sandbox import Sandbox
from renders.schedulers.reader import BATCH
from renders.states import Status
from tests.benchmarks import costs
from tests.integration import engine

pytestmark = pytest.mark.django_db(transaction=True)


def with_sume(count: int) -> list[RenderJob]:
    """So many renders whose read is due. Sume holds one job: all of them read that."""
    first = RenderJob.objects.create(prompt="boat")
    engine.submit(first)
    others = [
        RenderJob(
            prompt="boat",
            status=Status.SUBMITTED,
            sume_job_id=first.sume_job_id,
            sume_status=first.sume_status,
            submitted_at=first.submitted_at,
            next_poll_at=first.next_poll_at,
        )
        for _ in range(count - 1)
    ]
    RenderJob.objects.bulk_create(others)
    RenderJob.objects.update(next_poll_at=timezone.now() - timedelta(seconds=1))
    return [first, *others]


@pytest.fixture
def at_sume(database: str, redis: EmbeddedRedis, settings: Any) -> Any:
    """A sandbox whose jobs stay queued: a new word of Sume costs a line in the timeline."""
    with Sandbox(queued_seconds=600, poll_seconds=30, writes_per_minute=None) as sandbox:
        settings.RENDERS = {**settings.RENDERS, "BASE_URL": sandbox.url, "SCHEDULER": "countdown"}
        yield sandbox


def test_a_hop_of_a_chain_asks_database_and_redis_a_few_times(at_sume: Sandbox) -> None:
    cost = costs.of_countdown(*with_sume(2))

    assert 0 < cost.sql <= costs.COUNTDOWN_SQL
    assert 0 < cost.redis <= costs.COUNTDOWN_REDIS
    assert list(RenderJob.objects.values_list("poll_count", flat=True)) == [1, 1]


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_busy_reader_of_the_sorted_set_asks_for_many_reads_at_once(
    at_sume: Sandbox, settings: Any
) -> None:
    settings.RENDERS = {**settings.RENDERS, "SCHEDULER": "sortedset"}
    due = timezone.now().timestamp() - 1
    renders = with_sume(BATCH)
    polls().add({render.pk: due for render in renders})

    cost = costs.of_sorted_set(len(renders), slots=BATCH)

    assert 0 < cost.redis <= costs.BUSY_REDIS
    assert 0 < cost.sql <= 1
    assert set(RenderJob.objects.values_list("poll_count", flat=True)) == {1}
