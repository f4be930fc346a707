"""Named queries: what the app asks the table of renders."""

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

# A person wants it canceled, and Sume certainly holds nothing for it.
WITHDRAWN = Q(cancel_requested_at__isnull=False, outcome_unknown_at__isnull=True)
# What a person may still have canceled, held, released, retried.
CANCELABLE = Q(status__in=[Status.PENDING, *IN_FLIGHT], cancel_requested_at__isnull=True)
HOLDABLE = Q(
    status=Status.PENDING,
    held_at__isnull=True,
    cancel_requested_at__isnull=True,
    outcome_unknown_at__isnull=True,
)
HELD = Q(status=Status.PENDING, held_at__isnull=False)
# Put aside until a budget has room for it.
AWAITS_BUDGET = Q(status=Status.PENDING, held_at__isnull=True, turn__isnull=True)
RETRYABLE = Q(status__in=[Status.FAILED, Status.CANCELED], erased_at__isnull=True)
# Failed here, yet Sume may have made it: it can be sent again with its own key.
RESENDABLE = Q(status=Status.FAILED, error_code=OUTCOME_UNKNOWN, erased_at__isnull=True) & ~Q(
    request_body=""
)
# Between two tries to store the media of a handled render.
LONGEST_MEDIA_WAIT = timedelta(days=1)
# What was made may still be kept: nobody has taken it away, or has begun to.
KEPT = Q(erased_at__isnull=True, media_removed_at__isnull=True, removing_at__isnull=True)
MADE = KEPT & Q(status=Status.COMPLETED, handled_at__isnull=False)
# Only late tries to store its media, and whoever takes away what it holds, write to such a row.
OVER = Q(status__in=TERMINAL, handled_at__isnull=False)


def standing_in(states: Collection[str]) -> Q:
    """In one of these states; where none of them is an end, found by the index of the ends."""
    where = Q(status__in=states)
    return where if set(states) & set(TERMINAL) else where & Q(finished_at__isnull=True)


def _expired(made_before: datetime, unknown_before: datetime) -> Q:
    made = Q(created_at__lte=made_before) & _not_released_since(made_before)
    unknown = Q(outcome_unknown_at__lte=unknown_before) & _not_released_since(unknown_before)
    return made | unknown


def _not_released_since(moment: datetime) -> Q:
    return Q(released_at__isnull=True) | Q(released_at__lte=moment)


def sees_all(user: Any) -> bool:
    """Whether this person may see everybody's renders."""
    return bool(user.is_staff and user.has_perm("renders.view_renderjob"))


def note_of(workspace: str) -> str:
    """What the timeline says beside a POST: whose account, if it is not the default one."""
    return "" if workspace == DEFAULT_WORKSPACE else workspace


