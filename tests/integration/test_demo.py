"""The main command as a person runs it: a process of its own, everything real."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

pytestmark = [pytest.mark.timeout(180), pytest.mark.slow]

# What would lead the demo to servers that these tests know of.
OF_THE_TESTS = (
    "CELERY_BROKER_URL",
    "DATABASE_URL",
    "DJANGO_SETTINGS_MODULE",
    "REDIS_URL",
    "SUME_API_KEY",
    "SUME_BASE_URL",
)


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An environment that marks every process started in it; none may outlive the test."""
    own = {name: value for name, value in os.environ.items() if name not in OF_THE_TESTS}
    environment = {**own, "DJANGO_STATE_DIR": str(tmp_path)}
    yield environment
    assert not until_none_runs(tmp_path), "processes were left running"


def start(environment: dict[str, str], *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, settings.BASE_DIR / "manage.py", "demo", *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def read_until(demo: "subprocess.Popen[str]", word: str) -> str:
    """What the demo says until a line begins with `word`."""
    said = ""
    assert demo.stdout
    for line in demo.stdout:
        said += line
        if line.startswith(word):
            return said
    raise AssertionError(f"{word!r} was never said:\n{said}")


def until_none_runs(state: Path, seconds: float = 5) -> list[str]:
    """The commands that still run with this state folder after a moment. (Linux.)"""
    mark = f"DJANGO_STATE_DIR={state}".encode()
    deadline = time.monotonic() + seconds
    while True:
        running = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (process / "environ").read_bytes():
                    running.append((process / "cmdline").read_text().replace("\0", " "))
            except OSError:  # it has just ended, or is somebody else's
                continue
        if not running or time.monotonic() >= deadline:
            return running
        time.sleep(0.1)


def test_prompts_become_pictures_and_all_is_ended(
    environment: dict[str, str], tmp_path: Path
) -> None:
    demo = start(environment, "--exit", "--keep", "a red fox", "FAIL on purpose")
    said, _ = demo.communicate(timeout=120)
    assert demo.returncode == 0, said
    pictures = list((tmp_path / "demo" / "media").rglob("*.png"))
    assert len(pictures) == 1, said
    assert pictures[0].stat().st_size > 1000
    assert str(pictures[0]) in said
    assert "failed     FAIL on purpose" in said
    assert "\x1b" not in said


@pytest.mark.thorough
def test_ctrl_c_ends_everything_cleanly(environment: dict[str, str], tmp_path: Path) -> None:
    demo = start(environment, "a red fox")
    said = read_until(demo, "Ctrl-C")
    for word in ("/renders/", "/admin/", "Flower", "user admin, password "):
        assert word in said
    demo.send_signal(signal.SIGINT)
    rest, _ = demo.communicate(timeout=40)
    assert demo.returncode == 0, rest
    assert not (tmp_path / "demo").exists()


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="Only Linux ends children with their parent.")
def test_killing_the_demo_leaves_nothing_running(
    environment: dict[str, str], tmp_path: Path
) -> None:
    demo = start(environment, "a red fox")
    read_until(demo, "Started")
    assert len(until_none_runs(tmp_path, 0)) > 5
    demo.kill()
    demo.communicate(timeout=10)
    assert not until_none_runs(tmp_path)
