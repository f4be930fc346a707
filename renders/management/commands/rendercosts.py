"""`manage.py rendercosts`: what renders cost, by whom and what and when."""

import csv
import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from rich import box
from rich.table import Table
from rich.text import Text

from renders.housekeeping.exporting import cell, dollars
from renders.management import arguments
from renders.management.terminal import console_on, one_line
from renders.reports import costs
from renders.reports.costs import COUNTS, GROUPS, CostLine

WIDE = 1_000


class Command(BaseCommand):
    help = (
        "Sum up what renders cost, of those that have ended; a render counts where it ended. "
        "Failed and canceled ones cost nothing: Sume refunds them. Days and months are those of "
        "the current time zone."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--by",
            type=arguments.words(GROUPS),
            default=["month"],
            help=f"with commas: {', '.join(GROUPS)} (default: month)",
        )
        parser.add_argument(
            "--since", type=arguments.moment, help="ended then or later: 2026-01-31 or with a time"
        )
        parser.add_argument("--until", type=arguments.moment, help="ended before that")
        parser.add_argument("--format", choices=["table", "csv", "json"], default="table")

    def handle(self, *args: Any, by: list[str], **options: Any) -> None:
        lines = costs.lines(costs.ended(options["since"], options["until"]), by)
        if options["format"] == "csv":
            self._csv(by, lines)
        elif options["format"] == "json":
            self.stdout.write(json.dumps([_as_dict(by, line) for line in lines], indent=2))
        else:
            self._table(by, lines, no_color=options["no_color"])

    def _csv(self, by: list[str], lines: list[CostLine]) -> None:
        writer = csv.writer(self.stdout, lineterminator="\n")
        self.stdout.ending = ""
        rows = [_as_dict(by, line) for line in lines]
        writer.writerow([*by, *COUNTS, "cost_usd_micros", "cost_usd"])
        writer.writerows([cell(value) for value in row.values()] for row in rows)

    def _table(self, by: list[str], lines: list[CostLine], *, no_color: bool) -> None:
        console = console_on(self.stdout, no_color=no_color)
        table = Table(
            box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_footer=len(lines) > 1
        )
        whole = costs.total(lines)
        for place, name in enumerate(by):
            table.add_column(name, footer="total" if place == 0 else "")
        for name in COUNTS:
            number = f"{getattr(whole, name):,}"
            table.add_column(name, footer=number, justify="right", no_wrap=True)
        table.add_column("US dollars", footer=dollars(whole.cost) or "", justify="right")
        for line in lines:
            numbers = [f"{getattr(line, name):,}" for name in COUNTS]
            group = [Text(one_line(one)) for one in line.group]
            table.add_row(*group, *numbers, dollars(line.cost) or "")
        if lines:
            console.width = WIDE  # no amount is ever cut
            console.print(table)
        else:
            console.print("No render has ended in this time.")
        if whole.unknown:
            console.print(
                f"Not in the sums: {whole.unknown:,} of unknown cost. Sume told none, or gave no "
                "clear answer. Your Sume account knows.",
                soft_wrap=True,
            )
        if running := costs.running():
            console.print(
                f"At Sume, or may be: {running:,}. They count when they have ended.",
                soft_wrap=True,
            )


def _as_dict(by: list[str], line: CostLine) -> dict[str, Any]:
    return {
        **dict(zip(by, line.group, strict=True)),
        **{name: getattr(line, name) for name in COUNTS},
        "cost_usd_micros": line.cost,
        "cost_usd": dollars(line.cost),
    }
