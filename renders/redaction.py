"""What no log, page or traceback may show: the API key, and what signs an address.

Collectors of errors, and Django's own pages for them, print the variables of every frame. So
both are texts that work as they are, and whose `repr` says less.
"""

import hashlib
import re
from typing import Any

# A shorter key is a stand-in for a try: taking it out would garble the texts.
SHORTEST_KEY = 8
# How a name that was erased begins: its fingerprint follows.
ERASED = "erased:"
SIGNATURE = re.compile(r"(https?://[^\s?#]+)[?#]\S*", re.IGNORECASE)


class Hidden(str):
    """A secret text; its `repr` shows nothing of it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'[hidden]'"


class Link(str):
    """An address that can be signed; its `repr` ends where a signature may begin."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(unsigned(self))


def unsigned(text: str) -> str:
    """The text; of addresses in it only what comes before a query."""
    return SIGNATURE.sub(r"\1?[removed]", text)


def without(key: str, value: Any) -> Any:
    """A text without the key that it repeats, or a JSON object without it in any text."""
    if len(key) < SHORTEST_KEY:
        return value
    if isinstance(value, dict):
        return {
            name: without(key, item) if isinstance(item, str) else item
            for name, item in value.items()
        }
    return value.replace(key, "[removed]")


def is_erased(name: str | None) -> bool:
    """Whether only the fingerprint is left of it."""
    return bool(name and name.startswith(ERASED))


def fingerprint(name: str) -> str:
    """What is kept of an erased name: enough to know it when it comes again, not to read it."""
    return ERASED + hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()
