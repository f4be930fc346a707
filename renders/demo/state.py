"""The folder of a demo: its database, media, logs and secrets."""

import fcntl
import os
import shutil
from pathlib import Path
from typing import IO

from renders.demo.exceptions import DemoError


class StateFolder:
    """A folder for one demo at a time. Unless `keep`, it is emptied at start and removed at end."""

    def __init__(self, path: Path, *, keep: bool) -> None:
        self.path = path
        self.keep = keep
        self.logs = path / "logs"
        self.media = path / "media"
        self.database = path / "db.sqlite3"
        self._lock: IO[str] | None = None

    def open(self) -> None:
        """Lock and create the folder. Raises `DemoError` if another demo uses it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # The lock file is beside the folder and never removed: a removed file locks nothing.
        lock = self.path.with_name(f"{self.path.name}.lock").open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise DemoError(
                f"Another demo runs in {self.path}. End it first (Ctrl-C), or set "
                "DJANGO_STATE_DIR to another folder for this one."
            ) from None
        self._lock = lock
        if not self.keep:
            shutil.rmtree(self.path, ignore_errors=True)
        for folder in (self.path, self.logs, self.media):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def close(self, *, failed: bool = False) -> None:
        """Remove the folder unless `keep`, and unlock it. After a failure, the logs stay."""
        if not self._lock:
            return
        if not self.keep:
            wanted = self.logs if failed and any(self.logs.iterdir()) else None
            for entry in self.path.iterdir():
                if entry.is_file():
                    entry.unlink()
                elif entry != wanted:
                    shutil.rmtree(entry, ignore_errors=True)
            if not wanted:
                self.path.rmdir()
        self._lock.close()
        self._lock = None

    def recall(self, name: str) -> str:
        """The secret that an earlier run with `keep` stored under this name; else ""."""
        file = self._secret_file(name)
        return file.read_text() if file.exists() else ""

    def remember(self, name: str, value: str) -> None:
        """With `keep`, store a secret for the next run, readable only by its owner."""
        if not self.keep:
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with os.fdopen(os.open(self._secret_file(name), flags, 0o600), "w") as file:
            file.write(value)

    def _secret_file(self, name: str) -> Path:
        return self.path / f"{name}.secret"
