"""What renders cost by model, and which new ones a budget forbids."""

import pytest
from django.db import connection

from renders import services
from renders.conf import workspaces
from renders.exceptions import InvalidRender, ReferenceTaken
from renders.limits import prices
from renders.models import RenderJob
from renders.services import bulk, workspace_choice
from renders.states import Status
from tests.rows import NOW, a_render, as_new, stored

pytestmark = pytest.mark.django_db
OWN = {"image:sume/auto": 0.09, "image:gpt-image-2": 0.2, "avatar": 2}


@pytest.fixture(autouse=True)
def told(settings, followed):
    def tell(**changes):
        settings.RENDERS = {**settings.RENDERS, **changes}
        return workspaces.get("default")

    return tell


def refused(*args, field="model", **kwargs):
    """The words of a refusal; nothing is stored then."""
    before = RenderJob.objects.count()
    with pytest.raises(InvalidRender) as caught:
        services.create_render("a fox", *args, **kwargs)
    assert caught.value.field == field
    assert RenderJob.objects.count() == before
    return caught.value.message


def cost(micros, model="sume/auto", **fields):
    return stored(Status.COMPLETED, model=model, cost_usd_micros=micros, finished_at=NOW, **fields)


# --- Which price --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "model", "estimated", "binding"),
    [
        ("image", "gpt-image-2", 200_000, 200_000),
        ("image", "other", 90_000, None),
        ("video", "other", None, None),
        ("avatar", "", 2_000_000, 2_000_000),
    ],
)
def test_a_kinds_price_is_an_estimate_and_its_models_own_price_binds(
    told, kind, model, estimated, binding
):
    own = told(PRICES={"image": 0.09, "image:gpt-image-2": 0.2, "avatar": 2})

    assert prices.estimated(own, kind, model) == estimated
    assert prices.binding(own, kind, model) == prices.counted(own, kind, model) == binding


def test_a_kinds_price_binds_where_the_models_are_listed(told):
    own = told(PRICES="image=0.09,image:gpt-image-2=0.20", MODELS="sume/auto,gpt-image-2")

    assert prices.binding(own, "image", "sume/auto") == 90_000
    assert prices.binding(own, "image", "gpt-image-2") == 200_000
    assert prices.binding(own, "video", "sume/auto") is None


def test_a_price_of_nothing_is_a_price(told):
    own = told(PRICES="image=0.09,image:free=0")

    assert prices.estimated(own, "image", "free") == prices.binding(own, "image", "free") == 0


def test_the_dearest_known_cost_counts_if_it_is_above_the_price(told):
    own = told(PRICES=OWN)
    cost(70_000)
    assert prices.counted(own, "image", "sume/auto") == 90_000

    cost(150_000, workspace="acme")
    cost(120_000)
    cost(5_000_000, model="another")
    cost(6_000_000, kind="video")
    cost(None)
    assert prices.dearest("image", "sume/auto") == 150_000
    assert prices.counted(own, "image", "sume/auto") == 150_000
    assert prices.counted(own, "image", "another") is None


def test_a_kind_without_models_has_one_dearest_cost(told):
    cost(3_000_000, kind="avatar", model="of an older release")

    assert prices.counted(told(PRICES=OWN), "avatar", "") == 3_000_000
    assert prices.dearest("avatar_video", "") == 0


