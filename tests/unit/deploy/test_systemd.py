"""deploy/systemd: what systemd itself says of the units, and what must be in them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from django.conf import settings

from tests.unit.deploy.support import DEPLOY, QUEUES, ROOT, UNITS, queues_of, unit, unit_command

SERVICES = sorted(path.name for path in UNITS.glob("*.service"))
WORKERS = ["submit", "poll", "media"]
LASTING = [name for name in SERVICES if name != "renders-migrate.service"]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="No systemd here.")
def test_systemd_takes_every_unit(tmp_path: Path):
    units = Path(shutil.copytree(UNITS, tmp_path / "units"))
    for path in units.glob("*.service"):  # the program itself is not installed there
        path.write_text(path.read_text().replace("/opt/renders/.venv/bin/", "/bin/true "))
    names = sorted(str(path) for path in units.iterdir() if path.is_file())

    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *names], capture_output=True, text=True
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_each_queue_is_served_by_one_worker():
    assert sorted(q for name in WORKERS for q in queues_of(unit_command(name))) == QUEUES


@pytest.mark.parametrize("name", WORKERS)
def test_a_worker_may_end_what_it_has_begun(name):
    service = unit(f"renders-{name}.service")["Service"]

    assert int(service["TimeoutStopSec"]) > settings.CELERY_TASK_TIME_LIMIT
    # To all of its processes, the signal would end them in the middle of a task.
    assert (service["KillMode"], service.get("KillSignal", "SIGTERM")) == ("mixed", "SIGTERM")


@pytest.mark.parametrize("name", LASTING)
def test_what_ends_by_itself_is_started_again_and_belongs_to_the_target(name):
    assert unit(name)["Service"]["Restart"] == "always"
    assert unit(name)["Unit"]["PartOf"] == unit(name)["Install"]["WantedBy"] == "renders.target"


@pytest.mark.parametrize("name", SERVICES)
def test_no_service_may_more_than_it_needs(name):
    service = unit(name)["Service"]

    assert service["User"] == "renders"
    assert service["ProtectSystem"] == "strict"
    assert service["NoNewPrivileges"] == "true"
    assert service["CapabilityBoundingSet"] == ""


@pytest.mark.parametrize("name", ["beat", "flower"])
def test_who_needs_no_key_has_none(name):
    assert "SUME_API_KEY" in unit(f"renders-{name}.service")["Service"]["UnsetEnvironment"]


@pytest.mark.parametrize("name", SERVICES)
def test_each_runs_a_program_of_ours_and_the_files_it_names_are_there(name):
    short = name.removeprefix("renders-").removesuffix(".service")
    program, *arguments = unit_command(short)

    assert re.fullmatch(r"/opt/renders/\.venv/bin/(celery|python|gunicorn)", program)
    named = [word for word in arguments if re.search(r"\.(py|md)$", word)]
    assert [word for word in named if not (ROOT / word).is_file()] == []


def test_the_socket_is_where_the_web_server_would_listen_without_it():
    assert 'or "127.0.0.1:8000"' in (DEPLOY / "gunicorn.conf.py").read_text()
    assert unit("renders-web.socket")["Socket"]["ListenStream"] == "127.0.0.1:8000"
