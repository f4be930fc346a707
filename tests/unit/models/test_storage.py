"""How PostgreSQL keeps the table of renders: what is written most often touches no index."""

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import connection

from renders import transitions
from renders.models import Gate, RenderEvent, RenderJob
from renders.states import Status
from tests.rows import NOW, stored

pytestmark = pytest.mark.django_db
RENDERS = RenderJob.objects


@pytest.fixture
def on_postgresql():
    if connection.vendor != "postgresql":
        pytest.skip("Storage is PostgreSQL's.")


def options(model):
    with connection.cursor() as cursor:
        table = model._meta.db_table
        cursor.execute("SELECT reloptions FROM pg_class WHERE oid = %s::regclass", [table])
        [found] = cursor.fetchone()
    return dict(option.split("=") for option in found or [])


def updates():
    """Rows updated by this transaction until now, and how many of them without any index."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_stat_get_xact_tuples_updated(%s::regclass), "
            "pg_stat_get_xact_tuples_hot_updated(%s::regclass)",
            [RenderJob._meta.db_table] * 2,
        )
        return cursor.fetchone()


READ = {"sequence": 0, "now": NOW, "sume_status": "processing", "failed_reads": 1}
HOT = {
    "put back by the sweep": lambda render: transitions.mark_swept([render.pk], NOW),
    "taken for a read": lambda render: transitions.take_due(RENDERS, render.next_poll_at, 10, 1),
    "a read at once is asked for": lambda render: transitions.ask([render.pk], NOW),
    "a cancel is answered": lambda render: transitions.record_cancel_answer(render.pk, NOW, "yes"),
    # What a poll writes, but for the time of the next one.
    "a read": lambda render: transitions.record_read(
        render.pk, next_poll_at=render.next_poll_at, not_found_since=NOW, **READ
    ),
}


@pytest.mark.parametrize("write", HOT.values(), ids=HOT)
def test_a_write_that_no_index_needs_touches_none(on_postgresql, write):
    render = stored(Status.SUBMITTED)
    before = updates()

    assert write(render)

    assert updates() == (before[0] + 1, before[1] + 1)


def test_of_what_a_poll_writes_only_the_next_time_is_indexed(on_postgresql):
    render = stored(Status.SUBMITTED)
    before = updates()
    later = render.next_poll_at + timedelta(seconds=15)

    assert transitions.record_read(render.pk, next_poll_at=later, **READ)

    assert updates() == (before[0] + 1, before[1])
    changing = {"poll_count", "last_polled_at", "swept_at", "asked_at", "failed_reads"}
    changing |= {"sume_status", "not_found_since", "taken_at"}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = %s::regclass",
            [RenderJob._meta.db_table],
        )
        indexes = " ".join(definition for (definition,) in cursor.fetchall())
    assert "next_poll_at" in indexes
    assert not [name for name in changing if name in indexes]


def test_pages_have_room_and_vacuum_comes_often(on_postgresql):
    assert options(RenderJob)["fillfactor"] == "85"
    assert float(options(RenderJob)["autovacuum_vacuum_scale_factor"]) <= 0.02
    assert options(Gate)["fillfactor"] == "10"
    assert "autovacuum_vacuum_insert_scale_factor" in options(RenderEvent)


@pytest.mark.django_db(transaction=True)
def test_the_settings_of_storage_go_as_they_came():
    """Also where there are none."""
    call_command("migrate", "renders", "0001", verbosity=0)
    try:
        if connection.vendor == "postgresql":
            assert [options(model) for model in (RenderJob, RenderEvent, Gate)] == [{}, {}, {}]
    finally:
        call_command("migrate", "renders", verbosity=0)
    if connection.vendor == "postgresql":
        assert options(RenderJob)["fillfactor"] == "85"
