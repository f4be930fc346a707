"""A monitor learns whether this process answers."""

from unittest import mock

import pytest
from django.db import OperationalError

pytestmark = pytest.mark.django_db


def test_health_needs_no_login(client):
    response = client.get("/healthz")

    is_open = {"open": True, "why": "", "until": None}
    assert response.json() == {
        "status": "ok",
        "gate": {"writes": is_open, "reads": is_open},
        "overdue": 0,
    }


def test_health_says_so_when_the_database_is_away(client):
    with mock.patch("renders.standing.gates", side_effect=OperationalError("secret dsn")):
        response = client.get("/healthz")

    assert response.status_code == 503
    assert response.json()["status"] == "unavailable"
    assert b"secret" not in response.content
