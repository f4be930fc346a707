"""The page of commands has every command, with options that it has."""

import re

import pytest
from django.core.management import get_commands, load_command_class

from tests.unit.docs.reading import page, rows

OURS = sorted(name for name, app in get_commands().items() if app == "renders")
TOLD = rows(page("commands"), "`python manage.py …` | does | main options")


def test_every_command_is_there():
    assert sorted(cells[0].strip("`").split()[0] for cells in TOLD) == OURS


@pytest.mark.parametrize("name", OURS)
def test_the_commands_have_the_options_it_names(name):
    [row] = [cells for cells in TOLD if cells[0].strip("`").split()[0] == name]
    parser = load_command_class("renders", name).create_parser("manage.py", name)
    options = re.findall(r"--[a-z-]+", row[2])

    assert options
    assert [option for option in options if option not in parser._option_string_actions] == []
