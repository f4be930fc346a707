import json

import pytest

from renders.redaction import Hidden, Link, unsigned, without

SIGNED = "https://media.example/a.png?signature=s3cret#s3cret"


def test_a_hidden_text_works_and_is_not_shown():
    key = Hidden("s3cret-key")

    assert f"Bearer {key}" == "Bearer s3cret-key"
    assert json.dumps({"key": key}) == '{"key": "s3cret-key"}'
    assert "s3cret" not in repr({"key": [key]})


def test_a_link_works_and_is_shown_without_its_signature():
    link = Link(SIGNED)

    assert link == SIGNED
    assert json.dumps([link]) == json.dumps([SIGNED])
    assert repr([link]) == "['https://media.example/a.png?[removed]']"


def test_an_address_without_a_query_is_shown_whole():
    assert repr(Link("https://media.example/a.png")) == "'https://media.example/a.png'"
    assert unsigned("no address") == "no address"


@pytest.mark.parametrize(
    ("value", "left"),
    [
        ("a s3cret-key", "a [removed]"),
        ({"a": "s3cret-key!", "b": 7}, {"a": "[removed]!", "b": 7}),
    ],
    ids=["text", "object"],
)
def test_the_key_is_taken_out(value, left):
    assert without("s3cret-key", value) == left


def test_a_stand_in_for_a_key_garbles_nothing():
    assert without("job", {"id": "job_1"}) == {"id": "job_1"}


def test_a_list_of_the_settings_shows_no_secret(settings):
    """`manage.py diffsettings` prints every value's `repr`."""
    for name in ("API_KEY", "WEBHOOK_SECRET"):
        assert repr(settings.RENDERS[name]) == "'[hidden]'"
