"""Which workspace a render is made in: named, told by the project, the user's own, the default."""

import pytest
from django.contrib.auth.models import Permission
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from renders import services
from renders.exceptions import InvalidRender
from renders.models import RenderEvent, RenderJob, UserWorkspace
from renders.services import workspace_choice
from renders.states import Status
from tests.rows import stored

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("followed")]


@pytest.fixture(autouse=True)
def several(settings):
    settings.RENDERS = {**settings.RENDERS, "WORKSPACES": {"acme": {}, "beta": {}}}


def by_name(user):
    """The project's own rule, for these tests."""
    return {"ada": "beta", "bob": "gone"}.get(getattr(user, "username", ""))


def may_choose(user):
    user.user_permissions.add(Permission.objects.get(codename="choose_workspace"))
    return type(user).objects.get(pk=user.pk)


def test_a_person_without_one_uses_the_default(ada):
    assert workspace_choice.choose(ada) == workspace_choice.choose(None) == "default"


def test_a_person_has_a_workspace_of_their_own(ada):
    UserWorkspace.objects.create(user=ada, workspace="acme")

    assert services.create_render("a fox", user=ada).workspace == "acme"
    assert services.create_render("a fox").workspace == "default"


def test_the_project_decides_before_that(ada, settings, django_user_model):
    UserWorkspace.objects.create(user=ada, workspace="acme")
    settings.RENDERS |= {"WORKSPACE_FOR": f"{__name__}.by_name"}

    assert workspace_choice.choose(ada) == "beta"
    assert workspace_choice.choose(None) == "default"
    settings.RENDERS |= {"WORKSPACE_FOR": f"{__name__}.nothing"}
    with pytest.raises(ImproperlyConfigured, match="there is no"):
        workspace_choice.choose(ada)


def test_whose_workspace_is_gone_is_told_and_not_billed_elsewhere(ada):
    UserWorkspace.objects.create(user=ada, workspace="gone")

    with pytest.raises(InvalidRender, match="gone, which is not configured"):
        services.create_render("a fox", user=ada)
    assert not RenderJob.objects.exists()


def test_code_of_the_project_names_any_that_there_is(ada):
    renders = services.create_renders(
        [{"prompt": "a", "workspace": "acme"}, {"prompt": "b"}, {"prompt": "c", "workspace": None}]
    )

    assert [render.workspace for render in renders] == ["acme", "default", "default"]
    for name in ("gone", "Acme", 5):
        with pytest.raises(InvalidRender, match="no such workspace"):
            services.create_render("a", workspace=name)


def test_many_renders_ask_once_for_each_person(ada, django_assert_num_queries):
    UserWorkspace.objects.create(user=ada, workspace="acme")
    choose = workspace_choice.remembering()
    with django_assert_num_queries(1):
        assert {choose(ada) for _ in range(5)} == {"acme"}


def test_a_retry_stays_where_its_original_was(ada, settings):
    original = stored(Status.FAILED, workspace="acme", created_by=ada)
    assert services.retry_render(original, user=ada).workspace == "acme"

    gone = stored(Status.FAILED, workspace="gone")
    with pytest.raises(InvalidRender, match="gone is not configured"):
        services.retry_render(gone)


def test_the_first_of_each_workspace_sets_its_line_going(
    followed, django_capture_on_commit_callbacks
):
    requests = [{"prompt": "x"}] * 20 + [{"prompt": "y", "workspace": "acme"}]
    with django_capture_on_commit_callbacks(execute=True):
        renders = services.create_renders(requests)

    assert renders[-1].pk in {step.render_id for step in followed}
    assert len(followed) == services.STARTERS + 1


def test_who_may_name_one(ada, admin_user):
    UserWorkspace.objects.create(user=ada, workspace="acme")
    assert workspace_choice.may_choose(None, "beta") and workspace_choice.may_choose(
        admin_user, "beta"
    )
    assert workspace_choice.may_choose(ada, "acme") and not workspace_choice.may_choose(ada, "beta")
    with pytest.raises(InvalidRender, match="may not choose this"):
        workspace_choice.refuse(ada, "beta")
    workspace_choice.refuse(ada, "")

    assert workspace_choice.choices(ada) == []
    assert workspace_choice.choices(may_choose(ada)) == ["acme", "default", "beta"]


def test_where_there_is_one_nobody_chooses(ada, admin_user, settings):
    settings.RENDERS = {**settings.RENDERS, "WORKSPACES": {}}

    assert workspace_choice.choose(ada) == "default"
    assert workspace_choice.choices(admin_user) == []


def test_whose_workspace_was_the_last_beside_the_default_is_not_billed_there(ada, settings):
    """As while the file that names it cannot be read."""
    UserWorkspace.objects.create(user=ada, workspace="acme")
    settings.RENDERS = {**settings.RENDERS, "WORKSPACES": {}}

    with pytest.raises(InvalidRender, match="acme, which is not configured"):
        services.create_render("a fox", user=ada)


def test_an_old_row_without_a_workspace_is_of_the_default_one(db):
    """As the release before writes it."""
    row = services.create_render("a fox")
    RenderEvent.objects.all().delete()
    fields = [f.column for f in RenderJob._meta.fields if f.name != "workspace"]
    names = ", ".join(fields)
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TEMPORARY TABLE kept AS SELECT {names} FROM renders_renderjob")  # noqa: S608
        row.delete()
        cursor.execute(f"INSERT INTO renders_renderjob ({names}) SELECT {names} FROM kept")  # noqa: S608

    assert RenderJob.objects.get().workspace == "default"
