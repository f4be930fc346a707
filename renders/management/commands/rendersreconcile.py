"""`manage.py rendersreconcile`: compare the jobs at Sume with the renders in the database."""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError
from rich.text import Text

from renders.conf import workspaces
from renders.exceptions import (
    BackOff,
    Closed,
    OutcomeUnknown,
    Paused,
    Rejected,
    SumeError,
    Unreachable,
)
from renders.health.work import counted
from renders.management import arguments
from renders.management.terminal import bar_on, console_on, one_line
from renders.models import RenderJob
from renders.reports import reconciliation, standing
from renders.reports.reconciliation import Check, Comparison
from renders.sume.clients import sume

DIFFERS = 1
NOT_DONE = 2
STOPPED = 130
# Where Sume asks to wait and does not say how long.
PAUSE_SECONDS = 60

UNSENT_ADVICE = (
    "First resume sending: an unsent render gets its job if Sume has one already. Then compare "
    "again."
)
UNKNOWN_ADVICE = (
    "Some of these jobs may belong to renders that failed with submit_outcome_unknown. First send "
    "them again with their own keys (on their pages or in the admin), then compare again."
)
JOBS_ADVICE = (
    "Jobs without a render: look at them in your Sume account. Some may be of renders that were "
    "deleted, or of another installation with the same key. The rest is lost here: create it again "
    "with the same reference, and Sume answers with the job it has, without a second bill."
)
RENDERS_ADVICE = (
    "Renders whose job Sume does not know: Sume has forgotten the job, or the key is of another "
    "account. Ended ones keep what they have. Submitted ones fail with job_not_found once they "
    "are read; look into your Sume account before you retry one."
)
REST_ADVICE = (
    "Not everything was compared. If a limit was reached, raise --limit or --checks, or compare a "
    "shorter period with --hours."
)


