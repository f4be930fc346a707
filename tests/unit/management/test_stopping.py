"""Ctrl-C in two stages."""

import signal
import threading

import pytest

from renders.management.stopping import SIGNALS, Stopping

each = pytest.mark.parametrize("number", SIGNALS)


@each
def test_the_first_asks_and_is_answered(number):
    said = []
    with Stopping(lambda: said.append("ending")) as stop:
        assert not stop.asked

        signal.raise_signal(number)

        assert stop.asked
    assert said == ["ending"]


@each
@pytest.mark.parametrize("first", SIGNALS)
def test_the_second_ends_at_once_with_the_status_of_its_signal(number, first):
    said = []
    with pytest.raises(SystemExit) as end, Stopping(lambda: said.append("ending")):
        signal.raise_signal(first)
        signal.raise_signal(number)

    assert end.value.code == 128 + number
    assert said == ["ending"]


@each
def test_afterwards_signals_do_what_they_did_before(number):
    before = signal.getsignal(number)
    with pytest.raises(KeyError), Stopping(lambda: None):
        assert signal.getsignal(number) != before
        raise KeyError

    assert signal.getsignal(number) == before


def test_in_another_thread_signals_are_left_alone():
    before = [signal.getsignal(number) for number in SIGNALS]
    seen = []

    def run():
        with Stopping(lambda: None) as stop:
            seen.append(([signal.getsignal(number) for number in SIGNALS], stop.asked))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

    assert seen == [(before, False)]
