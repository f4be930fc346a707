"""`python -m tests.benchmarks`: everything in one run, as ratios; a table, and pictures.

Ends with status 0 if everything could be measured, whether the goals are met or not: how fast a
machine is, and what else it does, is not for a test to judge.
"""

import argparse
import json
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from renders.demo.exceptions import DemoError
from tests.benchmarks.scene import Scene, running
from tests.benchmarks.table import Line, show

# Letter → the modules that measure it. Each has `measure(scene)`: lines, and what can be drawn.
PARTS = {
    "a": ("throughput",),
    "b": ("slots",),
    "c": ("punctuality", "memory", "submits"),
    "d": ("recovery",),
    "e": ("batch",),
    "f": ("claims",),
    "g": ("bulk",),
    "h": ("counts",),
}
NOT_MEASURED = 2


@dataclass(frozen=True)
class Options:
    """The arguments."""

    quick: bool
    parts: tuple[str, ...]
    out: Path | None


def read(arguments: Sequence[str] | None = None) -> Options:
    """Parse the command line; exits with status 2 and a message where it is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a minute or two: does it run at all?")
    parser.add_argument("--only", default=",".join(PARTS), help="some parts: a,b,…")
    parser.add_argument("--out", type=Path, help="a folder for pictures, and the table as JSON")
    given = parser.parse_args(arguments)
    parts = tuple(word.strip() for word in given.only.split(","))
    if unknown := set(parts) - set(PARTS):
        parser.error(f"--only: no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}.")
    return Options(given.quick, parts, given.out)


def measure(scene: Scene, part: str, console: Console) -> tuple[list[Line], dict[str, Any], bool]:
    """The lines of this part, what can be drawn of it, and whether all of it was measured."""
    lines: list[Line] = []
    results: dict[str, Any] = {}
    whole = True
    for name in PARTS[part]:
        start = time.monotonic()
        try:
            found, results[name] = import_module(f"tests.benchmarks.{name}").measure(scene)
            lines += found
        except Exception as error:  # noqa: BLE001 (the others can still be measured)
            traceback.print_exc()
            lines.append(Line(part, name, f"not measured ({type(error).__name__})"))
            whole = False
        spent = time.monotonic() - start
        console.print(f"({part}) {name}: {spent:.0f} s", style="dim", highlight=False)
    return lines, results, whole


def main() -> int:
    """Measure, print, draw, clean up."""
    options, console = read(), Console(width=120, soft_wrap=True)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    folder = Path(tempfile.mkdtemp(prefix="renders-benchmarks-"))
    lines: list[Line] = []
    results: dict[str, Any] = {}
    whole = True
    try:
        with running(folder, quick=options.quick) as scene:
            for part in options.parts:
                found, drawn, measured = measure(scene, part, console)
                lines, results, whole = lines + found, results | drawn, whole and measured
    except (DemoError, pytest.skip.Exception, pytest.fail.Exception) as error:
        console.print(str(error), style="bold red", markup=False)
        return NOT_MEASURED
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    show(console, lines)
    if options.out:
        from tests.benchmarks.plots import draw

        for path in draw(options.out, results):
            console.print(f"Drawn: {path}", highlight=False)
        table = json.dumps([asdict(line) for line in lines], indent=1, ensure_ascii=False)
        (options.out / "benchmark.json").write_text(table + "\n", "utf-8")
    return 0 if whole else 1


def _leave(number: int, frame: Any) -> None:
    """End as after Ctrl-C: with everything cleaned up."""
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
