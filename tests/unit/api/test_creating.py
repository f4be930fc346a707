"""POST: one or many, all or none, and once for each key and each reference."""

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from renders.models import ApiRequest, RenderJob
from renders.services import STARTERS, create_render
from tests.unit.api.support import failed, problem

pytestmark = pytest.mark.django_db
BOAT = {"prompt": "A boat"}


def ids(response):
    assert response.status_code == 202, response.content
    body = response.json()
    return [row["id"] for row in body.get("renders", [body])]


def test_many_are_made_in_their_order(ann):
    prompts = [f"Boat {number}" for number in range(5)]
    response = ann.post(body={"renders": [{"prompt": prompt} for prompt in prompts]})

    assert [row["prompt"] for row in response.json()["renders"]] == prompts
    assert RenderJob.objects.filter(created_by=ann.user).count() == 5
    assert "Location" not in response.headers


@pytest.mark.slow
def test_ten_thousand_are_made_at_once_by_few_statements(
    ann, followed, django_capture_on_commit_callbacks, settings
):
    settings.RENDERS = {**settings.RENDERS, "MAX_WAITING_PER_USER": 10_000}
    with (
        django_capture_on_commit_callbacks(execute=True),
        CaptureQueriesContext(connection) as queries,
    ):
        response = ann.post(body={"renders": [BOAT] * 10_000}, idempotency_key="many")
    assert len(set(ids(response))) == RenderJob.objects.count() == 10_000
    assert len(followed) == STARTERS
    # Django 5.2 on SQLite inserts some 30 rows at a time.
    assert len(queries) <= (3_000 if connection.features.max_query_params == 999 else 40)


def test_more_than_ten_thousand_are_refused(ann):
    errors = problem(ann.post(body={"renders": [BOAT] * 10_001}), 422)["errors"]
    assert [error["field"] for error in errors] == ["renders"]
    assert not RenderJob.objects.exists()


def test_one_bad_one_stops_all_and_is_named(ann):
    renders = [BOAT, BOAT, {"kind": "song"}, {"prompt": "", "colour": 1}]
    errors = problem(ann.post(body={"renders": renders}), 422)["errors"]

    assert {error["field"] for error in errors} == {
        "renders[2].prompt",
        "renders[2].kind",
        "renders[3].prompt",
        "renders[3].colour",
    }
    assert not RenderJob.objects.exists()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"renders": []}, "renders"),
        ({"renders": {}}, "renders"),
        ({"renders": None}, "renders"),
        ({"renders": [BOAT, "A boat"]}, "renders[1]"),
        ({"renders": [BOAT], "prompt": "A boat"}, "prompt"),
        ({"renders": [{"renders": [BOAT], "prompt": "x"}]}, "renders[0].renders"),
    ],
)
def test_a_list_of_another_form_is_refused(ann, body, field):
    errors = problem(ann.post(body=body), 422)["errors"]

    assert [error["field"] for error in errors] == [field]
    assert not RenderJob.objects.exists()


def test_no_more_errors_are_told_than_anybody_reads(ann):
    body = {"renders": [{"prompt": 1}] * 1000}

    assert len(problem(ann.post(body=body), 422)["errors"]) == 100


def test_a_whole_number_may_be_written_with_a_point(ann):
    assert ann.post(body='{"prompt": "A boat", "priority": -3.0}').json()["priority"] == -3


# --- Idempotency-Key ------------------------------------------------------------------------


