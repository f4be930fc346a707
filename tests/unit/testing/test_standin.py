"""What `renders.testing` gives to a project's tests, tried as such."""

import logging
import sys
from importlib import import_module
from typing import get_type_hints
from uuid import uuid4

import pytest
from django.core.files.storage import default_storage
from django.db import transaction
from django.test import TestCase, TransactionTestCase

import renders.testing
from renders.api import throttling
from renders.conf import workspaces
from renders.lifecycle.steps import Step
from renders.models import RenderJob
from renders.schedulers import dispatch
from renders.services import cancel_render, create_render, create_renders, pause_sending
from renders.signals import render_completed, render_submitted
from renders.states import Status
from renders.testing import NotEnded, StandIn


@pytest.fixture
def received():
    """Have receivers connected for this test only."""
    connected = []

    def connect(signal, receiver):
        signal.connect(receiver, weak=False)
        connected.append((signal, receiver))

    yield connect
    for signal, receiver in connected:
        signal.disconnect(receiver)


@pytest.mark.django_db
def test_a_render_comes_to_its_end_inside_the_tests_transaction(sume):
    render = sume.run_to_end(create_render("A boat"))

    assert (render.status, render.handled_at is not None) == ("completed", True)
    assert [bill.idempotency_key for bill in sume.bills] == [f"render-job-{render.pk}"]
    with default_storage.open(render.artifacts[0]["file"]) as picture:
        assert picture.read(4) == b"\x89PNG"
    assert sume.run_to_end(render) == render
    assert len(sume.bills) == 1


@pytest.mark.django_db(transaction=True)
def test_a_render_comes_to_its_end_where_transactions_commit(sume, received):
    done = []
    received(render_completed, lambda **kwargs: transaction.on_commit(lambda: done.append(1)))

    render = create_render("A boat")
    assert sume.messages == [Step("submit", render.pk)]
    assert sume.run_to_end(render).status == "completed"
    assert done == [1]


@pytest.mark.django_db
def test_what_waits_for_the_commit_is_done_once(sume, received, django_capture_on_commit_callbacks):
    done = []
    received(render_completed, lambda **kwargs: transaction.on_commit(lambda: done.append(1)))

    with django_capture_on_commit_callbacks(execute=True):
        render = create_render("A boat")
        sume.run_to_end(render)
    assert done == [1]
    assert Step("submit", render.pk) in sume.messages


@pytest.mark.django_db(transaction=True)
def test_a_render_that_was_rolled_back_sends_nothing(sume):
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        render = create_render("A boat")
        _ = 1 / 0

    assert (sume.messages, sume.bills, sume.run_all_to_end()) == ([], [], [])
    with pytest.raises(NotEnded, match="was it rolled back"):
        sume.run_to_end(render)


@pytest.mark.django_db
def test_outcomes_are_for_one_render_each_in_the_order_they_were_said(sume):
    sume.next_fails("content_policy_rejected")
    sume.next_is_refused("unknown_model")
    create_renders([{"prompt": "first"}, {"prompt": "second"}, {"prompt": "third"}])

    ended = sume.run_all_to_end()

    assert sorted((render.status, render.error_code) for render in ended) == [
        ("completed", ""),
        ("failed", "content_policy_rejected"),
        ("failed", "unknown_model"),
    ]
    assert (len(sume.bills), len(sume.refunds)) == (2, 1)


@pytest.mark.django_db
def test_a_long_job_is_read_several_times_and_nobody_waits(sume):
    sume.next_takes(95)

    render = sume.run_to_end(create_render("A boat"))

    assert render.status == "completed"
    assert len(sume.sandbox.ledger.reads[render.sume_job_id]) > 4


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("fault", "on"),
    [
        ("reset_after", "submit"),
        ("queue_full", "submit"),
        ("unauthorized", "submit"),
        ("insufficient_credits", "submit"),
        ("server_error", "status"),
        ("unauthorized", "status"),
        ("not_found", "status"),
        ("result_late", "status"),
        ("result_not_ready", "result"),
        ("server_error", "media"),
    ],
)
def test_a_fault_of_the_network_is_lived_through_at_once(sume, fault, on):
    sume.sandbox.faults.add(fault, on=on)

    assert sume.run_to_end(create_render("A boat")).status == "completed"
    assert len(sume.bills) == 1
    assert sume.sandbox.faults.pending() == []


@pytest.mark.django_db
def test_only_the_render_that_was_asked_for_is_sent(sume):
    first = create_render("first", priority=5)
    second = create_render("second")

    assert sume.run_to_end(second).status == "completed"
    first.refresh_from_db()
    assert first.status == "pending"
    assert len(sume.bills) == 1


@pytest.mark.django_db
def test_a_canceled_render_ends_unsent(sume):
    render = create_render("A boat")
    cancel_render(render)

    assert sume.run_to_end(render).status == "canceled"
    assert sume.bills == []


