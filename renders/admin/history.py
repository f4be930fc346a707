"""Who did what with many renders, in the admin's own history."""

from collections.abc import Iterable
from typing import Any, cast
from uuid import UUID

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.http import HttpRequest

from renders.models import RenderJob

# More get one entry for all: the list of recent actions stays readable.
ONE_BY_ONE = 100


def note(request: HttpRequest, flag: int, message: str, count: int, named: Iterable[UUID]) -> None:
    """One entry for each render named if that is all of them, else one for all `count`."""
    named, user = list(named), cast(Any, request.user).pk
    if 0 < count == len(named) <= ONE_BY_ONE:
        rows = RenderJob.objects.filter(pk__in=named).only("pk", "kind", "status")
        LogEntry.objects.log_actions(user, rows, flag, message)
    elif count:
        LogEntry.objects.create(
            user_id=user,
            content_type=ContentType.objects.get_for_model(RenderJob),
            object_repr=f"{count:,} renders",
            action_flag=flag,
            change_message=message,
        )
