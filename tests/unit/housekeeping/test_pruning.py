"""What is old goes, in batches; what a run would do it says before, exactly."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone
from django_celery_results.models import TaskResult

from renders import services
from renders.conf import workspaces
from renders.housekeeping import pruning, removal
from renders.housekeeping.policy import Ages
from renders.housekeeping.pruning import Pruned, Pruning, foresee, run_as_set
from renders.limits import spending
from renders.media.storage import storage
from renders.models import ApiRequest, Draft, RenderEvent, RenderJob, WebhookEvent
from renders.states import Status
from tests.examples.shop.models import Order
from tests.rows import files_in, over, pictured, stored

pytestmark = pytest.mark.django_db
OFTEN = Ages(completed=30, failed=30, canceled=30)


@pytest.fixture(autouse=True)
def folder(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    return tmp_path


def run(ages=OFTEN, batch=2, **how):
    return Pruning(ages, batch=batch, **how).run()


def left():
    return set(RenderJob.objects.values_list("pk", flat=True))


def made_long_ago(row, name, days=400):
    type(row).objects.filter(pk=row.pk).update(**{name: timezone.now() - timedelta(days=days)})


def test_each_outcome_has_its_own_age():
    kept = {over(Status.FAILED, 400).pk, over(Status.COMPLETED, 29).pk, over("canceled", 8).pk}
    for status, days in (("completed", 31), ("completed", 500), ("canceled", 10)):
        over(status, days)

    done = run(Ages(completed=30, canceled=9))

    assert left() == kept
    assert (done.renders, done.events) == (3, 6)
    assert RenderEvent.objects.count() == 6


def test_what_a_budget_counts_stays_as_a_line_of_the_bill_until_the_month_is_over(
    settings, monkeypatch
):
    limited = {"acme": {"BUDGET_USD": 5}, "beta": {}}
    settings.RENDERS = {**settings.RENDERS, "WORKSPACES": limited}
    now = datetime(2026, 3, 20, 12, tzinfo=UTC)
    monkeypatch.setattr(timezone, "now", lambda: now)
    spending.forget()
    bill = over(Status.COMPLETED, 8, workspace="acme", cost_usd_micros=1_000_000)
    over(Status.COMPLETED, 8, workspace="beta", cost_usd_micros=1_000_000)
    over(Status.COMPLETED, 24, workspace="acme", cost_usd_micros=1_000_000)
    over(Status.FAILED, 8, workspace="acme", cost_usd_micros=0)
    ages = Ages(completed=7, failed=7)

    foreseen, done = foresee(ages), run(ages)

    assert left() == {bill.pk} and (done.renders, done.bills) == (3, 1)
    assert (foreseen.renders, foreseen.bills) == (3, 1)
    spending.forget()
    assert spending.spent(workspaces.get("acme"), now) == 1_000_000
    now = datetime(2026, 4, 1, 1, tzinfo=UTC)
    run(ages)
    assert not left()


def test_what_is_not_over_stays_however_old():
    long_ago = timezone.now() - timedelta(days=999)
    kept = {stored(status, created_at=long_ago).pk for status in ("pending", "submitted")}
    kept.add(stored(Status.COMPLETED, finished_at=long_ago).pk)

    run()

    assert left() == kept


def test_without_ages_everything_stays():
    kept = {over(days=9_999).pk, pictured(days=9_999).pk}

    assert run(Ages()) == Pruned()
    assert left() == kept


def test_a_reference_is_never_free_again(followed):
    render = pictured(reference="order-1", prompt="a fox")

    done = run()

    assert (done.renders, done.bills, done.files) == (0, 1, 2)
    again = services.create_render("a fox", reference="order-1")
    assert again.pk == render.pk and again.erased_at
    assert RenderJob.objects.count() == 1 and not followed


def test_a_retry_stays_as_long_as_what_it_retries():
    original = over(Status.FAILED)
    retry = over(Status.COMPLETED, retry_of=original)

    assert run(Ages(completed=30)).bills == 1

    assert left() == {original.pk, retry.pk}
    assert not RenderJob.objects.unretried().exists()


def test_retries_of_retries_go_with_the_first():
    first = over(Status.FAILED)
    second = over(Status.FAILED, retry_of=first)
    over(Status.COMPLETED, retry_of=second)

    assert run().renders == 3


def test_what_the_project_points_to_stays_as_a_line_of_the_bill(django_user_model):
    render = pictured()
    buyer = django_user_model.objects.create_user("ann")
    Order.objects.create(buyer=buyer, wish="a fox", render=render)

    assert run().bills == 1
    assert Order.objects.get().render.erased_at
    assert run() == Pruned()


def test_media_go_first_and_rows_stay():
    old, new = pictured(days=40), pictured(days=20)

    done = run(Ages(media=30))

    assert (done.media, done.files, done.bytes, done.rows) == (1, 2, 5, 1)
    old.refresh_from_db()
    assert old.prompt and not old.artifacts and old.media_removed_at
    assert len(RenderJob.objects.get(pk=new.pk).artifacts) == 1
    assert run(Ages(media=30)) == Pruned()


def test_timelines_of_ended_renders_go_by_the_age_of_their_lines():
    over(days=40), over(days=20)
    held = stored(Status.PENDING)
    RenderEvent.objects.create(render=held, what="created")
    RenderEvent.objects.filter(render=held).update(at=timezone.now() - timedelta(days=99))

    assert run(Ages(events=30)).events == 2
    assert RenderEvent.objects.count() == 3


def test_what_belongs_to_no_render_goes_too(django_user_model, settings):
    settings.RENDERS = {**settings.RENDERS, "IDEMPOTENCY_HOURS": 720}
    ann = django_user_model.objects.create_user("ann")
    for number in range(3):
        made_long_ago(WebhookEvent.objects.create(event_id=f"evt_{number}"), "received_at")
        made_long_ago(ApiRequest.objects.create(user=ann, key=f"{number}"), "created_at")
        draft = Draft.objects.create(token=f"{number}", created_by=ann, common={})
        made_long_ago(draft, "created_at")
        made_long_ago(TaskResult.objects.create(task_id=f"{number}"), "date_done")
    TaskResult.objects.create(task_id="new")

    done = run(Ages(task_results=7))

    assert (done.webhooks, done.keys, done.drafts, done.task_results) == (3, 3, 3, 3)
    assert TaskResult.objects.count() == 1


def everything(user):
    """Some of all sorts, old and new."""
    chain = over(Status.FAILED)
    over(Status.FAILED, retry_of=chain)
    over(Status.COMPLETED, retry_of=over(Status.FAILED, days=1))
    over(Status.CANCELED), over(days=3), stored(Status.PENDING)
    pictured(), pictured(files=3), pictured(days=20), pictured(days=3)
    pictured(reference="order-1"), over(Status.FAILED, reference="order-2")
    Order.objects.create(buyer=user, wish="a fox", render=pictured())
    made_long_ago(WebhookEvent.objects.create(event_id="evt"), "received_at")
    made_long_ago(ApiRequest.objects.create(user=user, key="key"), "created_at")


ALL = Ages(completed=30, failed=30, canceled=30, media=10, events=10, task_results=7)


@pytest.mark.parametrize("ages", [ALL, OFTEN, Ages(), replace(ALL, media=0, completed=0)], ids=str)
def test_what_a_run_will_do_is_known_before_and_nothing_is_changed(ages, folder, django_user_model):
    everything(django_user_model.objects.create_user("ann"))
    tables = (RenderJob, RenderEvent, WebhookEvent, ApiRequest)
    before = [list(table.objects.order_by("pk").values()) for table in tables], files_in(folder)

    told = foresee(ages)

    assert before == (
        [list(table.objects.order_by("pk").values()) for table in tables],
        files_in(folder),
    )
    counted = []
    assert run(ages, told=counted.append) == told
    assert sum(counted) == told.rows
    assert foresee(ages) == run(ages) == Pruned()


def test_what_somebody_has_begun_is_told_before_as_well():
    gone, kept, recent = pictured(), pictured(reference="order-1"), pictured(days=1)
    begun = [gone.pk, kept.pk, recent.pk]
    RenderJob.objects.filter(pk__in=begun).update(removing_at=timezone.now())

    told = foresee(OFTEN)

    assert (told.renders, told.bills, told.media, told.files) == (1, 1, 1, 6)
    assert run() == told


class Killed(BaseException):
    """As SIGKILL: nothing after it is done."""


@pytest.mark.parametrize("dies_at", range(1, 5))
@pytest.mark.parametrize("step", ["file", "forget", "delete", "strip"])
def test_whoever_is_killed_at_any_step_leaves_nothing_lost(step, dies_at, folder, monkeypatch):
    for number in range(3):
        pictured(), pictured(reference=f"order-{number}")
    where, name = {"file": (storage(), "delete")}.get(step, (removal, f"{step}"))
    name = "_forget" if step == "forget" else name
    real, calls = getattr(where, name), []

    def killed(*args, **kwargs):
        calls.append(name)
        if len(calls) == dies_at:
            raise Killed
        return real(*args, **kwargs)

    monkeypatch.setattr(where, name, killed)
    with pytest.raises(Killed):
        Pruning(OFTEN, batch=1).run()
        raise Killed  # this step is not reached so often
    monkeypatch.undo()
    named = {
        artifact["file"]
        for render in RenderJob.objects.all()
        for artifact in (render.result or {}).get("artifacts", [])
    }
    there = {file for file in files_in(folder) if file.endswith(".png")}
    assert there <= named  # so somebody finds each file that is there

    run(Ages() if step == "file" and dies_at == 1 else OFTEN)
    assert removal.marked().count() == 0
    run()
    assert RenderJob.objects.filter(erased_at=None).count() == 0
    assert RenderJob.objects.count() == 3
    assert not [file for file in files_in(folder) if "." in file]


def test_a_run_is_stopped_between_batches_and_the_next_goes_on():
    for _ in range(5):
        over()
    words = iter([False, True])

    done = run(stop=lambda: next(words))

    assert (done.renders, done.stopped) == (4, True)
    assert run().renders == 1


def test_a_storage_that_is_away_is_not_asked_for_ever(monkeypatch):
    monkeypatch.setattr(pruning, "MOST_FAILED", 3)
    kept = {pictured().pk for _ in range(6)}
    asked = []

    def fail(name):
        asked.append(name)
        raise OSError

    monkeypatch.setattr(storage(), "delete", fail)
    done = run(batch=2)

    assert (done.failed, done.stopped, len(asked)) == (4, True, 4)
    assert left() == kept


def test_of_one_that_fails_it_is_told_once(monkeypatch):
    pictured(reference="order-1"), pictured(), over()

    monkeypatch.setattr(storage(), "delete", lambda name: 1 / 0)
    done = run()

    assert (done.failed, done.stopped, done.renders) == (2, False, 1)


def test_by_the_settings_a_run_finishes_also_what_somebody_has_begun(settings):
    render = pictured()
    over()
    settings.RENDERS = {**settings.RENDERS, "KEEP_FAILED_DAYS": 9}
    assert run_as_set(lambda: False).renders == 0
    settings.RENDERS = {**settings.RENDERS, "KEEP_FAILED_DAYS": 0}
    RenderJob.objects.filter(pk=render.pk).update(removing_at=timezone.now())

    assert run_as_set(lambda: False).media == 1
    settings.RENDERS = {**settings.RENDERS, "KEEP_COMPLETED_DAYS": 9}
    assert run_as_set(lambda: False).renders == 2
