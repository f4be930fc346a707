"""What Celery is told."""

import pytest
from django.core.checks import Error, Warning
from kombu import Queue

from renders.checks import check_settings

from .conftest import GOOD


def found():
    return check_settings(None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TASK_SERIALIZER", "pickle"),
        ("RESULT_SERIALIZER", "pickle"),
        ("ACCEPT_CONTENT", ["json", "pickle"]),
        ("RESULT_ACCEPT_CONTENT", ["application/x-python-serialize"]),
    ],
)
def test_messages_that_can_hold_code_are_an_error(settings, name, value):
    setattr(settings, f"CELERY_{name}", value)

    assert found() == [
        Error(
            f"Messages may be pickled ({name.lower()}): "
            "whoever reaches the broker has code run in the workers.",
            hint='Set CELERY_TASK_SERIALIZER and CELERY_RESULT_SERIALIZER to "json", '
            'CELERY_ACCEPT_CONTENT and CELERY_RESULT_ACCEPT_CONTENT to ["json"].',
            id="renders.E038",
        )
    ]


def test_messages_that_hold_data_alone_are_a_project_s_own_choice(settings):
    settings.CELERY_TASK_SERIALIZER = settings.CELERY_RESULT_SERIALIZER = "msgpack"
    settings.CELERY_ACCEPT_CONTENT = ["json", "application/x-msgpack", "json-of-our-own"]

    assert found() == []


def test_celerys_own_choice_is_json(settings):
    for name in ("TASK_SERIALIZER", "RESULT_SERIALIZER", "ACCEPT_CONTENT", "RESULT_ACCEPT_CONTENT"):
        delattr(settings, f"CELERY_{name}")

    assert found() == []


def test_tasks_that_run_at_once_are_an_error(settings):
    settings.CELERY_TASK_ALWAYS_EAGER = True

    assert found() == [
        Error(
            "Celery runs tasks at once (task_always_eager): each poll would make the next one "
            "without any wait.",
            hint="Take CELERY_TASK_ALWAYS_EAGER out. In settings for tests alone, put "
            "renders.E039 into SILENCED_SYSTEM_CHECKS, and use the fixture of renders.testing.",
            id="renders.E039",
        )
    ]


SHARED = Warning(
    "Submits, polls and finishes share a queue: "
    "thousands of waiting polls hold up what could be done now.",
    hint="Give renders.tasks.submit_render, poll_render and finish_render a queue each "
    "in CELERY_TASK_ROUTES, and have workers serve all three (-Q).",
    id="renders.W050",
)


@pytest.mark.parametrize(
    "routes", [None, {}, {"renders.tasks.*": {"queue": "celery"}}, {"shop.*": "shop"}]
)
def test_tasks_that_share_a_queue_are_a_warning(settings, routes):
    settings.CELERY_TASK_ROUTES = routes

    assert found() == [SHARED]


@pytest.mark.parametrize(
    "routes",
    [
        {"renders.tasks.poll_*": {"queue": "renders.poll"}, "renders.*": "renders.finish"},
        {
            "renders.tasks.poll_render": {"queue": Queue("renders.poll")},
            "renders.tasks.finish_render": {"queue": "celery"},
        },
    ],
)
def test_two_of_three_apart_are_not_enough(settings, routes):
    settings.CELERY_TASK_ROUTES = routes

    assert found()[0] == SHARED


@pytest.mark.parametrize("routes", ["shop.routes.route", [("renders.*", "x")], lambda *args: None])
def test_routes_that_only_celery_understands_are_left_to_it(settings, routes):
    settings.CELERY_TASK_ROUTES = routes

    assert found() == []


def test_a_queue_that_no_worker_serves_is_a_warning(settings):
    settings.CELERY_TASK_QUEUES = [Queue("celery"), Queue("renders.submit"), Queue("renders.poll")]

    assert found() == [
        Warning(
            "Tasks go to queues that CELERY_TASK_QUEUES does not hold: renders.finish. "
            "A worker that is not told of them by -Q does not serve them.",
            hint="Add them to CELERY_TASK_QUEUES, each with a routing key of its own.",
            id="renders.W051",
        )
    ]


@pytest.mark.parametrize("queues", [None, []])
def test_without_a_list_of_queues_celery_makes_them(settings, queues):
    settings.CELERY_TASK_QUEUES = queues

    assert found() == []


def test_without_messages_none_of_it_matters(settings):
    settings.RENDERS = {**GOOD, "SCHEDULER": "database", "MAX_POLL_SECONDS": 4000}
    settings.CELERY_TASK_ALWAYS_EAGER = True
    settings.CELERY_TASK_SERIALIZER = "pickle"
    settings.CELERY_TASK_ROUTES = None
    settings.CELERY_TASK_SOFT_TIME_LIMIT = 1
    del settings.CELERY_BROKER_TRANSPORT_OPTIONS

    assert found() == []


@pytest.mark.parametrize(
    "broker", ["redis://h/0", "rediss://h", "redis+socket:///s", "sentinel://h"]
)
@pytest.mark.parametrize("options", [None, {}, {"socket_timeout": 3}])
def test_a_redis_that_is_told_nothing_waits_for_an_hour(settings, broker, options):
    settings.CELERY_BROKER_URL = broker
    settings.CELERY_BROKER_TRANSPORT_OPTIONS = options
    settings.RENDERS = {**GOOD, "MAX_POLL_SECONDS": 3599}
    assert found() == []

    settings.RENDERS = {**GOOD, "MAX_POLL_SECONDS": 3600}
    assert [message.id for message in found()] == ["renders.E004"]


@pytest.mark.parametrize("broker", ["amqp://host//", "amqps://host", "pyamqp://", None])
def test_polls_that_rabbitmq_takes_back_are_a_warning(settings, broker):
    settings.CELERY_BROKER_URL = broker
    settings.CELERY_BROKER_TRANSPORT_OPTIONS = {}
    settings.RENDERS = {**GOOD, "MAX_POLL_SECONDS": 1799}
    assert found() == []

    settings.RENDERS = {**GOOD, "MAX_POLL_SECONDS": 4000}
    assert found() == [
        Warning(
            "MAX_POLL_SECONDS reaches RabbitMQ's consumer_timeout, 30 minutes if nobody changed "
            "it: it would close the connection of a worker in which polls wait.",
            hint="Lower RENDERS_MAX_POLL_SECONDS, or raise consumer_timeout in RabbitMQ and "
            "silence this.",
            id="renders.W052",
        )
    ]
