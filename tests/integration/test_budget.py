"""A budget holds whatever dies: real workers, killed and disturbed, never spend more."""

import threading
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.utils import timezone

from renders import claims, over_budget, services, spending
from renders.models import RenderJob
from renders.states import Status
from tests.integration.stack import Stack

PRICES = "image:sume/auto=0.09"


@pytest.fixture
def budget(settings: Any) -> Any:
    def tell(**told: Any) -> None:
        spending.forget()
        settings.RENDERS = {**settings.RENDERS, "PRICES": PRICES, **told}

    yield tell
    spending.forget()


@pytest.mark.slow
def test_of_six_pictures_exactly_five_are_sent_through_kills_and_faults(
    stack: Stack, budget: Any
) -> None:
    budget(BUDGET_USD=0.5)
    stack.environment |= {"RENDERS_BUDGET_USD": "0.5", "RENDERS_PRICES": PRICES}
    ledger = stack.sandbox.ledger
    for fault in ("reset_after", "reset_before", "server_error"):
        stack.sandbox.faults.add(fault, on="submit")
    stack.create(*["a red fox"] * 6)
    for number in range(3):
        worker = stack.worker()
        stack.until(lambda number=number: stack.sweep() or len(ledger.bills) > number, child=worker)
        stack.kill(worker)
    stack.worker()

    ended = RenderJob.objects.filter(status=Status.COMPLETED, handled_at__isnull=False)
    stack.until(lambda: stack.sweep() or ended.count() == 5)
    stack.sweep()

    [waiting] = RenderJob.objects.exclude(status=Status.COMPLETED)
    assert (waiting.status, waiting.outcome_unknown_at) == (Status.PENDING, None)
    assert len(ledger.bills) == 5


@pytest.mark.usefixtures("redis", "sandbox")
@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_claims_at_the_same_time_stay_within_both_budgets(database: str, budget: Any) -> None:
    ada, bob = (get_user_model().objects.create(username=name) for name in ("ada", "bob"))
    budget(BUDGET_USD=0.4, USER_BUDGET_USD=0.3)
    renders = [services.create_render("a fox", user=user) for user in (ada, bob) for _ in range(8)]
    barrier, taken = threading.Barrier(8), []

    def claim(render: RenderJob) -> None:
        barrier.wait()
        for _ in range(3):
            taken.extend(claims.claim(render.pk).renders)
        connection.close()

    threads = [threading.Thread(target=claim, args=[render]) for render in renders[:8]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(taken) == len(set(taken)) == 4
    for user in (ada, bob):
        assert RenderJob.objects.filter(pk__in=taken, created_by=user).count() <= 3


@pytest.mark.usefixtures("redis", "sandbox")
@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_misfit_that_somebody_holds_stops_no_claim_and_no_return(
    database: str, budget: Any
) -> None:
    budget(BUDGET_USD=0.5, PRICES=f"{PRICES},video:sume/auto=1.20", MAX_IN_FLIGHT=9)
    clip, *pictures = services.store(
        [RenderJob(prompt="a fox", kind=kind) for kind in ("video", "image", "image")]
    )
    done = []

    def work() -> None:
        done.extend(claims.claim(pictures[0].pk).renders)
        done.append(over_budget.take_back("default", timezone.now()))
        connection.close()

    RenderJob.objects.filter(pk=pictures[1].pk).update(turn=None)
    with transaction.atomic():
        assert len(RenderJob.objects.select_for_update().filter(pk__in=[clip.pk, pictures[1].pk]))
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(timeout=10)
        assert done == [pictures[0].pk, 0]
    thread.join()
