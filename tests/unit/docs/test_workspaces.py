"""The page on workspaces says what the code does."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command

from project.workspaces import RENDERS, SUME, workspaces_in
from renders.conf import workspaces
from renders.conf.secrets_file import SecretsFile

ROOT = Path(settings.BASE_DIR)
PAGE = (ROOT / "docs/workspaces.md").read_text("utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def exported(block):
    return dict(re.findall(r"^export (\w+)=(\S+)$", block, re.MULTILINE))


def test_its_shell_commands_run_and_say_nothing_is_wrong(tmp_path):
    [block] = blocks("sh")
    environment = {
        **{name: value for name, value in os.environ.items() if name != "RENDERS_WORKSPACES"},
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "DJANGO_SETTINGS_MODULE": "project.settings",
        "DJANGO_DEBUG": "1",
        "DJANGO_STATE_DIR": str(tmp_path),
    }
    ran = subprocess.run(
        ["bash", "-euc", block], cwd=ROOT, env=environment, capture_output=True, text=True
    )

    assert ran.returncode == 0, ran.stderr
    assert "acme" not in ran.stdout + ran.stderr and "beta" not in ran.stdout + ran.stderr


def test_the_environment_and_the_mapping_of_the_page_name_the_same_workspaces(monkeypatch):
    [block], [code] = blocks("sh"), blocks("python")
    told: dict = {}
    exec(code, told)  # noqa: S102 (our own page)
    monkeypatch.setattr(settings, "RENDERS", told["RENDERS"])
    by_mapping = {name: workspaces.get(name) for name in workspaces.names()[1:]}
    prices = exported(block)["RENDERS_PRICES"]
    of_environment = {"WORKSPACES": workspaces_in(exported(block)), "PRICES": prices}
    monkeypatch.setattr(settings, "RENDERS", of_environment)
    by_environment = {name: workspaces.get(name) for name in workspaces.names()[1:]}

    assert by_mapping.keys() == by_environment.keys() == {"acme", "beta-2"}
    for name, one in by_mapping.items():
        other = by_environment[name]
        assert (one.api_key, one.max_in_flight, one.budget_usd_micros) == (
            other.api_key,
            other.max_in_flight,
            other.budget_usd_micros,
        )


def test_its_secrets_file_can_be_read(tmp_path):
    [text] = blocks("json")
    path = tmp_path / "secrets"
    path.write_text(text, "utf-8")
    file = SecretsFile(str(path))

    assert file.read().keys() == json.loads(text).keys() and not file.fault


def test_its_variables_are_those_that_are_read():
    told = set(re.findall(r"`((?:SUME|RENDERS)_\w+?)_ACME`", PAGE))

    assert told == {f"SUME_{name}" for name in SUME} | {f"RENDERS_{name}" for name in RENDERS}


@pytest.mark.parametrize("words", ["budget_spent", "unknown_workspace"])
def test_the_codes_it_names_are_those_of_the_code(words):
    assert words in PAGE
    assert any(f'"{words}"' in path.read_text() for path in (ROOT / "renders").rglob("*.py"))


def test_what_it_calls_things_in_the_admin_is_what_they_are_called():
    from renders.models import RenderJob, UserWorkspace

    assert str(UserWorkspace._meta.verbose_name_plural).capitalize() in PAGE
    assert dict(RenderJob._meta.permissions)["choose_workspace"] in PAGE


def test_the_command_has_the_option_it_names(capsys):
    assert "`render --workspace`" in PAGE
    with pytest.raises(SystemExit):
        call_command("render", "--help")
    assert "--workspace" in capsys.readouterr().out