@pytest.mark.django_db
def test_a_cancel_that_sume_holds_is_asked_of_it(sume, received):
    received(render_submitted, lambda render, **kwargs: cancel_render(render))

    render = sume.run_to_end(create_render("A boat"))

    assert render.status == "completed"
    assert render.cancel_answered_at


@pytest.mark.django_db
def test_a_render_behind_a_held_gate_is_told_in_words(sume):
    render = create_render("A boat")
    pause_sending("default")

    with pytest.raises(NotEnded, match=r"(?s)is pending.*gate for writes is closed: Paused by"):
        sume.run_to_end(render)


@pytest.mark.django_db
def test_a_key_that_is_never_taken_is_told_in_words(sume):
    sume.sandbox.faults.add("unauthorized", on="submit", times=None)

    with pytest.raises(NotEnded, match=r"(?s)is pending.*put back"):
        sume.run_to_end(create_render("A boat"))


@pytest.mark.django_db
def test_a_receiver_that_raises_is_shown(sume, received):
    def fail(**kwargs):
        raise ValueError("no such order")

    received(render_completed, fail)
    render = create_render("A boat")

    with pytest.raises(NotEnded, match="finishing it fails") as caught:
        sume.run_to_end(render)
    assert repr(caught.value.__cause__) == "ValueError('no such order')"
    render.refresh_from_db()
    assert (render.status, render.handled_at) == ("completed", None)


@pytest.mark.django_db
def test_nothing_is_said_about_the_redis_that_a_test_does_not_have(sume, caplog):
    with caplog.at_level(logging.WARNING):
        sume.run_to_end(create_render("A boat"))

    assert caplog.messages == []


def test_settings_and_storage_are_as_before_afterwards(settings):
    before = settings.RENDERS, settings.MEDIA_ROOT, default_storage.location
    with StandIn() as sume:
        assert settings.RENDERS["BASE_URL"] == sume.sandbox.url
        assert default_storage.location == settings.MEDIA_ROOT != before[1]
    assert (settings.RENDERS, settings.MEDIA_ROOT, default_storage.location) == before


class TestWithoutFixtures(TestCase):
    def setUp(self):
        self.sume = self.enterContext(StandIn())

    def test_a_render_comes_to_its_end(self):
        render = self.sume.run_to_end(create_render("A boat"))
        self.assertEqual(render.status, "completed")


class TestWhereTransactionsCommit(TransactionTestCase):
    def test_a_render_comes_to_its_end(self):
        with StandIn(price_usd_micros=5) as sume:
            sume.run_to_end(create_render("A boat"))
        self.assertEqual([bill.amount_usd_micros for bill in sume.bills], [5])
        self.assertEqual(RenderJob.objects.get().cost_usd_micros, 5)


def test_it_can_be_used_where_there_is_no_pytest(monkeypatch):
    monkeypatch.setattr(renders, "testing", renders.testing)
    monkeypatch.setitem(sys.modules, "pytest", None)
    for name in ("renders.testing", "renders.testing.fixtures"):
        monkeypatch.delitem(sys.modules, name)

    assert import_module("renders.testing").__all__ == ["NotEnded", "StandIn"]


def test_every_step_has_a_task_that_takes_it():
    steps = get_type_hints(Step)["do"].__args__
    names = {dispatch.task_of(Step(do, uuid4()))[0].name for do in steps}

    assert "renders.tasks.submit_render" in names
    assert len(names) == len(steps)


@pytest.mark.django_db
def test_no_test_after_it_goes_without_a_count_of_requests(sume, client, admin_user, monkeypatch):
    """The app leaves a Redis that failed alone for a while, whichever it was."""
    monkeypatch.setattr(throttling._Rest, "until", 0.0)
    client.force_login(admin_user)

    assert client.get("/api/renders/").status_code == 200
    assert throttling._Rest.until == 0.0


@pytest.mark.django_db
def test_no_key_of_another_account_is_left(settings, tmp_path):
    path = tmp_path / "secrets.json"
    path.write_text('{"default": {"api_key": "real"}, "zeta": {"api_key": "real"}}')
    acme = {"API_KEY": "real", "BASE_URL": "http://127.0.0.1:9", "BUDGET_USD": 0.01}
    settings.RENDERS = {
        **settings.RENDERS, "WORKSPACES": {"acme": acme}, "SECRETS_FILE": str(path),
    }  # fmt: skip
    with StandIn() as sume:
        names = workspaces.names()
        known = [workspaces.get(name) for name in names]
        render = sume.run_to_end(create_render("A boat", workspace="acme"))

    assert names == ["default", "acme", "zeta"]
    assert {(one.api_key, one.base_url) for one in known} == {("test-key", sume_url(known))}
    assert render.status == Status.COMPLETED and len(sume.bills) == 1


def sume_url(known):
    """Where the default account leads."""
    return known[0].base_url
