"""Actions on selected renders in the admin: cancel, retry, resend, hold and others.

Changes are logged in the admin's own history.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import ADDITION, CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from renders.models import RenderJob
from renders.models.querysets import RETRYABLE
from renders.services import bulk
from renders.services.bulk import BulkResult

# Above this number, the history gets one entry for all renders, to stay readable.
ONE_BY_ONE = 100


class RenderActions(admin.ModelAdmin):
    """The actions of the list of renders, each with its permission. Services do the work."""

    actions = ["cancel", "resend", "store_media", "retry", "check_now", "hold", "release"]

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        """Canceling is a permission of its own."""
        return request.user.has_perm("renders.cancel_renderjob")

    def has_retry_permission(self, request: HttpRequest) -> bool:
        """Retrying is a permission of its own: it is billed again."""
        return request.user.has_perm("renders.retry_renderjob")

    def has_hold_permission(self, request: HttpRequest) -> bool:
        """Holding and releasing share a permission of their own."""
        return request.user.has_perm("renders.hold_renderjob")

    @admin.action(description="Cancel the selected renders", permissions=["cancel"])
    def cancel(self, request: HttpRequest, queryset: Any) -> None:
        """Request cancellation. Sume decides, so only the requests are reported."""
        count = queryset.count()
        tally = bulk.cancel_renders(queryset)
        left = "ended, or cancel requested before"
        words = "Cancel requested for {}; what was not sent yet is canceled already."
        self._report(request, tally, count, words, left)

    @admin.action(description="Retry as new renders (billed again)", permissions=["retry"])
    def retry(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        """Ask for confirmation, then retry the renders shown there, each at most once."""
        shown_at = parse_datetime(request.POST.get("shown_at", ""))
        if shown_at is None or timezone.is_naive(shown_at):
            return self._ask(request, queryset)
        count = queryset.count()
        # Renders that failed after the page was shown are excluded, even retries of these.
        tally = bulk.retry_renders(queryset.filter(finished_at__lte=shown_at), request.user)
        left = "retried before, erased, or neither failed nor canceled"
        self._report(request, tally, count, "{} retried as new.", left, ADDITION)
        return None

    @admin.action(
        description="Send again with the same key (outcome unknown)", permissions=["retry"]
    )
    def resend(self, request: HttpRequest, queryset: Any) -> None:
        """Resend with the same key; billed only if Sume does not have the render yet."""
        count = queryset.count()
        tally = bulk.resend_renders(queryset)
        left = "retried since, or their outcome is known"
        self._report(
            request, tally, count, "{} queued to be sent again, each with its own key.", left
        )

    @admin.action(description="Store media again (what is not stored)", permissions=["retry"])
    def store_media(self, request: HttpRequest, queryset: Any) -> None:
        """Fetch missing media again. Reads and downloads cost nothing."""
        count = queryset.count()
        tally = bulk.store_media(queryset)
        left = "not completed, nothing missing, or being fetched just now"
        self._report(request, tally, count, "Media of {} are fetched again.", left)

    @admin.action(description="Check the selected renders at Sume now", permissions=["view"])
    def check_now(self, request: HttpRequest, queryset: Any) -> None:
        """Poll these renders now. A read costs nothing and changes nothing at Sume."""
        count = queryset.count()
        tally = bulk.check_renders(queryset)
        self._report(
            request, tally, count, "Sume is asked about {} within moments.", "not at Sume", None
        )

    @admin.action(description="Hold: do not send the selected renders", permissions=["hold"])
    def hold(self, request: HttpRequest, queryset: Any) -> None:
        """Hold pending renders that Sume certainly does not have."""
        count = queryset.count()
        tally = bulk.hold_renders(queryset)
        left = "sent, being sent, held before, or to be canceled"
        self._report(request, tally, count, "{} held: not sent until released.", left)

    @admin.action(description="Release: send the held ones of the selected", permissions=["hold"])
    def release(self, request: HttpRequest, queryset: Any) -> None:
        """Release held renders. They wait in turn, with the same deadline as new ones."""
        count = queryset.count()
        tally = bulk.release_renders(queryset)
        self._report(request, tally, count, "{} released: sent to Sume in their turn.", "not held")

    def _ask(self, request: HttpRequest, queryset: Any) -> HttpResponse:
        """The confirmation page, with the number of renders that would be billed now."""
        shown_at: datetime = timezone.now()
        count = queryset.count()
        billed = queryset.filter(finished_at__lte=shown_at).unretried().count()
        ended = queryset.filter(RETRYABLE & Q(finished_at__lte=shown_at)).count()
        context = {
            **self.admin_site.each_context(request),
            "title": "Retry as new renders",
            "opts": self.opts,
            "billed": billed,
            "retried": ended - billed,
            "others": count - ended,
            "shown_at": shown_at.isoformat(),
            "checkbox_name": ACTION_CHECKBOX_NAME,
            # If all pages are selected, one id is enough.
            "selected": request.POST.getlist(ACTION_CHECKBOX_NAME)[: 1 if _all(request) else None],
            "select_across": _all(request),
        }
        return TemplateResponse(request, "renders/admin/retry.html", context)

    def _report(
        self,
        request: HttpRequest,
        tally: BulkResult,
        count: int,
        words: str,
        left_alone: str,
        flag: int | None = CHANGE,
    ) -> None:
        """Show the counts, and log changed renders in the history; no entry if `flag` is None."""
        done = words.format(f"{tally.done:,}")
        if tally.done:
            self.message_user(request, done, messages.SUCCESS)
            if flag:
                note(request, flag, _with_filter(request, done), tally.done, tally.named)
        left = count - tally.done - tally.unreached
        if left > 0:
            self.message_user(request, f"{left:,} left alone: {left_alone}.")
        if tally.unreached:
            text = f"Time was up: {tally.unreached:,} are still to do. Do the same again for them."
            if tally.refused:
                text = f"{tally.refused} {tally.unreached:,} are still to do."
            self.message_user(request, text, messages.WARNING)


def note(request: HttpRequest, flag: int, message: str, count: int, named: Iterable[UUID]) -> None:
    """Log in the admin's history: an entry per render if all are named, else one for all."""
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


def _all(request: HttpRequest) -> bool:
    return request.POST.get("select_across") == "1"


def _with_filter(request: HttpRequest, done: str) -> str:
    query = request.META.get("QUERY_STRING", "")
    return f"{done} All of the list ?{query}" if _all(request) else done
