"""Messages that pile up, are lent for too short a time, or wait beside a wrong clock."""

import time

import pytest
from celery import current_app

from renders.health import messages
from renders.telemetry import celery_signs


@pytest.fixture(autouse=True)
def in_memory(monkeypatch):
    """A broker inside this process."""
    monkeypatch.setenv("CELERY_BROKER_WRITE_URL", "memory://")


def codes(found):
    return [one.code for one in found]


def test_the_lengths_of_all_queues_are_told_and_a_long_one_is_a_warning(monkeypatch):
    assert messages.lengths()[0].said.endswith(
        "renders.finish 0, renders.media 0, renders.poll 0, renders.submit 0."
    )

    monkeypatch.setattr(messages, "length", lambda connection, queue: 1001 * ("poll" in queue))
    [found] = messages.lengths()
    assert found.code == "queue-long"
    assert found.said == "Messages that wait: renders.poll 1,001."


def test_a_queue_is_counted_without_being_emptied():
    with current_app.connection_for_write() as connection:
        producer = connection.Producer()
        queue = current_app.amqp.queues["renders.submit"]
        for _ in range(3):
            producer.publish({}, routing_key=queue.routing_key, exchange=queue.exchange,
                             declare=[queue])  # fmt: skip
        assert [messages.length(connection, queue.name) for _ in range(2)] == [3, 3]
        assert messages.length(connection, "nobody-made-this") == 0
        connection.default_channel.queue_purge(queue.name)


class Redis:
    driver_type = driver_name = "redis"


@pytest.mark.parametrize(
    ("own", "options", "limit", "code"),
    [
        ({"SCHEDULER": "countdown"}, {"visibility_timeout": 1800}, 180, ""),
        ({"SCHEDULER": "countdown"}, {"visibility_timeout": 300}, 180, "visibility-short"),
        ({"SCHEDULER": "countdown"}, {"visibility_timeout": 301}, 400, "visibility-short"),
        ({"SCHEDULER": "sortedset"}, {"visibility_timeout": 200}, 180, ""),
        ({"SCHEDULER": "countdown"}, {}, 180, ""),
        ({"SCHEDULER": "countdown", "MAX_POLL_SECONDS": 3600}, {}, 180, "visibility-short"),
    ],
)
def test_messages_must_be_lent_for_longer_than_tasks_wait_or_run(
    monkeypatch, settings, own, options, limit, code
):
    settings.RENDERS = {**settings.RENDERS, "MAX_POLL_SECONDS": 300, **own}
    monkeypatch.setattr("kombu.Connection.transport", Redis)
    monkeypatch.setattr(messages, "current_app", FakeApp(options, limit))

    assert codes(messages.lending()) == [code]


class FakeApp:
    def __init__(self, options, limit):
        self.conf = self
        self.broker_transport_options, self.task_time_limit = options, limit

    def connection_for_write(self):
        return current_app.connection_for_write()


def test_other_brokers_lend_nothing():
    assert messages.lending()[0].said == "The broker lends no messages."
    assert messages.keeps()[0].said == "The broker is memory."


def test_results_in_the_database_need_nothing_else():
    assert messages.results()[0].said == "Results: DatabaseBackend."


def test_a_worker_whose_clock_is_wrong_is_named(monkeypatch):
    def answer(command, *, callback, **options):
        assert command == celery_signs.COMMAND
        callback({"a@right": time.time()})
        callback({"b@late": time.time() - 60})
        callback({"c@older": {"error": "No such command"}})

    monkeypatch.setattr(current_app.control, "broadcast", answer)

    [found] = messages.worker_clocks()

    assert found.code == "clocks-apart"
    assert found.said == "The clock of b@late is 60.0 s behind this machine's."


def test_a_worker_tells_the_time():
    assert abs(celery_signs.tell(None) - time.time()) < 1


def test_workers_are_asked_through_the_broker_that_is_named():
    assert messages.answers()[0].code == ""
