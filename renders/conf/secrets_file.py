"""Keys and secrets from a file, read again when it changes: a new key needs no restart.

A file that is away, half written or wrong changes nothing: what it held last goes on, and the log
says so once, without a word of what is in it.
"""

import json
import logging
import os
import threading
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from renders.conf.parsers import secret, workspace_name
from renders.redaction import Hidden

logger = logging.getLogger(__name__)

MOST_BYTES = 1_000_000
# A file changed so lately may change again within one tick of its clock: it is read each time.
FRESH_SECONDS = 2.0
FIELDS = frozenset({"api_key", "webhook_secret"})

Stamp = tuple[int, int, int]


@dataclass(frozen=True)
class Secrets:
    """What the file says of one workspace; empty where it says nothing."""

    api_key: str = Hidden("")
    webhook_secret: str = Hidden("")
    """Several with commas between."""


@dataclass
class SecretsFile:
    """One file, and what it held last."""

    path: str
    fault: str = ""
    """Why it cannot be read now; empty if it can."""
    _known: Mapping[str, Secrets] = field(default_factory=dict, repr=False)
    _stamp: Stamp | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def read(self) -> Mapping[str, Secrets]:
        """What it says of each workspace, by name."""
        with self._lock:
            try:
                found = os.stat(self.path)
                if _stamp(found) != self._stamp:
                    told = _load(self.path)
                    found = os.stat(self.path)  # it may have changed meanwhile
                    settled = abs(time.time() - found.st_mtime) > FRESH_SECONDS
                    self._stamp = _stamp(found) if settled else None
                    # Of TOML, a part is whole as well: what is missing may be yet to come.
                    if settled or not _lost(self._known, told):
                        self._known, self.fault = told, ""
            except OSError as error:
                self._fail(f"it cannot be opened ({type(error).__name__})")
            except Wrong as error:
                self._fail(str(error))
            return self._known

    def _fail(self, why: str) -> None:
        self._stamp = None
        if why != self.fault:
            kept = "what it held before goes on" if self._known else "no key comes from it"
            logger.error("The secrets file is no use now: %s; %s.", why, kept)
        self.fault = why


class Wrong(ValueError):
    """What is wrong with the file, in words that hold nothing of it."""


def _stamp(found: os.stat_result) -> Stamp:
    return found.st_mtime_ns, found.st_size, found.st_ino


def _lost(known: Mapping[str, Secrets], told: Mapping[str, Secrets]) -> bool:
    """Whether a key or a secret that there was is there no longer."""
    return any(
        (one.api_key and not now.api_key) or (one.webhook_secret and not now.webhook_secret)
        for one, now in ((one, told.get(name, Secrets())) for name, one in known.items())
    )


_files: dict[str, SecretsFile] = {}


def secrets_file(path: str) -> SecretsFile:
    """The file at this path, as this process knows it."""
    return _files.setdefault(path, SecretsFile(path))


def _unlock() -> None:
    """In a child: what a thread of its parent's held, nobody gives back."""
    for file in _files.values():
        file._lock = threading.Lock()


os.register_at_fork(after_in_child=_unlock)


def _load(path: str) -> dict[str, Secrets]:
    with open(path, "rb") as file:
        raw = file.read(MOST_BYTES + 1)
    if len(raw) > MOST_BYTES:
        raise Wrong(f"it is larger than {MOST_BYTES:,} bytes")
    try:
        text = Hidden(raw.decode())
    except UnicodeDecodeError:
        raise Wrong("it is not UTF-8") from None
    finally:
        del raw
    if not text.strip():
        raise Wrong("it is empty")
    try:
        told = _hidden(_parsed(text))
    except RecursionError:
        raise Wrong("it is nested too deeply") from None
    return {_name(name): _secrets(name, given) for name, given in told.items()}


def _parsed(text: str) -> dict[str, Any]:
    """JSON or TOML, as it is written. Raises `Wrong`."""
    try:
        return json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except json.JSONDecodeError as error:
        why = f"it is not valid JSON from line {error.lineno}, column {error.colno} on"
    except ValueError:
        why = "it is neither JSON nor TOML"
    raise Wrong(why)


def _hidden(value: Any) -> Any:
    """The same, with no text in it that a traceback shows."""
    if isinstance(value, dict):
        return {name: _hidden(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_hidden(inner) for inner in value]
    return Hidden(value) if isinstance(value, str) else value


def _name(name: str) -> str:
    try:
        return workspace_name(name)
    except ValueError as error:
        raise Wrong(str(error)) from None


def _secrets(name: str, given: Any) -> Secrets:
    if not isinstance(given, dict) or given.keys() - FIELDS:
        raise Wrong(f"{name} needs api_key and webhook_secret, and nothing else")
    listed = given.get("webhook_secret", "")
    secrets = listed if isinstance(listed, list) else [listed]
    if not all(isinstance(value, str) for value in [given.get("api_key", ""), *secrets]):
        raise Wrong(f"{name} holds a value that is no text")
    return Secrets(secret(given.get("api_key", "")), Hidden(",".join(secrets)))
