"""The tables of renders and of their timelines, without any rule about time or money.

Each frequent query has an index. Rows that are pending, in flight or unhandled are a small part of
the table, so the indexes for them are partial and hold only those rows.
"""

import uuid
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.urls import reverse
from django.utils import timezone

from renders.fields import IdempotencyKeyField
from renders.models.querysets import EventQuerySet, RenderQuerySet
from renders.redaction import Link
from renders.states import CODE, DEFAULT_WORKSPACE, TERMINAL, UNSCOPED, WRITES, Kind, Status

INDEXES = [
    # Claim order: each workspace has its own line.
    models.Index(
        "workspace",
        F("priority").desc(),
        "turn",
        "created_at",
        name="renders_line",
        condition=Q(status=Status.PENDING, held_at__isnull=True, turn__isnull=False),
    ),
    # A user's last tag in the line, and how many renders a user has waiting.
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
    # The last tag of the line that was claimed.
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
    # Counts of renders in flight, and the cost of a day or month, come from the index alone.
    models.Index(fields=["finished_at", "status", "cost_usd_micros"], name="renders_ended"),
    # What a workspace has spent of its budget; the next one: what one of its users has spent.
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
    # The highest cost of a model.
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
    # Completed renders are frequent among the newest ones; failed and canceled ones are too rare.
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


class RenderJob(models.Model):
    """One picture or clip: one row, one idempotency key, one request body, one bill."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=20, choices=Kind.choices, default=Kind.IMAGE)
    model = models.CharField(
        max_length=100, default="sume/auto", help_text="Sume's name of the model that makes it."
    )
    prompt = models.TextField(help_text="What the picture or clip should show.")
    params = models.JSONField(
        default=dict, blank=True, help_text="Further fields of the request, as a JSON object."
    )
    priority = models.SmallIntegerField(default=0, help_text="Higher goes first.")
    # Set when the row enters the line: see `renders.limits.turns`.
    turn = models.BigIntegerField(
        null=True,
        default=0,
        db_default=0,
        editable=False,
        help_text="Its tag in the line, lower first; empty while it does not fit into a budget.",
    )
    reference = models.CharField(  # noqa: DJ001 (NULL where none: unique when given)
        max_length=200,
        null=True,
        blank=True,
        help_text="The caller's own unique name: the same reference gives the same render.",
    )
    # Set when the row is made and never changed: see `renders.services.references`.
    reference_scope = models.CharField(
        max_length=200,
        default=CODE,
        db_default=UNSCOPED,
        editable=False,
        help_text="Whose reference it is: the site's own code, or one user's.",
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="renders",
        db_index=False,  # `renders_newest_of_user` begins with it
    )
    retry_of = models.ForeignKey(
        "self",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="retries",
        db_index=False,  # few rows have one: see the partial index `renders_retries`
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    # Set when the row is made and never changed: another account would bill the render again.
    workspace = models.CharField(
        max_length=40,
        default=DEFAULT_WORKSPACE,
        db_default=DEFAULT_WORKSPACE,
        editable=False,
        help_text="The Sume account that makes it and is billed.",
    )

    status = models.CharField(
        max_length=20, choices=Status.choices, default=Status.PENDING, editable=False
    )
    not_before = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="Not sent to Sume before this time."
    )

    held_at = models.DateTimeField(
        null=True, editable=False, help_text="When a person held it: not sent until released."
    )
    released_at = models.DateTimeField(null=True, editable=False)

    # The request, frozen before it is first sent.
    idempotency_key = IdempotencyKeyField(max_length=60, editable=False)
    request_path = models.CharField(max_length=100, blank=True, editable=False)
    request_body = models.TextField(blank=True, editable=False)
    by_webhook = models.BooleanField(
        default=False, editable=False, help_text="Sume was asked to tell when it has ended."
    )

    claimed_at = models.DateTimeField(null=True, editable=False)
    submit_attempts = models.PositiveIntegerField(default=0, editable=False)
    outcome_unknown_at = models.DateTimeField(
        null=True,
        editable=False,
        help_text="Last time a submit ended without a clear answer: Sume may hold the job.",
    )
    submitted_at = models.DateTimeField(null=True, editable=False)
    sume_job_id = models.CharField(max_length=200, blank=True, editable=False)
    sume_status = models.CharField(max_length=50, blank=True, editable=False)
    idempotency_hit = models.BooleanField(
        default=False, editable=False, help_text="Sume had this request already."
    )

    next_poll_at = models.DateTimeField(
        null=True, editable=False, help_text="When Sume is next asked about this render."
    )
    taken_at = models.DateTimeField(
        null=True,
        editable=False,
        help_text="When a reader took it from the table; empty when it was read.",
    )
    asked_at = models.DateTimeField(
        null=True,
        editable=False,
        help_text="When a read at once was last asked for; empty when it was made.",
    )
    last_polled_at = models.DateTimeField(null=True, editable=False)
    poll_count = models.PositiveIntegerField(
        default=0, editable=False, help_text="Sequence of reads: each write of a read names it."
    )
    failed_reads = models.PositiveIntegerField(
        default=0, editable=False, help_text="Reads that failed in a row."
    )
    not_found_since = models.DateTimeField(null=True, editable=False)
    swept_at = models.DateTimeField(
        null=True, editable=False, help_text="When the sweep last put this render back to work."
    )

    cancel_requested_at = models.DateTimeField(null=True, editable=False)
    cancel_answered_at = models.DateTimeField(null=True, editable=False)

    finished_at = models.DateTimeField(null=True, editable=False)
    handled_at = models.DateTimeField(
        null=True, editable=False, help_text="When result and signals were done."
    )
    error_code = models.CharField(max_length=100, blank=True, editable=False)
    error_message = models.TextField(blank=True, editable=False)
    result = models.JSONField(null=True, blank=True, editable=False)
    cost_usd_micros = models.BigIntegerField(
        null=True, editable=False, help_text="Cost in millionths of a US dollar."
    )

    media_due_at = models.DateTimeField(
        null=True, editable=False, help_text="When a late try to store its media is due."
    )

    # Set when files or texts are removed later: see `renders.housekeeping.removal`.
    removing_at = models.DateTimeField(
        null=True, editable=False, help_text="Its files are being deleted since."
    )
    media_removed_at = models.DateTimeField(null=True, editable=False)
    erased_at = models.DateTimeField(
        null=True, editable=False, help_text="Since then, the row is a line of the bill alone."
    )

    objects = RenderQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        permissions = [
            ("cancel_renderjob", "Can cancel render job"),
            ("retry_renderjob", "Can retry render job"),
            ("hold_renderjob", "Can hold and release render job"),
            ("choose_workspace", "Can choose the workspace of a render"),
            ("prioritize_renderjob", "Can give a render a priority above 0"),
            ("exceed_waiting_limit", "Can have any number of renders waiting"),
        ]
        constraints = [
            models.CheckConstraint(name="renders_status_known", condition=Q(status__in=Status)),
            models.CheckConstraint(
                name="renders_submitting_is_claimed",
                condition=~Q(status=Status.SUBMITTING) | Q(claimed_at__isnull=False),
            ),
            models.CheckConstraint(
                name="renders_submitted_has_job_id",
                condition=~Q(status__in=[Status.SUBMITTED, Status.COMPLETED])
                | (~Q(sume_job_id="") & Q(submitted_at__isnull=False)),
            ),
            models.CheckConstraint(
                name="renders_submitted_has_next_poll",
                condition=~Q(status=Status.SUBMITTED) | Q(next_poll_at__isnull=False),
            ),
            models.CheckConstraint(
                name="renders_terminal_has_finished_at",
                condition=Q(status__in=TERMINAL, finished_at__isnull=False)
                | (~Q(status__in=TERMINAL) & Q(finished_at__isnull=True)),
            ),
            models.CheckConstraint(
                name="renders_handled_is_terminal",
                condition=Q(handled_at__isnull=True) | Q(status__in=TERMINAL),
            ),
            models.CheckConstraint(
                name="renders_held_is_pending",
                condition=Q(held_at__isnull=True) | Q(status=Status.PENDING),
            ),
            # A constraint: on PostgreSQL, a unique field would get a second index for LIKE.
            models.UniqueConstraint(
                name="renders_idempotency_key_unique", fields=["idempotency_key"]
            ),
            models.UniqueConstraint(
                name="renders_reference_of_scope",
                fields=["reference", "reference_scope"],
                condition=Q(reference__isnull=False),
            ),
        ]
        indexes = INDEXES

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {str(self.id)[:8]} ({self.status})"

    def get_absolute_url(self) -> str:
        return reverse("renders:detail", args=[self.pk])

    @property
    def is_terminal(self) -> bool:
        """Whether the render has ended: its outcome no longer changes."""
        return self.status in TERMINAL

    @property
    def awaits_budget(self) -> bool:
        """Whether it was put aside until it fits into a budget."""
        return self.status == Status.PENDING and self.turn is None and self.held_at is None

    @property
    def artifacts(self) -> list[dict[str, Any]]:
        """The finished media, as copies.

        Each has `type`, `content_type` and `url`; a stored one also has `file`, `thumbnail`,
        `sha256` and `bytes`. `failures` counts the failed tries to store it, and `begun` the tries
        that started without a recorded end.
        """
        if self.removing_at:
            return []  # some files are deleted already
        return [
            {**artifact, "url": Link(artifact["url"])} if artifact.get("url") else dict(artifact)
            for artifact in (self.result or {}).get("artifacts", [])
        ]


class RenderEvent(models.Model):
    """One line of a render's timeline."""

    render = models.ForeignKey(RenderJob, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField(default=timezone.now)
    what = models.CharField(max_length=40)
    detail = models.CharField(max_length=500, blank=True)

    objects = EventQuerySet.as_manager()

    class Meta:
        ordering = ["at", "id"]
        indexes = [
            models.Index(fields=["at"], name="renders_writes", condition=Q(what__in=WRITES)),
            models.Index(
                fields=["at"], name="renders_unstored", condition=Q(what="media not stored")
            ),
            models.Index(fields=["at"], name="renders_media_lost", condition=Q(what="media lost")),
        ]

    def __str__(self) -> str:
        return f"{self.what}: {self.detail}" if self.detail else self.what
