"""One page tells of all processes, whoever has made the renders."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from renders.conf import conf
from renders.coordination.connections import redis_client
from renders.lifecycle import submission
from renders.models import RenderJob
from renders.sandbox import Sandbox
from renders.sume.clients import sume
from renders.telemetry import metrics, store
from tests.integration import engine, modes
from tests.integration.stack import Stack

TOKEN = "scraper-of-the-tests"


def page() -> str:
    """What a web process answers."""
    response = Client().get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert response.status_code == 200, response.content
    return response.content.decode()


def figures() -> dict[str, float]:
    """Each line of the page by its name and labels: `renders_submits_total outcome=accepted`.

    There is no workspace here but the default one.
    """
    found = {}
    for family in text_string_to_metric_families(page()):
        for sample in family.samples:
            assert sample.labels.pop("workspace", "default") == "default"
            labels = (f"{name}={word}" for name, word in sorted(sample.labels.items()))
            found[" ".join([sample.name, *labels])] = sample.value
    return found


@pytest.fixture(autouse=True)
def watched(settings: Any, monkeypatch: Any) -> Iterator[None]:
    settings.RENDERS = {**settings.RENDERS, "METRICS_TOKEN": TOKEN}
    metrics.take()
    monkeypatch.setattr(store._Times, "rests_until", 0.0)
    yield
    metrics.take()


@pytest.mark.slow
@pytest.mark.parametrize("scheduler", ["countdown", "sortedset", "database"])
def test_one_page_tells_of_all_processes(stack: Stack, scheduler: str) -> None:
    modes.use(stack, scheduler)
    if scheduler != "database":
        stack.worker()
    if scheduler != "countdown":
        process = modes.start(stack, "runrenders" if scheduler == "database" else "pollrenders")
    stack.create("a red fox", "FAIL on purpose", "REJECT this")

    stack.until_handled(sweeping=False)
    if scheduler != "countdown":
        modes.end(stack, process)
    stack.until(lambda: figures()["renders_ended_total kind=image status=failed"] == 2)

    found = figures()
    assert found["renders_submits_total outcome=accepted"] == 2
    assert found["renders_submits_total outcome=refused"] == 1
    assert found["renders_reads_total outcome=ended"] == 2
    assert found["renders_ended_total kind=image status=completed"] == 1
    assert found["renders_cost_usd_total kind=image"] == pytest.approx(0.09)
    assert found["renders_media_total outcome=stored"] == 1
    assert found["renders_request_duration_seconds_count request=submit"] == 3
    assert found["renders_request_duration_seconds_count request=result"] == 1
    for stage, count in {"pending": 2, "at_sume": 2, "finishing": 3}.items():
        assert found[f"renders_stage_duration_seconds_count stage={stage}"] == count
    reads = [found[name] for name in found if name.startswith("renders_reads_total ")]
    asked = sum(len(modes.status_reads(stack, render)) for render in RenderJob.objects.all())
    assert sum(reads) == found["renders_poll_lateness_seconds_count"] == asked
    assert sum(found[name] for name in found if name.startswith("renders_jobs ")) == 0
    assert found["renders_counts_up"] == found["renders_up"] == 1


def test_steps_are_counted_by_what_came_of_them(
    database: str, redis: Any, sandbox: Sandbox
) -> None:
    render = RenderJob.objects.create(prompt="boat")
    engine.submit(render)
    engine.make_due(render)
    engine.poll(render, "a token that was never handed out")
    engine.poll(render, "another")
    RenderJob.objects.filter(pk=render.pk).update(
        next_poll_at=timezone.now() - timedelta(seconds=20), sume_job_id="unknown to Sume"
    )
    redis_client().delete(f"sume:poll:{render.pk}")
    engine.poll(render)
    sandbox.faults.add("reset_before", on="submit")
    second = RenderJob.objects.create(prompt="fox")
    engine.submit(second)
    engine.age_rows(conf.REAP_AFTER_SECONDS + 10)
    engine.swept()

    found = figures()

    assert found["renders_submits_total outcome=accepted"] == 1
    assert found["renders_submits_total outcome=unknown"] == 1
    assert found["renders_lease_losses_total reason=spent"] == 1
    assert found["renders_reads_total outcome=not_found"] == 1
    assert found["renders_poll_lateness_seconds_bucket le=15.0"] == 1
    assert found["renders_poll_lateness_seconds_count"] == 2
    assert found["renders_sweeps_total"] == 1
    assert found["renders_repairs_total repair=poll"] == 1
    assert found["renders_jobs kind=image state=submitted"] == 1
    assert found["renders_oldest_due_read_seconds"] > 5


def test_a_refusal_shows_as_a_closed_gate_with_its_reason(
    database: str, redis: Any, sandbox: Sandbox
) -> None:
    sandbox.faults.add("insufficient_credits", on="submit")
    render = RenderJob.objects.create(prompt="boat")
    submission.submit(render.pk, sume)

    found = figures()

    assert found["renders_submits_total outcome=paused"] == 1
    assert found["renders_gate_open code=insufficient_credits sort=writes"] == 0
    assert found["renders_gate_open code= sort=reads"] == 1
    assert 0 < found["renders_gate_pause_seconds sort=writes"] <= conf.PAUSE_SECONDS