def test_the_dearest_cost_is_read_from_its_index():
    if connection.vendor != "postgresql":
        pytest.skip("Plans are PostgreSQL's.")
    as_new()
    ended = {"handled_at": NOW, "finished_at": NOW, "created_at": NOW}
    RenderJob.objects.bulk_create(
        a_render(Status.COMPLETED, cost_usd_micros=number, **ended) for number in range(2_000)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE renders_renderjob")

    for kind, model in (("image", "sume/auto"), ("avatar", "")):
        plan = prices.costs(kind, model)[:1].explain()
        assert "renders_dearest" in plan and "Seq Scan" not in plan
    assert "Sort" not in prices.costs("image", "sume/auto")[:1].explain()


@pytest.mark.parametrize(
    ("counts", "micros"),
    [
        ({("image", "sume/auto"): 2, ("avatar", ""): 1}, 2_180_000),
        ({("image", "gpt-image-2"): 3}, 600_000),
        ({("image", "sume/auto"): 1, ("video", "sume/auto"): 1}, None),
        ({("image", "other"): 1}, None),
        ({}, None),
    ],
    ids=repr,
)
def test_what_many_cost_about_is_known_if_each_price_is(told, counts, micros):
    assert prices.estimate(told(PRICES=OWN), counts) == micros


def test_forms_say_what_the_model_costs_that_they_begin_with(told, ada):
    told(PRICES={**OWN, "image": 0.5, "video": 1.2})
    assert workspace_choice.prices(ada) == {
        "image": 90_000,
        "video": 1_200_000,
        "avatar": 2_000_000,
    }

    told(MODELS="gpt-image-2,other")
    assert workspace_choice.prices(ada)["image"] == 200_000


# --- Which models -------------------------------------------------------------------------


def test_only_listed_models_are_taken_from_python_too(told):
    told(MODELS="sume/auto,gpt-image-2")

    assert services.create_render("a fox", model="gpt-image-2").model == "gpt-image-2"
    words = refused(model="dear")
    assert words == "The model dear is not allowed here. Choose one of: sume/auto, gpt-image-2."
    assert services.create_render("A fox", kind="avatar", params={"avatar_handle": "mara"})


def test_the_default_model_is_refused_if_it_is_not_listed(told):
    told(MODELS="gpt-image-2")

    assert "sume/auto is not allowed" in refused()


def test_a_long_list_of_models_is_named_in_short(told):
    told(MODELS=",".join(f"model-{number}" for number in range(20)))

    assert refused().endswith("model-0, model-1, model-2, model-3, model-4, model-5, model-6, "
                              "model-7 and 12 more.")  # fmt: skip


def test_a_known_reference_gives_its_render_though_its_model_is_no_longer_allowed(told):
    render = services.create_render("a fox", model="dear", reference="order-7")
    told(MODELS="sume/auto", BUDGET_USD=1)

    again = services.create_render("a fox", model="dear", reference="order-7")
    assert again.pk == render.pk
    with pytest.raises(ReferenceTaken):
        services.create_render("a hen", model="dear", reference="order-7")
    refused(model="dear", reference="order-8")


def test_a_retry_is_refused_if_its_model_is_no_longer_allowed(told, ada):
    failed = stored(Status.FAILED, model="dear", created_by=ada)
    told(MODELS="sume/auto")

    with pytest.raises(InvalidRender, match="The model dear is not allowed here"):
        services.retry_render(failed)
    tally = bulk.retry_renders(RenderJob.objects.all(), ada)
    assert (tally.done, RenderJob.objects.count()) == (0, 1)


# --- Budgets ------------------------------------------------------------------------------


def test_twelve_renders_of_a_model_for_five_dollars_do_not_pass_a_budget_of_one(told):
    told(BUDGET_USD=1, PRICES="image=0.09,image:sume/auto=0.09")
    dear = [{"prompt": f"a fox {number}", "model": "dear"} for number in range(12)]

    with pytest.raises(InvalidRender) as caught:
        services.create_renders(dear)
    assert caught.value.message == (
        "The model dear has no price, so the budget cannot be kept. "
        "Ask whoever runs this site to add image:dear=… to RENDERS_PRICES."
    )
    assert not RenderJob.objects.exists()
    told(PRICES="image:dear=5")
    assert refused(model="dear") == (
        "One render costs about $5.00, more than the month's whole budget: $1.00."
    )


def test_the_bad_one_of_many_is_named(told):
    told(BUDGET_USD=1, PRICES=OWN)
    requests = [{"prompt": "a fox", "model": model} for model in ("sume/auto", "dear")]

    with pytest.raises(InvalidRender) as caught:
        services.create_renders(requests)
    assert caught.value.index == 1


def test_a_model_that_once_cost_more_than_the_whole_budget_is_refused(told):
    told(BUDGET_USD=1, PRICES=OWN)
    assert services.create_render("a fox")

    cost(5_000_000)
    assert refused() == (
        "One render has already cost $5.00, more than the month's whole budget: $1.00."
    )


def test_a_kind_without_models_needs_its_price_under_a_budget(told):
    told(BUDGET_USD=5, PRICES="image:sume/auto=0.09")
    mara = {"kind": "avatar", "params": {"avatar_handle": "mara"}}
    words = refused(**mara, field="kind")
    assert "The kind avatar has no price" in words and "add avatar=…" in words

    told(PRICES="avatar=2")
    assert services.create_render("A baker", **mara)


def test_each_workspace_has_its_own_budget(told):
    told(
        PRICES="image=0.09",
        WORKSPACES={"acme": {"BUDGET_USD": 1}, "beta": {}, "gamma": {"BUDGET_USD": 1,
                    "PRICES": {"image:dear": 0.5}}},
    )  # fmt: skip

    assert services.create_render("a fox", model="dear", workspace="beta")
    assert services.create_render("a fox", model="dear", workspace="gamma")
    refused(model="dear", workspace="acme")


def test_a_users_budget_holds_for_renders_of_a_user(told, ada):
    told(USER_BUDGET_USD=0.1, PRICES=OWN)

    assert services.create_render("a fox", user=ada)
    assert services.create_render("a fox", model="gpt-image-2")
    assert services.create_render("a fox", model="dear")
    assert refused(model="gpt-image-2", user=ada) == (
        "One render costs about $0.20, more than what one user may spend in a month: $0.10."
    )
    assert "has no price" in refused(model="dear", user=ada)


def test_a_retry_is_refused_if_its_budget_cannot_hold_it(told, ada):
    failed = stored(Status.FAILED, model="gpt-image-2", created_by=ada)
    told(USER_BUDGET_USD=0.1, PRICES=OWN)

    with pytest.raises(InvalidRender, match=r"\$0\.20"):
        services.retry_render(failed)


def test_without_a_budget_nothing_is_asked(told, django_assert_num_queries):
    told(PRICES="image=0.09")

    with django_assert_num_queries(0):
        assert prices.refusal("default", "image", "dear", owned=True) is None


def test_many_renders_of_one_model_are_one_question(told, django_assert_num_queries):
    told(BUDGET_USD=1, PRICES=OWN)
    refusal = prices.remembering()

    with django_assert_num_queries(2):
        for model in ["sume/auto", "gpt-image-2"] * 50:
            assert refusal("default", "image", model, owned=False) is None
