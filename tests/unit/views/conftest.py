"""Who looks at the pages."""

import pytest
from django.contrib.auth.models import Permission
from django.core.cache import cache


@pytest.fixture(autouse=True)
def _clean(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    cache.clear()


@pytest.fixture
def staff(django_user_model):
    user = django_user_model.objects.create_user("sam", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_renderjob"))
    return user


@pytest.fixture
def page(client, ann):
    client.force_login(ann)
    return client
