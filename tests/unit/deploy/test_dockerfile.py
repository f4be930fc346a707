"""deploy/Dockerfile and .dockerignore, read as a builder reads them."""

import fnmatch
import re
from pathlib import Path

import pytest

from tests.unit.deploy.support import ROOT, as_list, dockerfile

LINES = dockerfile()
KNOWN = {
    "FROM", "RUN", "ENV", "COPY", "WORKDIR", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK",
    "ENTRYPOINT", "CMD",
}  # fmt: skip
COPIED = [
    source
    for instruction, argument in LINES
    if instruction == "COPY" and not argument.startswith("--from")
    for source in argument.split()[:-1]
]


def is_sent(path: str) -> bool:
    """Whether .dockerignore lets this path, or one that it lies in, go to the builder."""
    sent = True
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        pattern = line.removeprefix("!").removeprefix("**/")
        parents = [path, *map(str, Path(path).parents)]
        if any(fnmatch.fnmatch(part, pattern) for part in [*parents, Path(path).name]):
            sent = line.startswith("!")
    return sent


def test_it_has_only_instructions_that_there_are():
    assert {instruction for instruction, _ in LINES} == KNOWN
    assert LINES[0][0] == "FROM"


@pytest.mark.parametrize("source", COPIED)
def test_what_is_copied_is_there_and_sent_to_the_builder(source):
    assert (ROOT / source).exists()
    assert is_sent(source)


@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        ".state/db.sqlite3",
        "deploy/.env",
        "deploy/secrets/SUME_API_KEY",
        "tests/x.py",
    ],
)
def test_neither_secrets_nor_state_are_sent(path):
    assert not is_sent(path)


def test_all_that_the_app_is_made_of_is_copied():
    assert {"manage.py", "project", "renders", "requirements.txt"} <= set(COPIED)


def test_processes_run_without_root_from_the_last_step_on():
    last = max(number for number, (word, _) in enumerate(LINES) if word in {"RUN", "COPY"})
    [(number, user)] = [(n, arg) for n, (word, arg) in enumerate(LINES) if word == "USER"]

    assert number > last
    assert user == "renders"


def test_no_secret_is_in_it():
    text = " ".join(argument for instruction, argument in LINES if instruction in {"ENV", "RUN"})

    assert not re.search(r"(?i)api_key|secret|password", text)


@pytest.mark.parametrize("instruction", ["CMD", "ENTRYPOINT", "HEALTHCHECK"])
def test_signals_reach_the_process_itself(instruction):
    """The list form: with a shell in between, SIGTERM would not arrive."""
    [argument] = [argument for word, argument in LINES if word == instruction]
    words = as_list(argument)

    files = [word.removeprefix("/app/") for word in words if "deploy/" in word]
    assert files
    assert [name for name in files if not (ROOT / name).is_file()] == []
