"""The doctor's findings as text for people, or as JSON."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from renders.health.findings import Finding, HealthPart, Level
from renders.health.work import counted
from renders.management.terminal import one_line

MARKS = {
    Level.OK: ("ok", "green"),
    Level.INFO: ("note", "cyan"),
    Level.WARNING: ("look", "yellow"),
    Level.ERROR: ("wrong", "bold red"),
}


def show(console: Console, parts: Sequence[HealthPart]) -> None:
    """Print the findings, worst first, each with its next step; a terminal gets a table."""
    rows = _rows(parts)
    if console.is_terminal:
        table = Table.grid(padding=(0, 2))
        for names, finding in rows:
            mark, style = MARKS[finding.level]
            table.add_row(Text(mark, style), names, _words(finding))
        console.print(table)
    else:
        for names, finding in rows:
            code = f" [{finding.code}]" if finding.code else ""
            line = f"{MARKS[finding.level][0]:6}{names}: {one_line(finding.said)}{code}"
            console.print(line, markup=False, soft_wrap=True)
            if finding.advice:
                console.print(f"      -> {one_line(finding.advice)}", markup=False, soft_wrap=True)
    console.print()
    console.print(summary(parts), soft_wrap=True)


def _words(finding: Finding) -> Text:
    words = Text(one_line(finding.said))
    if finding.code:
        words.append(f"  {finding.code}", "dim")
    if finding.advice:
        style = "bold" if finding.level >= Level.WARNING else ""
        words.append(f"\n→ {one_line(finding.advice)}", style)
    return words


def summary(parts: Sequence[HealthPart]) -> str:
    """The numbers of errors and warnings, in one sentence."""
    levels = [finding.level for _, finding in _rows(parts)]
    wrong, look = levels.count(Level.ERROR), levels.count(Level.WARNING)
    if not wrong and not look:
        return "All is well."
    numbers = [f"{counted(wrong, 'thing')} wrong"] if wrong else []
    numbers += [f"{counted(look, 'warning')}"] if look else []
    return f"{', '.join(numbers)}. Each is explained in docs/health.md."


def _rows(parts: Sequence[HealthPart]) -> list[tuple[str, Finding]]:
    """Each distinct finding with the names of its parts, worst first."""
    about: dict[Finding, list[str]] = {}
    for part in parts:
        for finding in part.findings:
            about.setdefault(finding, []).append(part.name)
    rows = [(", ".join(names), finding) for finding, names in about.items()]
    return sorted(rows, key=lambda row: -row[1].level)


def as_json(parts: Sequence[HealthPart]) -> dict[str, Any]:
    """The findings as JSON, for programs."""
    worst = max((part.level for part in parts), default=Level.OK)
    return {
        "status": worst.name.lower(),
        "findings": [
            {
                "part": part.name,
                "level": finding.level.name.lower(),
                "code": finding.code,
                "said": finding.said,
                "next_step": finding.advice,
            }
            for part in parts
            for finding in part.findings
        ],
        "seconds": {part.name: round(part.seconds, 3) for part in parts},
    }
