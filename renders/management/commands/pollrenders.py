"""`manage.py pollrenders`: reads whatever the sorted set says is due."""

import logging
import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import close_old_connections

from renders.conf import conf, destination
from renders.coordination.connections import poll_leases, polls
from renders.management import arguments
from renders.management.stopping import Stopping
from renders.models.outages import DATABASE_FAILS, in_words
from renders.schedulers import dispatch
from renders.schedulers.queues import SetQueue
from renders.schedulers.reader import Reader
from renders.sume.clients import sume
from renders.telemetry.heartbeats import POLLRENDERS, Pulse

logger = logging.getLogger(__name__)
TURN_SECONDS = 0.1
REST_SECONDS = 1.0


class Command(BaseCommand):
    """Read until Ctrl-C or SIGTERM. Several side by side share the work."""

    help = (
        "Read the jobs that are due in the sorted set (RENDERS_SCHEDULER=sortedset), many at "
        "once. Workers and beat run beside it. Ctrl-C ends it after the reads under way; a second "
        "one at once (status 130)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        arguments.add_slots(parser)

    def handle(self, *args: Any, slots: int | None, **options: Any) -> None:
        if conf.SCHEDULER != "sortedset":
            raise CommandError(
                f"RENDERS_SCHEDULER is {conf.SCHEDULER}: nothing comes into the sorted set. "
                "Set it to sortedset for this command, the web server, the workers and beat."
            )
        destination.say_where_renders_go()
        slots = arguments.use_slots(slots)
        reader = Reader(SetQueue(polls(), poll_leases()), sume, slots=slots, follow=dispatch.follow)
        pulse = Pulse(POLLRENDERS)
        with Stopping(
            lambda: self._say(f"Ending after {reader.busy} reads. Ctrl-C: at once.")
        ) as stop:
            self._say(f"Reading what is due, up to {slots} jobs at once. Ctrl-C ends it.")
            while not stop.asked:
                self._turn(reader, pulse)
            whole = reader.finish(time.monotonic() + conf.REQUEST_TIMEOUT_SECONDS + 1)
        self._say("Ended." if whole else "Ended; what was not answered is read again.")

    def _turn(self, reader: Reader, pulse: Pulse) -> None:
        try:
            reader.turn(TURN_SECONDS)
            pulse.beat()
        except DATABASE_FAILS as error:
            # What was under way is due again when its lease is over.
            logger.warning("%s; again in a moment.", in_words(error))
            close_old_connections()
            time.sleep(REST_SECONDS)

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
