"""The page about the API: its commands, as it shows them, on a running site."""

import json
import re

import pytest

from renders.models import ApiToken, Avatar
from renders.states import Kind
from renders.sume.bodies import SHAPES
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
    block = blocks(page("api"))[0]
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


@pytest.mark.django_db(transaction=True)
def test_its_commands_make_an_avatar_and_have_it_speak(sume, settings, django_user_model):
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    ann = django_user_model.objects.create_user("ann")
    _, secret = ApiToken.issue(user=ann, name="docs")
    Avatar.objects.create(handle="mara", owner=ann)  # as if the first was completed
    first, kinds = blocks(page("api"))
    names = first.splitlines()[0].replace("https://example.com", serving.SITE)

    made = answers(names.replace("renders_…", secret) + "\n" + kinds)

    assert [(render["kind"], status) for render, status in made] == [
        ("avatar", 202),
        ("avatar_video", 202),
    ]


def test_its_table_of_kinds_names_every_field():
    section = page("api").partition("### Kinds")[2].partition("## Webhooks")[0]
    rows = {
        kind: line
        for line in section.splitlines()
        if line.startswith("| `")
        for kind in re.findall(r"`(\w+)`", line.split("|")[1])
    }

    assert rows.keys() == set(Kind.values)
    for kind, shape in SHAPES.items():
        for name, field in shape.fields.items():
            assert f"`{name}`" in rows[kind]
            if len(field.choices) < 4:
                assert all(f"`{choice}`" in rows[kind] for choice in field.choices)
