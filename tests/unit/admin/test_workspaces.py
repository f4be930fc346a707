"""The admin where there are several workspaces; and not a word of them where there is one."""

import pytest

from renders import services
from renders.models import Gate, RenderJob, UserWorkspace
from tests.unit.admin.test_bulk import PAGE as MANY
from tests.unit.admin.test_bulk import preview
from tests.unit.admin.test_jobs import LIST, site

__all__ = ["site"]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("followed")]
GATE = "/admin/renders/gate/"
ADD = f"{LIST}add/"


@pytest.fixture
def several(settings):
    settings.RENDERS = {**settings.RENDERS, "WORKSPACES": {"acme": {}, "beta": {}}}


@pytest.mark.parametrize(
    "page", [LIST, GATE, ADD, MANY, "/admin/", "/renders/new/", "/renders/charts/"]
)
def test_with_one_account_no_page_tells_of_workspaces(admin_client, page):
    row = services.create_render("a fox")
    for address in (page, f"{LIST}{row.pk}/change/", f"/renders/{row.pk}/"):
        html = admin_client.get(address).content.decode().lower()
        assert "workspace" not in html, address


def test_the_list_says_which_and_has_a_filter(several, admin_client, listed):
    for name in ("default", "acme"):
        services.create_render(f"in {name}", workspace=name)

    html = admin_client.get(LIST).content.decode()
    assert '<span class="renders-kind">Image, acme</span>' in html and "?workspace=acme" in html
    assert listed({"workspace": "acme"}) == {"in acme"}
    assert "in acme" in admin_client.get(f"{LIST}?workspace=acme").content.decode()


def test_a_render_is_added_where_its_form_says(several, site, admin_client):
    form = admin_client.get(ADD).context["adminform"].form
    data = {name: form[name].value() for name in ("token", "kind", "model", "priority")}
    data |= {"params": "{}", "prompt": "a fox", "workspace": "beta"}

    assert admin_client.post(ADD, {**data, "workspace": "gone"}).status_code == 200
    assert not RenderJob.objects.exists()
    admin_client.post(ADD, data)
    assert RenderJob.objects.get().workspace == "beta"


def test_who_may_not_choose_has_no_choice(several, log_in, client):
    user = log_in("add_renderjob", "view_renderjob")
    UserWorkspace.objects.create(user=user, workspace="acme")
    form = client.get(ADD).context["adminform"].form
    data = {name: form[name].value() for name in ("token", "kind", "model", "priority")}

    assert "workspace" not in form.fields
    client.post(ADD, {**data, "params": "{}", "prompt": "a fox", "workspace": "beta"})
    assert RenderJob.objects.get().workspace == "acme"


def test_whose_workspace_is_gone_reads_so_on_the_form(several, log_in, client):
    user = log_in("add_renderjob")
    UserWorkspace.objects.create(user=user, workspace="gone")
    form = client.get(ADD).context["adminform"].form
    data = {name: form[name].value() for name in ("token", "kind", "model", "priority")}

    html = client.post(ADD, {**data, "params": "{}", "prompt": "a fox"}).content.decode()
    assert "gone, which is not configured" in html
    assert not RenderJob.objects.exists()


def test_a_file_of_many_names_workspaces(several, site, admin_client):
    lines = "prompt,workspace\na,acme\nb, beta \nc,\nd,gone\n"
    shown = preview(admin_client, file=lines, workspace="acme")
    assert "Line 5, workspace: There is no such workspace." in shown.content.decode()

    shown = preview(admin_client, file=lines.replace(",gone", ",beta"), workspace="acme")
    admin_client.post(shown.redirect_chain[0][0])
    made = RenderJob.objects.values_list("prompt", "workspace")
    assert dict(made) == {"a": "acme", "b": "beta", "c": "acme", "d": "beta"}


def test_a_file_names_no_other_workspace_than_the_persons(several, log_in, client):
    user = log_in("add_renderjob", "view_renderjob")
    UserWorkspace.objects.create(user=user, workspace="acme")

    shown = preview(client, file="prompt,workspace\na,acme\nb,beta\n")
    assert "Line 3, workspace: You may not choose this" in shown.content.decode()
    shown = preview(client, file="prompt,workspace\na,acme\nb,\n")
    client.post(shown.redirect_chain[0][0])
    assert set(RenderJob.objects.values_list("workspace", flat=True)) == {"acme"}


