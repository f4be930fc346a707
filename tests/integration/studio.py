"""The other project (`tests/other_project`) as its people meet it: real processes, a browser."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import requests

from renders.demo.processes import Child, free_port, kill_group, port_answers

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests/other_project"
NOT_FOR_IT = ("DJANGO_", "RENDERS_", "SUME_", "STUDIO_", "DATABASE_", "REDIS_", "CELERY_")
KEY = "key-of-the-studio"
PASSWORD = "a long password"
PATIENCE_SECONDS = 60


class Studio:
    """Starts its processes; whoever made it calls `stop`. `python` is that of an environment
    where the app is installed, or None for this one and the app as it is here."""

    def __init__(self, folder: Path, python: str | None = None, **variables: Any) -> None:
        self.folder = folder
        self._python = python or sys.executable
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(NOT_FOR_IT)}
        inherited.pop("PYTHONPATH", None)
        self.environment = {
            **inherited,
            **({} if python else {"PYTHONPATH": str(ROOT)}),
            "PYTHONDONTWRITEBYTECODE": "1",
            "SUME_API_KEY": KEY,
            "STUDIO_MEDIA": str(folder / "media"),
            **{k: v if isinstance(v, str) else json.dumps(v) for k, v in variables.items()},
        }
        self._children: list[Child] = []
        self.port = free_port()

    def manage(self, *words: str, **variables: str) -> str:
        """Run `manage.py …` to its end; what it printed. Fails if the command did."""
        done = subprocess.run(
            [self._python, "manage.py", *words],
            cwd=FOLDER,
            env=self.environment | variables,
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def worker(self) -> None:
        """A worker for all queues, and beat in it."""
        schedule = str(self.folder / "schedule")
        words = ["-m", "celery", "-A", "studio", "worker", "-c2", "-linfo", "-B", "-s", schedule]
        child = self._start("worker", *words, "--without-mingle", "--without-gossip")
        self.until(lambda: child.has_written("ready."), child)

    def web(self) -> None:
        """The web server, with the files of the pages."""
        address = f"127.0.0.1:{self.port}"
        child = self._start("web", "manage.py", "runserver", "--noreload", "--insecure", address)
        self.until(lambda: port_answers(self.port), child)

    def until(self, condition: Callable[[], Any], child: Child | None = None) -> None:
        """Wait for the condition, to a deadline."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            if child is not None and not child.alive:
                raise child.death()
            assert time.monotonic() < deadline, self.logs()[-6000:]
            time.sleep(0.1)

    def logs(self) -> str:
        """What the processes have written."""
        return "\n".join(path.read_text(errors="replace") for path in self.folder.glob("*.log"))

    def stop(self) -> None:
        """End what was started, at once."""
        for child in self._children:
            kill_group(child)

    def _start(self, name: str, *words: str) -> Child:
        log = self.folder / f"{name}.log"
        command = [self._python, *words]
        child = Child(name, command, environment=self.environment, log=log, cwd=FOLDER)
        self._children.append(child)
        return child


class Visitor:
    """Somebody with a browser: cookies, and forms that are sent as they were shown."""

    def __init__(self, port: int) -> None:
        self._site = f"http://127.0.0.1:{port}"
        self._session = requests.Session()

    def get(self, path: str, **headers: str) -> requests.Response:
        """A page, which must be there."""
        return self._right(self._session.get(self._url(path), headers=headers, timeout=20))

    def send(self, path: str, **fields: str) -> requests.Response:
        """Fill in the form at this address, and send it."""
        hidden = r'<input type="hidden" name="(\w+)" value="([^"]*)"'
        data = dict(re.findall(hidden, self.get(path).text)) | fields
        return self._right(self._session.post(self._url(path), data=data, timeout=20))

    def post_json(self, path: str, body: Any, **headers: str) -> Any:
        """What a program sends, without cookies; the answer."""
        url = self._url(path)
        return self._right(requests.post(url, json=body, headers=headers, timeout=20)).json()

    def _url(self, path: str) -> str:
        return path if path.startswith("http") else self._site + path

    def _right(self, response: requests.Response) -> requests.Response:
        assert response.ok, (response.url, response.status_code, response.text[:2000])
        return response
