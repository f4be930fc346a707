"""What does not fit into a budget is passed over with a reason, and comes back once it fits."""

from datetime import timedelta

import pytest
from django.utils import timezone

from renders import claims, gate, over_budget, services, spending
from renders.models import RenderJob
from renders.states import Sort, Status
from renders.sweep import sweep

pytestmark = pytest.mark.django_db
RENDERS = RenderJob.objects
PRICES = "image:sume/auto=0.09,video:sume/auto=1.20"


@pytest.fixture(autouse=True)
def limited(settings):
    """A budget of $0.50, unless told otherwise."""
    spending.forget()

    def tell(**told):
        spending.forget()
        settings.RENDERS = {**settings.RENDERS, "PRICES": PRICES, "BUDGET_USD": 0.5, **told}

    tell()
    yield tell
    spending.forget()


def add(count=1, kind="image", **fields):
    # Stored as an earlier release would: no door has looked at its price.
    rows = [RenderJob(prompt="a fox", kind=kind, **fields) for _ in range(count)]
    return services.store(rows)


def claim(count):
    """Whose turn it is, one after the other."""
    first = RENDERS.order_by("created_at").first()
    return [pk for _ in range(count) for pk in claims.claim(first.pk).renders]


def end(pk, cost, status=Status.COMPLETED):
    now = timezone.now()
    assert RENDERS.record_submitted(
        pk, now, job_id=f"job-{pk}", sume_status="", hit=False, next_poll_at=now
    )
    assert RENDERS.end(pk, 0, now, status, sume_status="", cost=cost)


def reload(*rows):
    for row in rows:
        row.refresh_from_db()
    return rows


def test_of_six_pictures_five_fit():
    add(6)

    assert len(claim(8)) == 5
    spending.forget()
    assert claims.closed("default", timezone.now()).code == spending.CODE
    assert RENDERS.pending().count() == 1


def test_a_dear_clip_does_not_hold_up_the_pictures_behind_it():
    [clip] = add(kind="video")
    pictures = add(2)

    assert claim(2) == [row.pk for row in pictures]
    reload(clip)
    assert (clip.status, clip.turn, clip.error_code) == ("pending", None, "over_budget")
    assert clip.error_message == "It costs up to $1.20, but $0.50 of the month's budget is left."
    assert [event.what for event in clip.events.all()] == ["created", "put aside"]


def test_what_was_put_aside_is_sent_when_the_budget_is_raised(limited):
    [clip] = add(kind="video")
    assert claim(1) == []
    RENDERS.update(created_at=timezone.now() - timedelta(days=30))
    sweep()
    assert reload(clip)[0].status == Status.PENDING  # however long

    limited(BUDGET_USD=2)
    [step] = sweep()

    assert (step.do, step.render_id) == ("submit", clip.pk)
    assert (reload(clip)[0].error_code, clip.error_message) == ("", "")
    sweep()
    assert claim(1) == [clip.pk]


def test_no_more_come_back_than_fit():
    pictures = add(20)
    sent = claim(5)
    RENDERS.in_line().update(turn=None, error_code="over_budget")
    for pk in sent[:2]:
        end(pk, 0, Status.FAILED)
    spending.forget()

    assert over_budget.take_back("default", timezone.now()) == 2
    back = RENDERS.in_line().pks(9)
    assert set(back) == {row.pk for row in pictures[5:7]}


def test_without_a_budget_all_come_back(limited, settings):
    add(3, kind="video")
    claim(1)
    settings.RENDERS = {**settings.RENDERS, "SWEEP_BATCH": 2}

    limited(BUDGET_USD=0)

    assert over_budget.take_back("default", timezone.now()) == 2
    assert over_budget.take_back("default", timezone.now()) == 1


def test_what_sume_may_hold_goes_on_with_the_budget_spent_and_is_counted_once(limited):
    [unsure, *_] = add(3)
    limited(BUDGET_USD=0.1)
    [pk] = claim(2)
    assert pk == unsure.pk
    now = timezone.now()
    at = RENDERS.get(pk=pk).claimed_at
    RENDERS.release(pk, at, not_before=now, code="x", message="", unknown_at=now)
    spending.forget()

    assert claim(3) == [unsure.pk]
    assert spending.spent(claims.workspaces.get("default"), now) == 90_000


def test_a_user_s_budget_holds_up_nobody_else(limited, django_user_model):
    ada, bob = (django_user_model.objects.create(username=name) for name in ("ada", "bob"))
    hers = add(5, created_by=ada)
    his = add(1, created_by=bob)
    limited(BUDGET_USD=0, USER_BUDGET_USD=0.2)

    assert set(claim(9)) == {hers[0].pk, hers[1].pk, his[0].pk}
    assert "its user's budget" in reload(hers[2])[0].error_message


