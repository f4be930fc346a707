"""A person's data is erased, after a question, and not while something of theirs runs."""

import io
import signal

import pytest
from django.core.management import CommandError, call_command

from renders.housekeeping import erasing
from renders.management.commands import eraserenders as module
from renders.media.storage import storage
from renders.models import RenderJob
from renders.states import Status
from tests.rows import over, pictured, stored

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def folder(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path


@pytest.fixture
def ann(django_user_model):
    user = django_user_model.objects.create_user("ann", "ann@example.com")
    pictured(created_by=user, prompt="a fox of Ann's")
    return user


def run(*args):
    out, errors, status = io.StringIO(), io.StringIO(), 0
    try:
        call_command("eraserenders", *args, stdout=out, stderr=errors, no_color=True)
    except SystemExit as end:
        status = end.code
    return status, out.getvalue(), errors.getvalue()


def prompts():
    return set(RenderJob.objects.values_list("prompt", flat=True))


LINES = (
    "           1  renders: prompts, parameters, results, references, messages\n"
    "           2  files (5 bytes)\n"
)


def test_it_says_what_goes_and_then_erases_it(ann):
    who = f"Of user ann (id {ann.pk})"

    assert run("--user", "ann", "--dry-run") == (0, f"{who}, would be erased:\n{LINES}", "")
    assert prompts() == {"a fox of Ann's"}
    assert run("--user", "ANN@example.com", "--yes") == (0, f"{who}:\n{LINES}Erased:\n{LINES}", "")
    assert prompts() == {""}
    assert run("--user", str(ann.pk), "--yes")[1] == f"{who}: nothing.\nErased: nothing.\n"


class Keyboard:
    def isatty(self):
        return True


@pytest.mark.parametrize(("answer", "left"), [("yes", ""), ("YES ", ""), ("y", None), ("", None)])
def test_it_asks_first(ann, monkeypatch, answer, left):
    monkeypatch.setattr(module.sys, "stdin", Keyboard())
    monkeypatch.setattr("builtins.input", lambda question: answer if "ann" in question else "")

    if left is None:
        with pytest.raises(CommandError, match="Nothing was erased"):
            run("--user", "ann")
        assert prompts() == {"a fox of Ann's"}
    else:
        assert run("--user", "ann")[0] == 0
        assert prompts() == {left}


@pytest.mark.parametrize("key", [EOFError, KeyboardInterrupt])
def test_ctrl_d_and_ctrl_c_are_no(ann, monkeypatch, key):
    def pressed(question):
        raise key

    monkeypatch.setattr(module.sys, "stdin", Keyboard())
    monkeypatch.setattr("builtins.input", pressed)

    with pytest.raises(CommandError, match="Nothing was erased"):
        run("--user", "ann")
    assert prompts() == {"a fox of Ann's"}


def test_where_nobody_can_answer_it_needs_yes(ann, monkeypatch):
    monkeypatch.setattr(module.sys, "stdin", io.StringIO("yes\n"))

    with pytest.raises(CommandError, match="give --yes") as end:
        run("--user", "ann")
    assert end.value.returncode == 2
    assert prompts() == {"a fox of Ann's"}


def test_while_something_runs_it_refuses_or_asks_for_a_cancel(ann, followed):
    running = stored(Status.SUBMITTED, created_by=ann, prompt="a hen")

    with pytest.raises(CommandError, match="Nothing was erased: 1 render is not over"):
        run("--user", "ann", "--yes")
    running.refresh_from_db()
    assert running.cancel_requested_at is None
    with pytest.raises(CommandError, match="Cancel requested; 1 render is not over"):
        run("--user", "ann", "--yes", "--cancel")
    running.refresh_from_db()
    assert running.cancel_requested_at
    assert prompts() == {"a fox of Ann's", "a hen"}
    assert "1 render is not over: it would be refused." in run("--user", "ann", "--dry-run")[1]


def test_what_belongs_to_nobody(ann):
    over(prompt="a hen")

    assert run("--nobody", "--yes")[1].startswith("Of renders of nobody:\n           1  renders")
    assert prompts() == {"a fox of Ann's", ""}


def test_files_that_stay_are_an_error(ann, monkeypatch):
    monkeypatch.setattr(storage(), "delete", lambda name: 1 / 0)

    status, _, errors = run("--user", "ann", "--yes")

    assert status == 1
    assert "The files of 1 render could not be deleted" in errors


def test_ctrl_c_ends_it_after_the_batch(ann, monkeypatch):
    monkeypatch.setattr(erasing, "BATCH", 1)
    over(created_by=ann)
    rename = erasing._rename_keys

    def interrupted(user):
        signal.raise_signal(signal.SIGINT)
        return rename(user)

    monkeypatch.setattr(erasing, "_rename_keys", interrupted)
    status, _, errors = run("--user", "ann", "--yes")

    assert status == 130
    assert "Stopped; 2 renders are left. The same again goes on." in errors


@pytest.mark.parametrize("args", [[], ["--user", "ann", "--nobody"], ["--user", "bob"]], ids=str)
def test_whose_must_be_said(ann, args):
    with pytest.raises(CommandError):
        run(*args, "--yes")
