"""The one table that a drive prints."""

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tests.drive.checks import Line

MARKS = {True: "[green]ok[/]", False: "[bold red]FAIL[/]", None: ""}
MOST_DETAILS = 8


def show(console: Console, title: str, lines: Iterable[Line]) -> bool:
    """Print the lines, and the details of those that do not hold; whether all hold."""
    lines = list(lines)
    table = Table(title=title, title_justify="left")
    table.add_column("")
    table.add_column("what")
    table.add_column("found", overflow="fold")
    for line in lines:
        table.add_row(MARKS[line.holds], escape(line.name), escape(str(line.value)))
    console.print(table)
    broken = [line for line in lines if line.holds is False]
    for line in broken:
        console.print(f"{line.name}:", style="bold", markup=False)
        for detail in line.details[:MOST_DETAILS]:
            console.print(f"  {detail}", markup=False, highlight=False)
        if len(line.details) > MOST_DETAILS:
            console.print(f"  and {len(line.details) - MOST_DETAILS} more")
    return not broken
