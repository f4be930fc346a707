"""References under several callers at once, after a restored backup, and while rows migrate."""

import importlib
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import OperationalError, connection, connections
from django.test import Client
from django.test.utils import CaptureQueriesContext

from renders import services
from renders.exceptions import ReferenceTaken
from renders.models import RenderJob
from renders.sandbox import Sandbox
from tests.integration import engine
from tests.integration.conftest import Databases, using_database

ADD = "/admin/renders/renderjob/add/"
# As the release before has stored it.
OLD_ROW = json.dumps(
    {
        "id": "11111111-2222-4333-8444-555555555555",
        "kind": "image",
        "model": "sume/auto",
        "prompt": "a fox",
        "params": {},
        "priority": 0,
        "reference": "order-1",
        "created_at": "2026-01-01T00:00:00Z",
        "workspace": "default",
        "status": "pending",
        "idempotency_key": "render-job-11111111-2222-4333-8444-555555555555",
        "request_path": "",
        "request_body": "",
        "by_webhook": False,
        "submit_attempts": 0,
        "sume_job_id": "",
        "sume_status": "",
        "idempotency_hit": False,
        "poll_count": 0,
        "failed_reads": 0,
        "error_code": "",
        "error_message": "",
    }
)


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """What each call returned or raised; all begin at the same time, each in a thread."""
    start = threading.Barrier(len(calls))
    results: list[Any] = [None] * len(calls)
    settings = connections.settings["default"]

    def run(number: int, call: Callable[[], Any]) -> None:
        connections["default"] = connections.create_connection("default")
        assert connections["default"].settings_dict["NAME"] == settings["NAME"]
        try:
            start.wait(10)
            results[number] = call()
        except Exception as error:  # noqa: BLE001 (the test looks at it)
            results[number] = error
        finally:
            connections["default"].close()

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return results


@pytest.mark.usefixtures("database", "redis")
def test_of_four_requests_at_once_with_one_reference_one_is_made_and_three_are_refused() -> None:
    prompts = ["a fox", "a hen", "a cow", "an owl"]

    for number in range(5):  # the race has more than one way to go
        results = at_once(
            *(
                lambda prompt=prompt, name=f"order-{number}": services.create_render(
                    prompt, reference=name
                )
                for prompt in prompts
            )
        )
        refused = [result for result in results if isinstance(result, ReferenceTaken)]
        [made] = [result for result in results if isinstance(result, RenderJob)]
        assert len(refused) == 3
        assert RenderJob.objects.get(reference=f"order-{number}").prompt == made.prompt


@pytest.mark.usefixtures("database", "redis")
def test_one_form_sent_eight_times_at_once_makes_one_render_and_one_line_of_history() -> None:
    admin = get_user_model().objects.create_superuser("sam")
    browsers = [Client() for _ in range(8)]
    for browser in browsers:
        browser.force_login(admin)
    form = browsers[0].get(ADD).context["adminform"].form
    data = {name: form[name].value() for name in ("token", "model", "priority")}
    data |= {"kind": "image", "prompt": "a fox", "params": "{}", "reference": ""}

    replies = at_once(
        *(lambda browser=browser: browser.post(ADD, data, follow=True) for browser in browsers)
    )

    render = RenderJob.objects.get()
    assert {reply.redirect_chain[-1][0] for reply in replies} == {f"{ADD[:-4]}{render.pk}/change/"}
    assert sum("Added. It is sent" in reply.content.decode() for reply in replies) == 1
    assert LogEntry.objects.get().object_id == str(render.pk)


@pytest.mark.usefixtures("database", "redis")
def test_orders_that_are_sent_again_after_a_restore_are_billed_once(sandbox: Sandbox) -> None:
    def order(number: type) -> list[RenderJob]:
        return services.create_renders(
            [
                {"prompt": "a fox", "params": {"seed": number(n)}, "reference": f"order-{n}"}
                for n in range(10)
            ]
        )

    before = order(float)
    for render in before:
        engine.submit(render)
    RenderJob.objects.all().delete()  # a backup from before these orders

    again = order(int)  # to JSON, 1.0 and 1 are one number
    for render in again:
        engine.submit(render)

    assert len(sandbox.ledger.bills) == 10
    assert all(render.idempotency_hit for render in again)
    assert [render.sume_job_id for render in again] == [render.sume_job_id for render in before]
    assert not sandbox.ledger.reserialized


@pytest.mark.usefixtures("database", "redis")
def test_a_retry_that_is_made_again_after_a_restore_is_billed_once(sandbox: Sandbox) -> None:
    sandbox.faults.add("rejected", on="submit")
    original = services.create_render("a fox")
    engine.submit(original)
    engine.submit(retry := services.retry_render(original))
    RenderJob.objects.filter(pk=retry.pk).delete()

    engine.submit(again := services.retry_render(original))

    assert (again.pk, again.idempotency_hit) == (retry.pk, True)
    assert len(sandbox.ledger.bills) == 1


def test_the_migration_locks_no_table_for_long_and_keeps_what_is_known(
    databases: Databases, django_db_blocker: Any
) -> None:
    with django_db_blocker.unblock(), using_database(url := databases.empty("postgresql")):
        call_command("migrate", "renders", "0006", verbosity=0)
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO renders_renderjob "
                "SELECT (jsonb_populate_record(NULL::renders_renderjob, %s::jsonb)).*",
                [OLD_ROW],
            )
        with CaptureQueriesContext(connection) as queries:
            call_command("migrate", "renders", verbosity=0)
        statements = [query["sql"] for query in queries]
        known = services.create_render("a fox", reference="order-1")

        assert str(known.pk) in OLD_ROW
        call_command("migrate", "renders", "0006", verbosity=0)  # and back
        call_command("migrate", "renders", verbosity=0)
    databases.drop(url)
    indexes = [sql for sql in statements if " INDEX " in sql and "renders_reference" in sql]
    assert len(indexes) == 3
    assert all("CONCURRENTLY" in sql for sql in indexes)


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
@pytest.mark.parametrize("way", ["forwards", "backwards"])
def test_a_migration_that_was_broken_off_is_run_again(
    databases: Databases, django_db_blocker: Any, engine: str, way: str, monkeypatch: Any
) -> None:
    module = importlib.import_module("renders.migrations.0008_reference_of_scope")
    last = module.RemoveUniqueConcurrently if way == "forwards" else module.AddUniqueConcurrently

    def locked(*args: Any) -> None:
        raise OperationalError("database is locked")

    start, end = ("0007", "0008") if way == "forwards" else ("0008", "0007")
    with django_db_blocker.unblock(), using_database(url := databases.empty(engine)):
        call_command("migrate", "renders", start, verbosity=0)
        with monkeypatch.context() as patches, pytest.raises(OperationalError):
            patches.setattr(last, f"database_{way}", locked)
            call_command("migrate", "renders", end, verbosity=0)
        call_command("migrate", "renders", end, verbosity=0)
        names = connection.introspection.get_constraints(connection.cursor(), "renders_renderjob")
    databases.drop(url)
    assert ("renders_reference_of_scope" in names) is (way == "forwards")
    assert ("renders_reference_unique" in names) is (way == "backwards")
