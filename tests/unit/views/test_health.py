"""A load balancer learns whether this process can work; a monitor, whether all is well."""

from unittest import mock

import pytest
from django.core.files.storage import InMemoryStorage
from django.core.handlers.wsgi import WSGIHandler
from django.db import OperationalError, connection
from django.test import Client, RequestFactory, override_settings
from django.urls import set_script_prefix

from renders.exceptions import Paused
from renders.health import messages, stores
from renders.health.findings import Finding
from renders.limits import gate
from renders.models import Heartbeat
from renders.states import RequestType
from renders.telemetry import heartbeats

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("asked_here")]
SECRET = "postgres://secret"
AWAY = OperationalError(SECRET)


@pytest.fixture
def well(settings):
    """A site by the table alone, in which everything runs."""
    settings.RENDERS = {**settings.RENDERS, "SCHEDULER": "database"}
    heartbeats.note(heartbeats.SWEEP)
    heartbeats.note(heartbeats.RUNRENDERS)


def parts(response):
    return {part["name"]: part["ok"] for part in response.json()["parts"]}


def test_a_process_that_answers_lives_whatever_else_is_down(client, django_assert_num_queries):
    with django_assert_num_queries(0), mock.patch.object(connection, "cursor", side_effect=AWAY):
        response = client.get("/healthz")

    assert (response.status_code, response.json()) == (200, {"status": "ok"})
    assert "no-store" in response["Cache-Control"]


@pytest.mark.usefixtures("well")
def test_a_site_in_which_all_runs_is_ready(client):
    for address in ("/readyz", "/readyz?all=1"):
        response = client.get(address)

        assert response.status_code == 200
        assert response.json() == {
            "status": "ok",
            "parts": [
                {"name": name, "ok": True}
                for name in (
                    "database", "migrations", "sweep", "reads", "overdue", "gate", "budget",
                    "runrenders", "storage",
                )
            ],
        }  # fmt: skip
        assert "no-store" in response["Cache-Control"]


@pytest.mark.usefixtures("well")
def test_a_process_without_a_database_gets_no_requests_and_tells_no_address(admin_client):
    with mock.patch.object(connection, "cursor", side_effect=AWAY):
        response = admin_client.get("/readyz")

    assert response.status_code == 503
    assert response.json()["status"] == "unavailable"
    assert [name for name, ok in parts(response).items() if ok] == ["storage"]
    assert b"secret" not in response.content and b"detail" not in response.content


@pytest.mark.usefixtures("well")
def test_a_process_newer_than_its_tables_gets_no_requests(client):
    with mock.patch("renders.health.database.known", return_value={("renders", "0999_x"): set()}):
        response = client.get("/readyz")

    assert response.status_code == 503
    assert [name for name, ok in parts(response).items() if not ok] == ["migrations"]


def closed_gate():
    gate.pause(
        "default", RequestType.WRITES, Paused("Key refused.", code="unauthorized", status=401)
    )


@pytest.mark.usefixtures("well")
@pytest.mark.parametrize(
    ("break_it", "name"),
    [
        (lambda: Heartbeat.objects.filter(pk="sweep").delete(), "sweep"),
        (lambda: Heartbeat.objects.filter(pk="runrenders").delete(), "runrenders"),
        (closed_gate, "gate"),
        (lambda: setattr(InMemoryStorage, "_save", None), "storage"),
    ],
    ids=["sweep", "runrenders", "gate", "storage"],
)
def test_what_other_processes_lack_is_told_and_takes_this_one_out_only_if_asked(
    client, break_it, name, caplog, settings, monkeypatch
):
    memory = {"BACKEND": "django.core.files.storage.InMemoryStorage"}
    settings.STORAGES = {**settings.STORAGES, "default": memory}
    monkeypatch.setattr(InMemoryStorage, "_save", InMemoryStorage._save)  # mended afterwards
    break_it()
    caplog.clear()

    response = client.get("/readyz")
    assert (response.status_code, response.json()["status"]) == (200, "degraded")
    assert [one for one, ok in parts(response).items() if not ok] == [name]
    assert client.get("/readyz?all=1").status_code == 503
    assert not caplog.records  # whoever asks every few seconds tells of it


