"""The file of keys: read again when it changes, kept where it is no use, never shown."""

import json
import logging
import os
import traceback

import pytest

from renders.conf import secrets_file
from renders.conf.secrets_file import SecretsFile

OLD, NEW = "sk-canary-old-key", "sk-canary-new-key"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "secrets"


def held(file):
    return {name: (one.api_key, one.webhook_secret) for name, one in file.read().items()}


def settle(path):
    """Let the file be an old one, which is not read again for its age."""
    os.utime(path, (1_000_000_000, 1_000_000_000))


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"default": {"api_key": f" {OLD}\n"}, "acme": {"webhook_secret": ["a", "b"]}}),
        f'[default]\napi_key = "{OLD}"\n[acme]\nwebhook_secret = ["a", "b"]\n',
    ],
    ids=["JSON", "TOML"],
)
def test_keys_and_secrets_are_read_in_either_way_of_writing(path, text):
    path.write_text(text)

    assert held(SecretsFile(str(path))) == {"default": (OLD, ""), "acme": ("", "a,b")}


def test_a_change_is_seen_without_a_restart_also_where_a_link_is_swapped(path, tmp_path):
    """As Docker and Kubernetes do it: the same name leads to another file."""
    for name, key in (("one", OLD), ("two", NEW)):
        (tmp_path / name).write_text(json.dumps({"default": {"api_key": key}}))
        settle(tmp_path / name)
    path.symlink_to("one")
    file = SecretsFile(str(path))
    assert held(file)["default"][0] == OLD

    (tmp_path / "link").symlink_to("two")
    (tmp_path / "link").replace(path)

    assert held(file)["default"][0] == NEW


def test_a_change_of_the_same_size_within_a_tick_of_the_clock_is_seen(path):
    path.write_text(json.dumps({"default": {"api_key": OLD}}))
    stamp = path.stat()
    file = SecretsFile(str(path))
    assert held(file)["default"][0] == OLD

    path.write_text(json.dumps({"default": {"api_key": NEW}}))
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))

    assert held(file)["default"][0] == NEW


def test_an_old_file_is_not_read_again_while_it_stays_the_same(path, monkeypatch):
    path.write_text(json.dumps({"default": {"api_key": OLD}}))
    settle(path)
    file = SecretsFile(str(path))
    file.read()

    monkeypatch.setattr(secrets_file, "_load", lambda path: pytest.fail("read again"))
    assert held(file)["default"][0] == OLD


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"default": {"api_key": "sk-canary', "not valid JSON from line 1, column"),
        ("", "it is empty"),
        (" \n", "it is empty"),
        ('{"a": ' + "[" * 2_000 + "]" * 2_000 + "}", "it is nested too deeply"),
        ('[default]\napi_key = "sk-canary', "neither JSON nor TOML"),
        ('{"default": "sk-canary"}', "needs api_key and webhook_secret, and nothing else"),
        ('{"default": {"sk-canary": "x"}}', "needs api_key and webhook_secret, and nothing else"),
        ('{"default": {"api_key": 5}}', "holds a value that is no text"),
        ('{"SK-canary": {}}', "small letters"),
        ("{" * 100_000, "it is"),
    ],
)
def test_a_file_that_is_no_use_changes_nothing_and_says_so_once(path, caplog, text, words):
    path.write_text(json.dumps({"default": {"api_key": OLD}}))
    file = SecretsFile(str(path))
    file.read()

    path.write_text(text)
    with caplog.at_level(logging.ERROR):
        found = [held(file) for _ in range(3)]

    assert found == [{"default": (OLD, "")}] * 3
    assert len(caplog.messages) == 1 and words in caplog.text
    assert "goes on" in caplog.text and "canary" not in caplog.text + file.fault
    path.write_text(json.dumps({"default": {"api_key": NEW}}))
    assert held(file) == {"default": (NEW, "")} and not file.fault


@pytest.mark.parametrize(
    "half", ["# keys\n", "[default]\n", f'[default]\napi_key = "{NEW}"\n', "[acme]\n"]
)
def test_a_half_written_file_that_can_be_read_takes_no_key_away(path, half):
    """Without its key in the file, the default workspace would use the environment's."""
    whole = f'[default]\napi_key = "{OLD}"\n[acme]\napi_key = "{OLD}"\n'
    path.write_text(whole)
    settle(path)
    file = SecretsFile(str(path))
    before = held(file)

    path.write_text(half)
    assert held(file) == before

    path.write_text(whole.replace(OLD, NEW))
    assert held(file) == {"default": (NEW, ""), "acme": (NEW, "")}


def test_a_key_that_was_taken_out_is_gone_once_the_file_has_rested(path):
    path.write_text(json.dumps({"default": {"api_key": OLD}, "acme": {"api_key": OLD}}))
    file = SecretsFile(str(path))
    file.read()
    path.write_text(json.dumps({"default": {"api_key": OLD}}))
    assert len(held(file)) == 2

    settle(path)

    assert held(file) == {"default": (OLD, "")}


def test_a_file_that_comes_back_as_it_was_is_of_use_again(path, tmp_path):
    path.write_text(json.dumps({"default": {"api_key": OLD}}))
    settle(path)
    file = SecretsFile(str(path))
    file.read()
    path.rename(tmp_path / "away")
    file.read()
    assert file.fault

    (tmp_path / "away").rename(path)

    assert held(file)["default"][0] == OLD and not file.fault


def test_a_file_that_is_away_changes_nothing(path, caplog):
    path.write_text(json.dumps({"default": {"api_key": OLD}}))
    file = SecretsFile(str(path))
    file.read()
    path.unlink()

    assert held(file)["default"][0] == OLD
    assert "cannot be opened (FileNotFoundError)" in caplog.text
    assert held(SecretsFile(str(path))) == {}


def test_no_traceback_shows_what_it_holds(path):
    path.write_text('{"default": {"api_key": "sk-canary"}, "acme": 5}')

    with pytest.raises(ValueError, match="acme needs") as caught:
        secrets_file._load(str(path))

    shown = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    assert "canary" not in "".join(shown.format())
    assert "canary" not in repr(SecretsFile(str(path)))
