"""The indexes of the table of renders: one for each question that is asked all the time.

What waits, runs or is not handled is a small part of the table: its indexes hold nothing else.
"""

from django.db import models
from django.db.models import F, Q

from renders.states import DEFAULT_WORKSPACE, TERMINAL, Status

INDEXES = [
    # Each workspace has a line of its own.
    models.Index(
        "workspace",
        F("priority").desc(),
        "turn",
        "created_at",
        name="renders_line",
        condition=Q(status=Status.PENDING, held_at__isnull=True, turn__isnull=False),
    ),
    # A user's last tag, and how many a user has waiting.
    models.Index(
        fields=["workspace", "created_by", "priority", "turn"],
        name="renders_waiting",
        condition=Q(status=Status.PENDING, held_at__isnull=True),
    ),
    models.Index(
        fields=["workspace", "created_by", "kind", "model"],
        name="renders_over_budget",
        condition=Q(status=Status.PENDING, held_at__isnull=True, turn__isnull=True),
    ),
    # The tag that a line has come to.
    models.Index(
        fields=["workspace", "priority", "-turn"],
        name="renders_claimed",
        condition=Q(claimed_at__isnull=False),
    ),
    models.Index(fields=["held_at"], name="renders_held", condition=Q(held_at__isnull=False)),
    models.Index(
        fields=["outcome_unknown_at"],
        name="renders_unsure",
        condition=Q(status=Status.PENDING, outcome_unknown_at__isnull=False),
    ),
    models.Index(
        fields=["claimed_at"],
        name="renders_submitting",
        condition=Q(status=Status.SUBMITTING),
    ),
    models.Index(
        fields=["next_poll_at"],
        name="renders_to_poll",
        condition=Q(status=Status.SUBMITTED),
    ),
    models.Index(
        fields=["workspace", "submitted_at"],
        name="renders_running",
        condition=Q(status=Status.SUBMITTED),
    ),
    models.Index(
        fields=["cancel_requested_at"],
        name="renders_to_cancel",
        condition=Q(status=Status.SUBMITTED, cancel_requested_at__isnull=False),
    ),
    models.Index(
        fields=["next_poll_at"],
        name="renders_to_finish",
        condition=Q(status__in=TERMINAL, handled_at__isnull=True),
    ),
    models.Index(
        fields=["media_due_at"],
        name="renders_media_due",
        condition=Q(media_due_at__isnull=False),
    ),
    # How many run, and what a day or a month cost, is read from the index alone.
    models.Index(fields=["finished_at", "status", "cost_usd_micros"], name="renders_ended"),
    # What a workspace, and what one of its users, has spent of a budget.
    models.Index(
        fields=["workspace", "finished_at", "kind", "model", "cost_usd_micros"],
        name="renders_costs",
        condition=Q(finished_at__isnull=False) & ~Q(cost_usd_micros=0),
    ),
    models.Index(
        fields=["workspace", "created_by", "finished_at", "kind", "model", "cost_usd_micros"],
        name="renders_costs_of_user",
        condition=Q(finished_at__isnull=False, created_by__isnull=False) & ~Q(cost_usd_micros=0),
    ),
    # The dearest cost of a model.
    models.Index(
        fields=["kind", "model", "-cost_usd_micros"],
        name="renders_dearest",
        condition=Q(cost_usd_micros__gt=0),
    ),
    models.Index(fields=["-created_at", "-id"], name="renders_newest"),
    models.Index(
        fields=["workspace", "-created_at", "-id"],
        name="renders_newest_of_workspace",
        condition=~Q(workspace=DEFAULT_WORKSPACE),
    ),
    models.Index(fields=["created_by", "-created_at"], name="renders_newest_of_user"),
    models.Index(fields=["kind", "-created_at", "-id"], name="renders_newest_of_kind"),
    # Those completed are found among the newest; these are too few.
    models.Index(
        fields=["status", "-created_at", "-id"],
        name="renders_newest_not_made",
        condition=Q(status__in=[Status.FAILED, Status.CANCELED]),
    ),
    models.Index(
        fields=["retry_of"],
        name="renders_retries",
        condition=Q(retry_of__isnull=False),
    ),
    models.Index(fields=["sume_job_id"], name="renders_job_id", condition=~Q(sume_job_id="")),
    models.Index(
        fields=["removing_at"], name="renders_removing", condition=Q(removing_at__isnull=False)
    ),
]
