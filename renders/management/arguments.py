"""Types for argparse (numbers, times, names), and arguments that several commands share."""

import argparse
import math
from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import UTC, datetime, time
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.exceptions import FieldError, ValidationError
from django.core.management.base import CommandError
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime

from renders.conf import conf, workspaces
from renders.models import RenderJob


def port_number(text: str) -> int:
    """An argparse type: 0 to 65535."""
    return _checked(int, text, lambda port: 0 <= port <= 65535, "a port from 0 to 65535")


def seconds(text: str) -> float:
    """An argparse type: seconds, 0 or more."""
    return _checked(float, text, lambda value: value >= 0, "a number of seconds, 0 or more")


def some_seconds(text: str) -> float:
    """An argparse type: seconds, above 0."""
    return _checked(float, text, lambda value: value > 0, "a number of seconds above 0")


def count(text: str) -> int:
    """An argparse type: 1 or more."""
    return _checked(int, text, lambda value: value >= 1, "a whole number, 1 or more")


def count_or_none(text: str) -> int:
    """An argparse type: 0 or more."""
    return _checked(int, text, lambda value: value >= 0, "a whole number, 0 or more")


def some_or_none(text: str) -> int:
    """An argparse type: 0 to 10,000."""
    return _checked(int, text, lambda value: 0 <= value <= 10_000, "a whole number from 0 to 10000")


def slots(text: str) -> int:
    """An argparse type: 1 to 100,000."""
    return _checked(
        int, text, lambda value: 1 <= value <= 100_000, "a whole number from 1 to 100000"
    )


def batch(text: str) -> int:
    """An argparse type: 1 to 10,000, since databases limit the values in one statement."""
    return _checked(int, text, lambda value: 1 <= value <= 10_000, "a whole number from 1 to 10000")


def hours(text: str) -> float:
    """An argparse type: a time in hours, above 0."""
    wanted = "a number of hours above 0, at most 100000"
    return _checked(float, text, lambda value: 0 < value <= 100_000, wanted)


def days(text: str) -> int:
    """An argparse type: an age in days, 0 for never."""
    wanted = "a number of days from 1 to 36500, or 0 for never"
    return _checked(int, text, lambda value: 0 <= value <= 36_500, wanted)


def share(text: str) -> float:
    """An argparse type: 0 to 1."""
    return _checked(float, text, lambda value: 0 <= value <= 1, "a share between 0 and 1")


def _checked(convert: Any, text: str, allowed: Any, wanted: str) -> Any:
    try:
        value = convert(text)
        fine = math.isfinite(value) and allowed(value)
    except (ValueError, OverflowError):
        fine = False
    if not fine:
        raise argparse.ArgumentTypeError(f"must be {wanted}, not {text!r}")
    return value


def moment(text: str) -> datetime:
    """An argparse type: a time, or a day (its start); without a zone, in the current one."""
    parsed = None
    with suppress(ValueError):
        parsed = parse_datetime(text)
        day = None if parsed else parse_date(text)
        parsed = datetime.combine(day, time.min) if day else parsed
    # Databases need it in UTC. Near the first and last possible days, the conversion overflows.
    with suppress(OverflowError):
        if parsed is not None:
            aware = parsed if timezone.is_aware(parsed) else timezone.make_aware(parsed)
            aware.astimezone(UTC)
            return aware
    raise argparse.ArgumentTypeError(f"must be like 2026-01-31 or 2026-01-31T09:30, not {text!r}")


def words(allowed: Collection[str]) -> Callable[[str], list[str]]:
    """An argparse type: a list of allowed words, separated by commas; duplicates are dropped."""

    def chosen(text: str) -> list[str]:
        names = [name.strip() for name in text.split(",")]
        wrong = [name for name in names if name not in allowed]
        if wrong:
            raise argparse.ArgumentTypeError(
                f"there is no {wrong[0]!r}; choose from: {', '.join(allowed)}"
            )
        return list(dict.fromkeys(names))

    return chosen


def workspace(name: str) -> str:
    """The name, if the workspace is configured or has renders. Raises `CommandError`."""
    names = workspaces.names()
    if name in names or RenderJob.objects.filter(workspace=name).exists():
        return name
    raise CommandError(f"There is no workspace {name!r}; choose from: {', '.join(names)}.")


def user(name: str) -> Any:
    """The only user with this name, email address or id. Raises `CommandError`."""
    model = get_user_model()
    users = model._default_manager
    matches: dict[Any, Any] = {}
    keys = [model.USERNAME_FIELD, "pk"]
    if "@" in name:
        keys.append(f"{model.get_email_field_name()}__iexact")
    for key in keys:
        # FieldError: a user model without an email field.
        with suppress(ValueError, ValidationError, OverflowError, FieldError):
            matches |= {match.pk: match for match in users.filter(**{key: name})[:2]}
    if len(matches) == 1:
        return next(iter(matches.values()))
    if not matches:
        raise CommandError(f"There is no user {name!r}: give a name, id or address.", returncode=2)
    listed = ", ".join(f"{match.get_username()} (id {pk})" for pk, match in matches.items())
    raise CommandError(f"{name!r} is more than one user: {listed}.", returncode=2)


def add_slots(parser: argparse.ArgumentParser) -> None:
    """Add `--slots`, for commands that poll."""
    parser.add_argument(
        "--slots",
        type=slots,
        help=f"most reads under way (RENDERS_READS_AT_ONCE: {conf.READS_AT_ONCE})",
    )


def use_slots(given: int | None) -> int:
    """Set this process's concurrent polls, and so its connections; returns the number in use."""
    if given:
        settings.RENDERS = {**settings.RENDERS, "READS_AT_ONCE": given}
    return conf.READS_AT_ONCE
