"""deploy/Procfile: every process, for one machine."""

import subprocess
import sys

from tests.unit.deploy.support import QUEUES, ROOT, procfile, queues_of


def test_honcho_takes_it():
    command = [sys.executable, "-m", "honcho", "-f", "deploy/Procfile", "check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert "web, submit, poll, media, beat, flower" in done.stderr


def test_each_queue_is_served_by_one_worker():
    workers = [line for line in procfile().values() if " -Q " in line]

    assert sorted(q for line in workers for q in queues_of(line.split())) == QUEUES


def test_no_worker_forks():
    """honcho sends its SIGTERM to children too, which would end them in the middle of a task."""
    assert [
        line for line in procfile().values() if " -Q " in line and "-P threads" not in line
    ] == []


def test_no_shell_stands_between():
    assert all(line.startswith("exec ") for line in procfile().values())
