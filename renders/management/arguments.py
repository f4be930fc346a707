"""Numbers on a command line, as types for argparse; and what two commands share."""

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
    """An argparse type: a time that can be 0."""
    return _checked(float, text, lambda value: value >= 0, "a number of seconds, 0 or more")


def some_seconds(text: str) -> float:
    """An argparse type: a time above 0."""
    return _checked(float, text, lambda value: value > 0, "a number of seconds above 0")


def count(text: str) -> int:
    """An argparse type: 1 or more."""
    return _checked(int, text, lambda value: value >= 1, "a whole number, 1 or more")


def count_or_none(text: str) -> int:
    """An argparse type: 0 or more."""
    return _checked(int, text, lambda value: value >= 0, "a whole number, 0 or more")


def slots(text: str) -> int:
    """An argparse type: 1 to 100,000."""
    return _checked(
        int, text, lambda value: 1 <= value <= 100_000, "a whole number from 1 to 100000"
    )


def add_slots(parser: argparse.ArgumentParser) -> None:
    """Add `--slots`, for commands that read."""
    parser.add_argument(
        "--slots",
        type=slots,
        help=f"most reads under way (RENDERS_READS_AT_ONCE: {conf.READS_AT_ONCE})",
    )


def use_slots(given: int | None) -> int:
    """Have this process read that many at once, and keep as many connections; how many it is."""
    if given:
        settings.RENDERS = {**settings.RENDERS, "READS_AT_ONCE": given}
    return conf.READS_AT_ONCE


def batch(text: str) -> int:
    """An argparse type: 1 to 10,000; databases take so many values in a statement and no more."""
    return _checked(int, text, lambda value: 1 <= value <= 10_000, "a whole number from 1 to 10000")


def some_or_none(text: str) -> int:
    """An argparse type: 0 to 10,000."""
    return _checked(int, text, lambda value: 0 <= value <= 10_000, "a whole number from 0 to 10000")


def hours(text: str) -> float:
    """An argparse type: a time in hours, above 0."""
    wanted = "a number of hours above 0, at most 100000"
    return _checked(float, text, lambda value: 0 < value <= 100_000, wanted)


def days(text: str) -> int:
    """An argparse type: an age in days, 0 for never."""
    wanted = "a number of days from 1 to 36500, or 0 for never"
    return _checked(int, text, lambda value: 0 <= value <= 36_500, wanted)


def moment(text: str) -> datetime:
    """An argparse type: a day (its begin) or a moment; without a zone, in the current one."""
    found = None
    with suppress(ValueError):
        found = parse_datetime(text)
        day = None if found else parse_date(text)
        found = datetime.combine(day, time.min) if day else found
    # Databases ask for it in UTC, where the first and the last days have no place in other zones.
    with suppress(OverflowError):
        if found is not None:
            aware = found if timezone.is_aware(found) else timezone.make_aware(found)
            aware.astimezone(UTC)
            return aware
    raise argparse.ArgumentTypeError(f"must be like 2026-01-31 or 2026-01-31T09:30, not {text!r}")


def words(allowed: Collection[str]) -> Callable[[str], list[str]]:
    """An argparse type: some of these, with commas between."""

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
    """The name of a workspace that is there, or whose renders are. Raises `CommandError`."""
    known = workspaces.names()
    if name in known or RenderJob.objects.filter(workspace=name).exists():
        return name
    raise CommandError(f"There is no workspace {name!r}; choose from: {', '.join(known)}.")


def user(name: str) -> Any:
    """The one user of this name, email address or id. Raises `CommandError`."""
    model = get_user_model()
    users = model._default_manager
    found: dict[Any, Any] = {}
    keys = [model.USERNAME_FIELD, "pk"]
    if "@" in name:
        keys.append(f"{model.get_email_field_name()}__iexact")
    for key in keys:
        # FieldError: a user model without an address.
        with suppress(ValueError, ValidationError, OverflowError, FieldError):
            found |= {one.pk: one for one in users.filter(**{key: name})[:2]}
    if len(found) == 1:
        return next(iter(found.values()))
    if not found:
        raise CommandError(f"There is no user {name!r}: give a name, id or address.", returncode=2)
    them = ", ".join(f"{one.get_username()} (id {pk})" for pk, one in found.items())
    raise CommandError(f"{name!r} is more than one user: {them}.", returncode=2)


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
