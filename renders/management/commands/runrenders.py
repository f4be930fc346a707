"""`manage.py runrenders`: everything in one process, by the table alone."""

import time
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from renders.conf import conf, destination
from renders.housekeeping import pruning
from renders.management import arguments
from renders.management.stopping import Stopping
from renders.schedulers.daily import Daily
from renders.schedulers.notifications import Listener
from renders.schedulers.runner import Runner
from renders.sume.clients import sume


class Command(BaseCommand):
    """Run until Ctrl-C or SIGTERM. On PostgreSQL, several side by side share the work."""

    help = (
        "Send, read and finish renders by the database alone, without Celery and Redis. Set "
        "RENDERS_SCHEDULER=database for the web server. Ctrl-C ends it after what is under way; "
        "a second one at once (status 130)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        arguments.add_slots(parser)

    def handle(self, *args: Any, slots: int | None, **options: Any) -> None:
        if conf.SCHEDULER != "database":
            self._say(
                f"RENDERS_SCHEDULER is {conf.SCHEDULER}: set it to database for the web server, "
                "or it looks for a broker at each new render."
            )
            settings.RENDERS = {**settings.RENDERS, "SCHEDULER": "database"}
        destination.say_where_renders_go()
        slots = arguments.use_slots(slots)
        listener = Listener()
        listener.start()
        runner = Runner(sume, slots=slots, awakened=listener.heard)
        ending = "Ending after {} steps. Ctrl-C: at once."
        with (
            Daily(pruning.run_as_set),
            Stopping(lambda: self._say(ending.format(runner.busy))) as stop,
        ):
            self._say(f"Sending, reading (up to {slots} jobs at once), finishing. Ctrl-C ends it.")
            while not stop.asked:
                runner.turn()
            longest = max(conf.REQUEST_TIMEOUT_SECONDS, conf.MEDIA_TIMEOUT_SECONDS)
            whole = runner.finish(time.monotonic() + longest + 1)
        self._say("Ended." if whole else "Ended; others go on with what was not done.")

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
