"""The search finds a render by its words, its names, or the first signs of its id."""

import pytest

from renders.models import RenderJob
from renders.services import create_render

pytestmark = pytest.mark.django_db
LIST = "/admin/renders/renderjob/"


@pytest.fixture
def row(sent, django_user_model):
    """One among others."""
    create_render("A boat")
    row = sent(PROMPT, user=django_user_model.objects.create_user("annabel"))
    RenderJob.objects.filter(pk=row.pk).update(sume_job_id="job_1A", reference="order-1")
    return row


@pytest.fixture
def found(listed):
    return lambda term: listed({"q": term})


PROMPT = "A 100%_lighthouse, o'clock"


@pytest.mark.parametrize(
    "term",
    [
        "lighthouse",
        "LIGHT clock",
        "100%_",
        "o'clock",
        "job_1A",
        "order-1",
        "annabel",
        "{pk}",
        "{pk:.8}",
        "{pk:.13}",
        " {hex} ",
        "{hex:.20}",
        "{HEX:.8}",
    ],
)
def test_a_render_is_found_by_its_words_and_names(found, row, term):
    names = {"pk": str(row.pk), "hex": row.pk.hex, "HEX": row.pk.hex.upper()}

    assert found(term.format(**names)) == {PROMPT}


@pytest.mark.parametrize(
    "term",
    [
        "%",
        "_",
        "\\",
        "'",
        '"',
        '"boat',
        "-" * 8,
        "0" * 32,
        "0" * 33,
        "x" * 10_000,
        "a " * 5_000,
        "\ud7ff\U0010ffff",
    ],
    ids=lambda term: f"{term[:4]!a} x {len(term)}",
)
def test_an_odd_search_is_no_error(found, row, term):
    found(term)


def test_a_null_character_is_refused_in_words(admin_client, row):
    assert "Null characters are not allowed" in admin_client.get(LIST, {"q": "a\0"}).text


@pytest.mark.parametrize("term", ["%", "_"])
def test_a_wildcard_is_a_character(found, row, term):
    assert found(term) == {PROMPT}


def test_words_that_look_like_an_id_are_words(found):
    create_render("Order deadbeef now")

    assert found("deadbeef") == {"Order deadbeef now"}
