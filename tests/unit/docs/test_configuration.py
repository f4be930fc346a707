"""docs/configuration.md and .env.example: whoever does as they say has a safe site."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from dotenv import dotenv_values

from project.environment import load_file
from tests import docs

PAGE = (docs.ROOT / "docs/configuration.md").read_text("utf-8")
EXAMPLE = (docs.ROOT / docs.EXAMPLE).read_text("utf-8")
NAME = re.compile(r"(?:# )?([A-Z][A-Z_]+)=")
# Read by Flower.
OF_OTHERS = {"FLOWER_BASIC_AUTH"}
# The site, without all that tests and version control bring.
PARTS = ("project", "renders", "manage.py", docs.EXAMPLE)


def blocks() -> list[str]:
    """The commands that the page shows, one text for each block."""
    found = re.findall(r"^( *)```sh\n(.*?)^ *```", PAGE, re.DOTALL | re.MULTILINE)
    return [re.sub(f"^{indent}", "", block, flags=re.MULTILINE) for indent, block in found]


@pytest.fixture
def run(tmp_path):
    """Run commands in a copy of the site, with nothing set but what the shell needs."""
    for part in PARTS:
        copy = shutil.copytree if (docs.ROOT / part).is_dir() else shutil.copy
        copy(docs.ROOT / part, tmp_path / part)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    def run(block):
        environment = {"PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(
            ["bash", "-euc", block], cwd=tmp_path, env=environment, capture_output=True, text=True
        )

    return run


def filled(example, **values):
    for name, value in values.items():
        example, count = re.subn(f"^{name}=.*$", f"{name}={value}", example, flags=re.MULTILINE)
        assert count == 1, name
    return example


@pytest.mark.slow
def test_its_commands_lead_to_a_site_that_no_check_objects_to(run, tmp_path):
    copy, make_key, check = blocks()
    assert run(copy).returncode == 0
    assert (tmp_path / ".env").stat().st_mode & 0o777 == 0o600

    refused = run("python manage.py check")
    assert (refused.returncode, "renders.E002" in refused.stderr) == (1, True), refused.stderr

    key = run(make_key).stdout.strip()
    text = filled(
        (tmp_path / ".env").read_text(),
        DJANGO_SECRET_KEY=key,
        SUME_API_KEY="sk-of-a-test",
        DJANGO_ALLOWED_HOSTS="boats.example.com",
        DATABASE_URL="postgres://ann:p%40ss@db.example.com/renders",
        DJANGO_MEDIA_ROOT=tmp_path / "media",
    )
    (tmp_path / ".env").write_text(text)
    done = run(check)

    assert done.returncode == 0, done.stderr
    told = done.stdout + done.stderr
    assert "(renders.I069) Renders go to api.sume.com: every render is billed." in told
    assert "System check identified 1 issue (0 silenced)." in told
    assert "static file" in done.stdout
    assert (tmp_path / "staticfiles/renders/renders.css.gz").is_file()


def test_the_example_names_every_variable_once():
    table = (docs.ROOT / "README.md").read_text("utf-8").partition("| environment | meaning |")[2]
    read = set(re.findall(r"^\| `(\w+)` \|", table.partition("\n\n")[0], re.MULTILINE))
    ours = {f"RENDERS_{name}" for name in docs.settings().keys() - docs.NAMED_ELSEWHERE}
    named = [found[1] for line in EXAMPLE.splitlines() if (found := NAME.match(line))]

    assert set(named) == (read | ours | OF_OTHERS) - {"DJANGO_ENV_FILE"}
    assert len(named) == len(set(named))


def test_each_has_a_line_that_explains_it():
    lines = EXAMPLE.splitlines()
    places = [number for number, line in enumerate(lines) if NAME.match(line)]

    assert places
    assert all(
        lines[place - 1].startswith("# ") and not NAME.match(lines[place - 1]) for place in places
    )


def test_it_holds_no_secret_and_opens_nothing():
    held = dotenv_values(docs.ROOT / docs.EXAMPLE)

    assert [name for name in held if name.endswith(("KEY", "SECRET", "AUTH")) and held[name]] == []
    assert held["DJANGO_DEBUG"] == "0"
    assert held["DJANGO_SSL_REDIRECT"] == held["DJANGO_SECURE_COOKIES"] == "1"


def test_its_defaults_are_those_that_hold_without_it(monkeypatch, tmp_path):
    """Whoever takes the `#` away changes nothing yet."""
    (tmp_path / "env").write_text(re.sub(r"^# (?=RENDERS_\w+=.)", "", EXAMPLE, flags=re.MULTILINE))
    for name in list(os.environ):
        if name.startswith("RENDERS_"):
            monkeypatch.delenv(name)
    monkeypatch.setattr(
        os, "environ", dict(os.environ) | {"DJANGO_ENV_FILE": str(tmp_path / "env")}
    )
    load_file()

    for name, setting in docs.settings().items():
        if given := os.environ.get(f"RENDERS_{name}"):
            assert setting.parse(given) == setting.default


def test_its_code_runs(settings):
    settings.DEBUG = True
    [code] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)

    exec(compile(code, "docs/configuration.md", "exec"), {})  # noqa: S102  (ours)


def test_the_ids_it_speaks_of_are_there():
    text, _, table = PAGE.partition("## All checks")
    ids = re.findall(r"renders\.[EWI]\d{3}", text)

    assert ids
    assert [name for name in ids if f"| `{name}` |" not in table] == []
