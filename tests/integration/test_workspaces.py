"""Two accounts at Sume, each with a stand-in and a ledger of its own: no render meets the other's.

Each stand-in lets in one key and no other, so a request with the wrong one is refused and seen.
"""

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from renders import services, transitions
from renders.exceptions import BackOff, Paused
from renders.lifecycle import cancellation, claims, submission, sweep
from renders.lifecycle.steps import Step
from renders.limits import gate, spending
from renders.models import Gate, RenderEvent, RenderJob
from renders.sandbox import Sandbox
from renders.states import RequestType, Status
from renders.sume.clients import sume
from tests.effects.models import Effect
from tests.integration import engine, modes
from tests.integration.stack import Stack

ON_POSTGRESQL = pytest.mark.parametrize("database", ["postgresql"], indirect=True)
ON_SQLITE = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
KEYS = {"default": "key-of-the-default-account", "acme": "key-of-the-account-acme"}
NEW_KEY = "a-new-key-of-the-account-acme"
PRICE = 90_000


def stand_in(key: str) -> Sandbox:
    return Sandbox(
        key=key, queued_seconds=0.1, processing_seconds=0.3, poll_seconds=0.5,
        writes_per_minute=None, processing_limit=1000, queued_limit=1000,
    )  # fmt: skip


@dataclass
class Accounts:
    """Both stand-ins, and how the settings name them."""

    sandboxes: dict[str, Sandbox]
    file: Path
    settings: Any

    def set(self, **told: Any) -> None:
        """Settings of the workspace acme; those of the default one are the app's own."""
        known = self.settings.RENDERS["WORKSPACES"].get("acme", {})
        self.app(WORKSPACES={"acme": {**known, **told}})

    def app(self, **told: Any) -> None:
        spending.forget()
        self.settings.RENDERS = {**self.settings.RENDERS, **told}

    def write(self, **keys: str) -> None:
        """What the secrets file holds; swapped in whole, as those who mount secrets do."""
        told = {name: {"api_key": key} for name, key in {**KEYS, **keys}.items() if key}
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(told))
        new.chmod(0o600)
        new.replace(self.file)

    def take_out(self, name: str) -> None:
        """As `write`, without this one, some while ago: the file is no half-written one."""
        self.write(**{name: ""})
        os.utime(self.file, (1_000_000_000, 1_000_000_000))

    def billed(self, name: str) -> list[str]:
        return sorted(bill.idempotency_key for bill in self.sandboxes[name].ledger.bills)

    def assert_sound(self) -> None:
        """Whatever was billed, was billed once, in the account of its render."""
        for name in self.sandboxes:
            bills = self.billed(name)
            assert len(bills) == len(set(bills))
            theirs = set(keys_of(RenderJob.objects.filter(workspace=name)))
            assert set(bills) <= theirs, f"{name} was billed for another's render"
            cancels = {key.replace("render-job-", "render-cancel-") for key in theirs}
            assert set(self.sandboxes[name].ledger.posts) <= theirs | cancels
            assert not self.sandboxes[name].ledger.body_conflicts


def keys_of(renders: Any) -> list[str]:
    return sorted(renders.values_list("idempotency_key", flat=True))


@pytest.fixture
def accounts(database: str, redis: Any, settings: Any, tmp_path: Path) -> Iterator[Accounts]:
    with stand_in(KEYS["default"]) as first, stand_in(KEYS["acme"]) as second:
        file = tmp_path / "secrets.json"
        settings.RENDERS = {
            **settings.RENDERS,
            "API_KEY": "the-environment's-key-is-no-use",
            "BASE_URL": first.url,
            "WORKSPACES": {"acme": {"BASE_URL": second.url, "WRITES_PER_MINUTE": 10_000}},
            "SECRETS_FILE": str(file),
            "SAVE_MEDIA": False,
            "PRICES": {"image:sume/auto": PRICE / 1_000_000},
        }
        settings.MEDIA_ROOT = tmp_path / "media"
        accounts = Accounts({"default": first, "acme": second}, file, settings)
        accounts.write()
        spending.forget()
        yield accounts
        accounts.assert_sound()


@pytest.fixture
def followed(monkeypatch: Any) -> list[Step]:
    steps: list[Step] = []
    monkeypatch.setattr("renders.schedulers.dispatch.follow", steps.extend)
    return steps


def make(workspace: str, count: int = 1, **fields: Any) -> list[RenderJob]:
    return [services.create_render("a fox", workspace=workspace, **fields) for _ in range(count)]


