"""How the environment is read, and the file `.env` that can stand in for it."""

import os
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import TypeVar

from django.core.exceptions import ImproperlyConfigured
from dotenv import dotenv_values

from renders.conf.parsers import count
from renders.conf.parsers import flag as on_or_off

T = TypeVar("T")
BESIDE_MANAGE_PY = Path(__file__).resolve().parent.parent / ".env"


def load_file() -> None:
    """Add to the environment what the file of `DJANGO_ENV_FILE` says; what is set already wins.

    Not set: `.env` beside `manage.py`, if it is there. Set to nothing: no file.
    Raises `ImproperlyConfigured` where the file cannot be read, or holds what no variable can.
    """
    named = os.environ.get("DJANGO_ENV_FILE")
    if named == "" or (named is None and not BESIDE_MANAGE_PY.is_file()):
        return
    path = Path(named or BESIDE_MANAGE_PY)
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ImproperlyConfigured(
            f"The file {path} (DJANGO_ENV_FILE) cannot be read: {type(error).__name__}."
        ) from None
    # Values as they stand there: a `$` in a password is a `$`.
    for name, value in dotenv_values(stream=StringIO(text), interpolate=False).items():
        if value is not None:
            try:
                os.environ.setdefault(name, value)
            except ValueError:  # a NUL, or a name with `=`
                raise ImproperlyConfigured(
                    f"The file {path} sets a variable that no environment can hold: {name!r}."
                ) from None


def flag(name: str, default: bool = False) -> bool:
    """An on/off variable: 1, true, yes, on; 0, false, no, off. Raises `ImproperlyConfigured`."""
    return _read(name, default, on_or_off)


def number(name: str, default: int) -> int:
    """A whole number, zero or more. Raises `ImproperlyConfigured`."""
    return _read(name, default, count)


def words(name: str) -> list[str]:
    """What stands between commas."""
    return [word for part in os.environ.get(name, "").split(",") if (word := part.strip())]


def _read(name: str, default: T, parse: Callable[[object], T]) -> T:
    given = os.environ.get(name, "").strip()
    if not given:
        return default
    try:
        return parse(given)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} in the environment: {error}.") from None
