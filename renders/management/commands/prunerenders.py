"""`manage.py prunerenders`: delete what is older than it shall be."""

import sys
from dataclasses import replace
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from renders.conf import conf
from renders.housekeeping.policy import Ages
from renders.housekeeping.pruning import Pruned, Pruning, foresee
from renders.management import arguments
from renders.management.stopping import Stopping
from renders.management.terminal import bar_on

STORAGE = 1
STOPPED = 130
HELP = {
    "completed": "completed renders",
    "failed": "failed renders",
    "canceled": "canceled renders",
    "media": "pictures and clips of renders that are kept",
    "events": "timelines of renders that are kept",
    "task_results": "Celery's results",
}
LINES = {
    "renders": "renders, with their timelines and files",
    "bills": "renders down to a line of the bill (they have a reference, are retries, or are used)",
    "media": "renders' pictures and clips",
    "files": "files",
    "events": "lines of timelines",
    "webhooks": "webhook events",
    "keys": "idempotency keys of the API",
    "drafts": "lists that were not added",
    "task_results": "task results",
}


class Command(BaseCommand):
    help = (
        "Delete old renders and what belongs to them. Workers may run meanwhile; only renders "
        "that are over are touched. Ctrl-C ends it after the batch; the same again goes on. "
        "Status: 0 done, 1 files could not be deleted, 130 stopped."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        for name, days in vars(Ages.as_set()).items():
            parser.add_argument(
                f"--{name.replace('_', '-')}-days",
                type=arguments.days,
                default=days,
                metavar="DAYS",
                help=f"age of {HELP[name]}; 0: never (default: {days})",
            )
        parser.add_argument(
            "--batch",
            type=arguments.batch,
            default=min(500, conf.SWEEP_BATCH or 500),
            help="rows in one transaction, up to 10,000 (default: %(default)s)",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="count what would be deleted; delete nothing"
        )

    def handle(self, *args: Any, batch: int, dry_run: bool, **options: Any) -> None:
        ages = replace(Ages(), **{name: options[f"{name}_days"] for name in vars(Ages())})
        if not (ages.completed or ages.failed or ages.canceled):
            self.stdout.write("Renders are kept for ever: no age is set for them.")
        if dry_run:
            self._tell(foresee(ages), "Would delete")
            return
        total = foresee(ages, files=False).rows
        with (
            Stopping(lambda: self.stderr.write("Ending after this batch.")) as stop,
            bar_on(self.stderr, "deleting", total) as told,
        ):
            run = Pruning(ages, batch=batch, told=told, stop=lambda: stop.asked)
            done = run.run()
        self._tell(done, "Deleted")
        if done.failed:
            self.stderr.write(
                f"The files of {done.failed:,} render{'s' * (done.failed > 1)} could not be "
                "deleted; the log says why. "
                "Their rows stay. The same again goes on with them."
            )
            sys.exit(STORAGE)
        if done.stopped:
            self.stderr.write("Stopped. The same again goes on.")
            sys.exit(STOPPED)

    def _tell(self, tally: Pruned, verb: str) -> None:
        found = {words: getattr(tally, name) for name, words in LINES.items()}
        if not any(found.values()):
            self.stdout.write(f"{verb} nothing.")
            return
        self.stdout.write(f"{verb}:")
        for words, number in found.items():
            if number:
                size = f" ({tally.bytes:,} bytes)" if words == "files" else ""
                self.stdout.write(f"{number:>12,}  {words}{size}")