class Command(BaseCommand):
    help = (
        "Compare the jobs at Sume with the renders in the database, for instance after a backup "
        "was restored: jobs that no render names, and renders whose job Sume does not know. "
        "Changes no render; all reads are free. Status: 0 all match, 1 something differs or was "
        "not compared, 2 it could not be done, 130 stopped with Ctrl-C."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", help="one Sume account (default: all)")
        parser.add_argument(
            "--limit",
            type=arguments.batch,
            default=500,
            help="how many of the newest jobs Sume is asked to list (default: 500)",
        )
        parser.add_argument(
            "--hours",
            type=arguments.hours,
            default=72.0,
            help="compare the renders submitted in the last HOURS hours (default: 72)",
        )
        parser.add_argument(
            "--checks",
            type=arguments.some_or_none,
            default=200,
            help="look up at most this many unlisted renders, one free read each (default: 200)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        self.console = console_on(self.stdout, no_color=options["no_color"])
        try:
            names = _names(options["workspace"])
            status = self._compare_all(names, options)
        except DatabaseError as error:
            raise CommandError(
                f"The database is not ready ({type(error).__name__}). Check DATABASE_URL, and "
                "run: python manage.py migrate",
                returncode=NOT_DONE,
            ) from error
        except KeyboardInterrupt:
            self.stderr.write("Stopped. Nothing was changed.")
            status = STOPPED
        if status:
            sys.exit(status)

    def _compare_all(self, names: Sequence[str], options: dict[str, Any]) -> int:
        """Compare each workspace and sum up; return the exit status."""
        done: list[tuple[Comparison, Check]] = []
        failed: list[str] = []
        for name in names:
            if workspaces.several():
                self._line(f"Workspace {name}:")
            try:
                done.append(self._compare(name, options))
            except SumeError as error:
                where = f"The workspace {name} was not" if workspaces.several() else "Not"
                self.stdout.flush()
                self.stderr.write(f"{where} compared. {_said(error)}")
                failed.append(name)
        jobs = sum(len(found.without_row) for found, _ in done)
        renders = sum(len(check.unknown) for _, check in done)
        whole = all(found.is_whole(check) for found, check in done)
        if jobs or renders:
            self._line(
                f"{counted(jobs, 'job')} without a render, {counted(renders, 'render')} whose job "
                "Sume does not know. Nothing was changed."
            )
        elif done:
            reach = all(found.reaches_back or not found.listed for found, _ in done)
            all_of_it = "All match." if reach else "All that Sume lists matches."
            self._line("No difference was found." if not whole or failed else all_of_it)
        unsent = any(found.without_row and found.unsent for found, _ in done)
        unknown = any(found.without_row and found.unknown for found, _ in done)
        for text, shown in (
            (UNSENT_ADVICE, unsent),
            (UNKNOWN_ADVICE, unknown),
            (JOBS_ADVICE, jobs),
            (RENDERS_ADVICE, renders),
            (REST_ADVICE, not whole),
        ):
            if shown:
                self._line(text)
        if failed:
            return NOT_DONE
        return DIFFERS if jobs or renders or not whole else 0

    def _compare(self, name: str, options: dict[str, Any]) -> tuple[Comparison, Check]:
        if not any(gate.held for gate in standing.gates(name)):
            self._line(
                "Sending is not paused: workers may send meanwhile. To be sure, pause it on the "
                "gate's page in the admin."
            )
        hours, checks = options["hours"], options["checks"]
        found = reconciliation.compare(
            name, sume, limit=options["limit"], hours=hours, checks=checks
        )
        self._show_jobs(found)
        with bar_on(self.stderr, "asking Sume", len(found.unlisted)) as told:
            check = reconciliation.check(name, sume, found.unlisted, told)
        self._show_renders(found, check, hours)
        if found.unsent:
            unsure = f", {found.unsure:,} of them after an unclear answer" if found.unsure else ""
            self._line(f"Not sent yet: {counted(found.unsent, 'render')}{unsure}.")
        if found.unknown:
            self._line(f"Failed with an unknown outcome: {counted(found.unknown, 'render')}.")
        self._line("")
        return found, check

    def _show_jobs(self, found: Comparison) -> None:
        end = f", back to {found.ends_at:%Y-%m-%d %H:%M:%S %Z}" if found.ends_at else ""
        self._line(f"Jobs that Sume lists: {found.listed:,}{end}")
        if found.cut:
            self._line("The list is as long as --limit allows: older jobs may be missing.")
        self._line(f"Jobs without a render: {len(found.without_row):,}")
        self._table([(job.id, job.type, job.status, job.created_at) for job in found.without_row])

    def _show_renders(self, found: Comparison, check: Check, hours: float) -> None:
        self._line(
            f"Renders of the last {hours:g} h whose job Sume does not know: {len(check.unknown):,}"
        )
        self._table([(str(one.pk), one.job_id, one.kind, one.status) for one in check.unknown])
        if check.known and not (found.cut or found.reaches_back):
            self._line(
                f"Sume's list is shorter than asked for, yet Sume knows {check.known:,} more jobs "
                "of these renders: it does not list them all."
            )
        if check.refused:
            self._line(f"Unknown, because Sume refused the read: {check.refused:,}")
        if found.unchecked:
            self._line(f"Not looked up (--checks reached): {found.unchecked:,}")

    def _table(self, rows: Sequence[tuple[str, ...]]) -> None:
        for line in _aligned([tuple(one_line(cell) or "-" for cell in row) for row in rows]):
            self._line(line)

    def _line(self, text: str) -> None:
        """One line of output, never cut."""
        self.console.print(Text(text), soft_wrap=True)


def _names(chosen: str | None) -> list[str]:
    """The workspaces to compare: the chosen one, or all that have a key or renders."""
    known = workspaces.names()
    if chosen is None:
        used = [name for name in known if workspaces.get(name).api_key or _has_renders(name)]
        return used or [workspaces.DEFAULT]
    if chosen not in known:
        raise CommandError(
            f"There is no workspace {chosen!r}; choose from: {', '.join(known)}.",
            returncode=NOT_DONE,
        )
    return [chosen]


def _has_renders(name: str) -> bool:
    return RenderJob.objects.filter(workspace=name).exists()


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield f"  {'  '.join(cells)}".rstrip()


def _said(error: SumeError) -> str:
    """What happened, and what a person can do about it."""
    advice = ""
    if isinstance(error, Closed):
        until = f" until {error.until:%H:%M:%S} UTC" if error.until else ""
        advice = f"Reads are paused{until}; the gate's page in the admin says why. Then try again."
    elif isinstance(error, Paused):
        advice = "Set the right key, or mend the account at Sume. Then try again."
    elif isinstance(error, Unreachable):
        advice = "Check SUME_BASE_URL and the network; `python manage.py rendersdoctor` says more."
    elif isinstance(error, BackOff):
        advice = f"Try again in {error.retry_after or PAUSE_SECONDS:g} s."
    elif isinstance(error, OutcomeUnknown):
        advice = "Try again. If it stays so, python manage.py rendersdoctor says what is wrong."
    elif isinstance(error, Rejected):
        advice = "If this is about the limit, give a smaller --limit."
    code = f" ({error.code})" if error.code else ""
    return f"{str(error).rstrip('.')}{code}. {advice}".rstrip()
