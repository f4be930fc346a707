"""What real processes write: each line of one render's life holds its id."""

import json
from typing import Any

import pytest

from tests.integration import modes
from tests.integration.stack import Stack

pytestmark = pytest.mark.slow
ON_POSTGRESQL = pytest.mark.parametrize("database", ["postgresql"], indirect=True)
OURS = ("renders.", "celery.app.trace", "celery.worker.strategy")


def lines(text: str) -> list[dict[str, Any]]:
    """The JSON lines among what was written, those of the life of renders; a sweep is of many,
    a start of none.
    """
    found = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    ours = [line for line in found if line["logger"].startswith(OURS)]
    return [
        line
        for line in ours
        if line["logger"] not in {"renders.lifecycle.sweep", "renders.conf.destination"}
    ]


@ON_POSTGRESQL
@pytest.mark.parametrize(
    "scheduler",
    [
        "countdown",
        pytest.param("sortedset", marks=pytest.mark.thorough),
        pytest.param("database", marks=pytest.mark.thorough),
    ],
)
def test_each_line_of_a_renders_life_holds_its_id(stack: Stack, scheduler: str) -> None:
    modes.use(stack, scheduler)
    stack.environment["DJANGO_LOG_FORMAT"] = "json"
    stack.sandbox.faults.add("server_error", on="submit")
    stack.sandbox.faults.add("server_error", on="status")
    child = stack.worker() if scheduler != "database" else modes.start(stack, "runrenders")
    if scheduler == "sortedset":
        modes.start(stack, "pollrenders")
    [render] = stack.create("[raise] once")
    stack.until(lambda: "A receiver failed" in stack.logs(), child=child)
    stack.marker.touch()
    stack.until_handled()

    render.refresh_from_db()
    told = lines(stack.logs())
    text = [line for line in told if line["logger"].startswith("renders.")]
    assert len(text) >= 5, told
    assert {line.get("render") for line in told} == {str(render.pk)}, told
    after = [line for line in text if "submitted as Sume job" in line["message"]]
    assert [line["job"] for line in after] == [render.sume_job_id]
    [failed] = [line for line in text if line["message"].startswith("Reading render")]
    assert failed["job"] == render.sume_job_id
    assert failed["sume_request"]
    raised = [line["exception"] for line in text if "exception" in line]
    assert raised and all("Traceback" in words for words in raised)
    assert all(line["task"] for line in told if scheduler == "countdown")