@pytest.mark.parametrize("body", [BOAT, {"renders": [BOAT, {"prompt": "A fox"}]}])
def test_the_same_key_gives_the_same_renders(ann, body):
    first = ann.post(body=body, Idempotency_Key="one")
    again = ann.post(body=body, Idempotency_Key="one")

    assert first.json() == again.json()
    assert first.headers.get("Location") == again.headers.get("Location")
    assert again.headers["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first.headers
    assert RenderJob.objects.count() == len(ids(first))


def test_a_replay_shows_how_the_render_stands_now(ann):
    [pk] = ids(ann.post(body=BOAT, Idempotency_Key="one"))
    ann.post(f"{pk}/cancel/")

    assert ann.post(body=BOAT, Idempotency_Key="one").json()["status"] == "canceled"


def test_what_means_the_same_is_the_same_body(ann):
    first = ann.post(body='{"prompt": "x", "params": {"a": 1.0, "b": 2}}', Idempotency_Key="one")
    again = ann.post(body='{"params":{"b":2,"a":1},"prompt":"\\u0078"}', Idempotency_Key="one")

    assert ids(first) == ids(again)


@pytest.mark.parametrize(
    "body", [{"prompt": "A fox"}, {**BOAT, "kind": "image"}, {"renders": [BOAT]}]
)
def test_the_same_key_with_another_body_is_refused(ann, body):
    ann.post(body=BOAT, Idempotency_Key="one")

    problem(ann.post(body=body, Idempotency_Key="one"), 409, "idempotency_key_reused")
    assert RenderJob.objects.count() == 1


def test_true_is_not_one(ann):
    ann.post(body={**BOAT, "params": {"a": True}}, Idempotency_Key="one")

    problem(ann.post(body={**BOAT, "params": {"a": 1}}, Idempotency_Key="one"), 409)


def test_a_key_belongs_to_its_user(ann, bob):
    assert ids(ann.post(body=BOAT, Idempotency_Key="one")) != ids(
        bob.post(body=BOAT, Idempotency_Key="one")
    )


def test_a_key_whose_request_was_refused_is_free(ann):
    ann.post(body={"prompt": "A fox", "reference": "order-1"})
    problem(ann.post(body={}, Idempotency_Key="one"), 422)
    problem(ann.post(body={**BOAT, "reference": "order-1"}, Idempotency_Key="one"), 409)
    assert not ApiRequest.objects.exists()

    assert ann.post(body=BOAT, Idempotency_Key="one").status_code == 202


@pytest.mark.parametrize(
    "key",
    ["", "x" * 256, "ä", "a\tb", "a\x7fb"],
    ids=["empty", "long", "not ASCII", "tab", "delete"],
)
def test_a_key_of_another_form_is_refused(ann, key):
    problem(ann.post(body=BOAT, Idempotency_Key=key), 400, "bad_idempotency_key")
    assert not RenderJob.objects.exists()


@pytest.mark.parametrize("key", ["x" * 255, "~", "a b", '"quoted"'])
def test_any_printable_text_is_a_key(ann, key):
    assert ann.post(body=BOAT, Idempotency_Key=key).status_code == 202


def test_what_a_key_made_may_be_gone(ann):
    ann.post(body=BOAT, Idempotency_Key="one")
    RenderJob.objects.all().delete()

    problem(ann.post(body=BOAT, Idempotency_Key="one"), 409)


# --- reference ------------------------------------------------------------------------------


def test_the_same_reference_and_request_give_the_same_render(ann):
    body = {**BOAT, "params": {"a": 1.0, "b": [1e2]}, "reference": "order-1"}

    assert ids(ann.post(body=body)) == ids(ann.post(body=body))
    # What is filled in for a field that is missing is the same request; the place in line is none.
    assert ids(ann.post(body=body)) == ids(ann.post(body={**body, "priority": 1}))


@pytest.mark.parametrize(
    "change", [{"prompt": "A fox"}, {"kind": "video"}, {"params": {"a": 1}}, {"model": "m"}]
)
def test_a_reference_of_another_request_is_refused(ann, change):
    body = {**BOAT, "reference": "order-1", "params": {"a": True}}
    ann.post(body=body)

    errors = problem(ann.post(body={**body, **change}), 409, "reference_taken")["errors"]
    assert [error["field"] for error in errors] == ["reference"]


def test_a_taken_reference_stops_all_of_many(ann):
    ann.post(body={"prompt": "A fox", "reference": "order-1"})
    body = {"renders": [BOAT, {**BOAT, "reference": "order-1"}]}

    errors = problem(ann.post(body=body), 409, "reference_taken")["errors"]
    assert [error["field"] for error in errors] == ["renders[1].reference"]
    assert RenderJob.objects.count() == 1


def test_a_reference_of_others_is_free_to_take_so_nobody_learns_of_it(ann, sam):
    theirs = create_render("A boat", user=ann.user, reference="order-1")
    [made] = ids(ann.post(body={**BOAT, "reference": "order-1"}))

    assert ids(sam.post(body={**BOAT, "reference": "order-1"})) not in ([made], [str(theirs.pk)])
    assert RenderJob.objects.filter(reference="order-1").count() == 3


def test_one_reference_twice_in_one_request(ann):
    twice = {**BOAT, "reference": "order-1"}
    first, second = ids(ann.post(body={"renders": [twice, twice]}))

    assert first == second
    assert RenderJob.objects.get().created_at < timezone.now()
    problem(ann.post(body={"renders": [{**twice, "prompt": "A fox"}, twice]}), 409)


# --- limits ---------------------------------------------------------------------------------


@pytest.fixture
def two_may_wait(settings):
    settings.RENDERS = {**settings.RENDERS, "MAX_WAITING_PER_USER": 2}


def test_a_priority_above_0_is_refused_at_its_field(ann):
    [error] = problem(ann.post(body={**BOAT, "priority": 1}), 422)["errors"]
    assert error["field"] == "priority"
    assert error["message"].startswith("A priority above 0 needs a permission.")

    [error] = problem(ann.post(body={"renders": [BOAT, {**BOAT, "priority": 1}]}), 422)["errors"]
    assert error["field"] == "renders[1].priority"
    assert not RenderJob.objects.exists()


def test_with_the_permission_or_as_staff_a_priority_is_taken(ann, sam):
    ann.user.user_permissions.add(Permission.objects.get(codename="prioritize_renderjob"))

    for caller in (ann, sam):
        assert caller.post(body={**BOAT, "priority": 1}).json()["priority"] == 1


def test_what_does_not_fit_now_is_refused_and_says_when_to_come_again(ann, two_may_wait):
    ann.post(body=BOAT)
    response = ann.post(body={"renders": [BOAT, BOAT]}, idempotency_key="many")

    body = problem(response, 429, "too_many_waiting")
    assert body["detail"] == (
        "Nothing was made. You have 1 render waiting, and at most 2 may wait: 2 more do not fit. "
        "Wait until some have been sent, or cancel some."
    )
    assert "errors" not in body
    assert response.headers["Retry-After"] == "60"
    assert RenderJob.objects.count() == 1
    # Once there is space, the same key is as good as new.
    ann.post(f"{RenderJob.objects.get().pk}/cancel/")
    again = ann.post(body={"renders": [BOAT, BOAT]}, idempotency_key="many")
    assert len(ids(again)) == 2
    assert "Idempotency-Replayed" not in again.headers


def test_a_list_that_can_never_fit_is_refused_for_good(ann, two_may_wait):
    response = ann.post(body={"renders": [BOAT] * 3})

    [error] = problem(response, 422)["errors"]
    assert error["field"] == "renders"
    assert error["message"].startswith("These are 3 new renders, and you may have at most 2")
    assert "Retry-After" not in response.headers
    assert not RenderJob.objects.exists()


def test_a_repeated_request_is_answered_when_the_line_is_full(ann, two_may_wait):
    named = {**BOAT, "reference": "order-1"}
    by_key = ids(ann.post(body=BOAT, idempotency_key="one"))
    by_reference = ids(ann.post(body=named))

    problem(ann.post(body=BOAT), 429)
    again = ann.post(body=BOAT, idempotency_key="one")
    assert ids(again) == by_key
    assert again.headers["Idempotency-Replayed"] == "true"
    assert ids(ann.post(body=named)) == by_reference


def test_a_retry_is_refused_when_the_line_is_full(ann, two_may_wait):
    row = failed(ann.user)
    for _ in range(2):
        ann.post(body=BOAT)

    response = ann.post(f"{row.pk}/retry/")
    problem(response, 429, "too_many_waiting")
    assert response.headers["Retry-After"] == "60"
    assert not row.retries.exists()


def test_staff_make_as_many_as_they_like(sam, two_may_wait):
    assert len(ids(sam.post(body={"renders": [BOAT] * 5}))) == 5


def test_twelve_renders_of_a_model_for_five_dollars_do_not_pass_a_budget_of_one(ann, settings):
    settings.RENDERS = {**settings.RENDERS, "BUDGET_USD": 1, "PRICES": "image=0.09"}
    dear = {"renders": [{**BOAT, "model": "dear"}] * 12}
    for prices, words in {
        "image=0.09": "has no price",
        "image=0.09,image:dear=5": "about $5.00, more than the month's whole budget: $1.00",
    }.items():
        settings.RENDERS = {**settings.RENDERS, "PRICES": prices}
        [error] = problem(ann.post(body=dear), 422)["errors"]
        assert error["field"] == "renders[0].model" and words in error["message"]
    [error] = problem(ann.post(body={**BOAT, "model": "dear"}), 422)["errors"]
    assert error["field"] == "model"
    assert not RenderJob.objects.exists()


def test_a_model_that_is_not_allowed_is_named_and_a_known_request_has_its_answer(ann, settings):
    body, dear = {"renders": [BOAT, {**BOAT, "model": "dear"}]}, {**BOAT, "model": "dear"}
    first = ids(ann.post(body=body, Idempotency_Key="one"))
    known = ids(ann.post(body={**dear, "reference": "order-7"}))
    settings.RENDERS = {**settings.RENDERS, "MODELS": "sume/auto,gpt-image-2"}

    assert ids(ann.post(body=body, Idempotency_Key="one")) == first
    assert ids(ann.post(body={**dear, "reference": "order-7"})) == known
    [error] = problem(ann.post(body=body, Idempotency_Key="two"), 422)["errors"]
    assert error["field"] == "renders[1].model"
    assert "Choose one of: sume/auto, gpt-image-2." in error["message"]


def test_a_retry_of_a_model_that_is_no_longer_allowed_says_why(ann, settings):
    row = failed(ann.user)
    settings.RENDERS = {**settings.RENDERS, "MODELS": "gpt-image-2"}

    refused = problem(ann.post(f"{row.pk}/retry/"), 409, "not_retryable")
    assert "sume/auto is not allowed here" in refused["detail"]


@pytest.mark.slow
def test_a_budget_asks_once_for_ten_thousand(ann, settings):
    told = {"BUDGET_USD": 1, "PRICES": "image:sume/auto=0.09", "MAX_WAITING_PER_USER": 10_000}
    settings.RENDERS = {**settings.RENDERS, **told}
    with CaptureQueriesContext(connection) as queries:
        ids(ann.post(body={"renders": [BOAT] * 10_000}))
    asked = [query for query in queries if "cost_usd_micros" in query["sql"].partition("WHERE")[2]]
    assert len(asked) == 1
