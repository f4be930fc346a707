"""What the documentation repeats from the code is what the code says."""

import ast

import pytest

from tests import docs


@pytest.mark.parametrize(
    "name", [path.relative_to(docs.ROOT).as_posix() for path in docs.renewed()]
)
def test_a_table_is_as_the_code_says(name):
    assert (docs.ROOT / name).read_text("utf-8") == docs.renewed()[docs.ROOT / name], docs.HOW


def test_every_setting_and_check_is_there():
    assert len(docs.settings_rows()) == len(docs.settings()) > 30
    assert "| `PLAN` | `free` |" in "\n".join(docs.settings_rows())
    assert len(docs.checks_rows()) > 40


def test_a_check_is_shown_with_what_is_known_before_it_speaks():
    code = (
        'LEAST = 5\nError(f"{LEAST} of {some}" " a|b", hint="x" if y else f"{z}.", id="renders.E1")'
    )

    assert list(docs._checks_of(ast.parse(code))) == [("renders.E1", "5 of … a\\|b", "x / ….")]