def submit(*renders: RenderJob) -> list[Step]:
    return [step for render in renders for step in engine.submit(render)]


def status_of(*renders: RenderJob) -> set[str]:
    pks = [render.pk for render in renders]
    return set(RenderJob.objects.filter(pk__in=pks).values_list("status", flat=True))


def waiting_since_a_while() -> None:
    RenderJob.objects.update(created_at=timezone.now() - timedelta(minutes=5))


def lines_started() -> set[Any]:
    """Whose lines a sweep sets going."""
    pks = [step.render_id for step in sweep.sweep() if step.do == "submit"]
    return set(RenderJob.objects.filter(pk__in=pks).values_list("workspace", flat=True))


# --- Each its own -----------------------------------------------------------------------------


def test_each_render_is_sent_read_and_billed_in_its_own_account(
    accounts: Accounts, followed: list[Step]
) -> None:
    renders = make("default", 2) + make("acme", 2)
    # The message of one serves the line of its own workspace alone.
    submit(*reversed(renders))
    for render in renders:
        engine.make_due(render)
        engine.poll(render)
        # The other account does not know the job, and would say so.
        assert (render.poll_count, render.failed_reads) == (1, 0)

    for name in KEYS:
        assert accounts.billed(name) == keys_of(RenderJob.objects.filter(workspace=name))
    assert not Gate.objects.filter(refusals__gt=0).exists(), "a key was sent to the other account"


def test_a_retry_and_a_cancel_go_to_the_account_of_the_first(
    accounts: Accounts, followed: list[Step]
) -> None:
    [render] = make("acme", reference="once")
    submit(render)
    services.cancel_render(render)
    cancellation.cancel(render.pk, sume)
    asked = f"render-cancel-{render.pk}"
    assert asked in accounts.sandboxes["acme"].ledger.posts
    assert asked not in accounts.sandboxes["default"].ledger.posts
    now = timezone.now()
    assert transitions.end(render.pk, 0, now, "canceled", sume_status="canceled")

    again = services.retry_render(render)
    assert again.workspace == "acme"
    submit(again)
    assert again.idempotency_key in accounts.billed("acme")


def test_a_row_whose_claim_counted_for_another_account_is_not_sent(accounts: Accounts) -> None:
    [render] = make("acme")
    claim = submission.begin(render.pk)
    wrong = claims.Claim("default", claim.renders, claim.at)

    with pytest.raises(AssertionError, match="was claimed for default"):
        submission.send(wrong, sume)
    assert not accounts.sandboxes["default"].ledger.posts


# --- None holds up another --------------------------------------------------------------------


def test_a_refused_key_pauses_its_own_workspace_and_a_new_one_in_the_file_goes_on(
    accounts: Accounts, followed: list[Step]
) -> None:
    accounts.write(acme="a-key-that-was-withdrawn")
    accounts.app(PAUSE_SECONDS=60)
    acme, default = make("acme", 2), make("default", 2)
    submit(*acme, *default)

    assert status_of(*acme) == {"pending"}
    assert status_of(*default) == {"submitted"}
    now = timezone.now()
    assert gate.closed("acme", RequestType.WRITES, now) and not gate.closed(
        "default", RequestType.WRITES, now
    )
    # The pause grows long; a sweep finds the new key, whichever process wrote it.
    Gate.objects.filter(key="acme:writes").update(paused_until=now + timedelta(hours=1))
    engine.redis_client().flushall()
    waiting_since_a_while()
    assert lines_started() == set()

    accounts.write()
    assert lines_started() == {"acme"}
    submit(*acme)
    assert status_of(*acme) == {"submitted"}
    assert Gate.objects.get(key="acme:writes").refusals == 0


def test_a_new_key_does_not_shorten_a_pause_that_sume_asked_for(accounts: Accounts) -> None:
    gate.pause("acme", RequestType.WRITES, Paused("No.", code="unauthorized", status=401), 0)
    accounts.write(acme=NEW_KEY)
    gate.pause("acme", RequestType.WRITES, BackOff("Wait.", code="rate_limited", status=429), 60)

    assert not gate.try_new_key("acme")
    assert gate.closed("acme", RequestType.WRITES, timezone.now())


def test_a_person_pauses_one_workspace_and_no_other(
    accounts: Accounts, followed: list[Step]
) -> None:
    acme, default = make("acme"), make("default")
    services.pause_sending("acme")
    waiting_since_a_while()
    assert lines_started() == {"default"}
    submit(*acme, *default)
    assert (status_of(*acme), status_of(*default)) == ({"pending"}, {"submitted"})

    services.resume_sending("acme")
    submit(*acme)
    assert status_of(*acme) == {"submitted"}


