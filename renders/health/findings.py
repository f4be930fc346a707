"""What can be found: each with how bad it is and what to do. Values come with the finding."""

from dataclasses import dataclass
from enum import IntEnum

from renders.health.catalogue import CATALOGUE


class Level(IntEnum):
    """How bad it is."""

    OK = 0
    """As it should be."""
    INFO = 1
    """Worth knowing; nothing is wrong."""
    WARNING = 2
    """Works, but somebody should look."""
    ERROR = 3
    """Something does not work."""


@dataclass(frozen=True)
class Finding:
    """One thing that was found. `code` is a key of the catalogue; empty where all is well.

    `said` never holds a password, a key or an address that can hold one.
    """

    said: str
    code: str = ""
    next_step: str = ""
    """What to do, where the catalogue's own words are too general."""
    grave: Level | None = None
    """How bad it is, where that depends on what was found."""

    @property
    def level(self) -> Level:
        """How bad it is."""
        if self.grave is not None:
            return self.grave
        return Level[CATALOGUE[self.code].level] if self.code else Level.OK

    @property
    def advice(self) -> str:
        """What to do next; empty where nothing is to be done."""
        return self.next_step or (CATALOGUE[self.code].advice if self.code else "")


@dataclass(frozen=True)
class Part:
    """What was found about one part of the system, and how long it took to ask, in seconds."""

    name: str
    findings: tuple[Finding, ...]
    seconds: float = 0.0

    @property
    def level(self) -> Level:
        """That of the worst finding."""
        return max((finding.level for finding in self.findings), default=Level.OK)

    @property
    def ok(self) -> bool:
        """Whether nobody needs to look."""
        return self.level < Level.WARNING

    @property
    def detail(self) -> str:
        """All findings in one line."""
        return " ".join(finding.said for finding in self.findings)
