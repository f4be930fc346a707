"""Checks of single values in a request body. Each yields what is wrong, as (path, message)."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

Problem = tuple[str, str]
Check = Callable[[Any, str], Iterator[Problem]]

LOOPBACK = ("127.0.0.1", "localhost", "::1")
PLAIN = re.compile(r"[!-~]{1,2000}")
MAX_TEXT_CHARACTERS = 100_000
MAX_HANDLE_CHARACTERS = 100


@dataclass(frozen=True)
class ValueShape:
    """The fields that an object may and must have. With `others`, further ones are fine too."""

    required: Mapping[str, Check]
    optional: Mapping[str, Check]
    others: bool = False

    def problems(self, fields: Mapping[str, Any], within: str = "") -> Iterator[Problem]:
        """Everything that is wrong; `within` names the object in a body, empty for the body."""
        start = f"{within}." if within else ""
        known = {**self.required, **self.optional}
        for name, check in known.items():
            if name in fields:
                yield from check(fields[name], f"{start}{name}")
            elif name in self.required:
                yield f"{start}{name}", "This field is required."
        if not self.others:
            place = within or "this request"
            for name in [name for name in fields if name not in known]:
                yield f"{start}{name}", f"{name} is not part of {place}."


def anything(value: Any, path: str) -> Iterator[Problem]:
    """Any value: it is checked elsewhere, or not at all."""
    return iter(())


def text(value: Any, path: str) -> Iterator[Problem]:
    """Text with something in it."""
    if not isinstance(value, str) or not value.strip():
        yield path, "Must be a text that is not empty."
    elif len(value) > MAX_TEXT_CHARACTERS:
        yield path, f"At most {MAX_TEXT_CHARACTERS} characters."


def handle(value: Any, path: str) -> Iterator[Problem]:
    """An avatar's handle, with or without a leading `@`; which letters it may have is unknown."""
    name = bare(value) if isinstance(value, str) else ""
    if not name or not name.isprintable() or set(" @") & set(name):
        yield path, "Must be the handle of an avatar, without spaces; a leading @ is fine."
    elif len(name) > MAX_HANDLE_CHARACTERS:
        yield path, f"At most {MAX_HANDLE_CHARACTERS} characters."


def bare(handle: str) -> str:
    """A handle without its leading `@`."""
    return handle.removeprefix("@")


def url(value: Any, path: str) -> Iterator[Problem]:
    """A public HTTPS URL; http to this machine is fine, so that tests can serve files."""
    if not is_public(value):
        yield path, "Must be a public HTTPS URL."


def is_public(value: Any) -> bool:
    """Whether this is an https URL, or http to this machine."""
    if not (isinstance(value, str) and PLAIN.fullmatch(value)):
        return False
    try:
        parts = urlsplit(value)
        named = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return named and (
        parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
    )


def one_of(*words: str) -> Check:
    """Exactly one of these words."""

    def check(value: Any, path: str) -> Iterator[Problem]:
        if not isinstance(value, str) or value not in words:
            yield path, f"Must be one of {', '.join(words)}."

    return check


def whole_number(least: int, most: int) -> Check:
    """A JSON integer in this range."""

    def check(value: Any, path: str) -> Iterator[Problem]:
        number = isinstance(value, int) and not isinstance(value, bool)
        if not number or not least <= value <= most:
            yield path, f"Must be a whole number from {least} to {most}."

    return check


def typed(**variants: Mapping[str, Check]) -> Check:
    """An object with a `type`, and exactly the fields that belong to this type."""

    def check(value: Any, path: str) -> Iterator[Problem]:
        if not isinstance(value, dict):
            yield path, f"Must be an object with a type: {_listed(variants)}."
        elif not isinstance(value.get("type"), str) or value["type"] not in variants:
            yield f"{path}.type", f"Must be one of {_listed(variants)}."
        else:
            known = {"type": one_of(*variants), **variants[value["type"]]}
            yield from ValueShape(required=known, optional={}).problems(value, path)

    return check


def _listed(words: Collection[str]) -> str:
    return ", ".join(words)
