import io
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management.base import OutputWrapper
from django.utils import timezone
from rich.console import Console

from renders.management.follow import (
    STYLES,
    Board,
    Following,
    Lines,
    age,
    board_on,
    outcome,
    total_cost,
    what_happens,
)
from renders.management.terminal import console_on, one_line
from renders.models import RenderJob
from renders.states import Status

SIGNED = "https://media.example/x.png?signature=s3cret"


def terminal(height: int = 40) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=100, height=height)


def drawn(renders: list[RenderJob], **size: int) -> str:
    console = terminal(**size)
    with Board(console) as board:
        board.show(Following(renders))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def completed(**fields: Any) -> RenderJob:
    now = timezone.now()
    values = {"status": Status.COMPLETED, "finished_at": now, "handled_at": now, **fields}
    return RenderJob(prompt="a red fox", **values)


def test_the_board_shows_renders_and_a_bar_over_all() -> None:
    text = drawn([completed(), RenderJob(prompt="a blue fox")])
    for word in ("a red fox", "completed", "done", "a blue fox", "pending", "Image", "1/2"):
        assert word in text


def test_on_a_small_screen_those_that_move_come_first() -> None:
    renders = [completed() for _ in range(20)] + [RenderJob(prompt="the last one")]
    text = drawn(renders, height=12)
    assert "the last one" in text
    assert "and 16 more" in text


def test_a_silent_database_is_told() -> None:
    console = terminal()
    following = Following([RenderJob(prompt="x")])
    following.database_answers = False
    with Board(console) as board:
        board.show(following)
    assert "The database does not answer" in console.file.getvalue()  # type: ignore[attr-defined]


def test_every_status_has_a_style() -> None:
    assert set(STYLES) == set(Status)


def test_without_a_terminal_there_is_one_plain_line_per_change() -> None:
    out = io.StringIO()
    board = board_on(console_on(OutputWrapper(out)))
    assert isinstance(board, Lines)
    render = RenderJob(prompt="a red fox")
    following = Following([render])
    with board:
        board.show(following)
        board.show(following)
        render.error_message = "Sume asks to wait."
        board.show(following)
    first, second = out.getvalue().splitlines()
    assert first.endswith("pending     a red fox")
    assert second.endswith("a red fox  (Sume asks to wait.)")
    assert "\x1b" not in out.getvalue()


def test_colours_wanted_by_the_environment_do_not_bring_cursor_control_into_a_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert isinstance(board_on(console_on(OutputWrapper(io.StringIO()))), Lines)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("two\nlines\tand  spaces", "two lines and spaces"),
        ("\x1b[2Jgone\x07", "[2Jgone"),
        ("right\u202eleft", "right left"),
        ("naïve 狐", "naïve 狐"),
    ],
)
def test_text_from_outside_cannot_drive_the_terminal(text: str, shown: str) -> None:
    assert one_line(text) == shown


def test_long_text_is_cut() -> None:
    assert one_line("abcdef", 4) == "abc…"


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0, "0 s"), (99, "99 s"), (150, "2 min"), (7300, "2 h")]
)
def test_age(seconds: int, shown: str) -> None:
    now = timezone.now()
    assert age(RenderJob(created_at=now - timedelta(seconds=seconds), finished_at=now)) == shown


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "waits to be sent"),
        ({"status": Status.SUBMITTING}, "being sent"),
        ({"status": Status.SUBMITTED}, "accepted at Sume"),
        ({"status": Status.SUBMITTED, "sume_status": "queued"}, "queued at Sume"),
        ({"status": Status.COMPLETED}, "storing the result"),
        ({"error_message": "Sume is busy."}, "Sume is busy."),
    ],
)
def test_what_happens(fields: dict[str, Any], words: str) -> None:
    assert what_happens(RenderJob(**fields)) == words


def test_a_saved_file_is_shown_by_its_path(settings: Any, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path
    render = completed(result={"artifacts": [{"url": SIGNED, "file": "renders/1/0.png"}]})
    assert outcome(render) == str(tmp_path / "renders/1/0.png")


def test_the_path_is_short_from_where_one_stands(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MEDIA_ROOT = tmp_path / "media"
    monkeypatch.chdir(tmp_path)
    render = completed(result={"artifacts": [{"url": SIGNED, "file": "0.png"}]})
    assert outcome(render) == "media/0.png"


def test_a_signed_address_is_never_shown() -> None:
    render = completed(result={"artifacts": [{"url": SIGNED}]})
    assert outcome(render) == f"/renders/{render.pk}/"


def test_a_failure_is_shown_with_code_and_message() -> None:
    failed = RenderJob(status=Status.FAILED, error_code="refused", error_message="Too\nodd.")
    assert outcome(failed) == "refused: Too odd."
    failed.error_message = "refused"
    assert outcome(failed) == "refused"


def test_the_cost_says_what_it_leaves_out() -> None:
    renders = [RenderJob(cost_usd_micros=90_000), RenderJob(cost_usd_micros=30_000)]
    assert total_cost(renders) == "Cost: $0.1200"
    assert total_cost([*renders, RenderJob()]) == "Cost: $0.1200 (not stated for 1 of 3)"
    assert total_cost([RenderJob()]) == "Cost: not stated"
