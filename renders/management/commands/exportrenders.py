"""`manage.py exportrenders`: renders as a file, for sheets and programs."""

import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from renders.housekeeping import exporting
from renders.management import arguments
from renders.management.terminal import bar_on
from renders.models import RenderJob
from renders.models.querysets import RenderQuerySet
from renders.states import Kind, Status

USAGE = 2
STOPPED = 130


class Command(BaseCommand):
    help = (
        "Write renders to a .csv or .jsonl file, the oldest first. The file takes its name once it "
        "is whole, and replaces one that is there."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="a name that ends in .csv or .jsonl; - is the output")
        parser.add_argument(
            "--format", choices=["csv", "jsonl"], help="default: as the name ends; csv for -"
        )
        parser.add_argument("--status", type=arguments.words(Status.values), help="with commas")
        parser.add_argument("--kind", type=arguments.words(Kind.values), help="with commas")
        parser.add_argument("--user", help="whose renders: a name, id or email address")
        parser.add_argument("--workspace", help="which Sume account's")
        parser.add_argument(
            "--since", type=arguments.moment, help="made then or later: 2026-01-31 or with a time"
        )
        parser.add_argument("--until", type=arguments.moment, help="made before that")
        parser.add_argument(
            "--fields",
            type=arguments.words(exporting.FIELDS),
            default=list(exporting.FIELDS),
            help=f"with commas, in this order (default: {','.join(exporting.FIELDS)})",
        )

    def handle(self, *args: Any, file: str, fields: list[str], **options: Any) -> None:
        layout = options["format"] or ("csv" if file == "-" else Path(file).suffix[1:].lower())
        if layout not in {"csv", "jsonl"}:
            raise CommandError(
                "Name a file that ends in .csv or .jsonl, or give --format.", returncode=USAGE
            )
        renders = self._chosen(options)
        with bar_on(self.stderr, "exporting", renders.count()) as told:
            found = self._counted(exporting.rows(renders, fields), told)
            is_csv = layout == "csv"
            text = exporting.as_csv(found, fields) if is_csv else exporting.as_jsonl(found)
            try:
                with _ended_like_ctrl_c():
                    self._write(file, text)
            except KeyboardInterrupt:
                self.stderr.write("Stopped; no file was written." if file != "-" else "Stopped.")
                sys.exit(STOPPED)
        if file != "-":
            self.stdout.write(f"{self.count:,} renders in {file}")

    def _write(self, file: str, text: Iterable[str]) -> None:
        if file == "-":
            if hasattr(self.stdout, "reconfigure"):  # whatever the locale says
                here = self.stdout.isatty()
                self.stdout.reconfigure(**{"errors": "replace"} if here else {"encoding": "utf-8"})
            try:
                for piece in text:
                    self.stdout.write(piece, ending="")
                self.stdout.flush()
            except BrokenPipeError:  # as `head` does it
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                sys.exit(0)
            except OSError as error:
                raise CommandError(f"The output cannot be written: {error.strerror}.") from None
            return
        try:
            with exporting.written_whole(Path(file)) as target:
                target.writelines(text)
        except OSError as error:
            raise CommandError(f"{file} cannot be written: {error.strerror}.") from None

    def _chosen(self, options: dict[str, Any]) -> RenderQuerySet:
        account = options["workspace"]
        where: dict[str, Any] = {
            "status__in": options["status"],
            "kind__in": options["kind"],
            "created_by": arguments.user(options["user"]) if options["user"] else None,
            "workspace": account and arguments.workspace(account),
            "created_at__gte": options["since"],
            "created_at__lt": options["until"],
        }
        return RenderJob.objects.filter(**{name: one for name, one in where.items() if one})

    def _counted(self, rows: Iterable[Any], told: Any) -> Iterator[Any]:
        self.count = 0
        for row in rows:
            yield row
            self.count += 1
            if self.count % 100 == 0:
                told(100)


@contextmanager
def _ended_like_ctrl_c() -> Iterator[None]:
    """SIGTERM, and a terminal that is closed, leave no half of a file with people's prompts."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}
    before = {number: signal.signal(number, signal.default_int_handler) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
