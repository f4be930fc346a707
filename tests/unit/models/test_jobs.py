"""The tables: impossible rows stay out, keys stay what they are, queries use their indexes."""

import uuid
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction

from renders.models import RenderEvent, RenderJob
from renders.models.querysets import HELD
from renders.states import TERMINAL, Kind, Status
from tests.rows import NOW, a_render, as_new, stored

# --- Constraints --------------------------------------------------------------------------

IMPOSSIBLE = {
    "an unknown status": ("renders_status_known", a_render("lost")),
    "an empty status": ("renders_status_known", a_render("")),
    "submitting, not claimed": (
        "renders_submitting_is_claimed",
        a_render(Status.SUBMITTING, claimed_at=None),
    ),
    "submitted without a job": (
        "renders_submitted_has_job_id",
        a_render(Status.SUBMITTED, sume_job_id=""),
    ),
    "submitted at no time": (
        "renders_submitted_has_job_id",
        a_render(Status.SUBMITTED, submitted_at=None),
    ),
    "completed without a job": (
        "renders_submitted_has_job_id",
        a_render(Status.COMPLETED, sume_job_id=""),
    ),
    "submitted, never polled": (
        "renders_submitted_has_next_poll",
        a_render(Status.SUBMITTED, next_poll_at=None),
    ),
    **{
        f"{status}, not finished": (
            "renders_terminal_has_finished_at",
            a_render(status, finished_at=None),
        )
        for status in TERMINAL
    },
    **{
        f"{status}, yet finished": (
            "renders_terminal_has_finished_at",
            a_render(status, finished_at=NOW),
        )
        for status in Status
        if status not in TERMINAL
    },
    **{
        f"{status}, yet handled": ("renders_handled_is_terminal", a_render(status, handled_at=NOW))
        for status in Status
        if status not in TERMINAL
    },
    **{
        f"{status}, yet held": ("renders_held_is_pending", a_render(status, held_at=NOW))
        for status in Status
        if status != Status.PENDING
    },
}


