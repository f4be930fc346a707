"""The way of a render, through real workers."""

from django.core.files.storage import default_storage

from renders import services
from renders.models import RenderJob
from tests.integration.stack import Stack


def test_a_prompt_becomes_a_stored_picture(stack: Stack) -> None:
    stack.worker()
    [render] = stack.create("a red fox")

    stack.until_handled(sweeping=False)

    render.refresh_from_db()
    assert render.status == "completed"
    assert render.sume_job_id
    assert render.cost_usd_micros == 90_000
    [artifact] = render.artifacts
    with default_storage.open(artifact["file"]) as picture:
        assert picture.read(8) == b"\x89PNG\r\n\x1a\n"
    assert [str(event).split(":")[0] for event in render.events.all()][:3] == [
        "created",
        "sending",
        "submitted",
    ]
    assert len(stack.sandbox.ledger.bills) == 1


def test_many_renders_each_get_one_bill(stack: Stack) -> None:
    stack.worker()
    stack.create(*(f"fox {number}" for number in range(12)))

    stack.until_handled(sweeping=False)

    assert RenderJob.objects.filter(status="completed").count() == 12
    assert len(stack.sandbox.ledger.bills) == 12


def test_a_refused_render_fails_with_the_reason(stack: Stack) -> None:
    stack.worker()
    [render] = stack.create("REJECT this")

    stack.until_handled(sweeping=False)

    render.refresh_from_db()
    assert render.status == "failed"
    assert render.error_code
    assert render.error_message
    assert not stack.sandbox.ledger.bills


def test_a_render_that_fails_at_sume_keeps_sumes_reason(stack: Stack) -> None:
    stack.worker()
    [render] = stack.create("FAIL on purpose")

    stack.until_handled(sweeping=False)

    render.refresh_from_db()
    assert render.status == "failed"
    assert render.error_code == "generation_failed"
    assert render.error_message
    assert render.cost_usd_micros == 0


def test_a_pending_render_is_canceled_at_once_and_never_sent(stack: Stack) -> None:
    [render] = stack.create("too late")

    assert services.cancel_render(render)
    stack.worker()
    stack.until_handled(sweeping=False)

    render.refresh_from_db()
    assert render.status == "canceled"
    assert not stack.sandbox.ledger.posts
