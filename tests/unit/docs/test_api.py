"""The page about the API: its commands, as it shows them, on a running site."""

import json
import re

import pytest

from renders.models import ApiToken
from tests.unit.docs import serving
from tests.unit.docs.reading import blocks, page

# Quiet, and with the status on a line of its own after the answer.
CURL = """curl() { command curl -sS -w '\\n%{http_code}\\n' "$@"; }\n"""


def answers(script):
    """The JSON that each command was answered with, and the status."""
    lines = [line for line in serving.run(CURL + script).splitlines() if line.strip()]
    return [
        (json.loads(answer), int(status))
        for answer, status in zip(lines[::2], lines[1::2], strict=True)
    ]


@pytest.mark.django_db(transaction=True)
def test_its_commands_make_find_and_cancel_renders(sume, settings, django_user_model):
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    _, secret = ApiToken.issue(user=django_user_model.objects.create_user("ann"), name="docs")
    [block] = blocks(page("api"))
    block = block.replace("https://example.com", serving.SITE).replace("renders_…", secret)
    made, cancel = re.split(r"(?=^# Cancel)", block, flags=re.MULTILINE)
    names = made.splitlines()[0]

    one, many, ended = answers(made)
    again, *_ = answers(made)
    canceled, *rest = answers(f"{names}\n{cancel.replace('<id>', one[0]['id'])}")

    assert (one[1], many[1], ended[1], canceled[1]) == (202, 202, 200, 202) and not rest
    assert again[0]["id"] == one[0]["id"]
    assert [render["kind"] for render in many[0]["renders"]] == ["image", "video"]
    assert ended[0] == {"renders": [], "next": None}
    assert canceled[0]["outcome"] == "canceled"
