"""What the doctor shows: the worst first, in words; plain where nobody looks at a terminal."""

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from renders.health import doctor
from renders.health.findings import Finding, HealthPart

PARTS = [
    HealthPart("database", (Finding("SQLite [answers]."),), 0.01),
    HealthPart("workers", (Finding("No worker answers.", "workers-none"),), 2.0),
    HealthPart("queues", (Finding("Not asked: x.", "not-asked"),)),
    HealthPart("clocks", (Finding("Not asked: x.", "not-asked"),)),
    HealthPart("redis", (Finding("No file.\x1b[31m", "redis-forgets"),)),
]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(
    monkeypatch: Any, parts: list[HealthPart], *arguments: str, out: Any = None
) -> tuple[int, str]:
    asked: list[Any] = []
    monkeypatch.setattr(
        doctor, "examine", lambda seconds, offline: asked.append((seconds, offline)) or parts
    )
    out = out or io.StringIO()
    try:
        call_command("rendersdoctor", *arguments, stdout=out)
    except SystemExit as ended:
        return int(str(ended.code)), out.getvalue()
    return 0, out.getvalue()


def test_a_pipe_gets_plain_lines_the_worst_first(monkeypatch: Any) -> None:
    status, told = run(monkeypatch, PARTS)

    assert status == 1
    assert told.splitlines() == [
        "wrong workers: No worker answers. [workers-none]",
        "      -> Start workers: `celery -A project worker`.",
        "look  queues, clocks: Not asked: x. [not-asked]",
        "      -> Mend what is named; then ask again.",
        "note  redis: No file. [31m [redis-forgets]",
        "      -> Run Redis with `--appendonly yes`; without, a restart loses what waits in it.",
        "ok    database: SQLite [answers].",
        "",
        "1 thing wrong, 1 warning. Each is explained in docs/health.md.",
    ]


def test_a_terminal_gets_colours(monkeypatch: Any) -> None:
    _, told = run(monkeypatch, PARTS, out=Terminal())

    assert "\x1b[1;31mwrong" in told and "→ Start workers" in told


@pytest.mark.parametrize(("which", "status"), [(slice(0, 1), 0), (slice(2, 4), 3)])
def test_the_status_says_how_bad_it_is(monkeypatch: Any, which: slice, status: int) -> None:
    assert run(monkeypatch, PARTS[which])[0] == status


def test_programs_get_json(monkeypatch: Any) -> None:
    status, told = run(monkeypatch, PARTS, "--json")

    answer = json.loads(told)
    assert (status, answer["status"]) == (1, "error")
    assert answer["findings"][1] == {
        "part": "workers",
        "level": "error",
        "code": "workers-none",
        "said": "No worker answers.",
        "next_step": "Start workers: `celery -A project worker`.",
    }
    assert answer["seconds"]["workers"] == 2.0


def test_all_well_is_said_so(monkeypatch: Any) -> None:
    assert run(monkeypatch, PARTS[:1])[1].endswith("\nAll is well.\n")


def test_a_time_that_is_none_is_wrong_usage() -> None:
    with pytest.raises(CommandError, match="seconds above 0"):
        call_command("rendersdoctor", "--seconds", "0")
