import io
import signal
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError

from renders.conf import conf
from renders.management.commands import pollrenders as module
from renders.telemetry import heartbeats


class FakeReader:
    """Turns as long as the test does not stop it."""

    def __init__(self, *args: Any, slots: int, **kwargs: Any) -> None:
        self.slots = slots
        self.busy = 3
        self.connections = conf.READS_AT_ONCE
        self.turns = 0

    def turn(self, longest: float) -> None:
        self.turns += 1
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        signal.raise_signal(outcome)

    def finish(self, until: float) -> bool:
        return self.whole


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Any:
    """The reader that the command makes; its first turn is interrupted."""
    settings.RENDERS = {**settings.RENDERS, "SCHEDULER": "sortedset"}
    FakeReader.outcomes, FakeReader.whole = [signal.SIGINT], True
    made: list[FakeReader] = []

    def make(*args: Any, **kwargs: Any) -> FakeReader:
        made.append(FakeReader(*args, **kwargs))
        return made[-1]

    make.made = made  # type: ignore[attr-defined]
    monkeypatch.setattr(module, "Reader", make)
    monkeypatch.setattr(module.time, "sleep", lambda seconds: None)
    FakeReader.signs = []
    monkeypatch.setattr(heartbeats, "note", FakeReader.signs.append)
    return made


def run(*arguments: str) -> list[str]:
    out = io.StringIO()
    call_command("pollrenders", *arguments, stdout=out)
    return out.getvalue().splitlines()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_reads_until_it_is_asked_to_stop_and_says_so(reader: Any, number: int) -> None:
    FakeReader.outcomes = [number]

    assert run() == [
        "Reading what is due, up to 300 jobs at once. Ctrl-C ends it.",
        "Ending after 3 reads. Ctrl-C: at once.",
        "Ended.",
    ]


def test_what_was_not_answered_in_time_is_told(reader: Any) -> None:
    FakeReader.whole = False

    assert run()[-1] == "Ended; what was not answered is read again."


def test_a_second_ctrl_c_ends_it_at_once(reader: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeReader, "finish", lambda *args: signal.raise_signal(signal.SIGTERM))

    with pytest.raises(SystemExit) as end:
        run()
    assert end.value.code == 143


def test_as_many_connections_are_kept_as_there_are_slots(reader: Any) -> None:
    assert "up to 7 jobs" in run("--slots", "7")[0]

    [made] = reader
    assert (made.slots, made.connections) == (7, 7)


def test_without_slots_the_setting_counts(reader: Any, settings: Any) -> None:
    settings.RENDERS = {**settings.RENDERS, "READS_AT_ONCE": 5}
    run()

    assert reader[0].slots == 5


def test_it_lives_through_an_outage_of_the_database(
    reader: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeReader.outcomes = [OperationalError("at secret-host"), signal.SIGINT]
    closed: list[bool] = []
    monkeypatch.setattr(module, "close_old_connections", lambda: closed.append(True))

    assert run()[-1] == "Ended."
    assert closed == [True]
    assert caplog.messages[1:] == ["The database is away (OperationalError); again in a moment."]


def test_a_fault_of_our_own_ends_it(reader: Any) -> None:
    FakeReader.outcomes = [ValueError("odd")]

    with pytest.raises(ValueError, match="odd"):
        run()


@pytest.mark.parametrize("scheduler", ["countdown", "database"])
def test_it_refuses_to_read_a_set_that_nobody_fills(
    reader: Any, settings: Any, scheduler: str
) -> None:
    settings.RENDERS = {**settings.RENDERS, "SCHEDULER": scheduler}

    with pytest.raises(CommandError) as caught:
        run()
    assert str(caught.value) == (
        f"RENDERS_SCHEDULER is {scheduler}: nothing comes into the sorted set. "
        "Set it to sortedset for this command, the web server, the workers and beat."
    )
    assert reader == []


@pytest.mark.parametrize("command", ["pollrenders", "runrenders"])
@pytest.mark.parametrize("slots", ["0", "-1", "many", "100001"])
def test_a_wrong_number_of_slots_is_told(command: str, slots: str) -> None:
    with pytest.raises(CommandError, match="argument --slots: must be a whole number from 1 to"):
        call_command(command, f"--slots={slots}")


def test_it_leaves_signs_of_life(reader: Any) -> None:
    run()

    assert FakeReader.signs == ["pollrenders"]


def test_it_says_where_renders_go(
    reader: Any, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.RENDERS = {**settings.RENDERS, "BASE_URL": "https://api.sume.com"}
    run()

    assert caplog.messages == ["Renders go to api.sume.com: every render is billed."]
