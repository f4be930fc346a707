"""The words for what a render is and where it stands."""

from django.db import models


class Kind(models.TextChoices):
    """What Sume is asked to make."""

    IMAGE = "image", "Image"
    """A still picture."""
    VIDEO = "video", "Video"
    """A clip made from the prompt."""
    AVATAR = "avatar", "Avatar"
    """A character, to be used again in clips."""
    AVATAR_VIDEO = "avatar_video", "Avatar video"
    """A clip in which an avatar speaks or acts."""


def takes_model(kind: str) -> bool:
    """Whether a model is named for it; true of a kind that only another release knows."""
    return kind not in {Kind.AVATAR, Kind.AVATAR_VIDEO}


class Status(models.TextChoices):
    """Where a render stands. Written by `renders.transitions` alone."""

    PENDING = "pending", "Pending"
    """Stored, waiting for its turn to be sent to Sume (again)."""
    SUBMITTING = "submitting", "Submitting"
    """Claimed by a worker that is sending it now."""
    SUBMITTED = "submitted", "Submitted"
    """Accepted by Sume; polled until it ends."""
    COMPLETED = "completed", "Completed"
    """Sume made it."""
    FAILED = "failed", "Failed"
    """Sume refused it or could not make it; `error_code` says why."""
    CANCELED = "canceled", "Canceled"
    """Canceled before it was sent, or by Sume."""


IN_FLIGHT = (Status.SUBMITTING, Status.SUBMITTED)
TERMINAL = (Status.COMPLETED, Status.FAILED, Status.CANCELED)


class RequestType(models.TextChoices):
    """The two sorts of requests that Sume counts."""

    WRITES = "writes", "Writes"
    """POST: submits and cancels."""
    READS = "reads", "Reads"
    """GET: status, result, record."""


# The `error_code` of a render that Sume may have made, and bill, though it failed here.
OUTCOME_UNKNOWN = "submit_outcome_unknown"

# The `error_code` of a pending render that does not fit into a budget.
OVER_BUDGET = "over_budget"
# Its lines in the timeline.
PUT_ASIDE = "put aside"
BACK_IN_LINE = "back in line"

# The lines of a timeline that stand for one POST each, written before it goes out.
SENDING = "sending"
CANCELING = "asking Sume to cancel"
WRITES = (SENDING, CANCELING)

# The workspace of renders that name none.
DEFAULT_WORKSPACE = "default"

# The model of renders that name none.
AUTO = "sume/auto"

# Whose a reference is: the site's own code's, `door:<user id>`, or that of a row which a release
# stored that knew no scopes.
CODE = "code"
UNSCOPED = ""
