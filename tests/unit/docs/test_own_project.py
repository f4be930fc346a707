"""docs/own-project.md shows what the other project does, and names what there is."""

import re
from pathlib import Path

import pytest
from django.apps import apps
from django.conf import settings
from django.core.management import get_commands
from django.template.loader import get_template
from django.test import RequestFactory

from renders.checks import installation
from renders.conf import Conf, Setting

ROOT = Path(settings.BASE_DIR)
PAGE = (ROOT / "docs/own-project.md").read_text("utf-8")
STUDIO = ROOT / "tests/other_project"
# Each is run by another test: the first two by test_wheel, the rest by test_other_project.
COMMANDS = {
    "pip wheel --no-deps --wheel-dir dist .",
    "pip install dist/django_sume_renders-*.whl",
    "python manage.py migrate",
    "python manage.py check",
    "celery -A studio worker",
    "celery -A studio beat",
    "python manage.py sumesandbox",
}


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("code", blocks("python") + blocks("html"))
def test_the_other_project_is_the_code_that_is_shown(code):
    files = {*STUDIO.rglob("*.py"), *STUDIO.rglob("*.html")}

    assert [path.name for path in files if code in path.read_text("utf-8")]


def test_the_other_project_takes_no_step_that_is_not_shown():
    """What its settings hold for the app and for Celery is all on the page."""
    told = (STUDIO / "studio/settings.py").read_text("utf-8")
    steps = told.partition("# --- The steps")[2].partition("# --- For tests")[0]
    shown = "".join(blocks("python"))

    assert steps.count("\n") > 20
    assert [line for line in steps.splitlines()[1:] if line and line not in shown] == []
    others = told.replace(steps, "").partition("# --- For tests")[0]
    assert "RENDERS" not in others and "celery_settings." not in others


def test_the_commands_are_those_that_are_tried():
    told = {line for block in blocks("sh") for line in block.splitlines() if line}

    assert told == COMMANDS


def test_the_settings_it_names_are_there():
    known = {name for name, value in vars(Conf).items() if isinstance(value, Setting)}
    named = set(re.findall(r'RENDERS\["(\w+)"\]', PAGE))
    named |= set(re.findall(r"`((?:MEDIA|MAX|PUBLIC|MIN|SWEEP)_[A-Z_]+)`", PAGE))

    assert {"SCHEDULER", "ANYBODY_ADDS", "MEDIA_STORAGE"} <= named <= known


@pytest.mark.django_db
def test_the_permissions_it_names_are_there():
    from django.contrib.auth.models import Permission

    named = set(
        re.findall(
            r"`renders\.((?:view|add|change|cancel|retry|hold|prioritize|exceed)_\w+)`", PAGE
        )
    )
    known = set(
        Permission.objects.filter(content_type__app_label="renders").values_list(
            "codename", flat=True
        )
    )

    assert len(named) > 8
    assert named <= known


def test_the_commands_of_the_app_and_the_checks_it_names_are_there():
    assert set(re.findall(r"`(?:python )?manage\.py (\w+)", PAGE)) <= {
        *get_commands(),
        "test",
    }
    ids = set(re.findall(r"renders\.[EWI]\d{3}", PAGE))
    source = Path(installation.__file__).read_text("utf-8")
    assert ids and all(name in source for name in ids)


def test_the_blocks_of_the_base_are_those_it_names():
    [told] = re.findall(r"Its blocks are (.*?)\.\s", PAGE)
    template = get_template("renders/base.html").template.source

    assert set(re.findall(r"`(\w+)`", told)) == set(re.findall(r"{% block (\w+) %}", template))


def test_a_base_that_replaces_the_apps_altogether_needs_no_more_than_it_says(settings, tmp_path):
    """Every page that the app shows puts its content into `main`, and its name into `title`."""
    assert apps.is_installed("django_htmx")
    (tmp_path / "renders").mkdir()
    (tmp_path / "renders/base.html").write_text(
        "{% load django_htmx static %}<title>{% block title %}{% endblock %}</title>"
        "{% htmx_script version=2 %}{% block head %}{% endblock %}"
        "<p>Ours</p>{% block main %}{% endblock %}"
    )
    settings.TEMPLATES = [{**settings.TEMPLATES[0], "DIRS": [tmp_path]}]
    request = RequestFactory().get("/")
    html = get_template("renders/too_large.html").render({"megabytes": 1}, request)

    assert "Ours" in html and "<h1>" in html
    pages = (ROOT / "renders/templates/renders").glob("*.html")
    used = {
        name
        for path in pages
        if path.name != "base.html"
        for name in re.findall(r"{% block (\w+) %}", path.read_text("utf-8"))
    }
    assert used <= {"title", "head", "main"}
