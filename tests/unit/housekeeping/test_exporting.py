"""Renders as CSV and JSON Lines: whole, exact, harmless."""

import csv
import json
import stat
from datetime import UTC, datetime

import pytest
from django.utils import timezone

from renders.housekeeping.exporting import (
    FIELDS,
    as_csv,
    as_jsonl,
    cell,
    dollars,
    rows,
    written_whole,
)
from renders.models import RenderJob
from renders.states import Status
from tests.rows import SIGNED, pictured, stored

EVERY = list(FIELDS)


@pytest.fixture
def one(db, settings, tmp_path, django_user_model):
    settings.MEDIA_ROOT = tmp_path
    ann = django_user_model.objects.create_user("ann")
    return pictured(
        created_by=ann,
        prompt='a "fox",\nred',
        params={"image": SIGNED, "list": [SIGNED], "seed": 7},
        reference="order-1",
        cost_usd_micros=90_001,
        error_message=f"see {SIGNED}",
    )


def exported(fields=EVERY):
    return list(rows(RenderJob.objects.all(), fields))


def test_each_field_is_there_and_no_signed_address(one):
    stored(Status.PENDING)

    found, pending = exported()

    assert list(found) == EVERY
    assert (found["id"], found["user"], found["prompt"]) == (str(one.pk), "ann", one.prompt)
    assert (found["cost_usd_micros"], found["cost_usd"]) == (90_001, "0.090001")
    assert found["files"] == [one.artifacts[0]["file"]]
    assert found["params"]["seed"] == 7
    assert "hush" not in str(found) and "https://media.example/a.png" in str(found)
    assert pending["user"] is pending["finished_at"] is pending["cost_usd"] is None
    assert pending["files"] == []


def test_csv_reads_back_as_it_was(one):
    text = "".join(as_csv(exported(), EVERY))

    [back] = csv.DictReader(text.splitlines(keepends=True))
    assert list(back) == EVERY
    assert back["prompt"] == one.prompt
    assert json.loads(back["params"])["seed"] == 7
    assert (back["cost_usd_micros"], back["cost_usd"]) == ("90001", "0.090001")
    assert datetime.fromisoformat(back["finished_at"]) == one.finished_at


def test_json_lines_read_back_as_they_were(one):
    [line] = as_jsonl(exported())

    assert line.endswith("}\n") and line.count("\n") == 1
    assert json.loads(line) == exported()[0]


def test_the_first_line_is_there_without_any_render(db):
    assert "".join(as_csv(exported(), EVERY)) == ",".join(EVERY) + "\n"
    assert list(as_jsonl(exported())) == []


@pytest.mark.parametrize("start", [*"=+-@\t\r\n＝＋－＠"])  # noqa: RUF001
def test_no_text_is_a_formula(start):
    assert cell(f"{start}1+1") == f"'{start}1+1"
    assert cell(f"a{start}1") == f"a{start}1"


@pytest.mark.parametrize("value", [-5, 0, None, "", "fox"])
def test_all_else_is_left_as_it_is(value):
    assert cell(value) == value


@pytest.mark.parametrize(
    ("micros", "amount"),
    [
        (None, None),
        (0, "0.000000"),
        (1, "0.000001"),
        (-1, "-0.000001"),
        (90_000, "0.090000"),
        (9_007_199_254_740_993_000_001, "9007199254740993.000001"),
    ],
)
def test_money_is_exact(micros, amount):
    assert dollars(micros) == amount


def test_the_oldest_comes_first_in_one_statement(db, django_assert_num_queries):
    made = [stored(created_at=datetime(2026, 1, day, tzinfo=UTC)) for day in (3, 1, 2)]

    with django_assert_num_queries(1):
        found = [row["id"] for row in exported(["id", "user"])]

    assert found == [str(made[place].pk) for place in (1, 2, 0)]


def test_times_are_those_of_the_time_zone(db):
    stored(created_at=datetime(2026, 1, 1, 23, 30, tzinfo=UTC))

    with timezone.override("Asia/Tokyo"):
        assert exported(["created_at"]) == [{"created_at": "2026-01-02T08:30:00+09:00"}]


def test_long_tables_come_in_pieces():
    pieces = list(as_csv(({"prompt": "x" * 1_000} for _ in range(200)), ["prompt"]))

    assert len(pieces) > 2
    assert max(map(len, pieces)) < 70_000


def test_a_file_takes_its_name_once_it_is_whole(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("old")

    with written_whole(path) as file:
        file.write("new")
        assert path.read_text() == "old"

    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_of_a_file_that_is_not_whole_nothing_is_left(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("old")

    with pytest.raises(KeyboardInterrupt), written_whole(path) as file:
        file.write("new")
        raise KeyboardInterrupt

    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
