"""(e) A batch of 300 on Pro limits: how often a render is read, how soon its end is noticed.

The whole app, as `runrenders`, against the stand-in, in fast motion: all times are divided by
one number, those of Sume and ours alike; the table tells them in Sume's seconds. What our own work
takes counts that many times over, therefore.
"""

import random
import time
from typing import Any

from django.test import override_settings

from renders.sandbox import Sandbox
from renders.sandbox.jobs import TERMINAL
from renders.sandbox.replies import ApiError
from tests.benchmarks import simulating
from tests.benchmarks.scene import Scene
from tests.benchmarks.simulating import Told, as_asked, every, simulate
from tests.benchmarks.table import Line, at_most, plain

PART = "e"
RENDERS, QUICK_RENDERS = 300, 24
FACTOR, QUICK_FACTOR = 12.0, 20.0
# How long a picture takes, in Sume's seconds.
SHORTEST, LONGEST = 8.0, 24.0
NOTICE_SECONDS = 3.0
LONGER = 0.01
PATIENCE_SECONDS = 200.0


def measure(scene: Scene) -> tuple[list[Line], dict[str, Told]]:
    """The lines, and what each way of reading comes to."""
    chance = random.Random(1)
    count = int(scene.lasting(RENDERS, QUICK_RENDERS))
    spans = [chance.uniform(SHORTEST, LONGEST) for _ in range(count)]
    found = {
        "ours": _run(scene, spans, scene.lasting(FACTOR, QUICK_FACTOR)),
        "as asked": simulate(spans, as_asked),
        "every 1 s": simulate(spans, every(1.0)),
        "every 2 s": simulate(spans, every(2.0)),
    }
    ours, least, two = found["ours"], found["as asked"], found["every 2 s"]
    fastest = min(told.total for name, told in found.items() if name != "ours")
    lines = [
        plain(PART, f"{name}: reads for each render", told.reads, "")
        for name, told in found.items()
    ]
    lines += [
        plain(PART, f"{name}: the end is noticed after, on average", told.notice, "s")
        for name, told in found.items()
        if name != "ours"
    ]
    lines += [
        at_most(PART, "reads beyond the least possible", ours.reads - least.reads, 1, ""),
        at_most(PART, "reads : fixed loop of 2 s", ours.reads / two.reads, 1 / 8, "x"),
        at_most(PART, "the end is noticed after, on average", ours.notice, NOTICE_SECONDS, "s"),
        at_most(
            PART,
            f"total time beyond the fastest ({fastest:,.0f} s)",
            100 * (ours.total / fastest - 1),
            100 * LONGER,
            "%",
        ),
    ]
    return lines, found


def _run(scene: Scene, spans: list[float], factor: float) -> Told:
    """As it really runs. One render after the other is accepted in the order of `spans`."""
    from django.conf import settings

    from renders import services
    from renders.models import RenderJob

    scene.clear()
    with Sandbox(queued_seconds=0.0, poll_seconds=simulating.QUEUED_SECONDS) as sandbox:
        rules: Any = sandbox.rules
        _in_fast_motion(rules, spans, factor)
        environment = {
            "SUME_BASE_URL": sandbox.url,
            "RENDERS_SCHEDULER": "database",
            "RENDERS_PLAN": "pro",
            "RENDERS_WRITES_PER_MINUTE": int(simulating.WRITES * factor),
            "RENDERS_MAX_IN_FLIGHT": simulating.IN_FLIGHT,
            "RENDERS_MIN_POLL_SECONDS": 1.0 / factor,
            "RENDERS_DEFAULT_POLL_SECONDS": simulating.DEFAULT_SECONDS / factor,
            "RENDERS_SAVE_MEDIA": 0,
        }
        scene.command("runrenders", ready="Sending, reading", **environment)
        with override_settings(RENDERS={**settings.RENDERS, "SCHEDULER": "database"}):
            services.create_renders([{"prompt": f"A boat {n}"} for n in range(len(spans))])
        end = time.monotonic() + PATIENCE_SECONDS
        while RenderJob.objects.filter(finished_at=None).exists() and time.monotonic() < end:
            time.sleep(0.1)
        known: Any = RenderJob.objects.values_list("sume_job_id", "finished_at")
        noticed = {job: at.timestamp() for job, at in known}
        jobs = [job for job in rules._jobs.values() if job.status in TERMINAL]
        reads = [
            read for job in jobs for read in sandbox.ledger.reads[job.id] if read.what == "status"
        ]
        notices = [(noticed[job.id] - job.real_end) * factor for job in jobs]
        total = max(noticed.values()) - min(job.real_start for job in jobs)
        scene.clear()
    return Told(len(reads) / len(jobs), sum(notices) / len(notices), total * factor)


def _in_fast_motion(rules: Any, spans: list[float], factor: float) -> None:
    """Have the stand-in live through `factor` seconds in each, and say so in what it asks for."""
    begin = time.time()
    rules._clock = lambda: begin + (time.time() - begin) * factor
    submit, hinted = rules.submit, rules._hint
    for span in spans:
        rules.plan(processing_seconds=span)

    def real(at: float) -> float:
        return begin + (at - begin) / factor

    def told(*args: Any, **kwargs: Any) -> Any:
        try:
            return submit(*args, **kwargs)
        except ApiError as error:
            if error.retry_after:
                error.retry_after = str(float(error.retry_after) / factor)
            raise

    def hint(job: Any, now: float) -> float | None:
        if hinted(job, now) is None:
            job.real_start, job.real_end = real(job.accepted_at), real(job.finished_at)
            return None
        return simulating.hint(job, rules._line.remaining(job, now)) / factor

    rules.submit, rules._hint = told, hint
