"""`runrenders`: the table alone, with neither Celery nor Redis anywhere."""

import signal
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.test import Client
from django.utils import timezone

from renders import services, transitions
from renders.api import throttling
from renders.models import ApiToken, RenderEvent, RenderJob
from renders.schedulers import runner as table_runner
from renders.schedulers.notifications import Listener
from renders.schedulers.queues import TableQueue
from renders.states import Status
from renders.sume.clients import sume
from tests.integration import modes
from tests.integration.stack import Stack

ON_POSTGRESQL = pytest.mark.parametrize("database", ["postgresql"], indirect=True)
ON_SQLITE = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


@pytest.fixture(autouse=True)
def without_redis(stack: Stack, settings: Any) -> None:
    modes.use(stack, "database")


def in_flight(count: int) -> Callable[[], bool]:
    """Whether Sume has so many."""
    return lambda: RenderJob.objects.filter(status=Status.SUBMITTED).count() >= count


def states() -> list[str]:
    return list(RenderJob.objects.order_by("created_at").values_list("status", flat=True))


# --- What it does -------------------------------------------------------------------------


def test_renders_are_sent_read_and_finished_by_the_table_alone(stack: Stack, caplog: Any) -> None:
    process = modes.start(stack, "runrenders")
    renders = stack.create("a red fox", "FAIL on purpose", "REJECT this", "[raise] once")
    stack.until(lambda: process.has_written("A receiver failed"), child=process)
    stack.marker.touch()

    stack.until_handled(sweeping=False)
    modes.end(stack, process)

    assert states() == ["completed", "failed", "failed", "completed"]
    assert [bool(a["file"]) for r in RenderJob.objects.filter(status="completed") for a in
            r.artifacts] == [True, True]  # fmt: skip
    modes.assert_each_read_was_recorded(stack)
    assert stack.sandbox.ledger.posts == {render.idempotency_key: 1 for render in renders}
    assert "Redis" not in stack.logs() + caplog.text


@ON_POSTGRESQL
def test_cancels_and_retries_need_nobody_else(stack: Stack) -> None:
    process = modes.start(stack, "runrenders")
    # Four are made at once; the others wait at Sume and can still be canceled.
    stack.sandbox.faults.add("job_takes", on="submit", argument=3, times=None)
    renders = stack.create(*["a red fox"] * 6)
    stack.until(in_flight(6), child=process)
    services.pause_sending("default")
    [unsent] = stack.create("a blue fox")
    for render in [*renders, unsent]:
        services.cancel_render(render)
    stack.until(lambda: RenderJob.objects.get(pk=unsent.pk).handled_at, child=process)
    services.resume_sending("default")
    services.retry_render(RenderJob.objects.get(pk=unsent.pk))

    stack.until_handled(sweeping=False)

    refunded = {refund.job_id for refund in stack.sandbox.ledger.refunds}
    assert refunded
    for render in RenderJob.objects.exclude(sume_job_id=""):
        assert (render.status == "canceled") == (render.sume_job_id in refunded)
    assert states()[-2:] == ["canceled", "completed"]
    assert len(stack.sandbox.ledger.bills) == 7


@ON_POSTGRESQL
def test_what_is_held_or_paused_waits_until_a_person_lets_it_go(stack: Stack) -> None:
    services.pause_sending("default")
    [held, other] = stack.create("a red fox", "a blue fox")
    transitions.hold_many([held.pk], timezone.now())
    process = modes.start(stack, "runrenders")
    later = timezone.now() + timedelta(seconds=2)
    stack.until(lambda: timezone.now() > later, child=process)
    assert states() == ["pending", "pending"]

    services.resume_sending("default")
    stack.until(lambda: RenderJob.objects.get(pk=other.pk).handled_at, child=process)
    assert states() == ["pending", "completed"]

    transitions.unhold_many([held.pk], timezone.now())
    stack.until_handled(sweeping=False)


@pytest.mark.slow
@ON_POSTGRESQL
def test_a_refused_key_pauses_it_and_it_goes_on_once_the_key_is_taken(stack: Stack) -> None:
    process = modes.start(stack, "runrenders")
    stack.create(*["a red fox"] * 6)
    stack.until(in_flight(3), child=process)
    stack.sandbox.faults.add("unauthorized", on="any", times=None)
    stack.create("a late fox")
    stack.until(lambda: process.has_written("pause until"), child=process)
    later = timezone.now() + timedelta(seconds=2)
    stack.until(lambda: timezone.now() > later, child=process)
    calls = sum(fault.fault == "unauthorized" for fault in stack.sandbox.ledger.faults)
    stack.sandbox.faults.clear()

    stack.until_handled(sweeping=False)

    assert calls < 6 + 2 + 10
    assert set(states()) == {"completed"}


