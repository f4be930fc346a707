"""The command for the API is what a shell makes of it."""

import json
import shutil
import subprocess

import pytest

from renders.models import RenderJob
from renders.presentation.curl import curl

# In place of curl: shows each of its arguments, with an end that none can hold.
FAKE = "curl() { printf '%s\\0' \"$@\"; }\n"


def run(command):
    done = subprocess.run(
        [shutil.which("bash"), "-c", FAKE + command],
        capture_output=True,
        check=True,
        env={"RENDERS_TOKEN": "t0p $ecret", "PATH": "/nowhere"},
    )
    assert done.stderr == b""
    return done.stdout.decode().split("\0")[:-1]


@pytest.mark.parametrize(
    "prompt",
    [
        "A boat",
        'It\'s a "boat"',
        "first line\nsecond\r\n\tline \\n \\",
        "$HOME ${X} $(exit 3) `exit 4` !! ~ * ; & | < > #",
        "'; exit 5; '",
        "-d @/etc/passwd",
        "قارب 船 🚤 \u202e\u2028\x7f",
    ],
    ids=["plain", "quotes", "lines", "expansions", "escape", "options", "scripts"],
)
def test_the_body_is_the_request_whatever_the_prompt_holds(prompt):
    row = RenderJob(
        prompt=prompt, kind="video", params={"note": prompt}, priority=2, reference="order-1"
    )
    arguments = run(curl(row, "https://renders.example/api/renders/?a=b&c='d'"))

    assert arguments[:-1] == [
        "-X",
        "POST",
        "https://renders.example/api/renders/?a=b&c='d'",
        "-H",
        "Authorization: Bearer t0p $ecret",
        "-H",
        "Content-Type: application/json",
        "-H",
        f"Idempotency-Key: again-{row.pk}",
        "--data-binary",
    ]
    assert json.loads(arguments[-1]) == {
        "prompt": prompt,
        "kind": "video",
        "model": "sume/auto",
        "params": {"note": prompt},
        "priority": 2,
    }


def test_what_a_terminal_would_hide_is_written_out():
    command = curl(RenderJob(prompt="a\u202eb\x7f", kind="image"), "https://x.example/")

    assert r"a\u202eb\u007f" in command
    assert '"params"' not in command and '"priority"' not in command


def test_a_kind_without_a_model_names_none():
    row = RenderJob(prompt="Hi", kind="avatar_video", model="", params={"avatar_handle": "mara"})
    body = json.loads(run(curl(row, "https://x.example/"))[-1])

    assert body == {"prompt": "Hi", "kind": "avatar_video", "params": {"avatar_handle": "mara"}}
