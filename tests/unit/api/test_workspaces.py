"""A workspace named by a program: only by who may, and never another's by mistake."""

import pytest
from django.contrib.auth.models import Permission

from renders.api.document import document
from renders.models import RenderJob, UserWorkspace
from renders.services import create_render
from tests.unit.api.support import Caller, problem

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("followed")]


@pytest.fixture
def several(settings):
    settings.RENDERS = {**settings.RENDERS, "WORKSPACES": {"acme": {}, "beta": {}}}


@pytest.fixture
def ann(django_user_model):
    return django_user_model.objects.create_user("ann-of-acme")


def permitted(user):
    user.user_permissions.add(Permission.objects.get(codename="choose_workspace"))
    return Caller(user)


def test_a_render_says_whose_account_it_is(several, ann):
    UserWorkspace.objects.create(user=ann, workspace="acme")
    caller = Caller(ann)

    made = caller.post(body={"prompt": "A boat"}).json()
    again = caller.post(body={"prompt": "A boat", "workspace": "acme"}).json()

    assert (made["workspace"], again["workspace"]) == ("acme", "acme")


def test_the_list_is_narrowed_by_account(several, ann):
    for name in ("acme", "beta"):
        create_render(name, user=ann, workspace=name)
    caller = Caller(ann)

    def prompts(name):
        return [row["prompt"] for row in caller.get(f"?workspace={name}").json()["renders"]]

    assert (prompts("acme"), prompts("beta"), prompts("nobodys")) == (["acme"], ["beta"], [])


def test_another_one_is_refused_whether_there_is_one_of_that_name_or_not(several, ann):
    caller = Caller(ann)
    for name in ("acme", "nobody's", "default "):
        told = problem(
            caller.post(body={"renders": [{"prompt": "A"}, {"prompt": "B", "workspace": name}]}),
            403,
            "workspace_not_allowed",
        )
        assert told["errors"][0]["field"] == "renders[1].workspace"
    assert not RenderJob.objects.exists()


def test_with_the_permission_any_that_there_is_can_be_named(several, ann):
    caller = permitted(ann)

    assert caller.post(body={"prompt": "A", "workspace": "beta"}).json()["workspace"] == "beta"
    assert caller.post(body={"prompt": "A", "workspace": None}).json()["workspace"] == "default"
    told = problem(caller.post(body={"prompt": "A", "workspace": "gone"}), 422)
    assert told["errors"] == [{"field": "workspace", "message": "There is no such workspace."}]
    problem(caller.post(body={"prompt": "A", "workspace": 5}), 422)


def test_the_same_reference_in_another_workspace_is_another_request(several, ann):
    caller = permitted(ann)
    body = {"prompt": "A", "reference": "order-1"}
    first = caller.post(body={**body, "workspace": "acme"}).json()

    assert caller.post(body=body).json()["id"] == first["id"]
    problem(caller.post(body={**body, "workspace": "beta"}), 409, "reference_taken")
    assert RenderJob.objects.count() == 1


def test_whose_workspace_is_gone_is_told_so(several, ann):
    UserWorkspace.objects.create(user=ann, workspace="gone")

    told = problem(Caller(ann).post(body={"prompt": "A"}), 422)
    assert told["errors"][0]["field"] == "workspace"


def test_where_there_is_one_nobody_names_it(ann):
    problem(Caller(ann).post(body={"prompt": "A", "workspace": "default"}), 422)
    assert "workspace" not in document()["components"]["schemas"]["ImageRequest"]["properties"]


def test_the_document_tells_of_it_where_there_are_several(several):
    schemas = document()["components"]["schemas"]

    requests = [schema for name, schema in schemas.items() if name.endswith("Request")]
    assert all("workspace" in one["properties"] for one in requests if "oneOf" not in one)
    assert "workspace" in schemas["Render"]["required"]
    assert "acme" not in str(document())
