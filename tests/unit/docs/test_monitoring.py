"""docs/monitoring.md says what the code says."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.urls import resolve
from prometheus_client.parser import text_string_to_metric_families

from renders.conf import Conf
from renders.conf.parsers import token
from renders.reports import prometheus
from renders.telemetry import log_context
from renders.telemetry.metrics import COUNTERS
from tests.unit.deploy import queries
from tests.unit.reports.test_prometheus import standing

ROOT = Path(settings.BASE_DIR)
PAGE = (ROOT / "docs/monitoring.md").read_text()
REQUIRED = (ROOT / "tests/requirements.txt").read_text()


def blocks(language):
    """The blocks of the page in this language."""
    found = re.findall(rf"^ *```{language}\n(.*?)^ *```", PAGE, re.DOTALL | re.MULTILINE)
    return [block.strip() for block in found]


def rows(heading):
    """The rows of the table with this heading, each as its cells."""
    table = PAGE.partition(f"\n| {heading} |")[2].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table]


def test_the_table_of_metrics_is_that_of_a_page():
    told = standing(ended={"completed": 1}, capacity=3, max_in_flight=24, spent=1, budget=2)
    page, _ = prometheus.text(told, {})
    known = []
    for family in text_string_to_metric_families(page.decode()):
        name = family.name + "_total" * (family.type == "counter")
        labels = [label for label in family.samples[0].labels if label != "le"]
        shown = ", ".join(f"`{label}`" for label in labels) or "none"
        known.append([f"`{name}`", family.type, shown, family.documentation])

    assert rows("metric | type | labels | meaning") == known


def test_it_says_what_each_alert_means_and_what_to_do():
    told = re.findall(r"^### (\w+)\n\n\*(\w+)\.\* .+\n\n\*\*Do:\*\* .+$", PAGE, re.MULTILINE)

    assert told == [(rule["alert"], rule["labels"]["severity"]) for rule in queries.alerts()]


def test_it_names_the_fields_of_a_log_line():
    named = re.findall(r"`(\w+)`", " ".join(row[0] for row in rows("field | what")))

    assert set(log_context.FIELDS) <= set(named)
    extra = {"time", "level", "logger", "message", "process", "exception"}
    assert set(named) == {*log_context.FIELDS, *extra}


def test_it_names_each_reason_of_a_lost_lease():
    for reason in COUNTERS["lease_losses"].labels["reason"]:
        assert f"`{reason}` (" in PAGE


def test_the_files_and_pages_that_it_names_are_there():
    for name in set(re.findall(r"`(deploy/[\w./]+)`", PAGE)):
        assert (ROOT / name).is_file(), name
    for path in set(re.findall(r"`(/[a-z/]+)`", PAGE)) - {"/targets"}:
        assert resolve(path), path


def test_the_settings_that_it_names_are_there():
    named = set(re.findall(r"\bRENDERS_([A-Z_]+)\b", PAGE))

    assert named and all(hasattr(Conf, name) for name in named)


def told_by(command, folder):
    """What a command writes."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_the_commands_it_shows_do_what_it_says(tmp_path):
    """The second is run against a web server, in `tests/integration/test_prometheus.py`."""
    generate, look, check, grep, install = blocks("sh")

    assert len(token(told_by(generate, tmp_path))) == 43
    assert "$SITE/metrics" in look
    assert check == f"promtool check config {queries.SCRAPE.relative_to(ROOT)}"  # tried there
    lines = [
        json.dumps({"message": "x", "render": name})
        for name in ("3cf65526-7b69-4b9a-8f0e-2f6a0a5d6c11", "another")
    ]
    (tmp_path / "renders.log").write_text("\n".join(lines) + "\n")
    assert told_by(grep, tmp_path) == lines[0] + "\n"
    for package in [*shlex.split(install)[2:], "sentry-sdk"]:
        assert re.search(rf"^{package}>=", REQUIRED, re.MULTILINE), package


@pytest.mark.parametrize("code", blocks("python"))
def test_the_code_it_shows_is_python(code):
    compile(code, "docs/monitoring.md", "exec")
