"""How the environment is read, and the file beside it."""

import os

import pytest
from django.core.exceptions import ImproperlyConfigured

from project import environment
from project.environment import flag, load_file, number, words

HERE = dict(os.environ)
REAL = os.environ
CODECS = (REAL.encodekey, REAL.decodekey, REAL.encodevalue, REAL.decodevalue)


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, tmp_path):
    """An environment that can be spoilt, and a folder of `manage.py` without a file."""
    monkeypatch.setattr(os, "environ", {"TAKEN": "of the environment", "EMPTY": ""})
    monkeypatch.setattr(environment, "BESIDE_MANAGE_PY", tmp_path / ".env")


def held():
    """The environment, without what pytest notes in it."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}


def test_the_file_beside_manage_py_is_read(tmp_path):
    (tmp_path / ".env").write_text("# words\nA=1\n\nexport B='two words' # more\nC=p$x${A}\nD\n")

    load_file()

    assert held() == {
        "TAKEN": "of the environment",
        "EMPTY": "",
        "A": "1",
        "B": "two words",
        "C": "p$x${A}",
    }


def test_without_one_nothing_changes():
    load_file()

    assert set(held()) == {"TAKEN", "EMPTY"}


def test_what_is_set_wins_even_if_it_is_empty(tmp_path):
    (tmp_path / ".env").write_text("TAKEN=x\nEMPTY=x\nNEW=x\n")

    load_file()

    assert held() == {"TAKEN": "of the environment", "EMPTY": "", "NEW": "x"}


def test_another_file_can_be_named(tmp_path):
    (tmp_path / ".env").write_text("A=1")
    (tmp_path / "other").write_text("B=2")
    os.environ["DJANGO_ENV_FILE"] = str(tmp_path / "other")

    load_file()

    assert "A" not in os.environ
    assert os.environ["B"] == "2"


def test_an_empty_name_means_no_file(tmp_path):
    (tmp_path / ".env").write_text("A=1")
    os.environ["DJANGO_ENV_FILE"] = ""

    load_file()

    assert "A" not in os.environ


@pytest.mark.parametrize("content", [None, b"\xff\xfe"], ids=["missing", "not a text"])
def test_a_named_file_that_cannot_be_read_is_an_error(tmp_path, content):
    path = tmp_path / "named"
    if content:
        path.write_bytes(content)
    os.environ["DJANGO_ENV_FILE"] = str(path)

    with pytest.raises(ImproperlyConfigured, match=r"named \(DJANGO_ENV_FILE\) cannot be read"):
        load_file()


@pytest.mark.parametrize("line", ["A='ca\0nary'", "'A=B'=canary"], ids=["NUL", "name"])
def test_what_no_variable_can_hold_is_an_error_that_names_it_alone(tmp_path, monkeypatch, line):
    (tmp_path / ".env").write_text(line)
    monkeypatch.setattr(os, "environ", os._Environ({}, *CODECS))

    with pytest.raises(ImproperlyConfigured, match="no environment can hold: 'A") as error:
        load_file()

    assert "nary" not in str(error.value)


def test_a_developers_file_changes_no_test():
    assert HERE["DJANGO_ENV_FILE"] == ""


@pytest.mark.parametrize(
    ("text", "value"), [("1", True), (" Yes ", True), ("0", False), ("off", False), ("", True)]
)
def test_a_flag(text, value):
    os.environ["F"] = text

    assert flag("F", True) is value


@pytest.mark.parametrize(("read", "needed"), [(flag, "1 or 0"), (number, "a whole number")])
def test_what_cannot_be_read_is_an_error_that_names_the_variable_alone(read, needed):
    os.environ["F"] = "canary"

    with pytest.raises(ImproperlyConfigured) as error:
        read("F", 0)

    assert str(error.value).startswith("F in the environment: ")
    assert needed in str(error.value)
    assert "canary" not in str(error.value)


def test_a_number_and_words():
    os.environ |= {"N": " 7 ", "W": "a, b,,c "}

    assert (number("N", 1), number("M", 1)) == (7, 1)
    assert (words("W"), words("V")) == (["a", "b", "c"], [])
