"""Renders go to a file, or to the output, as chosen."""

import csv
import io
import json
import os
import signal
from datetime import UTC, datetime

import pytest
from django.core.management import CommandError, call_command

from renders.housekeeping import exporting
from renders.states import Kind, Status
from tests.rows import stored

pytestmark = pytest.mark.django_db


@pytest.fixture
def some(django_user_model):
    ann = django_user_model.objects.create_user("ann", "ann@example.com")
    made = {"day1": 1, "day2": 2, "day3": 3}
    made = {name: datetime(2026, 1, day, tzinfo=UTC) for name, day in made.items()}
    stored(prompt="one", created_at=made["day1"], created_by=ann)
    acme = {"kind": Kind.VIDEO, "workspace": "acme"}
    stored(Status.FAILED, prompt="two", created_at=made["day2"], **acme)
    stored(Status.COMPLETED, prompt="three", created_at=made["day3"], created_by=ann)
    return ann


def run(*args):
    out, errors = io.StringIO(), io.StringIO()
    call_command("exportrenders", *args, stdout=out, stderr=errors)
    assert errors.getvalue() == ""
    return out.getvalue()


def run_quietly(*args):
    call_command("exportrenders", *args, stdout=io.StringIO(), stderr=io.StringIO())


@pytest.mark.parametrize(
    ("args", "prompts"),
    [
        ([], ["one", "two", "three"]),
        (["--status", "failed,completed"], ["two", "three"]),
        (["--kind", "video"], ["two"]),
        (["--user", "ann"], ["one", "three"]),
        (["--workspace", "acme"], ["two"]),
        (["--workspace", "default"], ["one", "three"]),
        (["--user", "ANN@example.com", "--status", "pending"], ["one"]),
        (["--since", "2026-01-02"], ["two", "three"]),
        (["--until", "2026-01-02"], ["one"]),
        (["--since", "2026-01-01T00:00:01", "--until", "2026-01-02T00:00:01Z"], ["two"]),
        (["--user", "ann", "--kind", "video"], []),
    ],
    ids=str,
)
def test_those_that_are_asked_for_are_there(some, args, prompts):
    text = run("-", "--fields", "prompt,status", *args)

    rows = list(csv.reader(text.splitlines()))
    assert rows[0] == ["prompt", "status"]
    assert [row[0] for row in rows[1:]] == prompts


def test_a_file_is_written_as_its_name_ends(some, tmp_path):
    for name in ("out.csv", "out.JSONL"):
        assert run(str(tmp_path / name)) == f"3 renders in {tmp_path / name}\n"

    found = [json.loads(line) for line in (tmp_path / "out.JSONL").read_text().splitlines()]
    with (tmp_path / "out.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert [row["prompt"] for row in found] == [row["prompt"] for row in table]
    assert list(table[0]) == list(found[0]) == list(exporting.FIELDS)


def test_the_format_can_be_said(some):
    lines = run("-", "--format", "jsonl", "--fields", "prompt").splitlines()

    assert [json.loads(line) for line in lines] == [
        {"prompt": "one"},
        {"prompt": "two"},
        {"prompt": "three"},
    ]


def test_after_ctrl_c_the_old_file_is_there(some, tmp_path, monkeypatch):
    path = tmp_path / "out.csv"
    path.write_text("old")

    def interrupted(*args):
        yield {"prompt": "one"}
        raise KeyboardInterrupt

    monkeypatch.setattr(exporting, "rows", interrupted)
    errors = io.StringIO()
    with pytest.raises(SystemExit) as end:
        call_command("exportrenders", str(path), "--fields", "prompt", stderr=errors)

    assert end.value.code == 130
    assert "no file was written" in errors.getvalue()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=str)
def test_one_that_is_told_to_end_leaves_no_half_of_a_file(some, tmp_path, monkeypatch, number):
    def ended(*args):
        yield {"prompt": "one"}
        signal.raise_signal(number)

    handlers = [signal.signal(number, signal.SIG_IGN)]
    monkeypatch.setattr(exporting, "rows", ended)
    with pytest.raises(SystemExit) as end:
        run_quietly(str(tmp_path / "out.csv"), "--fields", "prompt")
    handlers.append(signal.signal(number, handlers[0]))

    assert end.value.code == 130
    assert list(tmp_path.iterdir()) == []
    assert handlers[1] == signal.SIG_IGN  # as it was before


def test_what_is_no_file_is_written_to_and_not_replaced(some, tmp_path):
    pipe = tmp_path / "out.csv"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    run(str(pipe), "--fields", "prompt")

    with open(reader) as file:
        assert file.read().splitlines() == ["prompt", "one", "two", "three"]
    assert pipe.is_fifo() and list(tmp_path.iterdir()) == [pipe]


def test_the_output_is_utf_8_whatever_the_locale_says(some):
    stored(prompt="žluť 画")
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    call_command("exportrenders", "-", "--fields", "prompt", stdout=out)

    assert "žluť 画" in raw.getvalue().decode()


def test_a_user_model_without_an_address_has_no_such_user(some, django_user_model, monkeypatch):
    monkeypatch.setattr(django_user_model, "EMAIL_FIELD", "mail")

    with pytest.raises(CommandError, match="There is no user 'ann@"):
        run("-", "--user", "ann@example.com")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["out.txt"], "ends in .csv or .jsonl"),
        (["/no/such/folder/out.csv"], "cannot be written: No such file or directory"),
        (["-", "--user", "nobody"], "There is no user 'nobody'"),
        (["-", "--workspace", "acmee"], "There is no workspace 'acmee'; choose from: default."),
        (["-", "--status", "done"], "there is no 'done'; choose from: pending, "),
        (["-", "--fields", "id,key"], "there is no 'key'"),
        (["-", "--since", "yesterday"], "must be like 2026-01-31"),
        (["-", "--since", "2026-02-30"], "must be like 2026-01-31"),
    ],
    ids=str,
)
def test_what_is_wrong_is_said(args, message):
    with pytest.raises(CommandError, match=message):
        run(*args)


def test_a_user_who_could_be_two_is_nobody(django_user_model):
    ann = django_user_model.objects.create_user("ann")
    django_user_model.objects.create_user(str(ann.pk))

    with pytest.raises(CommandError, match=f"is more than one user: .*ann .id {ann.pk}"):
        run("-", "--user", str(ann.pk))


class Full(io.StringIO):
    def write(self, text):
        raise OSError(28, "No space left on device")


def test_an_output_that_is_full_is_said(some):
    with pytest.raises(CommandError, match="The output cannot be written: No space left"):
        call_command("exportrenders", "-", stdout=Full())
