"""The gate's page: open or not, why, until when; only who may, opens and closes it."""

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.utils import timezone

from renders import services, transitions
from renders.exceptions import Paused
from renders.health import work
from renders.lifecycle.steps import Step
from renders.limits import gate, spending
from renders.models import Gate, RenderJob
from renders.states import RequestType

pytestmark = pytest.mark.django_db
PAGE = "/admin/renders/gate/"
REFUSED = Paused("The key <b>is</b> refused.", code="unauthorized", status=401)


@pytest.fixture
def staff(client, django_user_model):
    """Logs in somebody of the staff with these permissions for the gate."""

    def log_in(*names):
        user = django_user_model.objects.create_user("sam", is_staff=True)
        codenames = [f"{name}_gate" for name in names]
        user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
        client.force_login(user)
        return client

    return log_in


def text(client):
    response = client.get(PAGE)
    assert response.status_code == 200
    return response.content.decode()


def test_an_open_gate_says_so_and_shows_the_limits(admin_client, settings):
    settings.RENDERS = {"PLAN": "pro"}
    services.create_renders([{"prompt": "a fox"}] * 3)

    html = text(admin_client)

    assert "Writes: open" in html and "Reads: open" in html
    for figure in ("3", "0 of 24 at most", "0 of 300 at most", "not told"):
        assert f"<td>{figure}</td>" in html
    assert "Resume" not in html


def test_a_paused_gate_says_why_and_until_when(admin_client):
    until = gate.pause("default", RequestType.WRITES, REFUSED)

    html = text(admin_client)

    assert "Writes: paused" in html
    assert "The key &lt;b&gt;is&lt;/b&gt; refused. (unauthorized)" in html
    assert f"{until:%F %T}" in html
    assert "Refused 1 time in a row" in html


def test_a_gate_that_tries_says_so(admin_client):
    gate.pause("default", RequestType.READS, REFUSED)
    Gate.objects.update(paused_until=timezone.now())

    assert "Reads: trying one at a time" in text(admin_client)


def test_who_may_change_it_pauses_and_resumes(staff, followed, django_capture_on_commit_callbacks):
    [render] = services.create_renders([{"prompt": "a fox"}])
    RenderJob.objects.update(not_before=timezone.now() + timedelta(hours=1))
    client = staff("view", "change")

    html = client.post(PAGE, {"pause": "1"}, follow=True).content.decode()
    assert "Paused by a person" in html and "Writes: paused" in html

    followed.clear()
    with django_capture_on_commit_callbacks(execute=True):
        html = client.post(PAGE, {"resume": "1"}, follow=True).content.decode()
    assert "Writes: open" in html
    assert followed == [Step("submit", render.pk)]
    assert RenderJob.objects.get().not_before is None
    assert [str(entry.get_change_message()) for entry in LogEntry.objects.order_by("pk")] == [
        "Paused sending.",
        "Resumed.",
    ]


def test_who_may_only_look_changes_nothing(staff):
    client = staff("view")

    assert "Pause sending" not in text(client)
    assert client.post(PAGE, {"pause": "1"}).status_code == 403
    assert not Gate.objects.filter(held_at__isnull=False).exists()


def test_others_see_nothing(staff):
    client = staff()

    assert client.get(PAGE).status_code == 403
    assert client.post(PAGE, {"pause": "1"}).status_code == 403
    assert not Gate.objects.filter(held_at__isnull=False).exists()


def test_a_strange_post_changes_nothing(admin_client):
    admin_client.post(PAGE, {"open": "sesame"})

    assert not Gate.objects.filter(held_at__isnull=False).exists()


def test_each_gate_leads_to_the_one_page(admin_client):
    gate.pause("default", RequestType.WRITES, REFUSED)

    assert admin_client.get(f"{PAGE}writes/change/").url == PAGE
    assert admin_client.get(f"{PAGE}add/").status_code == 403
    assert admin_client.get(f"{PAGE}writes/delete/").status_code == 403


# --- Budgets --------------------------------------------------------------------------------


def test_what_is_left_of_the_budget_and_who_waits_for_it_is_shown(admin_client, settings, ended):
    spending.forget()
    settings.RENDERS = {"BUDGET_USD": 10, "USER_BUDGET_USD": 0.5, "PRICES": "image:sume/auto=0.09"}
    aside, _ = services.create_renders([{"prompt": "a fox"}, {"prompt": "a cat"}])
    transitions.put_aside([aside.pk], "Too dear.")
    ended(cost=7_900_000)

    html = text(admin_client)
    assert "<td>$7.90 of $10.00, with what is under way</td>" in html
    assert "<td>$2.10</td>" in html and "80 %" not in html
    assert "<td>$0.50 a month</td>" in html
    assert '?status=over_budget">1</a>' in html and "<td>1</td>" in html

    ended(cost=100_000)
    spending.forget()
    assert "80 % or more is spent" in text(admin_client)


def test_without_a_budget_none_is_named(admin_client):
    assert "udget" not in text(admin_client)


# --- Overdue --------------------------------------------------------------------------------


@pytest.fixture
def overdue(settings):
    settings.RENDERS = {"OVERDUE_HOURS": 2}
    now = timezone.now()
    for number in range(2):
        render = services.create_render(f"a fox no. {number}")
        transitions.claim(render.pk, now, "default")
        transitions.record_submitted(
            render.pk,
            now - timedelta(hours=number * 2),
            job_id=f"job_{number}",
            sume_status="queued",
            hit=False,
            next_poll_at=now,
        )
    return render


def test_a_job_that_sume_never_ends_is_seen(overdue, admin_client):
    assert work.overdue()[0].said == "1 job at Sume for more than 2 h."
    found = admin_client.get("/admin/renders/renderjob/?standing=overdue").content.decode()
    assert "a fox no. 1" in found and "a fox no. 0" not in found
    assert "?standing=overdue" in text(admin_client)
    page = admin_client.get(overdue.get_absolute_url()).content.decode()
    assert "Sume has not ended it for long" in page


def test_without_a_limit_nothing_is_overdue(overdue, settings):
    settings.RENDERS = {"OVERDUE_HOURS": 0}

    assert work.overdue()[0].code == ""


def test_what_ended_and_is_not_handled_for_long_can_be_found(admin_client):
    for prompt in ("a cat", "a dog"):
        services.cancel_render(services.create_render(prompt))
    ended = timezone.now() - timedelta(hours=1)
    RenderJob.objects.filter(prompt="a dog").update(finished_at=ended)

    found = admin_client.get("/admin/renders/renderjob/?standing=unhandled").content.decode()

    assert "a dog" in found and "a cat" not in found