@ON_POSTGRESQL
def test_a_render_put_back_for_a_while_holds_up_no_other(stack: Stack) -> None:
    stack.environment["RENDERS_SWEEP_SECONDS"] = "600"
    stack.sandbox.faults.add("reset_before", on="submit", times=1)
    process = modes.start(stack, "runrenders")
    [first] = stack.create("a red fox")
    stack.until(lambda: process.has_written("put back for"), child=process)
    [second] = stack.create("a blue fox")
    stack.until(lambda: RenderJob.objects.get(pk=second.pk).submitted_at, child=process)

    assert RenderJob.objects.get(pk=first.pk).status == "pending"
    stack.until_handled(sweeping=False)


def test_a_render_that_nobody_could_send_in_time_is_given_up(stack: Stack) -> None:
    [render] = stack.create("a red fox")
    RenderJob.objects.update(created_at=timezone.now() - timedelta(hours=25))
    process = modes.start(stack, "runrenders")

    stack.until_handled(sweeping=False)

    render.refresh_from_db()
    assert (render.status, render.error_code) == ("failed", "submit_deadline")
    modes.end(stack, process)


# --- A read at once -----------------------------------------------------------------------


@ON_POSTGRESQL
def test_a_read_that_a_person_asks_for_comes_at_once(stack: Stack) -> None:
    stack.environment |= {"RENDERS_DEFAULT_POLL_SECONDS": "600", "RENDERS_MAX_POLL_SECONDS": "600"}
    stack.sandbox.faults.add("odd_poll", on="any", times=None)  # names no wait
    process = modes.start(stack, "runrenders")
    [render] = stack.create("a red fox")
    stack.until(lambda: RenderJob.objects.filter(next_poll_at__gt=soon(300)).exists(),
                child=process)  # fmt: skip
    # However many ask, it is read once in a moment; until it has ended.
    stack.until(lambda: services.check_now([render.pk]) == 0, child=process)
    stack.until_handled(sweeping=False)


def soon(seconds: float) -> Any:
    return timezone.now() + timedelta(seconds=seconds)


def test_a_read_that_is_asked_for_when_it_is_overdue_is_free_for_the_next_reader(
    stack: Stack,
) -> None:
    """Nothing ran for a while; a person looks, asks, and then starts the process."""
    [render] = stack.create("a red fox")
    RenderJob.objects.update(
        status="submitted",
        sume_job_id="job_1",
        submitted_at=soon(-60),
        next_poll_at=soon(-30),
    )
    assert services.check_now([render.pk]) == 1
    assert [held.render.pk for held in TableQueue().take(10)] == [render.pk]


# --- Dead and stopped processes -----------------------------------------------------------


@pytest.mark.slow
@ON_POSTGRESQL
def test_what_a_killed_process_was_sending_and_reading_is_done_by_another(stack: Stack) -> None:
    process = modes.start(stack, "runrenders")
    stack.sandbox.faults.add("slow", on="status", argument=1.5, times=None)
    stack.create(*["a red fox"] * 4)
    stack.until(in_flight(4), child=process)
    stack.sandbox.faults.add("slow", on="submit", argument=5, times=1)
    [last] = stack.create("a late fox")
    ledger = stack.sandbox.ledger
    stack.until(lambda: ledger.posts[last.idempotency_key] and reads_in_the_air(stack))
    stack.kill(process)
    stack.sandbox.faults.clear()
    assert RenderJob.objects.get(pk=last.pk).status == "submitting"

    modes.start(stack, "runrenders", 1)
    stack.until_handled(sweeping=False)

    assert set(states()) == {"completed"}
    assert ledger.posts[last.idempotency_key] == 2
    assert len(ledger.bills) == 5


def reads_in_the_air(stack: Stack) -> int:
    """Reads that Sume has got and that are not written down."""
    renders = RenderJob.objects.filter(status=Status.SUBMITTED)
    return sum(len(modes.status_reads(stack, one)) - one.poll_count for one in renders)


@pytest.mark.slow
@ON_POSTGRESQL
def test_two_processes_share_the_work_and_do_nothing_twice(stack: Stack) -> None:
    stack.sandbox.faults.add("slow", on="any", argument=0.2, times=None)
    processes = [modes.start(stack, "runrenders", number) for number in range(2)]
    renders = stack.create(*["a red fox"] * 16)

    stack.until_handled(sweeping=False)

    for process in processes:
        modes.end(stack, process)
    modes.assert_each_read_was_recorded(stack)
    assert stack.sandbox.ledger.posts == {render.idempotency_key: 1 for render in renders}
    for job_id, reads in stack.sandbox.ledger.reads.items():
        assert [read.what for read in reads].count("result") == 1, job_id
        assert [read.what for read in reads].count("media") == 1, job_id
    for process in processes:
        assert process.has_written("submitted as Sume job")


