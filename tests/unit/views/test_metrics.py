"""Who may read the figures, and what the page is."""

from unittest import mock

import pytest
from django.contrib.auth.models import Permission
from django.db import OperationalError
from prometheus_client.parser import text_string_to_metric_families

from renders.models import RenderJob

pytestmark = pytest.mark.django_db
TOKEN = "a-token-of-some-length"


@pytest.fixture
def with_token(settings, no_redis):
    settings.RENDERS = {**settings.RENDERS, "METRICS_TOKEN": TOKEN}


def read(client, token=TOKEN, **headers):
    return client.get("/metrics", headers={"Authorization": f"Bearer {token}", **headers})


def test_the_token_opens_the_page(client, with_token):
    RenderJob.objects.create(prompt="boat")

    response = read(client)

    assert response.status_code == 200
    assert response["Content-Type"].startswith("text/plain; version=")
    assert response["Cache-Control"] == "no-store"
    families = list(text_string_to_metric_families(response.content.decode()))
    values = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }
    assert values["renders_up",] == 1
    assert values["renders_jobs", "default", "image", "pending"] == 1


@pytest.mark.parametrize("token", ["", "wrong", TOKEN + "x", TOKEN[:-1], "ä"])
def test_another_token_does_not(client, with_token, token):
    response = read(client, token)

    assert response.status_code == 401
    assert response["WWW-Authenticate"].startswith("Bearer ")
    assert b"renders_" not in response.content


@pytest.mark.parametrize("token", ["", "wrong"])
def test_where_none_is_set_no_token_does(client, no_redis, token):
    assert read(client, token).status_code == 401


def test_strangers_are_refused_and_not_sent_to_a_login(client):
    assert client.get("/metrics").status_code == 401


@pytest.mark.parametrize(
    ("is_staff", "permitted", "status"), [(True, True, 200), (True, False, 403), (False, True, 403)]
)
def test_of_people_only_staff_who_may_view_renders_see_it(
    client, django_user_model, no_redis, is_staff, permitted, status
):
    user = django_user_model.objects.create_user("ann", is_staff=is_staff)
    if permitted:
        user.user_permissions.add(Permission.objects.get(codename="view_renderjob"))
    client.force_login(user)

    assert client.get("/metrics").status_code == status


def test_a_wrong_token_counts_for_more_than_a_session(admin_client, with_token):
    assert read(admin_client, "wrong").status_code == 401


def test_a_database_that_does_not_answer_is_told_as_such(client, with_token):
    with mock.patch(
        "renders.reports.figures.standing_in_time", side_effect=OperationalError("secret dsn")
    ):
        response = read(client)

    assert response.status_code == 503
    assert response.content.endswith(b"renders_up 0\n")
    assert b"secret" not in response.content


def test_without_the_store_no_count_is_shown_rather_than_none_at_all(client, with_token):
    page = read(client).content.decode()

    assert "\nrenders_counts_up 0.0\n" in page
    assert "renders_submits" not in page
    assert "renders_jobs{" in page


def test_only_reading_is_possible(client, with_token):
    assert client.post("/metrics").status_code == 405


def test_a_newer_prometheus_gets_its_own_format(client, with_token):
    response = read(client, Accept="application/openmetrics-text; version=1.0.0")

    assert response["Content-Type"].startswith("application/openmetrics-text")
    assert response.content.endswith(b"# EOF\n")


def test_a_site_that_asks_everybody_to_log_in_asks_no_machine(client, with_token, settings):
    """Monitors, callers of the API and Sume show something else than a session."""
    name = "django.contrib.auth.middleware.LoginRequiredMiddleware"
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, name]

    assert read(client).status_code == 200
    assert client.get("/api/renders/openapi.json").status_code == 200
    assert client.get("/api/renders/").status_code == 401
    assert client.post("/webhooks/sume/").status_code == 404  # off, and no redirect
