"""Named queries on renders and their timelines, and the conditions that they are made of."""

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import models
from django.db.models import Exists, FilteredRelation, OuterRef, Q

from renders.redaction import fingerprint
from renders.states import (
    CANCELING,
    CODE,
    DEFAULT_WORKSPACE,
    IN_FLIGHT,
    OUTCOME_UNKNOWN,
    TERMINAL,
    UNSCOPED,
    WRITES,
    Status,
)

# Cancellation is requested, and Sume certainly holds no job for it.
WITHDRAWN = Q(cancel_requested_at__isnull=False, outcome_unknown_at__isnull=True)
# Renders that a person may still cancel, hold, release or retry.
CANCELABLE = Q(status__in=[Status.PENDING, *IN_FLIGHT], cancel_requested_at__isnull=True)
HOLDABLE = Q(
    status=Status.PENDING,
    held_at__isnull=True,
    cancel_requested_at__isnull=True,
    outcome_unknown_at__isnull=True,
)
HELD = Q(status=Status.PENDING, held_at__isnull=False)
# Put aside until it fits into a budget.
AWAITS_BUDGET = Q(status=Status.PENDING, held_at__isnull=True, turn__isnull=True)
RETRYABLE = Q(status__in=[Status.FAILED, Status.CANCELED], erased_at__isnull=True)
# Failed here, yet Sume may have made it: it can be resent with its own key.
RESENDABLE = Q(status=Status.FAILED, error_code=OUTCOME_UNKNOWN, erased_at__isnull=True) & ~Q(
    request_body=""
)
# Longest wait between two tries to store the media of a handled render.
LONGEST_MEDIA_WAIT = timedelta(days=1)
# The media is neither removed nor being removed.
KEPT = Q(erased_at__isnull=True, media_removed_at__isnull=True, removing_at__isnull=True)
MADE = KEPT & Q(status=Status.COMPLETED, handled_at__isnull=False)
# Such a row changes only by late tries to store its media and by removal.
OVER = Q(status__in=TERMINAL, handled_at__isnull=False)


def standing_in(states: Collection[str]) -> Q:
    """In one of these states. If none is terminal, the index on `finished_at` serves the query."""
    where = Q(status__in=states)
    return where if set(states) & set(TERMINAL) else where & Q(finished_at__isnull=True)


def sees_all(user: Any) -> bool:
    """Whether this user may see the renders of all users."""
    return bool(user.is_staff and user.has_perm("renders.view_renderjob"))


def note_of(workspace: str) -> str:
    """The detail in a POST's timeline line: the workspace, or nothing for the default one."""
    return "" if workspace == DEFAULT_WORKSPACE else workspace