def test_a_full_workspace_holds_up_no_other(accounts: Accounts, followed: list[Step]) -> None:
    accounts.set(MAX_IN_FLIGHT=1)
    acme, default = make("acme", 3), make("default", 3)
    submit(*acme, *default)

    assert RenderJob.objects.filter(workspace="acme", status=Status.SUBMITTED).count() == 1
    assert status_of(*default) == {"submitted"}


def test_the_minute_of_each_is_counted_apart(accounts: Accounts, followed: list[Step]) -> None:
    accounts.set(WRITES_PER_MINUTE=2)
    submit(*make("default", 5), *make("acme", 5))

    assert RenderJob.objects.filter(workspace="default", status=Status.SUBMITTED).count() == 5
    assert RenderJob.objects.filter(workspace="acme", status=Status.SUBMITTED).count() == 2
    assert set(RenderEvent.objects.filter(what="sending").values_list("detail", flat=True)) == {
        "",
        "acme",
    }


# --- A workspace that is taken out of the settings ----------------------------------------------


def test_renders_of_a_workspace_that_is_gone_wait_and_nothing_fails(
    accounts: Accounts, followed: list[Step]
) -> None:
    at_sume, pending, unsure = make("acme", 3)
    submit(at_sume)
    accounts.sandboxes["acme"].faults.add("reset_after", on="submit")
    submit(unsure)
    assert unsure.outcome_unknown_at
    default = make("default")
    told = accounts.settings.RENDERS["WORKSPACES"]
    accounts.app(WORKSPACES={})
    accounts.take_out("acme")
    posts = dict(accounts.sandboxes["acme"].ledger.posts)

    waiting_since_a_while()
    RenderJob.objects.filter(workspace="acme").update(not_before=None)
    assert lines_started() == {"default"}
    assert submit(pending, unsure) == []
    engine.make_due(at_sume)
    [step] = engine.poll(at_sume)
    assert (step.do, step.after, at_sume.failed_reads) == ("poll", 5, 0)  # `MAX_POLL_SECONDS`
    with pytest.raises(Exception, match="acme is not configured"):
        sume("acme")
    assert submit(*default) and status_of(*default) == {"submitted"}
    # Two days later.
    engine.age_rows(40 * 3600)
    sweep.sweep()
    engine.age_rows(10 * 3600)
    sweep.sweep()
    assert status_of(pending, unsure) == {"pending"}
    assert accounts.sandboxes["acme"].ledger.posts == posts

    accounts.app(WORKSPACES=told)
    accounts.write()
    sweep.sweep()
    submit(pending)
    assert status_of(pending) == {"submitted"}
    # Whose key is too old to be asked with: a person has to look.
    assert status_of(unsure) == {"failed"}


# --- Money --------------------------------------------------------------------------------------


def test_a_spent_budget_closes_its_own_workspace_until_it_is_raised(
    accounts: Accounts, followed: list[Step]
) -> None:
    accounts.set(BUDGET_USD=2 * PRICE / 1_000_000)
    acme, default = make("acme", 4), make("default", 4)
    submit(*acme, *default)

    assert len(accounts.billed("acme")) == 2
    assert status_of(*default) == {"submitted"}
    why = claims.closed("acme", timezone.now())
    assert why and why.code == "budget_spent" and why.until and why.until.day == 1
    # Two days later they wait still, though nothing else is sent so late.
    engine.age_rows(13 * 3600)
    sweep.sweep()
    engine.age_rows(13 * 3600)
    sweep.sweep()
    assert RenderJob.objects.filter(workspace="acme", status="pending").count() == 2

    accounts.set(BUDGET_USD=1)
    assert lines_started() == {"acme"}
    submit(*acme)
    assert len(accounts.billed("acme")) == 4


def test_one_that_sume_may_hold_is_asked_about_with_the_budget_spent(
    accounts: Accounts, followed: list[Step]
) -> None:
    accounts.set(BUDGET_USD=PRICE / 1_000_000)
    accounts.sandboxes["acme"].faults.add("reset_after", on="submit")
    unsure, fresh = make("acme", 2)
    submit(unsure)
    submit(fresh)
    assert status_of(unsure, fresh) == {"pending"}
    spending.forget()

    RenderJob.objects.update(not_before=None)
    submit(fresh)  # whose message serves the line
    assert (status_of(unsure), status_of(fresh)) == ({"submitted"}, {"pending"})


