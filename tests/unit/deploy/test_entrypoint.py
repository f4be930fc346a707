"""deploy/entrypoint.sh: files of secrets become variables of the command."""

import os
import subprocess
from pathlib import Path

from tests.unit.deploy.support import DEPLOY

ENTRYPOINT = DEPLOY / "entrypoint.sh"


def run(folder: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    environment = {"PATH": os.environ["PATH"], "SECRETS_DIR": str(folder)}
    return subprocess.run([ENTRYPOINT, *command], env=environment, capture_output=True, text=True)


def test_each_secret_is_in_the_environment_of_the_command(tmp_path: Path):
    (tmp_path / "SUME_API_KEY").write_text("a key with $signs 'and' \"quotes\"\n")
    (tmp_path / "SUME_WEBHOOK_SECRET").write_text("")

    done = run(tmp_path, "sh", "-c", 'echo "$SUME_API_KEY|${SUME_WEBHOOK_SECRET-unset}"')

    assert done.stdout == "a key with $signs 'and' \"quotes\"|unset\n"


def test_it_becomes_the_command_and_keeps_its_words_and_status(tmp_path: Path):
    done = run(tmp_path / "none", "sh", "-c", 'echo "$#:$1:$$"; exit 7', "sh", "two words")

    count, word, _ = done.stdout.split(":")
    assert (count, word, done.returncode) == ("1", "two words", 7)