def test_more_misfits_than_one_claim_looks_at_are_put_aside_by_the_next(monkeypatch):
    monkeypatch.setattr(over_budget, "LOOK_AT", 3)
    clips = add(7, kind="video")
    [picture] = add()

    claimed = [claims.claim(clips[0].pk) for _ in range(3)]

    assert [one.renders for one in claimed] == [[], [], [picture.pk]]
    # Each goes on with the line by a message of its own.
    assert [[step.do for step in one.steps] for one in claimed] == [["submit"], ["submit"], []]


def test_where_a_model_has_no_price_the_row_says_so():
    [odd] = add(model="other")
    [picture] = add()

    assert claim(1) == [picture.pk]
    assert "No price is set for image:other" in reload(odd)[0].error_message


def test_what_is_held_or_canceled_does_not_come_back(limited):
    held, gone = add(2, kind="video")
    claim(1)
    RENDERS.hold_many([held.pk], timezone.now())
    services.cancel_render(gone)

    limited(BUDGET_USD=100)

    assert over_budget.take_back("default", timezone.now()) == 0
    assert reload(gone)[0].error_code == "canceled_before_submit"


def test_a_pause_is_said_before_the_budget():
    add()
    gate.hold("default", None)

    assert claims.closed("default", timezone.now()).code == "held"
    assert gate.row_of("default", Sort.WRITES)


def test_a_user_s_budget_does_not_concern_a_program_s_render(limited):
    limited(BUDGET_USD=0, USER_BUDGET_USD=1.0, PRICES="image=0.09")
    row = services.create_render("a fox")

    assert claim(1) == [row.pk]


def test_what_costs_nothing_fits_where_more_was_spent_than_the_budget(limited, django_user_model):
    ada = django_user_model.objects.create(username="ada")
    limited(BUDGET_USD=0, USER_BUDGET_USD=0.05, PRICES="image:sume/auto=0.09,image:free=0")
    [dear] = add(created_by=ada)
    RENDERS.claim(dear.pk, timezone.now(), "default")
    end(dear.pk, 90_000)
    [free] = add(created_by=ada, model="free")

    assert claim(1) == [free.pk]


def test_a_kind_that_only_another_release_knows_stops_nobody(limited):
    # Sume may hold one of them, the other waits in the line.
    [sent] = add(kind="music")
    RENDERS.claim(sent.pk, timezone.now(), "default")
    end(sent.pk, None, Status.FAILED)
    [strange], [picture] = add(kind="music"), add()

    assert claim(1) == [picture.pk]
    reload(strange)
    assert "No price is set for music" in strange.error_message
    sweep()
    reload(strange)
    assert strange.awaits_budget


def test_the_smallest_amounts_are_neither_free_nor_without_limit(limited):
    limited(BUDGET_USD=0.0000004, PRICES="image:sume/auto=0.0000004")
    add(2)

    assert len(claim(2)) == 1


def test_no_more_come_back_than_the_money_is_for_while_no_place_is_free(limited, django_user_model):
    limited(BUDGET_USD=0, USER_BUDGET_USD=0.5)
    add(30, created_by=django_user_model.objects.create(username="ada"))
    claim(6)
    assert RENDERS.over_budget().count() == 25
    limited(BUDGET_USD=0, USER_BUDGET_USD=0.95, MAX_IN_FLIGHT=5)

    for _ in range(4):
        sweep()

    assert RENDERS.in_line().count() == 5


def test_of_two_users_whose_renders_wait_for_the_budget_neither_is_always_last(
    limited, django_user_model
):
    ada, bob = (django_user_model.objects.create(username=name) for name in ("ada", "bob"))
    add(10, created_by=ada)
    add(1, created_by=bob)
    limited(BUDGET_USD=0.05)
    claim(1)
    spent = 0.05
    for _ in range(60):  # one picture at a time: 2 ** -60 that it is never bob's
        spent += 0.09
        limited(BUDGET_USD=spent)
        sweep()
        for pk in claim(1):
            end(pk, 90_000)
        if not RENDERS.pending().filter(created_by=bob).exists():
            break
        add(1, created_by=ada)

    assert not RENDERS.pending().filter(created_by=bob).exists()


def test_what_another_release_put_back_without_a_turn_is_found(limited):
    [row] = add()
    RENDERS.filter(pk=row.pk).update(turn=None, error_code="rate_limited")

    sweep()

    assert claim(1) == [row.pk]
