"""`manage.py eraserenders`: erase what is known of a person; the lines of the bill stay."""

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from renders.housekeeping import erasing
from renders.housekeeping.erasing import Erased, NotOver
from renders.management import arguments
from renders.management.stopping import Stopping
from renders.management.terminal import bar_on
from renders.services import bulk

NOT_ALL = 1
USAGE = 2
STOPPED = 130
LINES = {
    "renders": "renders: prompts, parameters, results, references, messages",
    "files": "files",
    "drafts": "lists for “Add many”",
    "keys": "idempotency keys of the API",
    "task_results": "task results",
    "tokens": "API tokens revoked",
}


class Command(BaseCommand):
    help = (
        "Erase a user's data: of each render a line of the bill stays (kind, model, status, cost, "
        "times, Sume's job id). It cannot be undone. Status: 0 all erased, 1 something is left, "
        "2 wrong usage, 130 stopped."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        whose = parser.add_mutually_exclusive_group(required=True)
        whose.add_argument("--user", help="a name, id or email address")
        whose.add_argument(
            "--nobody",
            action="store_true",
            help="renders that belong to nobody: made without --user, or of users deleted since",
        )
        parser.add_argument(
            "--cancel", action="store_true", help="ask for all that still runs to be canceled"
        )
        parser.add_argument("--yes", action="store_true", help="do not ask")
        parser.add_argument(
            "--dry-run", action="store_true", help="count what would be erased; erase nothing"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        user = None if options["nobody"] else arguments.user(options["user"])
        who = "renders of nobody" if user is None else f"user {user.get_username()} (id {user.pk})"
        found = erasing.foresee(user)
        self._tell(found, f"Of {who}" + (", would be erased" if options["dry_run"] else ""))
        if options["dry_run"]:
            if found.left:
                self.stdout.write(f"{_renders_are(found.left)} not over: it would be refused.")
            return
        self._refuse_open(user, found.left, cancel=options["cancel"])
        if not options["yes"]:
            self._ask(who)
        with (
            Stopping(lambda: self.stderr.write("Ending after this batch.")) as stop,
            bar_on(self.stderr, "erasing", found.renders) as told,
        ):
            try:
                done = erasing.erase(user, told=told, stop=lambda: stop.asked)
            except NotOver as error:
                self._refuse_open(user, error.count, cancel=False)
                return
        self._tell(done, "Erased")
        self._end(done, stopped=stop.asked)

    def _refuse_open(self, user: Any, count: int, *, cancel: bool) -> None:
        if not count:
            return
        if not cancel:
            raise CommandError(
                f"Nothing was erased: {_renders_are(count)} not over. Wait for the end, or "
                "ask for a cancel with --cancel."
            )
        while bulk.cancel_renders(erasing.open_renders(user)).unreached:
            pass
        left = erasing.open_renders(user).count()
        raise CommandError(
            f"Nothing was erased yet. Cancel requested; {_renders_are(left)} not over. "
            "Workers must run. Do the same again in a minute."
        )

    def _ask(self, who: str) -> None:
        if not sys.stdin.isatty():
            raise CommandError("Nothing was erased: give --yes to go on.", returncode=USAGE)
        try:
            answer = input(f"Erase this of {who}? It cannot be undone. Type yes: ")
        except (EOFError, KeyboardInterrupt):
            answer = ""
        if answer.strip().lower() != "yes":
            raise CommandError("Nothing was erased.")

    def _tell(self, found: Erased, head: str) -> None:
        lines = {words: getattr(found, name) for name, words in LINES.items()}
        if not any(lines.values()):
            self.stdout.write(f"{head}: nothing.")
            return
        self.stdout.write(f"{head}:")
        for words, number in lines.items():
            if number:
                size = f" ({found.bytes:,} bytes)" if words == "files" else ""
                self.stdout.write(f"{number:>12,}  {words}{size}")

    def _end(self, done: Erased, *, stopped: bool) -> None:
        if done.failed:
            self.stderr.write(
                f"The files of {done.failed:,} render{'s' * (done.failed > 1)} could not be "
                "deleted; the log says why. "
                "The same again goes on with them."
            )
        if done.left:
            self.stderr.write(
                f"{_renders_are(done.left)} not over, made meanwhile. Do the same again later."
            )
        if stopped and done.rest:
            self.stderr.write(f"Stopped; {_renders_are(done.rest)} left. The same again goes on.")
            sys.exit(STOPPED)
        if done.left or done.rest:
            sys.exit(NOT_ALL)


def _renders_are(count: int) -> str:
    return "1 render is" if count == 1 else f"{count:,} renders are"
