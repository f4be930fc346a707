"""Everything that can go wrong with a render. The docstring says what happened."""

from datetime import datetime


class RendersError(Exception):
    """Base of the app's own errors."""


class InvalidRender(RendersError):
    """The request for a render is not acceptable; nothing was created.

    `field` names the argument at fault; of a field of one kind's own, `params.<name>`. `index` is
    the place of the request in a list of them.
    """

    def __init__(self, field: str, message: str, *, index: int = 0) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message
        self.index = index


class SumeError(RendersError):
    """Sume's answer to a request was not a success.

    `code` is Sume's own error code or ours, `status` the HTTP status (0 where no reply came),
    `request_id` names the request in Sume's logs, `retry_after` is how many seconds Sume asks to
    wait (None where it named no time). The message is safe to show: it holds no key, no header and
    no whole body.
    """

    outcome = "unknown"
    """As it is counted, in `renders.telemetry.metrics`."""

    def __init__(
        self,
        message: str,
        *,
        code: str = "",
        status: int = 0,
        request_id: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.request_id = request_id
        self.retry_after = retry_after


class OutcomeUnknown(SumeError):
    """The request may or may not have taken effect: send it again, unchanged, later."""


class BackOff(SumeError):
    """Sume asks everybody to wait."""

    outcome = "back_off"


class Unreachable(BackOff):
    """No connection to Sume could be made: nothing of the request left this machine."""

    outcome = "unreachable"


class Paused(SumeError):
    """The key or the account was refused: every request meets this until a person acts."""

    outcome = "paused"


class Closed(SumeError):
    """Our own gate is closed: nothing was sent. `until` is None if a person has to open it."""

    def __init__(self, message: str, *, code: str, until: datetime | None) -> None:
        super().__init__(message, code=code)
        self.until = until


class UnknownWorkspace(Closed):
    """A render's workspace is not configured: nothing is sent for it, with no key."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The workspace {name} is not configured: its renders wait.",
            code="unknown_workspace",
            until=None,
        )


class Rejected(SumeError):
    """This request will never pass."""

    outcome = "refused"


class KeyTaken(Rejected):
    """Sume has another request under this idempotency key: it may hold a job for it."""


class NotFound(Rejected):
    """Sume does not know the job."""

    outcome = "not_found"


class NotReady(SumeError):
    """The job's result is not there yet."""


class MediaError(RendersError):
    """A finished artifact could not be stored. The message never holds its URL."""


class LinkExpired(MediaError):
    """The server of a finished artifact no longer takes its URL; a fresh one may work."""


class KeyReused(RendersError):
    """This idempotency key was used with another request."""


class ReferenceTaken(InvalidRender):
    """This reference was given before, with another request; nothing was created."""

    def __init__(self, index: int = 0) -> None:
        super().__init__(
            "reference",
            "Another render has this reference, with a different request. Choose another one.",
            index=index,
        )


class TooManyAtOnce(InvalidRender):
    """More new renders were asked for than one person may have waiting; nothing was created."""

    def __init__(self, new: int, limit: int) -> None:
        super().__init__(
            "renders",
            f"These are {new:,} new renders, and you may have at most {limit:,} waiting. "
            "Ask for fewer at once.",
        )


class LineFull(InvalidRender):
    """This person has too many renders waiting for more to fit; nothing was created."""

    retry_after = 60
    """Seconds after which a program may try again: some renders may have been sent by then."""

    def __init__(self, waiting: int, new: int, limit: int) -> None:
        super().__init__(
            "renders",
            f"You have {waiting:,} render{'' if waiting == 1 else 's'} waiting, and at most "
            f"{limit:,} may wait: {new:,} more {'does' if new == 1 else 'do'} not fit. "
            "Wait until some have been sent, or cancel some.",
        )