def test_a_batch_is_claimed_one_by_one_where_money_limits_it(accounts: Accounts) -> None:
    renders = make("acme", 3)
    accounts.set(BUDGET_USD=1.5 * PRICE / 1_000_000)

    taken = [len(claims.claim(renders[0].pk, 3).renders) for _ in range(3)]
    assert taken == [1, 0, 0]


@ON_POSTGRESQL
def test_claims_at_the_same_time_do_not_exceed_the_budget(accounts: Accounts) -> None:
    accounts.set(BUDGET_USD=2.5 * PRICE / 1_000_000)
    renders = make("acme", 8)
    barrier, taken = threading.Barrier(8), []

    def claim(render: RenderJob) -> None:
        barrier.wait()
        taken.extend(claims.claim(render.pk).renders)
        connection.close()

    threads = [threading.Thread(target=claim, args=[render]) for render in renders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == len(set(taken)) == 2


# --- With real processes ------------------------------------------------------------------------


def begin(stack: Stack, scheduler: str, first: int) -> list[Any]:
    numbers = (first, first + 1)
    if scheduler == "database":
        return [modes.start(stack, "runrenders", number) for number in numbers]
    readers = [modes.start(stack, "pollrenders", first)] if scheduler == "sortedset" else []
    return [*readers, stack.worker(), stack.worker()]


@pytest.mark.slow
@pytest.mark.parametrize(
    "scheduler",
    ["countdown", pytest.param("sortedset", marks=pytest.mark.thorough), "database"],
)
def test_two_accounts_under_kill_9_with_one_refused_and_a_key_changed_in_the_file(
    scheduler: str, accounts: Accounts, redis: Any, database: str, tmp_path: Path
) -> None:
    stack = Stack(tmp_path, database, redis, accounts.sandboxes["default"])
    stack.environment |= {
        "SUME_API_KEY": "the-environment's-key-is-no-use",
        "RENDERS_WORKSPACES": "acme",
        "SUME_BASE_URL_ACME": accounts.sandboxes["acme"].url,
        "RENDERS_WRITES_PER_MINUTE_ACME": "10000",
        "RENDERS_SECRETS_FILE": str(accounts.file),
        "RENDERS_PRICES": f"image={PRICE / 1_000_000}",
        "RENDERS_MODELS": "sume/auto",
        "RENDERS_SAVE_MEDIA": "0",
    }
    modes.use(stack, scheduler)
    try:
        accounts.write(acme="a-key-that-was-withdrawn")
        workers = begin(stack, scheduler, 0)
        renders = make("default", 6) + make("acme", 6)
        default = RenderJob.objects.filter(workspace="default")
        swept = lambda: stack.sweep() or True  # noqa: E731
        stack.until(lambda: swept() and not default.exclude(status__in=["completed"]).exists())
        assert not accounts.sandboxes["acme"].ledger.bills
        assert not Gate.objects.filter(key="writes", refusals__gt=0).exists()

        accounts.write()
        acme = RenderJob.objects.filter(workspace="acme")
        stack.until(lambda: swept() and acme.filter(status=Status.SUBMITTED).exists())
        for worker in workers:
            stack.kill(worker)
        begin(stack, scheduler, 2)
        stack.until(
            lambda: swept() and not RenderJob.objects.filter(handled_at__isnull=True).exists()
        )

        assert status_of(*renders) == {"completed"}
        for name in KEYS:
            assert accounts.billed(name) == keys_of(RenderJob.objects.filter(workspace=name))
        assert Effect.objects.count() == len(renders)
        for secret in (*KEYS.values(), NEW_KEY, "a-key-that-was-withdrawn"):
            assert secret not in stack.logs()
    finally:
        stack.stop()


def test_what_has_ended_waits_for_its_workspace_to_be_finished_and_costs_no_tries(
    accounts: Accounts, followed: list[Step]
) -> None:
    ended, unsent = make("acme", 2)
    submit(ended)
    now = timezone.now()
    transitions.end(ended.pk, 0, now, "completed", sume_status="completed")
    services.cancel_render(unsent)
    accounts.app(WORKSPACES={})
    accounts.take_out("acme")
    engine.age_rows(3600)

    def finishes() -> set[Any]:
        return {step.render_id for step in sweep.sweep() if step.do == "finish"}

    assert finishes() == {unsent.pk}
    accounts.write()
    RenderJob.objects.update(swept_at=None)
    assert finishes() == {unsent.pk, ended.pk}
