"""The README says what the code says; what all pages have in common is in `docs/test_pages`."""

import re

import pytest

from renders.conf import Conf, Setting
from tests.unit.docs.reading import README, ROOT, rows

TEXT = README.read_text("utf-8")


def shown(default):
    """A default as a person would write it into the environment."""
    if isinstance(default, bool):
        return f"`{default:d}`"
    text = f"{default:g}" if isinstance(default, float) else str(default)
    return f"`{text}`" if text else "none"


@pytest.mark.parametrize(
    "command",
    [
        "pip install -r requirements.txt && python manage.py demo",
        "pip install -r requirements.txt -r tests/requirements.txt && pytest",
    ],
)
def test_both_commands_are_there(command):
    assert f"\n{command}\n" in TEXT


def test_the_settings_are_those_of_the_code():
    known = [
        [f"`{name}`", shown(setting.default), setting.help]
        for name, setting in vars(Conf).items()
        if isinstance(setting, Setting)
    ]
    assert rows(TEXT, "name | default | meaning") == known


def test_the_environment_is_what_the_settings_read():
    source = (ROOT / "project/settings.py").read_text()
    read = set(re.findall(r'(?:environ\.get\(|environ\[|env_flag\()"(\w+)"', source))
    told = [cells[0].strip("`") for cells in rows(TEXT, "environment | meaning | if not set")]

    assert set(told) == read
    assert len(told) == len(set(told))
