"""Files, then rows: whoever dies in between leaves what the next one finds."""

import pytest
from django.db import models
from django.db.models import ProtectedError
from django.test.utils import isolate_apps
from django.utils import timezone

from renders import transitions
from renders.housekeeping import removal
from renders.media.storage import storage
from renders.models import RenderEvent, RenderJob
from renders.states import SENDING, TERMINAL, Status
from tests.examples.shop.models import Order
from tests.rows import files_in, over, pictured, stored

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def folder(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    return tmp_path


def test_files_go_with_their_thumbnails_and_folder_and_facts_stay(folder):
    render, other = pictured(files=2), pictured()
    (folder / f"renders/{render.pk}/1-left.png").write_bytes(b"left by a killed try")

    done = removal.clear([render.pk])

    assert (done.pks, done.media, done.files, done.bytes) == ([render.pk], 1, 5, 30)
    assert not (folder / f"renders/{render.pk}").exists()
    assert len(files_in(folder / f"renders/{other.pk}")) == 2
    render.refresh_from_db()
    fact = {"type": "image", "content_type": "image/png", "sha256": "abc", "bytes": 3}
    assert render.result == {"artifacts": [], "removed": [fact, fact]}
    assert render.media_removed_at and not render.removing_at


@pytest.mark.parametrize("status", [one for one in Status if one not in TERMINAL])
def test_what_is_not_over_is_not_touched(status):
    render = stored(status, result={"artifacts": [{"file": "a.png"}]})
    unhandled = stored(Status.COMPLETED, result={"artifacts": [{"file": "a.png"}]})
    pks, before = [render.pk, unhandled.pk], list(RenderJob.objects.order_by("pk").values())

    assert removal.clear(pks).pks == []
    assert removal.strip(pks, timezone.now(), names=True) == []
    assert removal.delete(pks) == (0, 0)
    assert list(RenderJob.objects.order_by("pk").values()) == before


def test_a_post_of_an_erased_render_still_counts_against_its_own_workspace():
    now = timezone.now()
    render = over(days=0, workspace="acme")
    transitions.log_post(render.pk, SENDING, "acme")

    removal.strip([render.pk], now, names=True)

    assert RenderEvent.objects.writes_around(now, 60, "acme").count() == 1
    assert not RenderEvent.objects.writes_around(now, 60, "default").exists()
    assert not render.events.exclude(what=SENDING).exclude(detail="").exists()


def test_media_on_their_way_out_are_not_shown():
    render = pictured()
    assert len(render.artifacts) == 1

    render.removing_at = timezone.now()

    assert render.artifacts == []


def test_a_file_that_is_gone_already_is_no_error(folder):
    render = pictured()
    for path in (folder / f"renders/{render.pk}").iterdir():
        path.unlink()

    assert removal.clear([render.pk]).files == 0
    assert removal.marked().count() == 0


def test_a_storage_that_fails_keeps_the_row_and_is_tried_again(monkeypatch, caplog):
    one, two = pictured(), pictured()
    delete = storage().delete

    def fail(name):
        if str(one.pk) in name:
            raise OSError("https://signed.example/?secret")
        delete(name)

    monkeypatch.setattr(storage(), "delete", fail)
    done = removal.clear([one.pk, two.pk])

    assert (done.failed, done.pks) == ([one.pk], [two.pk])
    assert removal.delete([one.pk]) == (0, 0)
    assert removal.strip([one.pk], timezone.now(), names=True) == []
    assert "secret" not in caplog.text and "OSError" in caplog.text
    monkeypatch.undo()
    assert removal.clear(removal.marked().pks(9)).pks == [one.pk]


def test_a_line_of_the_bill_is_left():
    render = pictured(
        prompt="a fox of Ann's",
        params={"seed": 7},
        request_body='{"prompt": "a fox"}',
        error_message="a fox?",
        reference="ann@example.com",
        cost_usd_micros=90_000,
    )
    removal.clear([render.pk])

    assert removal.strip([render.pk], timezone.now(), names=True) == [render.pk]

    row = RenderJob.objects.get(pk=render.pk)
    assert (row.prompt, row.params, row.request_body) == ("", {}, "")
    assert (row.result, row.error_message) == (None, "")
    assert row.reference.startswith("erased:") and "ann" not in row.reference
    kept = ("kind", "model", "status", "cost_usd_micros", "sume_job_id", "finished_at")
    assert all(getattr(row, name) == getattr(render, name) for name in kept)
    assert [(one.what, one.detail) for one in row.events.all()] == [
        ("created", ""),
        ("completed", ""),
    ]


def test_to_be_erased_twice_changes_nothing():
    render = over(reference="order-1")
    removal.strip([render.pk], timezone.now(), names=True)
    before = RenderJob.objects.values().get()

    removal.strip([render.pk], timezone.now(), names=True)

    assert RenderJob.objects.values().get() == before


def test_a_deleted_render_takes_its_timeline_and_leaves_its_retry():
    original = over(Status.FAILED)
    retry = over(Status.COMPLETED, retry_of=original)

    assert removal.delete([original.pk]) == (1, 2)

    retry.refresh_from_db()
    assert retry.retry_of_id is None
    assert RenderEvent.objects.count() == 2


def test_what_keeps_a_second_bill_away_is_not_deleted():
    named, original = over(reference="order-1"), over(Status.FAILED)
    retry = over(retry_of=original)

    assert removal.delete([named.pk, retry.pk]) == (0, 0)


def test_what_a_table_of_the_project_points_to_is_not_deleted(django_user_model):
    render = over()
    buyer = django_user_model.objects.create_user("ann")
    Order.objects.create(buyer=buyer, wish="a fox", render=render)

    assert removal.delete([render.pk]) == (0, 0)
    with pytest.raises(ProtectedError):  # what would come of it
        render.delete()


@isolate_apps("tests.effects")
def test_a_table_may_point_to_another_field_than_the_id(monkeypatch):
    class Tag(models.Model):  # noqa: DJ008
        job = models.ForeignKey(RenderJob, models.CASCADE, to_field="idempotency_key")

        class Meta:
            app_label = "effects"

    relation = Tag._meta.get_field("job").remote_field
    monkeypatch.setattr(RenderJob._meta, "get_fields", lambda **how: [relation])

    statement = str(RenderJob.objects.filter(removal.unmissed()).query)
    assert '"job_id" = ("renders_renderjob"."idempotency_key")' in statement
