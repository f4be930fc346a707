"""What renders cost, as a table, as CSV, as JSON."""

import csv
import io
import json
from datetime import UTC, datetime

import pytest
from django.core.management import CommandError, call_command

from renders.states import Status
from tests.rows import stored

pytestmark = pytest.mark.django_db


def run(*args):
    out = io.StringIO()
    call_command("rendercosts", *args, stdout=out, no_color=True)
    return out.getvalue()


@pytest.fixture
def some(django_user_model):
    ann = django_user_model.objects.create_user("=ann" + "n" * 100)
    for month, micros in ((1, 90_000), (1, 1), (2, None)):
        ended = datetime(2026, month, 1, tzinfo=UTC)
        stored(Status.COMPLETED, finished_at=ended, cost_usd_micros=micros, created_by=ann)
    stored(Status.SUBMITTED)
    return ann


def test_a_table_says_it_in_whole_words_and_amounts(some):
    lines = [line.split() for line in run("--by", "user,month").splitlines() if line.strip()]

    name = some.username
    assert " ".join(lines[0]) == ("user month renders completed failed canceled unknown US dollars")
    assert lines[2] == [name, "2026-01", "2", "2", "0", "0", "0", "0.090001"]
    assert lines[3] == [name, "2026-02", "1", "1", "0", "0", "1", "0.000000"]
    assert lines[4] == ["total", "3", "3", "0", "0", "1", "0.090001"]
    assert " ".join(lines[5]).startswith("Not in the sums: 1 of unknown cost.")
    assert " ".join(lines[6]).startswith("At Sume, or may be: 1.")


def test_csv_is_for_sheets(some):
    [row] = csv.DictReader(run("--by", "user", "--format", "csv").splitlines())

    assert row["user"] == f"'{some.username}"
    assert (row["renders"], row["unknown"]) == ("3", "1")
    assert (row["cost_usd_micros"], row["cost_usd"]) == ("90001", "0.090001")


def test_json_is_for_programs(some):
    [one, two] = json.loads(run("--format", "json"))

    assert (one["month"], one["cost_usd_micros"], one["cost_usd"]) == (
        "2026-01",
        90_001,
        "0.090001",
    )
    assert (two["month"], two["unknown"]) == ("2026-02", 1)


def test_a_span_is_kept_to(some):
    [row] = json.loads(run("--format", "json", "--since", "2026-01-01", "--until", "2026-02-01"))
    assert row["renders"] == 2


def test_nothing_is_said_in_words():
    assert run() == "No render has ended in this time.\n"
    assert json.loads(run("--format", "json")) == []
    assert run("--format", "csv").count("\n") == 1


def test_an_unknown_group_is_refused():
    with pytest.raises(
        CommandError, match="there is no 'week'; choose from: user, workspace, kind"
    ):
        run("--by", "week")
