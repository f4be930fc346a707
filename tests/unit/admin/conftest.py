"""What the tests of the admin share."""

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.core.cache import cache
from django.utils import timezone

from renders import transitions
from renders.models import RenderJob
from renders.services import create_render
from renders.states import Status


@pytest.fixture(autouse=True)
def nothing_kept():
    """Figures are kept for minutes."""
    cache.clear()


@pytest.fixture
def log_in(client, django_user_model):
    """Logs in somebody of the staff with these permissions, named without the app."""

    def log_in(*codenames, name="sam"):
        user = django_user_model.objects.create_user(name, is_staff=True)
        user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
        assert user.user_permissions.count() == len(codenames)
        client.force_login(user)
        return user

    return log_in


@pytest.fixture
def listed(rf, admin_user):
    """The prompts that the list of renders shows for a query; no page is made."""

    def listed(query):
        request = rf.get("/admin/renders/renderjob/", query)
        request.user = admin_user
        renders = admin.site.get_model_admin(RenderJob).get_changelist_instance(request)
        return {row.prompt for row in renders.queryset}

    return listed


@pytest.fixture
def sent():
    """Makes renders that are with Sume."""

    def sent(prompt="A boat", **fields):
        row = create_render(prompt, **fields)
        now = timezone.now()
        transitions.claim(row.pk, now, "default")
        transitions.record_submitted(
            row.pk, now, job_id=f"job-{row.pk}", sume_status="queued", hit=False, next_poll_at=now
        )
        return row

    return sent


@pytest.fixture
def ended(sent):
    """Makes renders that have ended and are handled."""

    def ended(status=Status.COMPLETED, at=None, *, cost=40_000, artifacts=(), code="", **fields):
        row = sent(**fields)
        at = at or timezone.now()
        transitions.end(row.pk, 0, at, status, sume_status=status, code=code, cost=cost)
        if artifacts:
            transitions.store(row.pk, result={"artifacts": list(artifacts)})
        transitions.mark_handled(row.pk, at)
        row.refresh_from_db()
        return row

    return ended