@pytest.mark.django_db
@pytest.mark.parametrize(("constraint", "render"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_an_impossible_row_cannot_be_inserted(constraint, render):
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        RenderJob.objects.bulk_create([render])

    assert not RenderJob.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("constraint", "status", "changes"),
    [
        ("renders_status_known", Status.PENDING, {"status": "lost"}),
        ("renders_submitting_is_claimed", Status.PENDING, {"status": Status.SUBMITTING}),
        ("renders_submitted_has", Status.PENDING, {"status": Status.SUBMITTED}),
        ("renders_submitted_has_job_id", Status.SUBMITTED, {"sume_job_id": ""}),
        ("renders_submitted_has_next_poll", Status.SUBMITTED, {"next_poll_at": None}),
        ("renders_terminal_has_finished_at", Status.SUBMITTED, {"status": Status.COMPLETED}),
        ("renders_terminal_has_finished_at", Status.FAILED, {"status": Status.PENDING}),
        ("renders_handled_is_terminal", Status.SUBMITTED, {"handled_at": NOW}),
        ("renders_held_is_pending", Status.SUBMITTED, {"held_at": NOW}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_no_update_makes_a_row_impossible(constraint, status, changes):
    render = stored(status)

    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        RenderJob.objects.filter(pk=render.pk).update(**changes)


def test_every_check_of_the_table_is_tried():
    tried = {constraint for constraint, _ in IMPOSSIBLE.values()}
    checks = {constraint.name for constraint in RenderJob._meta.constraints}

    uniques = {"renders_reference_of_scope", "renders_idempotency_key_unique"}
    assert checks - uniques == tried


@pytest.mark.django_db
@pytest.mark.parametrize("status", Status)
def test_a_possible_row_can_be_stored_in_each_state(status):
    render = stored(status)

    assert RenderJob.objects.get(pk=render.pk).status == status
    assert render.is_terminal is (status in TERMINAL)


@pytest.mark.django_db
@pytest.mark.parametrize("status", [Status.FAILED, Status.CANCELED])
def test_a_render_that_was_never_sent_can_end(status):
    stored(status, sume_job_id="", submitted_at=None, claimed_at=None)

    assert RenderJob.objects.terminal().count() == 1


@pytest.mark.django_db
def test_a_reference_is_unique():
    stored(reference="order-7")

    with pytest.raises(IntegrityError), transaction.atomic():
        RenderJob.objects.bulk_create([a_render(reference="order-7")])


@pytest.mark.django_db
def test_many_renders_may_have_no_reference():
    RenderJob.objects.bulk_create([a_render(), a_render(), a_render(reference="order-7")])

    assert RenderJob.objects.filter(reference=None).count() == 2


# --- The idempotency key ------------------------------------------------------------------


def in_database(render) -> str:
    return RenderJob.objects.values_list("idempotency_key", flat=True).get(pk=render.pk)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "store",
    [
        pytest.param(lambda: stored(), id="save"),
        pytest.param(lambda: RenderJob.objects.create(prompt="a fox"), id="create"),
        pytest.param(lambda: RenderJob.objects.bulk_create([a_render()])[0], id="bulk_create"),
        pytest.param(
            lambda: RenderJob.objects.bulk_create([a_render()], ignore_conflicts=True)[0],
            id="bulk_create that ignores conflicts",
        ),
        pytest.param(
            lambda: RenderJob.objects.get_or_create(prompt="a fox")[0], id="get_or_create"
        ),
        pytest.param(
            lambda: RenderJob.objects.create(prompt="a fox", idempotency_key="mine"),
            id="a key of the caller's own",
        ),
    ],
)
def test_the_key_is_made_when_the_row_is_inserted(store):
    render = store()

    assert isinstance(render.pk, uuid.UUID)
    assert render.idempotency_key == f"render-job-{render.pk}"
    assert in_database(render) == f"render-job-{render.pk}"


@pytest.mark.django_db
@pytest.mark.parametrize(
    "load",
    [
        pytest.param(RenderJob.objects.all, id="whole"),
        pytest.param(lambda: RenderJob.objects.defer("idempotency_key"), id="deferred"),
        pytest.param(lambda: RenderJob.objects.only("prompt"), id="one field"),
    ],
)
def test_the_key_survives_later_saves(load):
    key = in_database(stored())
    render = load().get()

    render.prompt = "another fox"
    render.save()
    RenderJob.objects.bulk_update([render], ["prompt"])

    assert in_database(render) == key
    assert RenderJob.objects.get().prompt == "another fox"


@pytest.mark.django_db
def test_the_key_cannot_be_overwritten_by_a_save():
    render = stored()

    render.idempotency_key = "another"
    render.save()

    assert in_database(render) == f"render-job-{render.pk}"


@pytest.mark.django_db
def test_a_copy_has_a_key_of_its_own():
    render = stored()
    key = render.idempotency_key

    render.pk = uuid.uuid4()
    render._state.adding = True
    render.save()

    assert render.idempotency_key == f"render-job-{render.pk}" != key
    assert RenderJob.objects.count() == 2


# --- Words --------------------------------------------------------------------------------


def test_a_render_is_called_by_kind_id_and_state():
    render = a_render(Status.SUBMITTED, id=uuid.UUID("12345678" + 24 * "0"), kind=Kind.AVATAR_VIDEO)

    assert str(render) == "Avatar video 12345678 (submitted)"


@pytest.mark.parametrize(
    ("detail", "text"), [("Sume job job_1", "submitted: Sume job job_1"), ("", "submitted")]
)
def test_an_event_is_called_by_what_happened(detail, text):
    assert str(RenderEvent(what="submitted", detail=detail)) == text


@pytest.mark.parametrize("result", [None, {}, {"artifacts": []}], ids=repr)
def test_a_render_without_a_result_has_no_artifacts(result):
    assert a_render(result=result).artifacts == []


def test_a_render_gives_its_artifacts():
    artifact = {"url": "https://media.example/a.png", "type": "image", "content_type": "image/png"}

    assert a_render(result={"artifacts": [artifact]}).artifacts == [artifact]


@pytest.mark.django_db
def test_renders_are_listed_newest_first_and_events_oldest_first():
    old, new = stored(created_at=NOW), stored(created_at=NOW + timedelta(seconds=1))
    second = old.events.create(what="second", at=NOW + timedelta(seconds=1))
    first = old.events.create(what="first", at=NOW)

    assert list(RenderJob.objects.all()) == [new, old]
    assert list(old.events.all()) == [first, second]


@pytest.mark.django_db
def test_a_render_outlives_its_origin_and_its_person(django_user_model):
    user = django_user_model.objects.create(username="ada")
    origin = stored(Status.FAILED)
    render = stored(retry_of=origin, created_by=user)

    origin.delete()
    user.delete()

    render.refresh_from_db()
    assert render.retry_of is None
    assert render.created_by is None


@pytest.mark.django_db
def test_the_migrations_are_those_of_the_models():
    output = StringIO()

    call_command("makemigrations", "--check", "--dry-run", stdout=output)

    assert output.getvalue() == "No changes detected\n"


# --- Indexes ------------------------------------------------------------------------------

LATER = NOW + timedelta(days=1)


def of_default(renders):
    """A line, a sweep are those of one workspace."""
    return renders.filter(workspace="default")


QUERIES = {
    "the next to send": ("renders_line", lambda renders: of_default(renders).due(LATER)),
    "not sent": (
        "renders_line",
        lambda renders: of_default(renders).due(LATER).waiting_since(LATER),
    ),
    "given up": (
        "renders_unsure",  # and another one for the age
        lambda renders: of_default(renders).expired(NOW - timedelta(days=1), NOW),
    ),
    "to be canceled": ("renders_waiting", lambda renders: renders.withdrawn()),
    "a user's last tag": (
        "renders_waiting",
        lambda renders: (
            of_default(renders).in_line().filter(created_by=7, priority=0).order_by("-turn")
        ),
    ),
    "the tag that the line has come to": (
        "renders_claimed",
        lambda renders: (
            of_default(renders).filter(priority=0, claimed_at__isnull=False).order_by("-turn")
        ),
    ),
    "held": ("renders_held", lambda renders: renders.filter(HELD)),
    "never at Sume, not finished": (
        "renders_to_finish",
        lambda renders: renders.unfinished_unsent(LATER).not_swept_since(LATER),
    ),
    "maybe at Sume": ("renders_unsure", lambda renders: renders.unsure()),
    "stuck in sending": (
        "renders_submitting",
        lambda renders: renders.stuck_submitting(LATER, 600),
    ),
    "not polled": (
        "renders_to_poll",
        lambda renders: renders.late(LATER, 45).not_swept_since(LATER),
    ),
    "not finished": (
        "renders_to_finish",
        lambda renders: renders.unhandled_late(LATER, 45).not_swept_since(LATER),
    ),
    "media not stored": (
        "renders_media_due",
        lambda renders: renders.media_due(LATER, ["default"]).not_swept_since(LATER),
    ),
}


@pytest.mark.django_db
@pytest.mark.parametrize(("index", "query"), QUERIES.values(), ids=QUERIES)
def test_each_query_of_the_sweep_uses_its_index(index, query):
    if connection.vendor != "postgresql":
        pytest.skip("Partial indexes with parameters are PostgreSQL's.")
    as_new()
    RenderJob.objects.bulk_create(
        [
            *(a_render(Status.COMPLETED, handled_at=NOW, created_at=NOW) for _ in range(2_000)),
            *(a_render(status, created_at=NOW) for status in Status for _ in range(3)),
            a_render(created_at=NOW, held_at=NOW),
        ]
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE renders_renderjob")

    # As `pks` asks for them.
    plan = query(RenderJob.objects).values_list("pk", flat=True)[:500].explain()

    assert index in plan
    assert "Seq Scan" not in plan


@pytest.mark.django_db
def test_the_next_to_send_need_no_sorting():
    if connection.vendor != "postgresql":
        pytest.skip("Plans are PostgreSQL's.")
    as_new()
    RenderJob.objects.bulk_create([a_render(created_at=NOW) for _ in range(2_000)])
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE renders_renderjob")

    plan = of_default(RenderJob.objects).due(LATER).values_list("pk", flat=True)[:20].explain()

    assert "renders_line" in plan
    assert "Sort" not in plan
