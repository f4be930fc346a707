import io
import signal
from typing import Any

import pytest
from django.core.management import call_command

from renders.conf import conf
from renders.management.commands import runrenders as module


class FakeRunner:
    """Is interrupted in its first turn."""

    made: list["FakeRunner"] = []
    whole = True

    def __init__(self, client: Any, *, slots: int, awakened: Any) -> None:
        self.slots, self.scheduler = slots, conf.SCHEDULER
        self.connections = conf.READS_AT_ONCE
        self.awakened = awakened
        self.busy = 2
        FakeRunner.made.append(self)

    def turn(self) -> None:
        assert not self.awakened()
        signal.raise_signal(signal.SIGTERM)

    def finish(self, until: float) -> bool:
        return self.whole


@pytest.fixture(autouse=True)
def by_the_table(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.RENDERS = {**settings.RENDERS, "SCHEDULER": "database"}
    monkeypatch.setattr(FakeRunner, "made", [])
    monkeypatch.setattr(FakeRunner, "whole", True)
    monkeypatch.setattr(module, "Runner", FakeRunner)
    monkeypatch.setattr(module.Listener, "start", lambda self: None)


def run(*arguments: str) -> list[str]:
    out = io.StringIO()
    call_command("runrenders", *arguments, stdout=out)
    return out.getvalue().splitlines()


def test_it_runs_until_it_is_asked_to_stop_and_says_so() -> None:
    assert run() == [
        "Sending, reading (up to 300 jobs at once), finishing. Ctrl-C ends it.",
        "Ending after 2 steps. Ctrl-C: at once.",
        "Ended.",
    ]


def test_what_was_not_done_in_time_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeRunner, "whole", False)

    assert run()[-1] == "Ended; others go on with what was not done."


def test_a_second_signal_ends_it_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeRunner, "finish", lambda *args: signal.raise_signal(signal.SIGINT))

    with pytest.raises(SystemExit) as end:
        run()
    assert end.value.code == 130


def test_as_many_connections_are_kept_as_there_are_slots() -> None:
    assert "up to 7 jobs" in run("--slots", "7")[0]

    [made] = FakeRunner.made
    assert (made.slots, made.connections) == (7, 7)


@pytest.mark.parametrize("scheduler", ["countdown", "sortedset"])
def test_it_runs_by_the_table_whatever_is_set_and_says_what_to_set(
    settings: Any, scheduler: str
) -> None:
    settings.RENDERS = {**settings.RENDERS, "SCHEDULER": scheduler}

    assert run()[0] == (
        f"RENDERS_SCHEDULER is {scheduler}: set it to database for the web server, "
        "or it looks for a broker at each new render."
    )
    assert FakeRunner.made[0].scheduler == "database"


def test_it_says_where_renders_go(settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    settings.RENDERS = {**settings.RENDERS, "BASE_URL": "https://api.sume.com"}
    run()

    assert caplog.messages == ["Renders go to api.sume.com: every render is billed."]
