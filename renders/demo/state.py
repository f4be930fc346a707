"""The one folder a demo lives in: its database, pictures, logs and secrets."""

import fcntl
import os
import shutil
from pathlib import Path
from typing import IO

from renders.demo.exceptions import DemoError


class StateFolder:
    """`path` and its use by one demo at a time. Empty at the start and removed at the end,
    unless `keep`."""

    def __init__(self, path: Path, *, keep: bool) -> None:
        self.path = path
        self.keep = keep
        self.logs = path / "logs"
        self.media = path / "media"
        self.database = path / "db.sqlite3"
        self._lock: IO[str] | None = None

    def open(self) -> None:
        """Lock the folder and make it ready. Raises `DemoError` if another demo uses it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Beside the folder and never removed: a lock whose file is removed locks nothing.
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
        """Remove what is not kept, and unlock. After a failure the logs stay."""
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
        """The secret of this name from an earlier run that was kept, else an empty string."""
        file = self._secret_file(name)
        return file.read_text() if file.exists() else ""

    def remember(self, name: str, value: str) -> None:
        """Keep a secret for the next run, readable for its owner alone; only with `keep`."""
        if not self.keep:
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with os.fdopen(os.open(self._secret_file(name), flags, 0o600), "w") as file:
            file.write(value)

    def _secret_file(self, name: str) -> Path:
        return self.path / f"{name}.secret"
