"""What Celery's side tells about a task."""

from datetime import timedelta

import pytest
from django.utils import timezone

from renders import tasks
from renders.housekeeping import pruning
from renders.lifecycle.steps import Step
from renders.models import RenderJob
from renders.schedulers import ticks
from renders.services import create_render


@pytest.mark.django_db
def test_a_result_says_what_follows_for_which_render(sume):
    render = create_render("A boat")

    assert tasks.submit_render(str(render.pk)) == f"poll {str(render.pk)[:8]} in 0.5 s"
    sume.run_to_end(render)
    assert tasks.finish_render(str(render.pk)) == "nothing follows"


@pytest.mark.django_db
def test_a_sweep_that_cannot_forget_has_put_back_what_stopped(followed, monkeypatch):
    render = create_render("A boat")
    RenderJob.objects.update(created_at=timezone.now() - timedelta(hours=1))

    def fail():
        raise RuntimeError

    monkeypatch.setattr(pruning, "prune", fail)
    with pytest.raises(RuntimeError):
        tasks.sweep_renders()

    assert followed == [Step("submit", render.pk)]


@pytest.mark.parametrize("more", [True, False])
def test_pruning_goes_on_after_a_rest_until_all_is_done(monkeypatch, more):
    called = []

    def run(stop):
        assert not stop()
        return pruning.Pruned(stopped=more)

    monkeypatch.setattr(pruning, "run_as_set", run)
    monkeypatch.setattr(tasks.prune_renders, "apply_async", lambda **how: called.append(how))
    tasks.prune_renders()

    assert called == [{"countdown": tasks.PRUNE_SECONDS}] * more


def test_pruning_ends_when_its_time_is_up(monkeypatch):
    monkeypatch.setattr(tasks, "PRUNE_SECONDS", -1.0)
    called = []
    monkeypatch.setattr(tasks.prune_renders, "apply_async", lambda **how: called.append(how))
    monkeypatch.setattr(pruning, "run_as_set", lambda stop: pruning.Pruned(stopped=stop()))
    tasks.prune_renders()

    assert called


def test_a_storage_that_is_away_is_asked_again_tomorrow(monkeypatch):
    away = pruning.Pruned(stopped=True, failed=pruning.MOST_FAILED)
    monkeypatch.setattr(pruning, "run_as_set", lambda stop: away)
    monkeypatch.setattr(tasks.prune_renders, "apply_async", lambda **how: pytest.fail("again"))

    tasks.prune_renders()


def test_beat_has_old_renders_deleted_daily(settings):
    entry = settings.CELERY_BEAT_SCHEDULE["prune-renders"]

    assert entry["task"] == tasks.prune_renders.name


@pytest.mark.parametrize(
    ("given", "chain"),
    [
        ({"SCHEDULER": "countdown"}, "0"),
        ({"SCHEDULER": "database"}, "0"),
        ({"SCHEDULER": "sortedset", "TICKS": 0}, "0"),
        ({"SCHEDULER": "sortedset", "TICKS": 2}, "2"),
    ],
    ids=str,
)
def test_a_tick_that_the_settings_no_longer_want_is_the_last(settings, monkeypatch, given, chain):
    settings.RENDERS = {**settings.RENDERS, **given}
    monkeypatch.setattr(ticks, "tick", lambda *args: pytest.fail("it goes on"))

    tasks.poll_due(chain, "token")
