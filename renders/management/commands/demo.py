"""`manage.py demo`: the whole application on a machine with nothing but Python."""

import os
import sys
import time
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.text import Text

from renders.demo.exceptions import DemoError, Interrupted
from renders.demo.stack import Site, Stack
from renders.demo.state import StateFolder
from renders.management.stopping import StopRequests
from renders.management.terminal import console_on

PROMPTS = [
    "A red fox asleep in fresh snow at dawn",
    "A lighthouse made of glass in a thunderstorm",
    "A tram crossing a bridge of books",
    "Portrait of an octopus as a clockmaker, oil on canvas",
]
STOPPED_EARLY = 130
ELSEWHERE = (
    "The demo starts the project that this app comes with, and this is another one. For a stand-in "
    "beside your own: python manage.py sumesandbox"
)


class Command(BaseCommand):
    help = (
        "Start everything (Redis, worker, beat, Flower, web server, a stand-in for Sume unless "
        "SUME_API_KEY is set), make pictures from the prompts, and show where to look. "
        "Ctrl-C ends it."
    )
    # It only starts other commands, which check for themselves.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("prompts", nargs="*", help="what the pictures should show")
        parser.add_argument(
            "--exit",
            action="store_true",
            help="end when the renders have ended; status 0 only if all did as they should",
        )
        parser.add_argument(
            "--keep", action="store_true", help="keep the data for the next run with --keep"
        )
        parser.add_argument(
            "--port", type=int, default=0, help="the web server's port (default: a free one)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if not all(prompt.strip() for prompt in options["prompts"]):
            raise CommandError("A prompt is empty: say what the picture should show.", returncode=2)
        if not hasattr(settings, "STATE_DIR"):
            raise CommandError(ELSEWHERE, returncode=2)
        self.console = console_on(self.stdout, no_color=options["no_color"])
        state = StateFolder(settings.STATE_DIR.resolve() / "demo", keep=options["keep"])
        site = Site(
            settings.BASE_DIR, settings.ROOT_URLCONF.partition(".")[0], settings.SETTINGS_MODULE
        )
        with StopRequests() as requests:
            stack = Stack(site, state, requests, environment=os.environ, say=self.say)
            try:
                status = self.run(stack, state, options)
            except DemoError as error:
                raise CommandError(str(error)) from None
        if requests.forced or (requests.count and options["exit"]):
            sys.exit(STOPPED_EARLY)
        if status:
            sys.exit(status)

    def run(self, stack: Stack, state: StateFolder, options: dict[str, Any]) -> int:
        """Start, follow, wait, and in any case clean up; return the exit status."""
        status, failed = 1, True
        state.open()
        self.say("Demo", "is starting; Ctrl-C ends it at any time")
        try:
            stack.start(options["port"])
            status = stack.follow(options["prompts"] or PROMPTS)
            self.show_places(stack, state, ending=options["exit"])
            while not options["exit"]:
                stack.check()
                time.sleep(0.1)
            failed = bool(status)
        except Interrupted:
            status, failed = 0, False
            self.say("Stopping", "press Ctrl-C again to force it")
        finally:
            stack.stop()
            state.close(failed=failed)
            if failed and state.logs.exists():
                self.say("Logs", str(state.logs))
            self.say("Ended", "nothing is left running")
        return 1 if status else 0

    def show_places(self, stack: Stack, state: StateFolder, *, ending: bool) -> None:
        """Where a person looks next."""
        self.console.print()
        if not ending:
            for name, address, access in stack.links():
                self.say(name, f"{address:<36}{access}")
        kept = "" if state.keep else "   (removed at the end; --keep keeps them)"
        self.say("Pictures", f"{state.media}{kept}")
        if not ending:
            self.say("Ctrl-C", "ends everything")

    def say(self, what: str, how: str) -> None:
        """One line: a word in its column, and the rest."""
        self.console.print(Text.assemble((f"{what:<10}", "bold"), how), soft_wrap=True)
