"""What other code calls: create, cancel, retry."""

import logging
import threading

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from renders import services, transitions
from renders.exceptions import InvalidRender
from renders.lifecycle.steps import Step
from renders.models import RenderEvent, RenderJob
from renders.services import references
from renders.states import Kind, Status
from tests.rows import NOW, stored


@pytest.fixture
def committed(db, django_capture_on_commit_callbacks):
    """A block whose end is a commit."""
    return lambda: django_capture_on_commit_callbacks(execute=True)


@pytest.fixture
def ada(django_user_model, db):
    return django_user_model.objects.create(username="ada")


# --- Create -------------------------------------------------------------------------------


def test_a_render_is_stored_as_asked_for(ada, followed, committed):
    with committed():
        render = services.create_render(
            " a fox ",
            kind="video",
            model="sume/clip",
            params={"seed": 7},
            user=ada,
            priority=3,
            reference="order-7",
        )

    render = RenderJob.objects.get(pk=render.pk)
    assert (render.prompt, render.kind, render.model) == ("a fox", Kind.VIDEO, "sume/clip")
    assert (render.params, render.priority, render.reference) == ({"seed": 7}, 3, "order-7")
    assert (render.created_by, render.retry_of, render.status) == (ada, None, Status.PENDING)
    assert render.idempotency_key == f"render-job-{render.pk}"
    assert [event.what for event in render.events.all()] == ["created"]
    assert followed == [Step("submit", render.pk)]


def test_nothing_is_sent_before_the_commit(followed, committed):
    with committed():
        services.create_render("a fox")
        assert followed == []

    assert len(followed) == 1


def test_a_transaction_that_is_rolled_back_sends_nothing(followed, committed):
    with committed():
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            services.create_render("a fox")
            raise ZeroDivisionError
        kept = services.create_render("a hen")

    assert followed == [Step("submit", kept.pk)]
    assert list(RenderJob.objects.all()) == [kept]


def test_many_renders_are_stored_in_order(ada, followed, committed):
    with committed():
        renders = services.create_renders(
            [{"prompt": f"fox {number}"} for number in range(1_200)], user=ada
        )

    assert [render.prompt for render in renders] == [f"fox {number}" for number in range(1_200)]
    assert RenderJob.objects.filter(created_by=ada).count() == 1_200
    assert RenderEvent.objects.count() == 1_200
    # A few messages set the line going, since each claim starts the next.
    assert followed == [Step("submit", render.pk) for render in renders[: services.STARTERS]]
    assert len({render.idempotency_key for render in renders}) == 1_200


@pytest.mark.parametrize("named", [False, True], ids=["unnamed", "named"])
@pytest.mark.parametrize("count", [1_000, pytest.param(10_000, marks=pytest.mark.thorough)])
def test_many_renders_take_few_statements_and_messages(
    followed, committed, count, named, django_assert_max_num_queries
):
    most = 11 + count // 500
    if connection.features.max_query_params == 999:
        most *= 40  # Django 5.2 on SQLite inserts some 30 rows at a time
    requests = [
        {"prompt": "a fox", "reference": f"fox-{number}" if named else None}
        for number in range(count)
    ]
    references.installation_id()  # another test may have flushed it
    with committed(), django_assert_max_num_queries(most):
        renders = services.create_renders(requests)

    assert RenderJob.objects.count() == RenderEvent.objects.count() == len(renders) == count
    assert len(followed) == services.STARTERS


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        ({"prompt": ""}, "prompt"),
        ({}, "prompt"),
        ({"prompt": "a fox", "kind": "hologram"}, "kind"),
        ({"prompt": "a fox", "params": [1]}, "params"),
        ({"prompt": "a fox", "size": "1024"}, "request"),
        ({"prompt": "a fox", "status": "completed"}, "request"),
        ({"prompt": "a fox", "id": "1"}, "request"),
        ({"prompt": "a fox", 7: "1", None: 1, "\ud800": 1}, "request"),
    ],
    ids=repr,
)
def test_one_bad_request_stores_none(followed, committed, bad, field):
    with committed(), pytest.raises(InvalidRender) as caught:
        services.create_renders([{"prompt": "a fox"}, bad, {"prompt": "a hen"}])

    assert caught.value.field == field
    str(caught.value).encode()  # it can be shown
    assert not RenderJob.objects.exists()
    assert followed == []


@pytest.mark.parametrize("bad", [None, 7, "a fox", ["a fox"]], ids=repr)
def test_a_request_that_is_no_object_is_refused(followed, db, bad):
    with pytest.raises(InvalidRender):
        services.create_renders([bad])


def test_no_renders_are_no_fault(followed, committed):
    with committed():
        assert services.create_renders([]) == []

    assert followed == []


