"""`manage.py rendersdoctor`: what is wrong, and what to do about it."""

import json
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from renders.health import doctor
from renders.management import arguments, doctor_report
from renders.management.terminal import console_on


class Command(BaseCommand):
    """Asks every server and shows what was found. Changes nothing."""

    help = (
        "Say what is wrong with settings, database, Redis, broker, workers, beat, storage, Sume "
        "and renders, and what to do. Status 0: all is well; 1: something is wrong; 3: only "
        "warnings. One free read is made at Sume."
    )
    # A wrong setting is a finding like any other.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--offline", action="store_true", help="do not ask Sume")
        parser.add_argument("--json", action="store_true", help="findings for programs")
        parser.add_argument(
            "--seconds",
            type=arguments.some_seconds,
            default=10.0,
            help="how long the servers have for their answers (default: 10)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        console = console_on(self.stdout, no_color=options["no_color"])
        if options["json"]:
            parts = doctor.examine(options["seconds"], offline=options["offline"])
            self.stdout.write(json.dumps(doctor_report.as_json(parts), indent=2) + "\n")
        else:
            with console.status("Asking…"):
                parts = doctor.examine(options["seconds"], offline=options["offline"])
            doctor_report.show(console, parts)
        if status := doctor.status_of(parts):
            sys.exit(status)
