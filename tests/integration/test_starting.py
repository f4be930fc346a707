"""Every process as an operator starts it: none of them runs on unsafe settings."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

pytestmark = pytest.mark.slow

KEY = "nPzX4vYqk8LrT2wBd7MfHs9JcVgA3eUxQ5yKnPzX4vYqk8LrT2wBd7Mf"
NOBODY = "redis://127.0.0.1:9/0"
PROCESSES = {
    "web": ("-c", "import project.wsgi"),
    "worker": ("-m", "celery", "-A", "project", "worker", "-c1"),
    "beat": ("-m", "celery", "-A", "project", "beat", "--pidfile=", "-s", "SCHEDULE"),
    "runrenders": ("manage.py", "runrenders"),
    "pollrenders": ("manage.py", "pollrenders"),
}


def start(folder: Path, process: str, **unsafe: str) -> subprocess.CompletedProcess[str]:
    """Run it as on a server whose settings are good but for these."""
    inherited = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    environment = {
        **inherited,
        "DJANGO_ENV_FILE": "",
        "DJANGO_STATE_DIR": str(folder),
        "DJANGO_SECRET_KEY": KEY,
        "DJANGO_ALLOWED_HOSTS": "boats.example.com",
        "DATABASE_URL": "postgres://ann@127.0.0.1:9/renders",
        "REDIS_URL": NOBODY,
        "SUME_API_KEY": "sk-of-a-test",
        "RENDERS_SCHEDULER": "sortedset" if process == "pollrenders" else "countdown",
    }
    # Beat replaces the file that it keeps its schedule in: one of this test's own.
    words = [str(folder / "schedule") if w == "SCHEDULE" else w for w in PROCESSES[process]]
    return subprocess.run(
        [sys.executable, *words],
        env={**environment, **unsafe},
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("process", PROCESSES)
def test_it_ends_with_the_reason(tmp_path: Path, process: str) -> None:
    ended = start(tmp_path, process, DJANGO_SECRET_KEY="canary", RENDERS_LEASE_MARGIN_SECONDS="0")

    assert ended.returncode == 1
    assert "(renders.E027) The secret key can be guessed" in ended.stderr
    assert "(renders.E035) LEASE_MARGIN_SECONDS is 0" in ended.stderr
    assert "HINT: Set RENDERS_LEASE_MARGIN_SECONDS" in ended.stderr
    assert "canary" not in ended.stdout + ended.stderr


@pytest.mark.parametrize(
    "unsafe",
    [
        {"DJANGO_SECRET_KEY": "canary"},
        {"DJANGO_DEBUG": "1", "DJANGO_SECRET_KEY": "canary"},
        {"DJANGO_SECRET_KEY": "canary", "DJANGO_SILENCED_SYSTEM_CHECKS": "renders.E027"},
    ],
    ids=["as it is", "in debug mode", "silenced"],
)
def test_the_web_server_starts_where_it_was_allowed_to(
    tmp_path: Path, unsafe: dict[str, str]
) -> None:
    ended = start(tmp_path, "web", **unsafe)

    assert (ended.returncode == 0) is (len(unsafe) > 1), ended.stderr


def test_a_variable_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    ended = start(tmp_path, "web", DJANGO_HSTS_SECONDS="canary")

    assert ended.returncode == 1
    assert "DJANGO_HSTS_SECONDS in the environment: a whole number" in ended.stderr
    assert "canary" not in ended.stderr