class RenderQuerySet(models.QuerySet):
    """What the app asks the table."""

    def workspace_of(self, pk: UUID) -> str | None:
        """Which workspace a render belongs to; None where there is no such render."""
        return self.filter(pk=pk).values_list("workspace", flat=True).first()

    def their_workspaces(self) -> list[str]:
        """The workspaces that these belong to: one look into an index for each."""
        found: list[str] = []
        rows = self.order_by("workspace").values_list("workspace", flat=True)
        name = rows.first()
        while name is not None:
            found.append(name)
            name = rows.filter(workspace__gt=name).first()
        return found

    def pending(self) -> "RenderQuerySet":
        """Waiting to be sent."""
        return self.filter(status=Status.PENDING)

    def waiting(self) -> "RenderQuerySet":
        """Pending, and not held by a person."""
        return self.pending().filter(held_at__isnull=True)

    def in_line(self) -> "RenderQuerySet":
        """Waiting, and not put aside because it does not fit into a budget."""
        return self.waiting().filter(turn__isnull=False)

    def over_budget(self) -> "RenderQuerySet":
        """Waiting until a budget has room for them."""
        return self.filter(AWAITS_BUDGET)

    def in_flight(self) -> "RenderQuerySet":
        """Sent, or being sent, and not ended."""
        return self.filter(status__in=IN_FLIGHT)

    def terminal(self) -> "RenderQuerySet":
        """Ended, however."""
        return self.filter(status__in=TERMINAL)

    def unhandled(self) -> "RenderQuerySet":
        """Ended, but result and signals are not done."""
        return self.terminal().filter(handled_at__isnull=True)

    def due(self, now: datetime) -> "RenderQuerySet":
        """In line and free to be sent now, in the order to send them."""
        free = Q(not_before__isnull=True) | Q(not_before__lte=now)
        return self.in_line().filter(free, ~WITHDRAWN).order_by("-priority", "turn", "created_at")

    def withdrawn(self) -> "RenderQuerySet":
        """Pending, and to be canceled instead of sent."""
        return self.waiting().filter(WITHDRAWN)

    def unsure(self) -> "RenderQuerySet":
        """Pending, yet Sume may hold a job for it: a submit ended without a clear answer."""
        return self.pending().filter(outcome_unknown_at__isnull=False)

    def stuck_submitting(self, now: datetime, age: float) -> "RenderQuerySet":
        """Claimed more than `age` seconds ago: the claimer is taken for dead."""
        return self.filter(status=Status.SUBMITTING, claimed_at__lt=now - timedelta(seconds=age))

    def expired(self, made_before: datetime, unknown_before: datetime) -> "RenderQuerySet":
        """In line for too long; the time begins again when a person releases it.

        Also where Sume may hold the job, and the last try was before `unknown_before`: a key is
        good for its time and no longer.
        """
        return self.in_line().filter(_expired(made_before, unknown_before))

    def unexpired(self, made_before: datetime, unknown_before: datetime) -> "RenderQuerySet":
        """Those that have time left: without those of `expired`."""
        return self.exclude(_expired(made_before, unknown_before))

    def overdue(self, sent_before: datetime) -> "RenderQuerySet":
        """With Sume for so long that a person should know."""
        return self.filter(status=Status.SUBMITTED, submitted_at__lte=sent_before)

    def late(self, now: datetime, grace: float) -> "RenderQuerySet":
        """Submitted, and the next read is late by more than `grace` seconds."""
        return self.filter(status=Status.SUBMITTED, next_poll_at__lt=now - timedelta(seconds=grace))

    def unhandled_late(self, now: datetime, grace: float) -> "RenderQuerySet":
        """Ended, and the finish is late by more than `grace` seconds."""
        return self.unhandled().filter(next_poll_at__lt=now - timedelta(seconds=grace))

    def finishable(self, workspaces: Collection[str]) -> "RenderQuerySet":
        """Those that nothing is missing for but what Sume tells these workspaces."""
        known = Q(workspace__in=workspaces) | Q(sume_job_id="") | Q(result__isnull=False)
        return self.filter(known)

    def late_media(self) -> "RenderQuerySet":
        """Handled without all of their media: the rest is tried again."""
        return self.filter(MADE, media_due_at__isnull=False)

    def media_due(self, now: datetime, workspaces: Collection[str]) -> "RenderQuerySet":
        """Those of these workspaces whose late try to store media is due."""
        # What lies further ahead was written by a clock that was put back since.
        due = Q(media_due_at__lte=now) | Q(media_due_at__gt=now + LONGEST_MEDIA_WAIT)
        return self.late_media().filter(due, workspace__in=workspaces)

    def asked(self) -> "RenderQuerySet":
        """With Sume, and a read at once was asked for that is not made yet."""
        return self.filter(status=Status.SUBMITTED, asked_at__isnull=False)

    def uncanceled(self) -> "RenderQuerySet":
        """With Sume, and a person wants it canceled, and Sume has not answered to that."""
        return self.filter(
            status=Status.SUBMITTED,
            cancel_requested_at__isnull=False,
            cancel_answered_at__isnull=True,
        )

    def not_asked_to_cancel_since(self, moment: datetime) -> "RenderQuerySet":
        """Sume was not asked after `moment` to cancel these."""
        asked = Q(events__what=CANCELING, events__at__gt=moment)
        return self.annotate(asking=FilteredRelation("events", condition=asked)).filter(
            asking__isnull=True
        )

    def unfinished_unsent(self, now: datetime) -> "RenderQuerySet":
        """Ended, but not handled, and Sume never had it."""
        return self.unhandled().filter(sume_job_id="", next_poll_at__lte=now)

    def unretried(self) -> "RenderQuerySet":
        """Failed or canceled, and not retried since."""
        everything = type(self)(self.model, using=self.db)
        return self.filter(RETRYABLE, ~Exists(everything.filter(retry_of=OuterRef("pk"))))

    def resendable(self) -> "RenderQuerySet":
        """Failed without a known outcome, and not retried since."""
        return self.unretried().filter(RESENDABLE)

    def of_references(self, scope: str, owner: Any, names: Collection[str]) -> dict[str, Any]:
        """The rows of those references that are known in this scope; `owner` is the caller's key.

        An erased row keeps its reference's fingerprint. A row from before there were scopes is
        known to the site's code, and to its own user.
        """
        unscoped = Q(reference_scope=UNSCOPED)
        theirs = unscoped if scope == CODE else unscoped & Q(created_by=owner)
        erased = {fingerprint(name): name for name in names}
        rows: Iterable[Any] = self.filter(
            Q(reference_scope=scope) | theirs, reference__in=[*names, *erased]
        ).order_by("reference_scope")  # where both have it, the scope's own comes last and counts
        return {erased.get(row.reference, row.reference): row for row in rows}

    def not_swept_since(self, moment: datetime) -> "RenderQuerySet":
        """Not put back by the sweep after `moment`."""
        return self.filter(Q(swept_at__isnull=True) | Q(swept_at__lt=moment))

    def waiting_since(self, moment: datetime) -> "RenderQuerySet":
        """Neither made nor free to be sent after `moment`."""
        free = Q(not_before__isnull=True) | Q(not_before__lt=moment)
        return self.filter(free, created_at__lt=moment)

    def pks(self, limit: int) -> list[UUID]:
        """The keys of the first `limit`."""
        return list(self.values_list("pk", flat=True)[:limit])

    def visible_to(self, user: Any) -> "RenderQuerySet":
        """A person's own renders; all of them for staff who may view them."""
        if not user.is_authenticated:
            return self.none()
        return self if sees_all(user) else self.filter(created_by=user)

    def before_in_line(self, render: Any) -> "RenderQuerySet":
        """In line before this one."""
        higher = Q(priority__gt=render.priority)
        sooner = Q(turn__lt=render.turn) | Q(turn=render.turn, created_at__lt=render.created_at)
        same = Q(priority=render.priority) & sooner
        return self.in_line().filter(higher | same, workspace=render.workspace)

    def latest_spans(self, kind: str, number: int) -> list[timedelta]:
        """How long Sume took for the last `number` of this kind, the newest first."""
        made = self.filter(kind=kind, status=Status.COMPLETED).order_by("-created_at", "-id")
        times = made.values_list("submitted_at", "finished_at")[:number]
        return [finished - submitted for submitted, finished in times]


class EventQuerySet(models.QuerySet):
    """What the app asks the table of timelines."""

    def writes_around(self, now: datetime, window: float, workspace: str) -> "EventQuerySet":
        """The lines that stand for one POST of a workspace each, the newest first.

        Those of the last `window` seconds; what lies further ahead was written by a clock that
        was put back since.
        """
        span = timedelta(seconds=window)
        posts = self.filter(what__in=WRITES, detail=note_of(workspace))
        return posts.filter(at__gt=now - span, at__lte=now + span).order_by("-at")
