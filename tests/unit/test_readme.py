"""The README says what the code says."""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import load_command_class
from django.urls import resolve

from renders.conf import Conf, Setting

ROOT = Path(settings.BASE_DIR)
README = (ROOT / "README.md").read_text()
COMMANDS = ["demo", "render", "pollrenders", "runrenders", "sumesandbox"]


def shown(default):
    """A default as a person would write it into the environment."""
    if isinstance(default, bool):
        return f"`{default:d}`"
    text = f"{default:g}" if isinstance(default, float) else str(default)
    return f"`{text}`" if text else "none"


def rows(heading):
    """The rows of the table with this heading, each as its cells."""
    _, _, rest = README.partition(f"\n| {heading} |")
    table = rest.split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table]


@pytest.mark.parametrize(
    "command",
    [
        "pip install -r requirements.txt && python manage.py demo",
        "pip install -r requirements.txt -r tests/requirements.txt && pytest",
    ],
)
def test_both_commands_are_there(command):
    assert f"\n{command}\n" in README


def test_the_settings_are_those_of_the_code():
    told = rows("name | default | meaning")
    known = [
        [f"`{name}`", shown(setting.default), setting.help]
        for name, setting in vars(Conf).items()
        if isinstance(setting, Setting)
    ]
    assert told == known


def test_the_environment_is_what_the_settings_read():
    source = (ROOT / "project/settings.py").read_text()
    read = set(re.findall(r'(?:environ\.get\(|environ\[|env_flag\()"(\w+)"', source))
    told = [cells[0].strip("`") for cells in rows("environment | meaning | if not set")]

    assert set(told) == read
    assert len(told) == len(set(told))


def test_the_files_it_names_exist():
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)
    paths = re.findall(r"`((?:[\w.-]+/)+[\w.-]+\.(?:py|md|txt|toml))`", README)
    named = {*links, *paths, ".ci/run", "requirements.txt", "tests/requirements.txt"}

    assert ".github/gallery.png" in named and "renders/querysets.py" in named
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_commands_have_the_options_it_names(name):
    told = rows("`python manage.py …` | does | main options")
    [row] = [cells for cells in told if cells[0].strip("`").split()[0] == name]
    parser = load_command_class("renders", name).create_parser("manage.py", name)
    options = re.findall(r"--[a-z-]+", row[2])

    assert options
    assert [option for option in options if option not in parser._option_string_actions] == []


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", README, re.DOTALL))
def test_its_code_uses_what_there_is(code):
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and not node.level:
            module = import_module(node.module)
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []


@pytest.mark.parametrize("section", ["Use it from your code", "Test it"])
def test_its_examples_are_code_that_runs(section):
    text = README.split(f"\n## {section}\n")[1].split("\n## ")[0]
    examples = [path.read_text() for path in (ROOT / "tests/examples").rglob("*.py")]
    shown = re.findall(r"```python\n(.*?)```", text, re.DOTALL)

    assert shown
    assert [code for code in shown if not any(code in example for example in examples)] == []


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`(?:GET |POST )?(/[a-z/]+)[`?]", README))))
def test_the_pages_it_names_are_there(path):
    if path != settings.STATIC_URL:
        assert resolve(path)


@pytest.mark.parametrize("path", sorted(set(re.findall(r"!\[[^]]+\]\(([^)]+)\)", README))))
def test_the_screenshots_are_small_pngs(path):
    picture = (ROOT / path).read_bytes()

    assert picture.startswith(b"\x89PNG")
    assert int.from_bytes(picture[16:20]) == 1280
    assert len(picture) <= 150_000