@ON_SQLITE
def test_sigterm_lets_what_is_under_way_end(stack: Stack) -> None:
    process = modes.start(stack, "runrenders")
    stack.sandbox.faults.add("slow", on="status", argument=1, times=None)
    [render] = stack.create("a red fox")
    stack.until(lambda: reads_in_the_air(stack), child=process)

    modes.end(stack, process)

    render.refresh_from_db()
    assert render.poll_count == len(modes.status_reads(stack, render)) == 1
    assert "Ended." in process.output()


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["int", "term"]
)
@ON_SQLITE
def test_a_second_signal_ends_it_at_once(stack: Stack, number: int, status: int) -> None:
    stack.environment |= {
        "RENDERS_REQUEST_TIMEOUT_SECONDS": "60",
        "RENDERS_REAP_AFTER_SECONDS": "600",
    }
    process = modes.start(stack, "runrenders")
    stack.sandbox.faults.add("slow", on="status", argument=60, times=None)
    stack.create("a red fox")
    stack.until(lambda: reads_in_the_air(stack), child=process)
    process.process.send_signal(number)
    stack.until(lambda: process.has_written("Ending after 1 steps"), child=process)
    process.process.send_signal(number)
    stack.until(lambda: not process.alive, seconds=20)
    assert process.process.returncode == status
    assert "Traceback" not in process.output()


@ON_POSTGRESQL
def test_it_lives_through_an_outage_of_the_database(stack: Stack) -> None:
    process = modes.start(stack, "runrenders")
    stack.create(*["a red fox"] * 4)
    stack.until(in_flight(2), child=process)
    with modes.DatabaseAway():
        stack.until(lambda: process.has_written("The database is away"), child=process)
        time.sleep(1)
    stack.until_handled(sweeping=False)
    assert process.alive
    assert set(states()) == {"completed"}


# --- Being woken up -----------------------------------------------------------------------


@ON_POSTGRESQL
def test_a_web_process_wakes_it_up(stack: Stack, monkeypatch: Any) -> None:
    """It looks into the table once an hour, unless somebody tells."""
    monkeypatch.setattr(table_runner, "LOOK_SECONDS", 3600.0)
    listener = Listener()
    listener.start()
    runner = table_runner.Runner(sume, slots=10, awakened=listener.heard)
    over = threading.Event()

    def run() -> None:
        try:
            while not over.is_set():
                runner.turn()
            runner.finish(time.monotonic() + 5)
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        stack.until(listens)
        [render] = stack.create("a red fox")
        stack.until(lambda: RenderJob.objects.get(pk=render.pk).submitted_at)
        stack.until_handled(sweeping=False)
    finally:
        over.set()
        thread.join(10)
    assert RenderEvent.objects.filter(render=render, what="handled").exists()


def listens() -> bool:
    with connections["default"].cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() "
            "AND query = 'LISTEN renders'"
        )
        return cursor.fetchone() is not None


# --- Media --------------------------------------------------------------------------------


# --- The web process ----------------------------------------------------------------------


def test_the_web_process_needs_neither_a_broker_nor_redis(
    stack: Stack, superuser: Any, monkeypatch: Any, caplog: Any
) -> None:
    def reached(*args: Any, **kwargs: Any) -> None:
        pytest.fail("a broker or Redis was looked for")

    with monkeypatch.context() as patch:
        patch.setattr("redis.connection.AbstractConnection.connect", reached)
        patch.setattr("kombu.Connection._connection_factory", reached)
        patch.setattr(throttling._Rest, "until", 0.0)
        use_everything(stack, superuser)

    warnings = [record.getMessage() for record in caplog.records if record.levelname != "INFO"]
    assert warnings == ["Unauthorized: /api/renders/"]
    RenderJob.objects.all().delete()


def use_everything(stack: Stack, user: Any) -> None:
    """What people and programs do with a web process."""
    [first, second] = stack.create("a red fox", "a blue fox", user=user)
    services.cancel_render(first)
    services.retry_render(first)
    services.check_now([second.pk])
    services.pause_sending("default", user)
    services.resume_sending("default")
    browser = Client()
    browser.force_login(user)
    for page in (
        "/admin/",
        "/admin/renders/renderjob/",
        f"/admin/renders/renderjob/{second.pk}/change/",
        "/renders/",
        f"/renders/{second.pk}/",
        "/readyz",
    ):
        assert browser.get(page).status_code == 200, page
    _, token = ApiToken.issue(user=user, name="Test")
    caller = Client(headers={"Authorization": f"Bearer {token}"})
    made = caller.post(
        "/api/renders/",
        {"prompt": "a green fox"},
        content_type="application/json",
        headers={"Idempotency-Key": "k1"},
    )
    assert made.status_code == 202, made.content
    assert caller.get("/api/renders/").status_code == 200
    canceled = caller.post(
        f"/api/renders/{made.json()['id']}/cancel/", content_type="application/json"
    )
    assert canceled.status_code in {200, 202}, canceled.content
    wrong = Client(headers={"Authorization": "Bearer wrong"})
    assert wrong.get("/api/renders/").status_code == 401


@pytest.fixture
def superuser(stack: Stack, django_user_model: Any) -> Any:
    return django_user_model.objects.create_superuser("sam", password="x")
