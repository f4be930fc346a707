"""docs/deployment.md: its commands are those of deploy/, and can be run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

from renders.conf import Conf
from tests.unit.deploy.support import ALL_UNITS, ROOT, compose, queues_of, unit_command
from tests.unit.docs.reading import blocks, commands, page

PAGE = page("deployment")
COMMANDS = commands(PAGE)


def starting(*words: str) -> list[list[str]]:
    return [command for command in COMMANDS if command[: len(words)] == list(words)]


def run(*command: str, cwd: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        command, cwd=cwd, env={**os.environ, "PATH": path, **environment},
        capture_output=True, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("block", blocks(PAGE), ids=lambda block: block.splitlines()[0][:30])
def test_each_block_is_shell(block):
    assert run("bash", "-n", "-c", block, cwd=ROOT).stderr == ""


def test_the_commands_of_manage_py_are_there_and_take_these_options():
    found = re.findall(r"manage\.py (\w+)((?: [^\s`|]+)*)", PAGE)

    assert {name for name, _ in found} >= {"migrate", "collectstatic", "createsuperuser", "check"}
    for name, options in found:
        app = get_commands()[name]
        command = load_command_class(app, name) if isinstance(app, str) else app
        parser = command.create_parser("manage.py", name)
        parser.parse_args([word for word in options.split() if word.startswith("--")])


def test_the_table_of_processes_is_what_the_units_run():
    told = re.findall(r"^\| [^|]+ \| `([^`]+)` \|", PAGE, re.MULTILINE)
    celery = [line.split() for line in told if line.startswith("celery")]
    units = [unit_command(name) for name in ("submit", "poll", "media")]

    workers = [words for words in celery if "worker" in words]
    assert [queues_of(words) for words in workers] == [queues_of(words) for words in units]
    assert [set(words[1:]) - set(unit) for words, unit in zip(workers, units, strict=True)] == [
        set(), set(), set(),
    ]  # fmt: skip
    assert told[0].split()[1:] == unit_command("web")[1:]
    assert "celery -A project beat" in told


def test_the_units_that_it_names_are_there():
    named = {
        word
        for command in starting("systemctl")
        for word in command[2:]
        if word.startswith("renders")
    } | set(re.findall(r"`(?:systemctl [a-z-]+ )?(renders-\w+(?:\.socket)?)`", PAGE))

    assert {"renders-web.socket", "renders-migrate", "renders.target"} <= named
    assert [name for name in named if not {name, f"{name}.service"} & ALL_UNITS] == []


def test_a_deployment_restarts_all_that_runs():
    restarted = {name for command in starting("systemctl", "try-restart") for name in command[2:]}

    services = {name.removesuffix(".service") for name in ALL_UNITS if name.endswith(".service")}
    assert restarted == services - {"renders-migrate"}


def test_the_services_of_compose_that_it_names_are_there():
    known = set(compose()["services"])
    lines = starting("docker", "compose", "-f", "deploy/compose.yaml")

    assert {line[4] for line in lines} == {"build", "up", "run"}
    for line in lines:
        words = [word for word in line[5:] if not word.startswith("-")]
        named = words[:1] if line[4] == "run" else words
        assert set(named) <= known, line


def test_the_folder_of_secrets_is_made_as_it_says(tmp_path: Path):
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy/example.env").write_text((ROOT / "deploy/example.env").read_text())
    [block] = [block for block in blocks(PAGE) if "deploy/secrets" in block]
    own = "".join(line for line in block.splitlines(True) if not line.startswith("docker"))

    done = run("bash", "-ec", own, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    files = {path.name for path in (tmp_path / "deploy/secrets").iterdir()}
    assert files == set(compose()["secrets"])
    assert (tmp_path / "deploy/.env").is_file()
    assert (tmp_path / "deploy/secrets").stat().st_mode & 0o777 == 0o700
    assert len((tmp_path / "deploy/secrets/DJANGO_SECRET_KEY").read_text().strip()) > 50


def test_the_media_are_packed_as_it_says(tmp_path: Path):
    (tmp_path / "media/renders").mkdir(parents=True)
    (tmp_path / "media/renders/a.png").write_bytes(b"x")
    [line] = [line for block in blocks(PAGE) for line in block.splitlines() if "tar " in line]

    run("bash", "-ec", line, cwd=tmp_path, DJANGO_MEDIA_ROOT=str(tmp_path / "media"))

    listed = run("tar", "-tzf", "media.tar.gz", cwd=tmp_path).stdout
    assert "renders/a.png" in listed


def test_the_settings_and_files_that_it_names_are_there():
    names = set(re.findall(r"RENDERS_([A-Z_]+)", PAGE)) - {"VERSION"}
    paths = set(re.findall(r"deploy/[\w.-]+", PAGE)) - {"deploy/.env", "deploy/secrets"}

    assert [name for name in names if not hasattr(Conf, name)] == []
    assert [path for path in paths if not (ROOT / path).exists()] == []
    settings = (ROOT / "project/settings.py").read_text()
    assert set(re.findall(r"`(CELERY_WORKER_\w+)`", PAGE)) <= set(re.findall(r"\w+", settings))
