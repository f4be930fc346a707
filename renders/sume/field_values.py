"""Readers for the values of a kind's own fields, each with the same rule as a JSON schema. Pure.

Each reader returns the value as it is sent, and raises `ValueError` with what is needed.
"""

import re
from collections.abc import Callable
from typing import Any

YOUNGEST, OLDEST = 20, 80
# What `str.strip` removes, inside brackets: `\s` isn't the same everywhere.
SPACE = r"\u0009-\u000d\u001c-\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
NOT_IN_ADDRESS = rf"\u0000-\u0020\u007f{SPACE}"
# Text with something in it. NUL cannot be stored.
FILLED = rf"^[^\u0000]*[^\u0000{SPACE}][^\u0000]*$"
HANDLE = re.compile(rf"[^\u0000{SPACE}@/?#]{{1,100}}")
RATIO = re.compile(r"[1-9][0-9]?:[1-9][0-9]?")
ADDRESS = re.compile(
    rf"https://[^{NOT_IN_ADDRESS}/?#@:\\\[\]]+(:[0-9]{{1,5}})?([/?#][^{NOT_IN_ADDRESS}]*)?",
    re.ASCII | re.IGNORECASE,
)
LONGEST_ADDRESS = 2_000
LONGEST_TITLE = 200


def one_of(*choices: str) -> Callable[[Any], str]:
    """A reader that accepts one of these words."""

    def read(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"Choose one of: {', '.join(choices)}.")
        return str(value)

    return read


def handle(value: Any) -> str:
    """An avatar's handle, without its @."""
    name = value.strip().removeprefix("@") if isinstance(value, str) else ""
    if not HANDLE.fullmatch(name):
        raise ValueError("The avatar's handle is needed: one word, with or without @.")
    return name


def address(value: Any) -> str:
    """A URL that Sume can fetch."""
    text = value.strip() if isinstance(value, str) else ""
    if len(text) > LONGEST_ADDRESS or not ADDRESS.fullmatch(text):
        raise ValueError("A public address is needed: https://…")
    return text


def age(value: Any) -> int:
    """An age in years."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    whole = whole or (isinstance(value, float) and value.is_integer())  # as JSON has it
    if not whole or not YOUNGEST <= value <= OLDEST:
        raise ValueError(f"A whole number from {YOUNGEST} to {OLDEST} is needed.")
    return int(value)


def ratio(value: Any) -> str:
    """Width to height, for instance 9:16."""
    if not isinstance(value, str) or not RATIO.fullmatch(value.strip()):
        raise ValueError("Width to height is needed, for instance 9:16.")
    return value.strip()


def title(value: Any) -> str:
    """A text of limited length that is not empty."""
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_TITLE:
        raise ValueError(f"A text of at most {LONGEST_TITLE} characters is needed.")
    return value.strip()


def scene(value: Any) -> dict[str, str]:
    """Where an avatar video plays: described, or shown by a photo."""
    needed = '{"type": "prompt", "prompt": "…"} or {"type": "photo", "image_url": "https://…"}'
    if not isinstance(value, dict):
        raise ValueError(f"An object is needed: {needed}.")
    match value:
        case {"type": "prompt", "prompt": str(words), **rest} if words.strip() and not rest:
            return {"type": "prompt", "prompt": words.strip()}
        case {"type": "photo", "image_url": url, **rest} if not rest:
            return {"type": "photo", "image_url": address(url)}
    raise ValueError(f"It must be {needed}.")


ADDRESS_SCHEMA = {
    "type": "string",
    "pattern": f"^{ADDRESS.pattern}$",
    "maxLength": LONGEST_ADDRESS,
    "examples": ["https://example.com/mara.png"],
}
SCENE_SCHEMA = {
    "oneOf": [
        {
            "type": "object",
            "required": ["type", name],
            "additionalProperties": False,
            "properties": {"type": {"const": word}, name: schema},
        }
        for word, name, schema in (
            ("prompt", "prompt", {"type": "string", "pattern": FILLED}),
            ("photo", "image_url", ADDRESS_SCHEMA),
        )
    ]
}
HANDLE_SCHEMA = {
    "type": "string",
    "pattern": f"^[{SPACE}]*@?{HANDLE.pattern}[{SPACE}]*$",
    "examples": ["@mara"],
}
AGE_SCHEMA = {"type": "integer", "minimum": YOUNGEST, "maximum": OLDEST}
RATIO_SCHEMA = {"type": "string", "pattern": f"^{RATIO.pattern}$"}
TITLE_SCHEMA = {"type": "string", "pattern": FILLED, "maxLength": LONGEST_TITLE}
