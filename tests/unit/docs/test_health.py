"""The page on health says what the code does."""

import json
import re
import shlex
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import load_command_class
from django.urls import resolve

from renders.conf import Conf
from renders.health import readiness
from renders.health.findings import CATALOGUE
from renders.views import health
from tests.unit.docs import serving

PAGE = (Path(settings.BASE_DIR) / "docs/health.md").read_text()
LEVELS = {"ERROR": "wrong", "WARNING": "warning", "INFO": "note"}
WAYS = {
    "countdown": {"SCHEDULER": "countdown"},
    "ticks": {"SCHEDULER": "sortedset", "TICKS": 1},
    "pollrenders": {"SCHEDULER": "sortedset", "TICKS": 0},
    "database": {"SCHEDULER": "database"},
}
# The last column of the table of parts → the ways in which the part is there.
THERE = {
    "all": set(WAYS),
    "`countdown`, `sortedset`": {"countdown", "ticks", "pollrenders"},
    "`sortedset`, `RENDERS_TICKS=0`": {"pollrenders"},
    "`database`": {"database"},
}


def rows(heading):
    _, _, rest = PAGE.partition(f"\n| {heading} |")
    return [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in rest.split("\n\n")[0].strip().splitlines()[1:]
    ]


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_every_finding_is_told_with_what_to_do():
    assert rows("finding | is | what to do") == [
        [f"`{code}`", LEVELS[kind.level], kind.advice] for code, kind in CATALOGUE.items()
    ]


@pytest.mark.parametrize("way", WAYS)
def test_the_parts_are_those_that_are_asked_for(settings, way):
    settings.RENDERS = {**settings.RENDERS, **WAYS[way]}
    told = rows("part | is well if | there with")

    asked = {probe.part for lane in readiness.questions() for probe in lane}
    assert asked == {name.strip("`") for name, _, there in told if way in THERE[there]}


def test_the_addresses_are_there():
    told = {cells[0].strip("`").partition("?")[0] for cells in rows("address | says | status")}
    used = set(re.findall(r"path: (/\w+)", PAGE)) | set(re.findall(r"8000(/\w+)", PAGE))

    assert told == used == {"/healthz", "/readyz"}
    assert resolve("/healthz").func == health.healthz
    assert resolve("/readyz").func == health.readyz


def test_the_settings_and_names_it_uses_are_there():
    assert settings.MIDDLEWARE[0] == "renders.views.health.by_any_name"
    assert settings.MIDDLEWARE[0] in PAGE
    for name in re.findall(r"`([A-Z]+_[A-Z_]+)`", PAGE):
        ours = hasattr(Conf, name.removeprefix("RENDERS_"))
        assert ours or name in {"ALLOWED_HOSTS"} or name in str(CATALOGUE), name


def test_its_commands_are_ones_that_can_be_run():
    commands = [shlex.split(line) for block in blocks("sh") for line in block.splitlines()]
    doctor = [words for words in commands if words[:2] == ["python", "manage.py"]]

    assert {words[2] for words in doctor} == {"rendersdoctor"}
    for words in doctor:
        load_command_class("renders", "rendersdoctor").create_parser("", "").parse_args(words[3:])
    assert all(words[0] == "curl" for words in commands if words not in doctor)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("asked_here")
def test_what_a_load_balancer_asks_is_answered():
    [asked] = [block for block in blocks("sh") if "curl" in block]

    assert serving.run(asked).startswith('{"status": "ok"}{"status": "')


@pytest.mark.django_db
@pytest.mark.usefixtures("asked_here")
def test_its_example_is_such_an_answer(client, settings):
    settings.RENDERS = {**settings.RENDERS, "SCHEDULER": "database"}
    [example] = map(json.loads, blocks("json"))
    answer = client.get("/readyz").json()

    assert example.keys() == answer.keys()
    assert example["parts"][0].keys() == answer["parts"][0].keys()
