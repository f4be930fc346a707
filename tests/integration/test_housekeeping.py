"""Housekeeping beside others: two at once, a killed process, a reference that comes again."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.db import connection, transaction
from django.utils import timezone

from renders import services
from renders.housekeeping import removal
from renders.housekeeping.policy import Ages
from renders.housekeeping.pruning import Pruned, Pruning
from renders.models import RenderEvent, RenderJob
from tests.rows import files_in, over, pictured

pytestmark = pytest.mark.django_db(transaction=True)
on_postgresql = pytest.mark.parametrize("database", ["postgresql"], indirect=True)
AGES = Ages(completed=30)


@pytest.fixture(autouse=True)
def folder(database: str, settings: Any, tmp_path: Path) -> Path:
    settings.MEDIA_ROOT = tmp_path / "media"
    return tmp_path / "media"


def in_thread(work: Any) -> threading.Thread:
    def run() -> None:
        try:
            work()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


@on_postgresql
def test_a_reference_that_is_erased_just_now_makes_no_second_render() -> None:
    render = over(reference="order-1")
    made: list[RenderJob] = []
    with transaction.atomic():
        removal.strip([render.pk], timezone.now(), names=True)
        thread = in_thread(
            lambda: made.append(services.create_render(render.prompt, reference="order-1"))
        )
        thread.join(20)  # it need not wait: the row has the reference, or its fingerprint
    made.append(services.create_render(render.prompt, reference="order-1"))

    assert [one.pk for one in made] == [render.pk, render.pk]
    assert RenderJob.objects.count() == 1


@on_postgresql
def test_two_at_once_delete_each_row_once() -> None:
    for number in range(60):
        over(reference=f"order-{number}" if number % 3 == 0 else None)
    done: list[Pruned] = []
    runs = [lambda: done.append(Pruning(AGES, batch=7).run())] * 2
    for thread in [in_thread(run) for run in runs]:
        thread.join(60)
    last = Pruning(AGES, batch=7).run()  # what one had passed over as it was the other's

    both = done[0] + done[1] + last
    assert both.renders == 40
    assert both.bills >= 20  # passed over by the first, it may be stripped, and then deleted
    assert RenderJob.objects.filter(erased_at=None).count() == 0
    assert RenderJob.objects.count() == 20
    assert RenderEvent.objects.count() == 0


@on_postgresql
@pytest.mark.parametrize("holds", ["itself", "its retry"])
def test_what_somebody_holds_is_passed_over(holds: str, folder: Path) -> None:
    """Whoever waited for it, with others' rows in hand, could end in a deadlock."""
    render = pictured() if holds == "itself" else over()
    held = render if holds == "itself" else over(retry_of=render)
    done: list[Pruned] = []
    with transaction.atomic():
        RenderJob.objects.select_for_update().get(pk=held.pk)
        thread = in_thread(lambda: done.append(Pruning(AGES, batch=7).run()))
        thread.join(10)
        waits = thread.is_alive()
    thread.join(20)

    assert not waits
    assert RenderJob.objects.filter(pk=render.pk, removing_at=None).exists()
    assert done[0].files == 0
    Pruning(AGES, batch=7).run()
    assert not RenderJob.objects.filter(pk=render.pk).exists()
    assert not [file for file in files_in(folder) if "." in file]


@pytest.mark.slow
def test_a_killed_process_leaves_nothing_lost(database: str, folder: Path) -> None:
    for number in range(150):
        pictured(reference=f"order-{number}" if number % 3 == 0 else None)
    arguments = ["prunerenders", "--completed-days", "30", "--batch", "1"]
    process = subprocess.Popen(
        [sys.executable, "manage.py", *arguments],
        cwd=django_settings.BASE_DIR,
        env={
            **os.environ,
            "DATABASE_URL": database,
            "DJANGO_SETTINGS_MODULE": "project.settings",
            "DJANGO_MEDIA_ROOT": str(folder),
        },
        stdout=subprocess.DEVNULL,
    )
    try:
        before = len(files_in(folder))
        until = time.monotonic() + 30
        while len(files_in(folder)) > before - 30 and time.monotonic() < until:
            time.sleep(0.005)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    rows = RenderJob.objects.filter(erased_at=None).count()
    assert 0 < rows < 150

    Pruning(AGES, batch=50).run()

    assert RenderJob.objects.filter(erased_at=None).count() == 0
    assert (RenderJob.objects.count(), removal.marked().count()) == (50, 0)
    assert [name for name in files_in(folder) if "." in name] == []
