"""A person's data goes, the lines of the bill stay, and nothing is billed twice for it."""

import pytest
from django.utils import timezone
from django_celery_results.models import TaskResult

from renders import services, transitions
from renders.exceptions import InvalidRender, KeyReused
from renders.housekeeping import erasing
from renders.housekeeping.policy import Ages
from renders.housekeeping.pruning import Pruning
from renders.media.storage import storage
from renders.models import ApiRequest, ApiToken, Draft, RenderEvent, RenderJob
from renders.services import drafts
from renders.services.import_files import Layout
from renders.services.references import create_once, door
from renders.states import Status
from tests.rows import files_in, over, pictured, stored

pytestmark = pytest.mark.django_db
SECRET = "a fox of Ann's"


@pytest.fixture(autouse=True)
def folder(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    return tmp_path


def hers(ann, **fields):
    return pictured(created_by=ann, prompt=SECRET, params={"say": SECRET}, **fields)


def test_all_that_is_hers_is_erased_and_nothing_of_others(ann, bob, folder):
    mine = hers(ann, reference=SECRET, cost_usd_micros=7)
    over(Status.FAILED, created_by=ann, prompt=SECRET, error_message=SECRET)
    RenderEvent.objects.create(render=mine, what="finish postponed", detail=SECRET)
    theirs = pictured(created_by=bob, prompt="a hen", reference="order-2")
    for user in (ann, bob):
        Draft.objects.create(token=user.username, created_by=user, text=SECRET, common={})
        ApiToken.issue(user=user, name="shop")
        ApiRequest.objects.create(
            user=user, key=SECRET, body_hash="0" * 64, render_ids=[str(mine.pk)]
        )
    for render in (mine, theirs):
        TaskResult.objects.create(
            task_id=render.pk,
            task_name="renders.tasks.finish_render",
            task_args=f"('{render.pk}',)",
        )

    told = erasing.foresee(ann)
    counted = []
    done = erasing.erase(ann, told=counted.append)

    assert done == told
    assert (done.renders, done.files, done.bytes, sum(counted)) == (2, 2, 5, 2)
    assert (done.drafts, done.tokens, done.keys, done.task_results) == (1, 1, 1, 1)
    left = [RenderJob.objects.filter(created_by=ann), RenderEvent.objects, ApiRequest.objects]
    left += [Draft.objects, TaskResult.objects]
    rows = [list(table.values()) for table in left]
    assert str(rows).count(SECRET) == 2  # Bob's key and draft
    assert not list(folder.rglob(f"*{mine.pk}*"))
    mine.refresh_from_db()
    assert (mine.cost_usd_micros, mine.created_by, bool(mine.erased_at)) == (7, ann, True)
    assert ApiToken.objects.get(user=bob).revoked_at is None
    theirs.refresh_from_db()
    assert theirs.prompt == "a hen" and theirs.artifacts and theirs.reference == "order-2"
    assert erasing.erase(ann) == erasing.foresee(ann) == erasing.Erased()


@pytest.mark.parametrize(
    "open_one",
    [
        lambda ann: stored(Status.PENDING, created_by=ann),
        lambda ann: stored(Status.SUBMITTING, created_by=ann, request_body="{}"),
        lambda ann: stored(Status.SUBMITTED, created_by=ann),
        lambda ann: stored(Status.COMPLETED, created_by=ann),
    ],
)
def test_while_one_is_not_over_nothing_is_erased(ann, open_one):
    hers(ann), open_one(ann)
    ApiToken.issue(user=ann, name="shop")
    tables = (RenderJob, RenderEvent, ApiToken)
    before = [list(table.objects.order_by("pk").values()) for table in tables]

    with pytest.raises(erasing.NotOver, match="1 are not over"):
        erasing.erase(ann)

    assert [list(table.objects.order_by("pk").values()) for table in tables] == before


@pytest.mark.parametrize("pruned_before", [False, True])
def test_an_erased_reference_makes_no_second_render(ann, bob, followed, pruned_before):
    render = hers(ann, reference="order-1")
    if pruned_before:
        Pruning(Ages(completed=30), batch=9).run()
    erasing.erase(ann)
    events = RenderEvent.objects.count()
    assert RenderJob.objects.get().reference != "order-1"

    for user in (ann, bob):
        [one] = services.create_renders([{"prompt": SECRET, "reference": "order-1"}], user=user)
        assert one.pk == render.pk and one.erased_at
    assert RenderJob.objects.count() == 1
    assert RenderEvent.objects.count() == events


def test_an_erased_reference_is_taken_for_a_list_of_many(ann):
    hers(ann, reference="order-1", reference_scope=door(ann))
    erasing.erase(ann)

    sheet = drafts.check("prompt,reference\na fox,order-1\na hen,order-2\n", Layout.TABLE, {}, ann)

    assert [fault.line for fault in sheet.faults] == [2]


def test_nobody_takes_the_name_that_an_erasure_needs(ann):
    with pytest.raises(InvalidRender, match="must not begin with erased:"):
        services.create_render("a fox", reference="erased:00")
    with pytest.raises(KeyReused):
        create_once([{"prompt": "a fox"}], user=ann, key="erased:00", body={})


def test_an_erased_key_makes_no_second_render(ann):
    request = {"prompt": SECRET}
    create_once([request], user=ann, key="order-1", body=request)
    now = timezone.now()
    transitions.cancel_unsent(RenderJob.objects.get().pk, now)
    transitions.mark_handled(RenderJob.objects.get().pk, now)
    erasing.erase(ann)

    with pytest.raises(KeyReused):
        create_once([request], user=ann, key="order-1", body=request)

    assert RenderJob.objects.count() == ApiRequest.objects.count() == 1
    assert create_once([request], user=ann, key="order-2", body=request).renders


def test_an_erased_render_is_not_retried(ann):
    render = over(Status.FAILED, created_by=ann)
    erasing.erase(ann)

    with pytest.raises(InvalidRender, match="It was erased"):
        services.retry_render(render)
    assert not RenderJob.objects.unretried().exists()


def test_a_render_that_was_deleted_meanwhile_is_not_retried():
    render = over(Status.FAILED)
    RenderJob.objects.all().delete()

    with pytest.raises(InvalidRender, match="deleted meanwhile"):
        services.retry_render(render)


def test_what_a_deleted_user_has_left_is_nobodys_and_can_be_erased(ann, bob):
    render, other = hers(ann), pictured(created_by=bob)
    ann.delete()

    assert erasing.foresee(None).renders == erasing.erase(None).renders == 1

    render.refresh_from_db(), other.refresh_from_db()
    assert render.prompt == "" and other.prompt


def test_whoever_is_killed_goes_on_with_the_next_call(ann, folder, monkeypatch):
    hers(ann), hers(ann)
    delete, calls = storage().delete, []

    def killed(name):
        calls.append(name)
        if len(calls) == 2:
            raise KeyboardInterrupt
        delete(name)

    monkeypatch.setattr(storage(), "delete", killed)
    with pytest.raises(KeyboardInterrupt):
        erasing.erase(ann)
    monkeypatch.undo()

    assert erasing.erase(ann).renders == 2
    assert not [name for name in files_in(folder) if "." in name]


def test_what_the_storage_keeps_is_told_and_left(ann, monkeypatch):
    hers(ann), over(created_by=ann, prompt=SECRET)
    monkeypatch.setattr(storage(), "delete", lambda name: 1 / 0)

    done = erasing.erase(ann)

    assert (done.renders, done.failed, done.rest) == (1, 1, 1)
    monkeypatch.undo()
    assert erasing.erase(ann).renders == 1


def test_it_stops_between_batches(ann, monkeypatch):
    monkeypatch.setattr(erasing, "BATCH", 2)
    for _ in range(3):
        over(created_by=ann)
    words = iter([False, True])

    done = erasing.erase(ann, stop=lambda: next(words))

    assert (done.renders, done.rest) == (2, 1)


def test_later_the_lines_of_the_bill_can_be_deleted_too(ann):
    hers(ann), hers(ann, reference="order-1")
    erasing.erase(ann)

    assert Pruning(Ages(completed=30), batch=9).run().renders == 1
    assert RenderJob.objects.get().reference.startswith("erased:")
