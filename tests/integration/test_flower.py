"""Flower as `celery -A project flower` starts it: closed, here only, linked to the renders."""

import os
import re
import shutil
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from celery import Celery
from django.conf import settings

from renders.demo.embedded_redis import EmbeddedRedis
from renders.demo.processes import Child, free_port, port_answers, stop_all, wait_until

pytestmark = [pytest.mark.timeout(60), pytest.mark.slow]

USER = ("admin", "a-password")
SITE = "https://site.example"
COMMAND = [sys.executable, "-m", "celery", "-A", "project", "flower"]
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


def environment(**more: str) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("FLOWER_")}
    return {**own, "REDIS_URL": settings.REDIS_URL, "RENDERS_PUBLIC_URL": SITE, **more}


@pytest.fixture
def flower(redis: EmbeddedRedis, tmp_path: Path) -> Iterator[int]:
    """The port of a Flower that started after Redis was emptied: its queue of events is there."""
    port = free_port()
    child = Child(
        "Flower",
        [*COMMAND, f"--port={port}"],
        environment=environment(FLOWER_BASIC_AUTH=":".join(USER)),
        log=tmp_path / "flower.log",
        cwd=settings.BASE_DIR,
    )
    wait_until(lambda: port_answers(port) or not child.alive, "Flower", 30)
    assert child.alive, child.output()
    yield port
    stop_all([child], 5)


def get(port: int, path: str, **extra: Any) -> requests.Response:
    with requests.Session() as session:
        session.trust_env = False
        return session.get(f"http://127.0.0.1:{port}{path}", timeout=10, **extra)


def listed(port: int, **search: str) -> list[dict[str, Any]]:
    """The lines of Flower's table of tasks."""
    asked = {"draw": 1, "start": 0, "length": 9, "order[0][column]": 0, "columns[0][data]": "name"}
    asked["search[value]"] = " ".join(f"{field}:{value}" for field, value in search.items())
    found: list[dict[str, Any]] = get(port, "/tasks/datatable", params=asked, auth=USER).json()[
        "data"
    ]
    return found


def happened(port: int, name: str, args: str, result: str) -> str:
    """Tell Flower of a task, as a worker would; the task's id."""
    task_id = str(uuid.uuid4())
    with (
        Celery(broker=settings.REDIS_URL) as app,
        app.connection_for_write() as connection,
        app.events.Dispatcher(connection, hostname="worker@here") as tell,
    ):

        def told() -> bool:  # Flower may not listen yet
            tell.send("task-received", uuid=task_id, name=name, args=args, kwargs="{}")
            tell.send("task-succeeded", uuid=task_id, result=result, runtime=0.1)
            return any(line["uuid"] == task_id for line in listed(port, name=name))

        wait_until(told, "Flower's table", 60, interval=0.2)
    return task_id


def test_it_does_not_start_without_a_password() -> None:
    done = subprocess.run(
        COMMAND, env=environment(), cwd=settings.BASE_DIR, capture_output=True, text=True
    )

    assert done.returncode == 1
    assert "does not start without a password" in done.stderr
    assert re.search(r"FLOWER_BASIC_AUTH=admin:\S{16} celery -A project flower", done.stderr)


def test_it_asks_for_the_password_and_answers_on_this_machine_only(flower: int) -> None:
    assert get(flower, "/tasks").status_code == 401
    assert get(flower, "/api/tasks", auth=("admin", "other")).status_code == 401
    assert get(flower, "/tasks", auth=USER).status_code == 200
    if sys.platform == "linux":  # where all of 127.* is this machine
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.2", flower)) != 0


def test_a_task_shows_its_render_and_links_to_it(flower: int, tmp_path: Path) -> None:
    render = str(uuid.uuid4())
    address = f"{SITE}/renders/{render}/"
    task_id = happened(flower, "renders.tasks.poll_render", f"['{render}', 'a-token']", "None")

    # The search that the admin's links use finds the tasks of one render.
    [line] = listed(flower, name="renders.tasks", args=render)
    assert (line["args"], line["result"], line["uuid"]) == (address, "not kept", task_id)
    page = get(flower, f"/task/{task_id}", auth=USER).text
    assert f"<code>{address}</code>" in page
    assert f'var site = "{SITE}/"' in page
    assert "a-token" not in page

    if CHROMIUM:
        url = f"http://{':'.join(USER)}@127.0.0.1:{flower}/tasks?name=renders.tasks%20args:{render}"
        shown = subprocess.run(
            [
                CHROMIUM,
                *("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}"),
                *("--virtual-time-budget=5000", "--dump-dom", url),
            ],
            capture_output=True,
            text=True,
        ).stdout
        assert re.search(rf'<a [^>]*href="{address}"[^>]*>Render {render[:8]}</a>', shown)


def test_tasks_of_others_are_shown_as_they_are(flower: int) -> None:
    args = f"('{uuid.uuid4()}',)"
    happened(flower, "shop.tasks.pack", args, "'done'")

    [line] = listed(flower, name="shop.tasks.pack")
    assert (line["args"], line["result"]) == (args, "'done'")
