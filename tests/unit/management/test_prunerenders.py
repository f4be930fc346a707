"""Old renders are deleted from the command line, and it says what and how many."""

import io
import signal

import pytest
from django.core.management import CommandError, call_command

from renders.housekeeping import removal
from renders.media.storage import storage
from renders.models import RenderJob
from renders.states import Status
from tests.rows import over, pictured

pytestmark = pytest.mark.django_db
DAYS = ["--completed-days", "30"]


@pytest.fixture(autouse=True)
def folder(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path


class Terminal(io.StringIO):
    def isatty(self):
        return True


def run(*args, stderr=None):
    out, stderr = io.StringIO(), stderr or io.StringIO()
    status = 0
    try:
        call_command("prunerenders", *args, stdout=out, stderr=stderr, no_color=True)
    except SystemExit as end:
        status = end.code
    return status, out.getvalue(), stderr.getvalue()


def test_without_ages_nothing_is_deleted():
    pictured(days=9_999)

    status, out, errors = run()

    assert (status, errors) == (0, "")
    assert out == "Renders are kept for ever: no age is set for them.\nDeleted nothing.\n"
    assert RenderJob.objects.count() == 1


def test_it_tells_before_and_after_the_same_numbers():
    for _ in range(3):
        pictured()
    over(Status.COMPLETED, reference="order-1")
    lines = (
        "           3  renders, with their timelines and files\n"
        "           1  renders down to a line of the bill (they have a reference, are retries, or "
        "are used)\n"
        "           6  files (15 bytes)\n"
        "           8  lines of timelines\n"
    )

    assert run(*DAYS, "--dry-run") == (0, f"Would delete:\n{lines}", "")
    assert RenderJob.objects.count() == 4
    assert run(*DAYS, "--batch", "2") == (0, f"Deleted:\n{lines}", "")
    assert RenderJob.objects.count() == 1


def test_what_is_not_given_is_as_set(settings):
    settings.RENDERS = {**settings.RENDERS, "KEEP_FAILED_DAYS": "9", "KEEP_CANCELED_DAYS": "9"}
    for status in ("failed", "canceled", "completed"):
        over(status)

    run("--canceled-days", "0")

    assert set(RenderJob.objects.values_list("status", flat=True)) == {"canceled", "completed"}


def test_files_that_stay_are_an_error(monkeypatch):
    pictured(), over()
    monkeypatch.setattr(storage(), "delete", lambda name: 1 / 0)

    status, out, errors = run(*DAYS)

    assert status == 1
    assert "1  renders," in out
    assert "The files of 1 render could not be deleted; the log says why." in errors


def test_ctrl_c_ends_it_after_the_batch_and_the_same_goes_on(monkeypatch):
    for _ in range(3):
        over()
    delete = removal.delete

    def interrupted(pks):
        signal.raise_signal(signal.SIGINT)
        return delete(pks)

    monkeypatch.setattr(removal, "delete", interrupted)
    status, out, errors = run(*DAYS, "--batch", "1")

    assert (status, RenderJob.objects.count()) == (130, 2)
    assert "1  renders," in out
    assert errors == "Ending after this batch.\nStopped. The same again goes on.\n"
    monkeypatch.undo()
    assert run(*DAYS)[0] == 0
    assert RenderJob.objects.count() == 0


def test_a_terminal_has_a_bar_and_a_pipe_has_none():
    over()
    assert "deleting" in run(*DAYS, stderr=Terminal())[2]
    over()
    assert run(*DAYS)[2] == ""


@pytest.mark.parametrize(
    "args", [["--failed-days", "-1"], ["--media-days", "1.5"], ["--batch", "0"], ["now"]], ids=str
)
def test_wrong_options_are_refused(args):
    with pytest.raises(CommandError):
        run(*args)
