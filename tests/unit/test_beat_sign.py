"""Beat leaves a sign in Redis whenever it sends the sweep, and no other process does."""

import time

import pytest
import redis
from celery.signals import after_task_publish

from renders import beat_sign


class FakeRedis(dict):
    away = False

    def set(self, key, value):
        if self.away:
            raise redis.ConnectionError("secret")
        self[key] = value


@pytest.fixture
def kept(monkeypatch):
    fake = FakeRedis()
    monkeypatch.setattr(beat_sign, "redis_client", lambda: fake)
    yield fake
    after_task_publish.disconnect(beat_sign.leave, sender=beat_sign.SWEEP_TASK)


def send(name):
    after_task_publish.send(sender=name, body=None, exchange="", routing_key="")


def test_only_beat_and_only_for_the_sweep(kept):
    send(beat_sign.SWEEP_TASK)
    assert kept == {}

    beat_sign.listen()
    send("renders.tasks.poll_render")
    assert kept == {}
    send(beat_sign.SWEEP_TASK)
    assert abs(float(kept[beat_sign.KEY]) - time.time()) < 5


def test_without_redis_beat_goes_on(kept, caplog):
    kept.away = True
    beat_sign.listen()

    send(beat_sign.SWEEP_TASK)

    assert caplog.messages == ["Redis unreachable (ConnectionError): no sign of beat."]


def test_a_site_without_redis_asks_for_none(kept, settings):
    settings.RENDERS = {**settings.RENDERS, "SCHEDULER": "database"}

    beat_sign.leave()

    assert kept == {}
