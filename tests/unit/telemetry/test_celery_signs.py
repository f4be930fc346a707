"""Beat leaves a sign in Redis whenever it sends the sweep, and no other process does."""

import time

import pytest
import redis
from celery.signals import after_task_publish

from renders.telemetry import celery_signs


class FakeRedis(dict):
    away = False

    def set(self, key, value):
        if self.away:
            raise redis.ConnectionError("secret")
        self[key] = value


@pytest.fixture
def kept(monkeypatch):
    fake = FakeRedis()
    monkeypatch.setattr(celery_signs, "redis_client", lambda: fake)
    yield fake
    after_task_publish.disconnect(celery_signs.leave, sender=celery_signs.SWEEP_TASK)


def send(name):
    after_task_publish.send(sender=name, body=None, exchange="", routing_key="")


def test_only_beat_and_only_for_the_sweep(kept):
    send(celery_signs.SWEEP_TASK)
    assert kept == {}

    celery_signs.listen()
    send("renders.tasks.poll_render")
    assert kept == {}
    send(celery_signs.SWEEP_TASK)
    assert abs(float(kept[celery_signs.KEY]) - time.time()) < 5


def test_without_redis_beat_goes_on(kept, caplog):
    kept.away = True
    celery_signs.listen()

    send(celery_signs.SWEEP_TASK)

    assert caplog.messages == ["Redis unreachable (ConnectionError): no sign of beat."]


def test_a_site_without_redis_asks_for_none(kept, settings):
    settings.RENDERS = {**settings.RENDERS, "SCHEDULER": "database"}

    celery_signs.leave()

    assert kept == {}
