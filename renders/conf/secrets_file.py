"""Keys and secrets from a file, read again when it changes: a new key needs no restart.

A missing, half-written or invalid file changes nothing: its last contents stay in use, and the log
says so once without any of them.
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
# A file changed this recently may change again within one tick of its clock: read it each time.
FRESH_SECONDS = 2.0
FIELDS = frozenset({"api_key", "webhook_secret"})

Stamp = tuple[int, int, int]


@dataclass(frozen=True)
class Secrets:
    """The secrets of one workspace; empty if the file has none."""

    api_key: str = Hidden("")
    webhook_secret: str = Hidden("")
    """Comma-separated if there are several."""


@dataclass
class SecretsFile:
    """One file and its last valid contents."""

    path: str
    fault: str = ""
    """Why it cannot be used now; empty if it can."""
    _known: Mapping[str, Secrets] = field(default_factory=dict, repr=False)
    _stamp: Stamp | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def read(self) -> Mapping[str, Secrets]:
        """The secrets of each workspace, by name."""
        with self._lock:
            try:
                stat = os.stat(self.path)
                if _stamp(stat) != self._stamp:
                    loaded = _load(self.path)
                    stat = os.stat(self.path)  # it may have changed meanwhile
                    settled = abs(time.time() - stat.st_mtime) > FRESH_SECONDS
                    self._stamp = _stamp(stat) if settled else None
                    # Half a TOML file is valid TOML: a missing key may not be written yet.
                    if settled or not _lost(self._known, loaded):
                        self._known, self.fault = loaded, ""
            except OSError as error:
                self._fail(f"it cannot be opened ({type(error).__name__})")
            except Wrong as error:
                self._fail(str(error))
            return self._known

    def _fail(self, why: str) -> None:
        """Record and log why the file cannot be used; the last contents stay."""
        self._stamp = None
        if why != self.fault:
            kept = "what it held before goes on" if self._known else "no key comes from it"
            logger.error("The secrets file is no use now: %s; %s.", why, kept)
        self.fault = why


class Wrong(ValueError):
    """The file is invalid; the message holds none of its contents."""


_files: dict[str, SecretsFile] = {}


def secrets_file(path: str) -> SecretsFile:
    """The file at this path, one object per process."""
    return _files.setdefault(path, SecretsFile(path))


def _stamp(stat: os.stat_result) -> Stamp:
    """The values that change if the file changes."""
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def _lost(before: Mapping[str, Secrets], loaded: Mapping[str, Secrets]) -> bool:
    """Whether a key or secret of before is missing now."""
    return any(
        (old.api_key and not new.api_key) or (old.webhook_secret and not new.webhook_secret)
        for old, new in ((old, loaded.get(name, Secrets())) for name, old in before.items())
    )


def _unlock() -> None:
    """In a child process: make new locks, since a lock held by a parent's thread stays locked."""
    for file in _files.values():
        file._lock = threading.Lock()


os.register_at_fork(after_in_child=_unlock)


def _load(path: str) -> dict[str, Secrets]:
    """The secrets in the file, by workspace. Raises `Wrong` and `OSError`."""
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
        contents = _hidden(_parsed(text))
    except RecursionError:
        raise Wrong("it is nested too deeply") from None
    return {_name(name): _secrets(name, given) for name, given in contents.items()}


def _parsed(text: str) -> dict[str, Any]:
    """The contents, parsed as JSON or TOML. Raises `Wrong`."""
    try:
        return json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except json.JSONDecodeError as error:
        why = f"it is not valid JSON from line {error.lineno}, column {error.colno} on"
    except ValueError:
        why = "it is neither JSON nor TOML"
    raise Wrong(why)


def _hidden(value: Any) -> Any:
    """The same value with all texts hidden from tracebacks."""
    if isinstance(value, dict):
        return {name: _hidden(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_hidden(inner) for inner in value]
    return Hidden(value) if isinstance(value, str) else value


def _name(name: str) -> str:
    """A valid name of a workspace. Raises `Wrong`."""
    try:
        return workspace_name(name)
    except ValueError as error:
        raise Wrong(str(error)) from None


def _secrets(name: str, given: Any) -> Secrets:
    """The secrets of one workspace. Raises `Wrong`."""
    if not isinstance(given, dict) or given.keys() - FIELDS:
        raise Wrong(f"{name} needs api_key and webhook_secret, and nothing else")
    listed = given.get("webhook_secret", "")
    secrets = listed if isinstance(listed, list) else [listed]
    if not all(isinstance(value, str) for value in [given.get("api_key", ""), *secrets]):
        raise Wrong(f"{name} holds a value that is no text")
    return Secrets(secret(given.get("api_key", "")), Hidden(",".join(secrets)))
