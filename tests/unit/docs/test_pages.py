"""All pages, README included: their links lead somewhere, their code and options are there."""

import ast
import re
from importlib import import_module
from importlib.util import find_spec

import pytest
from django.conf import settings
from django.urls import Resolver404, resolve

from tests.unit.docs.reading import PAGES, README, ROOT, anchors, blocks

each_page = pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)


def test_the_readme_leads_to_every_page():
    text = README.read_text("utf-8")

    assert [page.name for page in PAGES[1:] if f"](docs/{page.name})" not in text] == []


def test_whoever_shows_commands_has_a_test_that_runs_them():
    """Those of the README are run by `.ci/run`."""
    shown = [page.stem for page in PAGES[1:] if blocks(page.read_text("utf-8"))]
    tests = ROOT / "tests/unit/docs"

    assert shown
    assert [
        name for name in shown if not (tests / f"test_{name.replace('-', '_')}.py").is_file()
    ] == []


def test_the_readme_stays_short():
    shown = re.sub(r"<details>.*?</details>", "", README.read_text("utf-8"), flags=re.S)

    assert len(shown.splitlines()) <= 100


@each_page
def test_links_lead_somewhere(path):
    broken = []
    for link in re.findall(r"\]\((?!https?:)([^)]+)\)", path.read_text("utf-8")):
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        if not target.is_file() or (anchor and anchor not in anchors(target.read_text("utf-8"))):
            broken.append(link)

    assert broken == []


@each_page
def test_the_files_that_are_named_exist(path):
    named = re.findall(
        r"`((?:[\w.-]+/)+[\w.-]+\.(?:py|md|txt|toml|yaml|yml|json))`", path.read_text("utf-8")
    )

    places = (ROOT, ROOT / "tests/other_project")

    assert [name for name in named if not any((place / name).is_file() for place in places)] == []


@each_page
def test_the_code_uses_what_there_is(path):
    missing = []
    for code in blocks(path.read_text("utf-8"), "python"):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                if node.module.partition(".")[0] not in {"renders", "project", "django", "celery"}:
                    continue  # a package that is optional, or the reader's own
                module = import_module(node.module)
                missing += [a.name for a in node.names if not is_there(module, a.name)]

    assert missing == []


def is_there(module, name):
    """Something of that name in it, or a module below it."""
    if hasattr(module, name):
        return True
    return hasattr(module, "__path__") and find_spec(f"{module.__name__}.{name}") is not None


@each_page
def test_the_addresses_on_this_site_are_there(path):
    named = set(re.findall(r"`(?:GET |POST )?(/[a-z/]+)[`?]", path.read_text("utf-8")))

    assert [one for one in sorted(named - {settings.STATIC_URL}) if not leads_somewhere(one)] == []


def leads_somewhere(address):
    try:
        resolve(address.removeprefix("/studio"))  # as the other project has them
    except Resolver404:
        return address.startswith(("/etc/", "/opt/", "/run/", "/var/", "/v1/"))  # files, and Sume's
    return True


@each_page
def test_the_pictures_are_small_pngs(path):
    for name in set(re.findall(r"!\[[^]]+\]\(([^)]+)\)", path.read_text("utf-8"))):
        picture = (path.parent / name).read_bytes()

        assert picture.startswith(b"\x89PNG")
        assert int.from_bytes(picture[16:20]) == 1280
        assert len(picture) <= 150_000


def test_the_search_for_anchors_reads_headings_as_browsers_name_them():
    assert anchors("# A page\n## Which when?\n```sh\n# no heading\n```\n") == {
        "a-page",
        "which-when",
    }
