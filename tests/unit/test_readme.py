"""The README says what the code says; what all pages have in common is in `docs/test_pages`."""

import re

import pytest

from tests.unit.docs.reading import README, ROOT, rows

TEXT = README.read_text("utf-8")


@pytest.mark.parametrize(
    "command",
    [
        "pip install -r requirements.txt && python manage.py demo",
        "pip install -r requirements.txt -r tests/requirements.txt && pytest",
    ],
)
def test_both_commands_are_there(command):
    assert f"\n{command}\n" in TEXT


def test_the_environment_is_what_the_settings_read():
    sources = [(ROOT / f"project/{name}.py").read_text() for name in ("settings", "environment")]
    read = set(
        re.findall(r'(?:environ\.get\(|environ\[|flag\(|number\(|words\()"(\w+)"', "".join(sources))
    )
    told = [cells[0].strip("`") for cells in rows(TEXT, "environment | meaning | if not set")]

    assert set(told) == read
    assert len(told) == len(set(told))