@pytest.mark.parametrize(
    ("own", "names"),
    [
        ({"SCHEDULER": "countdown"}, set()),
        ({"SCHEDULER": "sortedset", "TICKS": 1}, set()),
        ({"SCHEDULER": "sortedset", "TICKS": 0}, {"pollrenders"}),
    ],
)
def test_each_way_to_run_it_has_its_own_parts(client, settings, monkeypatch, own, names):
    settings.RENDERS = {**settings.RENDERS, **own}
    for module, name in (
        (stores, "answers"), (stores, "beat"), (messages, "answers"), (messages, "workers")
    ):  # fmt: skip
        monkeypatch.setattr(module, name, lambda: [Finding("Fine.")])

    assert set(parts(client.get("/readyz"))) == names | {
        "database", "migrations", "sweep", "reads", "overdue", "gate", "budget",
        "storage", "redis", "beat", "broker", "workers",
    }  # fmt: skip


def test_without_redis_and_broker_the_pages_still_get_requests(client, no_redis, no_broker):
    response = client.get("/readyz")

    assert response.status_code == 200
    assert not any(parts(response)[name] for name in ("redis", "beat", "broker", "workers"))


@pytest.mark.usefixtures("well")
def test_details_are_for_staff_and_for_the_token_of_the_metrics(
    client, admin_client, settings, django_user_model
):
    Heartbeat.objects.filter(pk="sweep").delete()
    stranger = Client()
    stranger.force_login(django_user_model.objects.create_user("ann"))

    def details(browser, **headers):
        response = browser.get("/readyz", headers=headers)
        return {part["name"]: part.get("detail") for part in response.json()["parts"]}["sweep"]

    assert details(client) is None and details(stranger) is None
    assert details(admin_client) == "Never seen: sweep."
    with_token = {**settings.RENDERS, "METRICS_TOKEN": "t0ken" * 10}
    with override_settings(RENDERS=with_token):
        assert details(client, Authorization="Bearer " + "t0ken" * 10) == "Never seen: sweep."
        assert details(client, Authorization="Bearer other") is None
        assert details(client, Authorization="Bearer ") is None
    assert details(client, Authorization="Bearer ") is None


def test_a_load_balancer_may_ask_by_address_for_these_pages_alone(client, settings):
    settings.ALLOWED_HOSTS = ["example.com"]

    assert client.get("/healthz", headers={"Host": "10.0.0.7:8000"}).status_code == 200
    assert client.get("/readyz", headers={"Host": "10.0.0.7:8000"}).status_code == 200
    assert client.get("/renders/", headers={"Host": "10.0.0.7:8000"}).status_code == 400


def test_nobody_can_post_there(client):
    assert client.post("/readyz").status_code == 405


@pytest.mark.usefixtures("well")
def test_a_site_that_asks_everybody_to_log_in_does_not_ask_here(client, settings):
    name = "django.contrib.auth.middleware.LoginRequiredMiddleware"
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, name]

    assert client.get("/healthz").status_code == 200
    assert client.get("/readyz").status_code == 200
    assert client.get("/").status_code == 302


def test_below_a_prefix_they_may_be_asked_by_address_too(settings):
    settings.ALLOWED_HOSTS = ["example.com"]
    environ = RequestFactory().get("/healthz", headers={"Host": "10.0.0.7"}).environ
    statuses = []
    try:
        WSGIHandler()(
            {**environ, "SCRIPT_NAME": "/studio"}, lambda status, headers: statuses.append(status)
        )
    finally:
        set_script_prefix("/")

    assert statuses == ["200 OK"]
