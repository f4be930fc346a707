"""(h) What one poll costs in SQL statements and commands to Redis, as lines of the table."""

from typing import Any

from tests.benchmarks import waiting
from tests.benchmarks.scene import Scene
from tests.benchmarks.table import Line, at_most, plain

PART = "h"
READS = 1_000


def measure(scene: Scene) -> tuple[list[Line], dict[str, Any]]:
    """The lines, and the costs."""
    from renders.models import RenderJob
    from tests.benchmarks import costs

    scene.clear()
    scene.stub(hint=1000.0)
    waiting.insert(scene, 2)
    countdown = costs.of_countdown(*RenderJob.objects.all())
    scene.clear()
    waiting.insert(scene, READS)
    waiting.in_set()
    busy = costs.of_sorted_set(READS)
    return [
        at_most(PART, "countdown: SQL statements a poll", countdown.sql, costs.COUNTDOWN_SQL, ""),
        at_most(
            PART, "countdown: Redis commands a poll", countdown.redis, costs.COUNTDOWN_REDIS, ""
        ),
        at_most(PART, "sorted set, busy: Redis commands a poll", busy.redis, costs.BUSY_REDIS, ""),
        plain(PART, "sorted set, busy: SQL statements a poll", busy.sql, ""),
    ], {"countdown": countdown, "sorted set": busy}