def test_each_request_may_name_its_own_user(ada, django_user_model, followed):
    bob = django_user_model.objects.create(username="bob")

    renders = services.create_renders(
        [{"prompt": "a fox"}, {"prompt": "a hen", "user": bob}], user=ada
    )

    assert [render.created_by for render in renders] == [ada, bob]


def test_the_request_of_the_caller_is_left_alone(followed, db):
    request = {"prompt": "a fox", "params": {"seed": 7}, "user": None}

    services.create_renders([request])

    assert request == {"prompt": "a fox", "params": {"seed": 7}, "user": None}


# --- Reference ----------------------------------------------------------------------------


def test_the_same_reference_gives_the_same_render(followed, committed):
    with committed():
        first = services.create_render("a fox", reference="order-7")
    with committed():
        again = services.create_render("a fox", reference=" order-7 ")

    assert again == first
    assert RenderJob.objects.count() == RenderEvent.objects.count() == 1
    assert followed == [Step("submit", first.pk)]


def test_the_same_reference_within_one_call_gives_one_render(followed, committed):
    requests = [
        {"prompt": "fox 1", "reference": "order-7"},
        {"prompt": "fox 2"},
        {"prompt": "fox 1", "reference": "order-7"},
        {"prompt": "fox 4", "reference": "order-8"},
    ]

    with committed():
        renders = services.create_renders(requests)

    assert [render.prompt for render in renders] == ["fox 1", "fox 2", "fox 1", "fox 4"]
    assert renders[0] == renders[2]
    assert RenderJob.objects.count() == RenderEvent.objects.count() == 3
    assert sorted(step.render_id for step in followed) == sorted({r.pk for r in renders})


def test_known_and_new_references_can_be_mixed(followed, committed):
    known = stored(Status.COMPLETED, reference="order-7", prompt="a fox")

    with committed():
        old, new = services.create_renders(
            [
                {"prompt": "a fox", "reference": "order-7"},
                {"prompt": "a fox", "reference": "order-8"},
            ]
        )

    assert old == known
    assert old.status == Status.COMPLETED
    assert followed == [Step("submit", new.pk)]


def test_references_are_told_apart_exactly(followed, db):
    references = ["order", "Order", "orderé", "ordere\u0301", "order%", "order_"]

    services.create_renders([{"prompt": "a fox", "reference": name} for name in references])

    assert RenderJob.objects.count() == len(references)


def test_empty_references_are_no_reference(followed, db):
    services.create_renders([{"prompt": "a fox", "reference": name} for name in ("", " ", None)])

    assert RenderJob.objects.filter(reference=None).count() == 3


def test_callers_take_references_in_one_order_so_none_waits_for_another(followed, db):
    names = [f"order-{number}" for number in (3, 1, 2)]

    with CaptureQueriesContext(connection) as queries:
        renders = services.create_renders(
            [{"prompt": "a fox", "reference": name} for name in names]
        )

    [insert] = [query["sql"] for query in queries if 'INTO "renders_renderjob" (' in query["sql"]]
    assert [render.reference for render in renders] == names
    assert sorted(names, key=insert.index) == sorted(names)


@pytest.mark.django_db(transaction=True)
def test_callers_at_the_same_time_get_the_same_render(followed):
    if connection.vendor == "sqlite":
        pytest.skip("The test database is in memory and has one writer.")
    start = threading.Barrier(6)
    references = [f"order-{number:03}" for number in range(200)]
    found, errors = [], []

    def create(number):
        try:
            start.wait(5)
            # Every other caller names them in the opposite order.
            names = references if number % 2 else references[::-1]
            renders = services.create_renders(
                [{"prompt": "a fox", "reference": name} for name in names]
            )
            found.append({render.reference: render.pk for render in renders})
        except Exception as error:  # noqa: BLE001 (shown by the assertion)
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=create, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert errors == []
    assert len(found) == 6
    assert all(renders == found[0] for renders in found)
    assert RenderJob.objects.count() == RenderEvent.objects.count() == 200
    assert 1 <= len(followed) <= 6 * services.STARTERS


# --- Cancel -------------------------------------------------------------------------------


def test_a_render_that_was_never_sent_is_canceled_at_once(followed, committed):
    render = stored()

    with committed():
        assert services.cancel_render(render) is True

    assert render.status == Status.CANCELED
    assert followed == [Step("finish", render.pk)]


@pytest.mark.parametrize(
    ("status", "fields"),
    [
        pytest.param(Status.PENDING, {"outcome_unknown_at": NOW}, id="pending, may be at Sume"),
        pytest.param(Status.SUBMITTING, {}, id="submitting"),
        pytest.param(Status.SUBMITTED, {}, id="submitted"),
    ],
)
def test_a_render_that_sume_may_hold_is_asked_to_be_canceled(followed, committed, status, fields):
    render = stored(status, **fields)

    with committed():
        assert services.cancel_render(render) is True
        assert services.cancel_render(render) is False

    assert render.status == status
    assert render.cancel_requested_at is not None
    assert followed == [Step("cancel", render.pk)]


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.FAILED, Status.CANCELED])
def test_a_render_that_has_ended_is_not_canceled(followed, committed, status):
    render = stored(status)

    with committed():
        assert services.cancel_render(render) is False

    assert (render.status, render.cancel_requested_at) == (status, None)
    assert followed == []


