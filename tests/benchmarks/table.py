"""The lines of the table: what was measured, what was to be, whether it is."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

MARKS = {True: "[green]yes[/]", False: "[bold red]NO[/]", None: ""}


@dataclass(frozen=True)
class Line:
    """One measure. `met` is None where there is no goal."""

    part: str
    measure: str
    value: str
    goal: str = ""
    met: bool | None = None


def at_least(part: str, measure: str, value: float, goal: float, unit: str = "x") -> Line:
    """A line whose goal is this or more."""
    return Line(part, measure, _words(value, unit), f"≥ {_words(goal, unit)}", value >= goal)


def at_most(part: str, measure: str, value: float, goal: float, unit: str) -> Line:
    """A line whose goal is this or less."""
    return Line(part, measure, _words(value, unit), f"≤ {_words(goal, unit)}", value <= goal)


def plain(part: str, measure: str, value: float, unit: str) -> Line:
    """A line without a goal."""
    return Line(part, measure, _words(value, unit))


def disturbed(part: str, others: float) -> Line:
    """How far times by the clock can be believed: not where others work on the same core."""
    return plain(part, "of the measured core's time, others took meanwhile", 100 * others, "%")


def show(console: Console, lines: Sequence[Line]) -> None:
    """Print the table, a rule between the parts."""
    table = Table(title="Benchmark", header_style="bold")
    for name in ("", "measure", "value", "goal", "met"):
        table.add_column(name, justify="right" if name in {"value", "goal"} else "left")
    for number, line in enumerate(lines):
        last = number + 1 == len(lines) or lines[number + 1].part != line.part
        table.add_row(
            line.part, line.measure, line.value, line.goal, MARKS[line.met], end_section=last
        )
    console.print(table)


def _words(value: float, unit: str) -> str:
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 20 else 2
    number = f"{value:,.{digits}f}"
    if "." in number:
        number = number.rstrip("0").rstrip(".")
    return f"{number}{'' if unit in {'x', '%'} else ' '}{unit}".strip()
