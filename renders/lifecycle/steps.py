"""The next step of a render: chosen by `lifecycle`, carried out by a scheduler."""

from dataclasses import dataclass
from typing import Literal
from uuid import UUID


@dataclass(frozen=True)
class Step:
    """Take this step for this render in `after` seconds.

    `token` is the lease that a poll is handed; None: the poll acquires one itself.
    """

    do: Literal["submit", "poll", "media", "finish", "cancel"]
    render_id: UUID
    after: float = 0.0
    token: str | None = None