def test_a_cancel_looks_at_the_database_and_not_at_an_old_copy(followed, committed):
    render = stored()
    transitions.claim(render.pk, NOW, "default")

    with committed():
        services.cancel_render(render)

    assert render.status == Status.SUBMITTING
    assert followed == [Step("cancel", render.pk)]


# --- Retry --------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [Status.FAILED, Status.CANCELED])
def test_a_retry_is_a_new_render_with_a_new_key(ada, followed, committed, status):
    origin = stored(
        status,
        kind=Kind.VIDEO,
        model="sume/clip",
        params={"seed": 7, "strength": 0.5},
        priority=3,
        reference="order-7",
        created_by=ada,
        request_path="/v1/images",
        request_body="{}",
        error_code="bad",
        result={"artifacts": []},
        cost_usd_micros=5,
    )

    with committed():
        render = services.retry_render(origin)

    render = RenderJob.objects.get(pk=render.pk)
    assert render.retry_of == origin
    assert render.idempotency_key == f"render-job-{render.pk}" != origin.idempotency_key
    assert (render.prompt, render.kind, render.model) == ("a fox", Kind.VIDEO, "sume/clip")
    assert (render.params, render.priority, render.created_by) == (origin.params, 3, ada)
    # A reference names one render; the rest is not known yet.
    assert (render.reference, render.status, render.sume_job_id) == (None, Status.PENDING, "")
    assert (render.request_body, render.error_code, render.result) == ("", "", None)
    assert followed == [Step("submit", render.pk)]
    origin.refresh_from_db()
    assert origin.status == status


def test_a_retry_stays_with_the_owner_whoever_asks_for_it(ada, django_user_model, followed):
    bob = django_user_model.objects.create(username="bob")

    assert services.retry_render(stored(Status.FAILED, created_by=ada), user=bob).created_by == ada
    assert services.retry_render(stored(Status.FAILED), user=bob).created_by == bob


@pytest.mark.parametrize(
    "status", [Status.PENDING, Status.SUBMITTING, Status.SUBMITTED, Status.COMPLETED]
)
def test_only_a_failed_or_canceled_render_is_retried(followed, committed, status):
    render = stored(status)

    with committed(), pytest.raises(InvalidRender, match=str(status)):
        services.retry_render(render)

    assert RenderJob.objects.count() == 1
    assert followed == []


def test_what_was_accepted_can_be_retried(followed, db):
    params = {"a": 2**63 - 1, "b": 1e15, "c": -1e-300, "d": [0.1, {"e": None}], "f": "🦊"}
    render = services.create_render("a fox", params=params)
    transitions.claim(render.pk, NOW, "default")
    claimed_at = RenderJob.objects.get().claimed_at
    transitions.refuse(render.pk, claimed_at, NOW, code="bad", message="No.")

    again = services.retry_render(RenderJob.objects.get())

    assert RenderJob.objects.get(pk=again.pk).params == params


# --- The broker ---------------------------------------------------------------------------


def test_with_the_broker_down_the_render_is_stored_and_a_warning_logged(
    committed, no_broker, caplog
):
    with caplog.at_level(logging.WARNING), committed():
        render = services.create_render("a fox")

    assert RenderJob.objects.get() == render
    [record] = [record for record in caplog.records if record.name == "renders.schedulers.dispatch"]
    assert record.levelname == "WARNING"
    assert record.getMessage() == (
        f"Broker unreachable (OperationalError): submit of render {render.pk} waits for the sweep."
    )


def test_with_the_broker_down_many_renders_cost_one_attempt(committed, no_broker, caplog):
    with caplog.at_level(logging.WARNING), committed():
        services.create_renders([{"prompt": "a fox"} for _ in range(100)])

    assert RenderJob.objects.count() == 100
    assert (
        len([record for record in caplog.records if record.name == "renders.schedulers.dispatch"])
        == 1
    )


@pytest.mark.django_db(transaction=True)
def test_a_scheduler_that_raises_does_not_undo_the_render(monkeypatch, caplog):
    def fail(steps):
        raise RuntimeError("no scheduler")

    monkeypatch.setattr("renders.schedulers.dispatch.follow", fail)

    with caplog.at_level(logging.ERROR):
        render = services.create_render("a fox")

    assert RenderJob.objects.get() == render
    assert "no scheduler" in caplog.text
