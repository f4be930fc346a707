"""A database that is away, and one that lacks a table, are told apart."""

import pytest
from django.db import OperationalError, ProgrammingError

from renders.models import RenderJob, outages


class Undefined(Exception):
    sqlstate = "42P01"


def caused(error, cause):
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        OperationalError("no such table: renders_renderjob"),
        OperationalError("no such column: renders_renderjob.x"),
        caused(ProgrammingError("relation does not exist"), Undefined()),
    ],
)
def test_where_a_table_or_column_is_missing_it_says_to_migrate(error):
    assert "run `python manage.py migrate`" in outages.in_words(error)


def test_anything_else_is_an_outage_and_its_text_is_not_told():
    words = outages.in_words(OperationalError("host=secret"))

    assert words == "The database is away (OperationalError)"


@pytest.mark.django_db
def test_what_this_database_raises_is_recognised():
    with pytest.raises(outages.DATABASE_FAILS) as raised:
        list(RenderJob.objects.raw("SELECT * FROM nowhere"))

    assert outages.is_unmigrated(raised.value)
