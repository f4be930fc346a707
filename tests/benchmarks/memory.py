"""(c) What a render that waits for its read costs in memory: in Redis, and in the processes."""

import time
import uuid
from typing import Any

from tests.benchmarks import waiting
from tests.benchmarks.processes import memory_bytes
from tests.benchmarks.scene import Scene
from tests.benchmarks.table import Line, at_least, plain
from tests.benchmarks.throughput import processes

PART = "c"
LATER_SECONDS = 3_600.0
GIGABYTE = 1e9
CHUNK = 10_000


def measure(scene: Scene) -> tuple[list[Line], dict[str, float]]:
    """The lines, and bytes for each waiting render."""
    ours = _in_set(scene, int(scene.lasting(500_000, 100_000)))
    theirs = _in_messages(scene, int(scene.lasting(4_000, 500)))
    return [
        plain(PART, "memory for each waiting render, sorted set", ours, "bytes"),
        plain(PART, "memory for each waiting render, countdown", theirs, "bytes"),
        at_least(PART, "waiting renders in 1 GB, sorted set", GIGABYTE / ours, 1e6, ""),
    ], {"sorted set": ours, "countdown": theirs}


def _in_set(scene: Scene, number: int) -> float:
    """Of the set alone: a reader holds what it reads, whatever waits."""
    from renders.coordination.connections import polls

    scene.clear()
    before = _used(scene)
    due = time.time() + LATER_SECONDS
    for start in range(0, number, CHUNK):
        polls().add({uuid.uuid4(): due + place for place in range(start, start + CHUNK)})
    return (_used(scene) - before) / number


def _in_messages(scene: Scene, number: int) -> float:
    """Each is a message that waits in the worker's memory, with a copy in Redis."""
    from renders.lifecycle.steps import Step
    from renders.models import RenderJob
    from renders.schedulers import dispatch

    scene.clear()
    waiting.insert(scene, number, base=time.time() + LATER_SECONDS)
    worker = processes(scene)
    before, held = _used(scene), memory_bytes(worker.process.pid)
    pks = RenderJob.objects.values_list("pk", flat=True)
    dispatch.follow([Step("poll", pk, LATER_SECONDS) for pk in pks])
    end = time.monotonic() + 60
    while scene.broker.llen("renders.poll") and time.monotonic() < end:
        time.sleep(0.2)
    time.sleep(1)
    more = memory_bytes(worker.process.pid) - held
    return (_used(scene) - before + more) / number


def _used(scene: Scene) -> int:
    info: Any = scene.broker.info("memory")
    return int(info["used_memory"])
