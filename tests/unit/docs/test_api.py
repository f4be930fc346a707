"""The page about the API: its commands, as it shows them, on a running site."""

import json
import re
import subprocess

import pytest

from renders.models import ApiToken
from tests.unit.docs.reading import blocks, page

# Quiet, and with the status on a line of its own after the answer.
CURL = """curl() { command curl -sS -w '\\n%{http_code}\\n' "$@"; }\n"""


def run(script):
    """The answers of the commands: the JSON of each, and its status."""
    done = subprocess.run(["bash", "-euc", CURL + script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    return [
        (json.loads(answer), int(status))
        for answer, status in zip(lines[::2], lines[1::2], strict=True)
    ]


@pytest.mark.django_db(transaction=True)
def test_its_commands_make_find_and_cancel_renders(live_server, sume, django_user_model):
    _, secret = ApiToken.issue(user=django_user_model.objects.create_user("ann"), name="docs")
    [block] = blocks(page("api"))
    block = block.replace("https://example.com", live_server.url).replace("renders_…", secret)
    made, cancel = re.split(r"(?=^# Cancel)", block, flags=re.MULTILINE)
    names = made.splitlines()[0]

    one, many, ended = run(made)
    again, *_ = run(made)
    canceled, *rest = run(f"{names}\n{cancel.replace('<id>', one[0]['id'])}")

    assert (one[1], many[1], ended[1], canceled[1]) == (202, 202, 200, 202) and not rest
    assert again[0]["id"] == one[0]["id"]
    assert [render["kind"] for render in many[0]["renders"]] == ["image", "video"]
    assert ended[0] == {"renders": [], "next": None}
    assert canceled[0]["outcome"] == "canceled"