class RenderQuerySet(models.QuerySet):
    """Named queries on the table of renders."""

    def workspace_of(self, pk: UUID) -> str | None:
        """The workspace of a render; None if there is no such render."""
        return self.filter(pk=pk).values_list("workspace", flat=True).first()

    def their_workspaces(self) -> list[str]:
        """The workspaces of these renders: one index look-up for each."""
        names: list[str] = []
        rows = self.order_by("workspace").values_list("workspace", flat=True)
        name = rows.first()
        while name is not None:
            names.append(name)
            name = rows.filter(workspace__gt=name).first()
        return names

    def pending(self) -> "RenderQuerySet":
        """Not sent yet, or put back to be resent."""
        return self.filter(status=Status.PENDING)

    def waiting(self) -> "RenderQuerySet":
        """Pending and not held by a person."""
        return self.pending().filter(held_at__isnull=True)

    def in_line(self) -> "RenderQuerySet":
        """Waiting and not put aside by a budget."""
        return self.waiting().filter(turn__isnull=False)

    def over_budget(self) -> "RenderQuerySet":
        """Put aside until they fit into a budget."""
        return self.filter(AWAITS_BUDGET)

    def in_flight(self) -> "RenderQuerySet":
        """Being sent, or at Sume and not ended."""
        return self.filter(status__in=IN_FLIGHT)

    def terminal(self) -> "RenderQuerySet":
        """Ended, with any outcome."""
        return self.filter(status__in=TERMINAL)

    def unhandled(self) -> "RenderQuerySet":
        """Ended, but result or signals are not done."""
        return self.terminal().filter(handled_at__isnull=True)

    def due(self, now: datetime) -> "RenderQuerySet":
        """In line and due to be sent now, in claim order."""
        free = Q(not_before__isnull=True) | Q(not_before__lte=now)
        return self.in_line().filter(free, ~WITHDRAWN).order_by("-priority", "turn", "created_at")

    def withdrawn(self) -> "RenderQuerySet":
        """Waiting, but to be canceled instead of sent."""
        return self.waiting().filter(WITHDRAWN)

    def unsure(self) -> "RenderQuerySet":
        """Pending with an unknown outcome of an earlier submit: Sume may hold the job."""
        return self.pending().filter(outcome_unknown_at__isnull=False)

    def stuck_submitting(self, now: datetime, age: float) -> "RenderQuerySet":
        """Claimed more than `age` seconds ago: the worker is presumed dead."""
        return self.filter(status=Status.SUBMITTING, claimed_at__lt=now - timedelta(seconds=age))

    def expired(self, made_before: datetime, unknown_before: datetime) -> "RenderQuerySet":
        """In line for too long; the time restarts when a person releases a render.

        Also those that Sume may hold whose last try was before `unknown_before`: Sume remembers a
        key only for a limited time.
        """
        return self.in_line().filter(_expired(made_before, unknown_before))

    def unexpired(self, made_before: datetime, unknown_before: datetime) -> "RenderQuerySet":
        """All renders but those of `expired`."""
        return self.exclude(_expired(made_before, unknown_before))

    def overdue(self, sent_before: datetime) -> "RenderQuerySet":
        """At Sume since `sent_before` or longer, so that a person should know."""
        return self.filter(status=Status.SUBMITTED, submitted_at__lte=sent_before)

    def late(self, now: datetime, grace: float) -> "RenderQuerySet":
        """Submitted with a next read that is late by more than `grace` seconds."""
        return self.filter(status=Status.SUBMITTED, next_poll_at__lt=now - timedelta(seconds=grace))

    def unhandled_late(self, now: datetime, grace: float) -> "RenderQuerySet":
        """Ended with a finish that is late by more than `grace` seconds."""
        return self.unhandled().filter(next_poll_at__lt=now - timedelta(seconds=grace))

    def finishable(self, workspaces: Collection[str]) -> "RenderQuerySet":
        """Renders that can be finished if Sume can be read for these workspaces.

        Those that need no read from Sume are included.
        """
        readable = Q(workspace__in=workspaces) | Q(sume_job_id="") | Q(result__isnull=False)
        return self.filter(readable)

    def late_media(self) -> "RenderQuerySet":
        """Handled without all of their media: another try is scheduled."""
        return self.filter(MADE, media_due_at__isnull=False)

    def media_due(self, now: datetime, workspaces: Collection[str]) -> "RenderQuerySet":
        """Renders of these workspaces with a late try to store media that is due."""
        # A time further ahead was written by a clock that has been put back since.
        due = Q(media_due_at__lte=now) | Q(media_due_at__gt=now + LONGEST_MEDIA_WAIT)
        return self.late_media().filter(due, workspace__in=workspaces)

    def asked(self) -> "RenderQuerySet":
        """At Sume, with a requested read that has not been made yet."""
        return self.filter(status=Status.SUBMITTED, asked_at__isnull=False)

    def uncanceled(self) -> "RenderQuerySet":
        """At Sume, with a cancel request that Sume has not answered."""
        return self.filter(
            status=Status.SUBMITTED,
            cancel_requested_at__isnull=False,
            cancel_answered_at__isnull=True,
        )

    def not_asked_to_cancel_since(self, moment: datetime) -> "RenderQuerySet":
        """Renders for which no cancel request was sent to Sume after `moment`."""
        asked = Q(events__what=CANCELING, events__at__gt=moment)
        return self.annotate(asking=FilteredRelation("events", condition=asked)).filter(
            asking__isnull=True
        )

    def unfinished_unsent(self, now: datetime) -> "RenderQuerySet":
        """Ended but unhandled, due to be finished, and never accepted by Sume."""
        return self.unhandled().filter(sume_job_id="", next_poll_at__lte=now)

    def unretried(self) -> "RenderQuerySet":
        """Failed or canceled and not retried since."""
        everything = type(self)(self.model, using=self.db)
        return self.filter(RETRYABLE, ~Exists(everything.filter(retry_of=OuterRef("pk"))))

    def resendable(self) -> "RenderQuerySet":
        """Failed with an unknown outcome and not retried since."""
        return self.unretried().filter(RESENDABLE)

    def of_references(self, scope: str, owner: Any, names: Collection[str]) -> dict[str, Any]:
        """The rows with these references in this scope, by reference; `owner` is the user's key.

        An erased row keeps only its reference's fingerprint. A row older than scopes belongs to
        the site's code and to its own user.
        """
        unscoped = Q(reference_scope=UNSCOPED)
        unscoped_here = unscoped if scope == CODE else unscoped & Q(created_by=owner)
        erased = {fingerprint(name): name for name in names}
        rows: Iterable[Any] = self.filter(
            Q(reference_scope=scope) | unscoped_here, reference__in=[*names, *erased]
        ).order_by("reference_scope")  # if both exist, the scope's own row comes last and wins
        return {erased.get(row.reference, row.reference): row for row in rows}

    def not_swept_since(self, moment: datetime) -> "RenderQuerySet":
        """Renders that the sweep has not put back since `moment`."""
        return self.filter(Q(swept_at__isnull=True) | Q(swept_at__lt=moment))

    def waiting_since(self, moment: datetime) -> "RenderQuerySet":
        """Made before `moment`, and due to be sent since before it."""
        free = Q(not_before__isnull=True) | Q(not_before__lt=moment)
        return self.filter(free, created_at__lt=moment)

    def pks(self, limit: int) -> list[UUID]:
        """The ids of the first `limit`."""
        return list(self.values_list("pk", flat=True)[:limit])

    def visible_to(self, user: Any) -> "RenderQuerySet":
        """The user's own renders; all renders for staff with the permission to view them."""
        if not user.is_authenticated:
            return self.none()
        return self if sees_all(user) else self.filter(created_by=user)

    def before_in_line(self, render: Any) -> "RenderQuerySet":
        """The renders in line before this one."""
        higher = Q(priority__gt=render.priority)
        sooner = Q(turn__lt=render.turn) | Q(turn=render.turn, created_at__lt=render.created_at)
        same = Q(priority=render.priority) & sooner
        return self.in_line().filter(higher | same, workspace=render.workspace)

    def latest_spans(self, kind: str, number: int) -> list[timedelta]:
        """How long Sume took for the last `number` completed renders of a kind, newest first."""
        made = self.filter(kind=kind, status=Status.COMPLETED).order_by("-created_at", "-id")
        times = made.values_list("submitted_at", "finished_at")[:number]
        return [finished - submitted for submitted, finished in times]


class EventQuerySet(models.QuerySet):
    """Named queries on the timelines."""

    def writes_around(self, now: datetime, window: float, workspace: str) -> "EventQuerySet":
        """The lines of a workspace's POSTs in the last `window` seconds, newest first.

        A time more than `window` seconds ahead is left out: the clock has been put back since.
        """
        span = timedelta(seconds=window)
        posts = self.filter(what__in=WRITES, detail=note_of(workspace))
        return posts.filter(at__gt=now - span, at__lte=now + span).order_by("-at")


def _expired(made_before: datetime, unknown_before: datetime) -> Q:
    """The condition of `RenderQuerySet.expired`."""
    made = Q(created_at__lte=made_before) & _not_released_since(made_before)
    unknown = Q(outcome_unknown_at__lte=unknown_before) & _not_released_since(unknown_before)
    return made | unknown


def _not_released_since(moment: datetime) -> Q:
    return Q(released_at__isnull=True) | Q(released_at__lte=moment)