def test_the_preview_says_what_it_costs_about(several, site, admin_client, settings):
    settings.RENDERS |= {"PRICES": "image=0.09"}

    assert "about $0.18 in all" in preview(admin_client, "a\nb").content.decode()
    shown = preview(admin_client, "a\nb", kind="video").content.decode()
    assert "in all" not in shown and not errors_of(shown)


def errors_of(html):
    return "errornote" in html


def test_the_form_says_what_each_kind_costs_about(admin_client, settings):
    settings.RENDERS = {**settings.RENDERS, "PRICES": "image=0.09"}

    for page in (ADD, "/renders/new/"):
        html = admin_client.get(page).content.decode()
        assert html.count("About $") == 1 and "About $0.09." in html


def test_the_gate_of_each_is_paused_and_resumed_by_itself(several, admin_client):
    html = admin_client.get(GATE).content.decode()
    assert html.count('name="pause"') == 3
    admin_client.post(GATE, {"pause": "1", "workspace": "acme"})

    assert list(Gate.objects.filter(held_at__isnull=False).values_list("key", flat=True)) == [
        "acme:writes"
    ]
    html = admin_client.get(GATE).content.decode()
    assert "acme: Writes: paused" in html and "default: Writes: open" in html
    assert "acme: paused: writes" in admin_client.get("/admin/").content.decode()
    admin_client.post(GATE, {"resume": "1", "workspace": "acme"})
    assert not Gate.objects.filter(held_at__isnull=False).exists()
    assert admin_client.post(GATE, {"pause": "1", "workspace": "gone"}).status_code == 403


def test_one_that_is_gone_is_shown_while_something_of_it_waits(several, admin_client, settings):
    render = services.create_render("a fox", workspace="acme")
    services.pause_sending("acme")
    services.resume_sending("acme")
    settings.RENDERS = {**settings.RENDERS, "WORKSPACES": {}}

    html = admin_client.get(GATE).content.decode()
    assert "The workspace acme is not configured: its renders wait. (unknown_workspace)" in html
    assert "Sending is paused" in admin_client.get(f"/renders/{render.pk}/").content.decode()
    services.cancel_render(render)
    assert "acme" not in admin_client.get(GATE).content.decode()


def test_a_budget_that_is_spent_is_not_resumed(admin_client, settings, ended):
    told = {"BUDGET_USD": 0.01, "PRICES": {"image:sume/auto": 0.01}}
    settings.RENDERS = {**settings.RENDERS, "WORKSPACES": {"acme": told}}
    ended(workspace="acme")

    html = admin_client.get(GATE).content.decode()
    assert "(budget_spent)" in html and 'name="resume"' not in html
    answer = admin_client.post(GATE, {"resume": "1", "workspace": "acme"}, follow=True)
    assert "Still nothing is sent. The month&#x27;s budget is spent" in answer.content.decode()


def test_a_person_is_given_a_workspace_that_there_is(several, admin_client, admin_user):
    page = "/admin/renders/userworkspace/"
    assert "Workspaces of users" in admin_client.get("/admin/").content.decode()
    admin_client.post(f"{page}add/", {"user": admin_user.pk, "workspace": "gone"})
    assert not UserWorkspace.objects.exists()
    admin_client.post(f"{page}add/", {"user": admin_user.pk, "workspace": "acme"})

    assert services.create_render("a fox", user=admin_user).workspace == "acme"
    assert "acme" in admin_client.get(page).content.decode()


def test_charts_are_of_one_account_or_of_all(several, admin_client, ended):
    ended(cost=1_000_000)
    RenderJob.objects.update(workspace="acme")

    spent = {name: shown(admin_client, f"?workspace={name}") for name in ("acme", "beta", "gone")}
    assert spent == {"acme": 1_000_000, "beta": 0, "gone": 1_000_000}
    assert shown(admin_client, "") == 1_000_000
    html = admin_client.get("/renders/charts/?workspace=acme").content.decode()
    assert "?hours=72&amp;workspace=acme" in html


def shown(client, query):
    return client.get(f"/renders/charts/{query}").context["spent"]
