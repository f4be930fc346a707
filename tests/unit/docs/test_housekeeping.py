"""The page on housekeeping says what the code does."""

import io
import re
import shlex
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command, load_command_class

from renders.conf import Conf
from renders.housekeeping.erasing import erase
from renders.housekeeping.exporting import FIELDS
from renders.models import RenderJob
from renders.states import Status
from tests.rows import pictured, stored

PAGE = (Path(settings.BASE_DIR) / "docs/housekeeping.md").read_text()
SHELL = [
    line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()
]
COMMANDS = {"prunerenders", "exportrenders", "rendercosts", "eraserenders"}


def section(heading):
    return PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]


@pytest.fixture
def ann(db, settings, tmp_path, monkeypatch, django_user_model):
    settings.MEDIA_ROOT = tmp_path / "media"
    monkeypatch.chdir(tmp_path)
    return django_user_model.objects.create_user("ann", "ann@example.com")


@pytest.mark.parametrize("line", [*SHELL, "python manage.py eraserenders --nobody"])
def test_each_command_it_shows_runs(line, ann, monkeypatch):
    pictured(created_by=ann)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda question: "yes")
    python, manage, *words = shlex.split(line)

    assert (python, manage) == ("python", "manage.py") and words[0] in COMMANDS
    call_command(*words, stdout=io.StringIO(), stderr=io.StringIO())


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_each_command_is_shown(name):
    assert any(f"manage.py {name}" in line for line in SHELL)


def test_the_options_it_names_are_there():
    known = {
        option
        for name in COMMANDS
        for option in load_command_class("renders", name)
        .create_parser("manage.py", name)
        ._option_string_actions
    }
    told = set(re.findall(r"`(--[a-z-]+)`", PAGE))
    assert told - known <= {"--user"}
    own = load_command_class("renders", "prunerenders").create_parser("manage.py", "prunerenders")
    ages = {name for name in own._option_string_actions if name.endswith("-days")}
    assert ages <= told


def test_the_settings_it_names_are_there():
    told = set(re.findall(r"`(KEEP_\w+)`", PAGE))
    assert told == {name for name in vars(Conf) if name.startswith("KEEP_")}


def test_the_columns_it_names_are_those_of_a_file():
    table = section("Renders as a file").split("| column | meaning |\n")[1].split("\n\n")[0]
    told = [
        name
        for row in table.splitlines()[1:]
        for name in re.findall("`(\\w+)`", row[: row.index(" | ")])
    ]
    assert told == list(FIELDS)


def test_its_code_runs(ann):
    [code] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names = {}
    exec(code, names)  # noqa: S102 (our own page)
    pictured(created_by=ann, prompt="a fox")
    running = stored(Status.PENDING, created_by=ann)

    assert names["forget"](ann) == "1 renders are not over yet."
    running.delete()
    assert names["forget"](ann) == ""
    assert RenderJob.objects.get().prompt == ""
    assert names["erase"] is erase
