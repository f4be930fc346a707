"""The previous release and this one side by side, on one broker and the new tables."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from renders.demo.processes import Child
from renders.models import RenderJob
from tests import releases
from tests.integration import modes
from tests.integration.stack import Stack

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
THOROUGH = pytest.mark.thorough

# What a person of the old version's web server sees.
VISIT = """
import django
django.setup()
from django.contrib.auth import get_user_model
from django.test import Client
client = Client()
client.force_login(get_user_model().objects.create_superuser("old", password="x"))
pages = "/renders/", "/renders/charts/", "/admin/renders/renderjob/", "/api/renders/", "/healthz"
for path in pages:
    print(path, client.get(path, headers={"Host": "localhost"}).status_code)
"""


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code of the previous release."""
    return releases.previous(tmp_path_factory.mktemp("previous"))


class Versions:
    """Two trees of code, and what is made by each."""

    def __init__(self, stack: Stack, before: Path, mode: str) -> None:
        self._stack = stack
        self._mode = mode
        self._trees = {"old": before, "new": stack.tree}
        self._number = self._ended = 0
        self.made = 0

    def start(self, version: str) -> list[Child]:
        """The processes of the mode, beat aside."""
        self._stack.tree = self._trees[version]
        self._number += 1
        if self._mode == "database":
            return [modes.start(self._stack, "runrenders", self._number)]
        started = [self._stack.worker()]
        if self._mode == "sortedset":
            started.append(modes.start(self._stack, "pollrenders", self._number))
        return started

    def beat(self, version: str) -> Child | None:
        """Beat, where there is one."""
        if self._mode == "database":
            return None
        self._stack.tree = self._trees[version]
        self._number += 1
        schedule = f"{self._stack.marker}-{self._number}"
        words = ["-m", "celery", "-A", "project", "beat", "-s", schedule, "--pidfile="]
        return self._stack.run(f"beat{self._number}", *words)

    def end(self, children: list[Child]) -> None:
        """SIGTERM and SIGKILL in turn."""
        self._ended += 1
        for child in children:
            if self._ended % 2:
                modes.end(self._stack, child)
            else:
                self._stack.kill(child)

    def swap(self, beat: Child | None, version: str) -> Child | None:
        """Another beat in the place of this one."""
        if beat:
            self._stack.kill(beat)
        return self.beat(version)

    def make(self, version: str, *prompts: str) -> None:
        """Renders, as the web server of this version makes them."""
        self.made += len(prompts)
        if version == "new":
            self._stack.create(*prompts)
            return
        self._stack.tree = self._trees["old"]
        self._stack.command("render", "--no-follow", *prompts)

    def look(self) -> str:
        """What the pages of the old version answer, at the new tables."""
        self._stack.tree = self._trees["old"]
        visit = self._stack.run("visit", "-c", VISIT)
        self._stack.until(lambda: not visit.alive)
        return visit.output()


@pytest.fixture(params=["countdown", pytest.param("sortedset", marks=THOROUGH),
                        pytest.param("database", marks=THOROUGH)])  # fmt: skip
def versions(
    request: pytest.FixtureRequest, stack: Stack, before: Path, settings: Any
) -> Iterator[Versions]:
    settings.RENDERS = {**settings.RENDERS}  # what `modes.use` changes is undone
    modes.use(stack, request.param)
    stack.sandbox.faults.add("job_takes", on="submit", argument=4, times=None)
    return Versions(stack, before, request.param)


@pytest.mark.parametrize(
    "database", ["postgresql", pytest.param("sqlite", marks=THOROUGH)], indirect=True
)
def test_renders_go_on_from_one_release_to_the_next_and_back(
    stack: Stack, versions: Versions
) -> None:
    """Every second process is killed, the others end well."""
    count = 1 if "sqlite" in stack.environment["DATABASE_URL"] else 2  # of runrenders
    old = [versions.start("old") for _ in range(count)]
    beat = versions.beat("old")
    versions.make("old", "a red fox", "FAIL on purpose", "REJECT this")
    versions.make("new", "a red fox", "FAIL on purpose")
    first = RenderJob.objects.filter(poll_count__gt=0)
    stack.until(first.exists, child=old[0][0])

    new = []
    for going in old:
        new.append(versions.start("new"))
        versions.make("new", "a blue fox", "REJECT this")
        versions.end(going)
    beat = versions.swap(beat, "new")
    versions.make("old", "a green fox", "REJECT this")  # its web server is the last to go
    pages = versions.look().strip().splitlines()
    assert pages and all(line.endswith(" 200") for line in pages), pages
    versions.make("new", *["a white fox"] * 4)

    versions.start("old")  # back again
    for going in new:
        versions.end(going)
    versions.swap(beat, "old")
    versions.make("new", "a black fox")
    stack.until_handled(sweeping=False)

    rows = RenderJob.objects.all()
    assert len(rows) == versions.made
    assert {row.status for row in rows if "fox" in row.prompt} == {"completed"}
    assert {row.status for row in rows if "fox" not in row.prompt} == {"failed"}
    taken = [row for row in rows if "REJECT" not in row.prompt]
    assert len(stack.sandbox.ledger.bills) == len(taken)
