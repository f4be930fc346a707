"""Who calls the API in its unit tests, and a Redis that is away."""

import pytest
from django.contrib.auth.models import Permission

from renders.api import throttling
from tests.unit.api.support import Caller


@pytest.fixture(autouse=True)
def redis_rests(monkeypatch):
    """Nobody asks for a Redis that is not there."""
    monkeypatch.setattr(throttling._Rest, "until", float("inf"))


@pytest.fixture
def ann(django_user_model):
    return Caller(django_user_model.objects.create_user("ann"))


@pytest.fixture
def bob(django_user_model):
    return Caller(django_user_model.objects.create_user("bob"))


@pytest.fixture
def sam(django_user_model):
    """Of the staff, and may see all renders."""
    user = django_user_model.objects.create_user("sam", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_renderjob"))
    return Caller(user)
