"""The benchmark itself: it runs to its end and measures everything; how fast, no test says."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from tests.benchmarks.__main__ import PARTS

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(900)]


def test_a_quick_run_measures_every_part_and_draws(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.benchmarks", "--quick", "--out", str(tmp_path)]

    run = subprocess.run(command, cwd=settings.BASE_DIR, capture_output=True, text=True)

    assert run.returncode == 0, run.stdout + run.stderr
    lines = json.loads((tmp_path / "benchmark.json").read_text("utf-8"))
    assert {line["part"] for line in lines} == set(PARTS)
    assert not [line for line in lines if "nan" in line["value"] or "inf" in line["value"]]
    for line in lines:
        assert line["measure"] in run.stdout
    pictures = {path.name for path in tmp_path.glob("*.png")}
    assert pictures == {
        f"benchmark-{name}.png"
        for name in ("throughput", "slots", "punctuality", "batch", "claims")
    }
    assert all((tmp_path / name).stat().st_size > 5_000 for name in pictures)
