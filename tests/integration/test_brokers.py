"""RabbitMQ as the broker, Redis for the leases only."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from celery import Celery
from django.conf import settings
from kombu.exceptions import OperationalError

from renders import services
from renders.celery_settings import broker_options
from renders.coordination.connections import redis_client
from renders.demo.processes import free_port
from renders.models import RenderJob
from renders.schedulers import dispatch
from tests.integration.stack import Stack
from tests.rabbitmq import RabbitMQ

pytestmark = [
    # One database is enough: the broker is what is tried here.
    pytest.mark.parametrize("database", ["sqlite"], indirect=True),
    pytest.mark.slow,  # a node takes its time to start
]


def test_messages_through_rabbitmq_alone_bring_renders_to_their_end(
    stack: Stack, rabbitmq: RabbitMQ
) -> None:
    stack.worker()
    stack.command("render", *(f"fox {number}" for number in range(6)), "--no-follow")
    stack.until_handled(sweeping=False)

    assert RenderJob.objects.filter(status="completed").count() == 6
    assert len(stack.sandbox.ledger.bills) == 6
    for render in RenderJob.objects.all():
        reads = stack.sandbox.ledger.reads[render.sume_job_id]
        assert [read.what for read in reads].count("status") == render.poll_count
    keys = [key.decode() for key in redis_client().scan_iter()]
    assert [key for key in keys if not key.startswith("sume:")] == []
    assert "Traceback" not in stack.logs()


@contextmanager
def silent_port() -> Iterator[int]:
    """A port that accepts and never answers."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        yield silent.getsockname()[1]


@contextmanager
def closed_port() -> Iterator[int]:
    """A port that refuses."""
    yield free_port()


@pytest.mark.parametrize("broken", [silent_port, closed_port])
def test_a_rabbitmq_that_is_away_does_not_hang_who_creates(
    database: str, monkeypatch: Any, caplog: Any, broken: Any
) -> None:
    with broken() as port:
        app = Celery("away", broker=f"amqp://127.0.0.1:{port}//", set_as_current=False)
        app.conf.broker_connection_timeout = 0.3
        app.conf.task_publish_retry_policy = settings.CELERY_TASK_PUBLISH_RETRY_POLICY

        def submit_render(render_id: str) -> None: ...

        silent_task = app.task(submit_render, shared=False)
        monkeypatch.setattr(dispatch, "task", lambda name: silent_task)
        started = time.monotonic()
        render = services.create_render("a red fox")

    assert time.monotonic() - started < 3
    assert "waits for the sweep" in caplog.text
    assert RenderJob.objects.get(pk=render.pk).status == "pending"


def test_a_rabbitmq_that_falls_silent_does_not_hang_who_creates(
    stack: Stack, rabbitmq: RabbitMQ
) -> None:
    """A publisher that is connected asks about a queue at its first message to it."""
    app = Celery("silent", broker=rabbitmq.url, set_as_current=False)
    app.conf.broker_connection_timeout = 0.3
    app.conf.broker_transport_options = dict.fromkeys(broker_options(rabbitmq.url), 0.3)
    app.conf.task_publish_retry_policy = settings.CELERY_TASK_PUBLISH_RETRY_POLICY
    app.send_task("nothing", queue="first")
    with rabbitmq.silent():
        started = time.monotonic()
        with pytest.raises(OperationalError):
            app.send_task("nothing", queue="second")
        assert time.monotonic() - started < 5
