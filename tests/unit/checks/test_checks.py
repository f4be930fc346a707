"""System checks: each message whole, and nothing outside this process is asked."""

import socket

import pytest
from django.core.checks import Error, Info, Warning, run_checks
from django.db import connections

from renders.celery_settings import broker_options, broker_url
from renders.checks import check_settings
from renders.conf import Conf

from .conftest import GOOD, turn_on_debug


def found():
    return check_settings(None)


def test_good_settings_are_quiet():
    assert found() == []


def test_the_checks_are_registered(settings):
    settings.RENDERS = {**GOOD, "API_KEY": ""}

    assert [message.id for message in run_checks(tags=["renders"])] == ["renders.W001"]


def test_no_server_is_asked(settings, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("A check asked a server.")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(connections["default"], "cursor", refuse)

    settings.RENDERS = {"BASE_URL": "http://sume.example.com", "API_KEY": ""}
    assert [message.id for message in found()] == ["renders.W001", "renders.E026"]


@pytest.mark.parametrize("key", ["", "  \n"], ids=repr)
def test_a_missing_api_key_is_a_warning(settings, key):
    settings.RENDERS = {**GOOD, "API_KEY": key}

    assert found() == [
        Warning(
            "No API key for Sume is set: nothing can be submitted.",
            hint="Set SUME_API_KEY; for a try, run `manage.py sumesandbox` and set what it prints.",
            id="renders.W001",
        )
    ]


def test_a_missing_secret_key_is_an_error(settings):
    settings.SECRET_KEY = ""

    assert found() == [
        Error(
            "No secret key is set.",
            hint="Set DJANGO_SECRET_KEY to a long random text, "
            "or DJANGO_DEBUG=1 on a developer's machine.",
            id="renders.E002",
        )
    ]


@pytest.mark.parametrize(
    ("shortest", "longest"), [(10, 5), (0, 0)], ids=["crossed", "longest is zero"]
)
def test_crossed_poll_bounds_are_an_error(settings, shortest, longest):
    settings.RENDERS = {**GOOD, "MIN_POLL_SECONDS": shortest, "MAX_POLL_SECONDS": longest}

    assert [message for message in found() if message.id == "renders.E003"] == [
        Error(
            "MIN_POLL_SECONDS is larger than MAX_POLL_SECONDS, or that is 0.",
            hint="Set RENDERS_MIN_POLL_SECONDS below RENDERS_MAX_POLL_SECONDS.",
            id="renders.E003",
        )
    ]


@pytest.mark.parametrize("visibility", [300, 299.5, 1])
def test_a_poll_that_outlasts_the_brokers_patience_is_an_error(settings, visibility):
    settings.CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": visibility}

    assert found() == [
        Error(
            "MAX_POLL_SECONDS reaches the broker's visibility time-out: "
            "waiting polls would be delivered twice.",
            hint="Lower RENDERS_MAX_POLL_SECONDS or raise visibility_timeout in "
            "CELERY_BROKER_TRANSPORT_OPTIONS.",
            id="renders.E004",
        )
    ]


def test_a_broker_without_such_a_patience_is_fine(settings):
    settings.CELERY_BROKER_TRANSPORT_OPTIONS = {}
    assert found() == []

    del settings.CELERY_BROKER_TRANSPORT_OPTIONS
    assert found() == []


@pytest.mark.parametrize(
    ("url", "patience"),
    [("redis://host/0", 1800), ("rediss://host/0", 1800), ("amqp://host//", None)],
)
def test_each_broker_gets_the_options_it_understands(settings, url, patience):
    settings.CELERY_BROKER_TRANSPORT_OPTIONS = broker_options(url)

    assert settings.CELERY_BROKER_TRANSPORT_OPTIONS.get("visibility_timeout") == patience
    assert found() == []


@pytest.mark.parametrize("scheme", ["redis+cluster", "rediss+cluster"])
def test_a_cluster_as_the_broker_is_an_error(settings, scheme):
    settings.CELERY_BROKER_URL = f"{scheme}://:s3cret@host:6379"

    assert found() == [
        Error(
            "A Redis Cluster cannot carry Celery's messages.",
            hint="Set CELERY_BROKER_URL to one Redis (redis://…, redis+sentinel://…) "
            "or to RabbitMQ (amqp://…); leases and pauses can stay in the cluster.",
            id="renders.E012",
        )
    ]


def test_sentinels_as_celery_does_not_spell_them_are_an_error(settings):
    settings.CELERY_BROKER_URL = "redis+sentinel://:s3cret@host/service"

    assert found() == [
        Error(
            "Celery spells the address of sentinels differently.",
            hint="Set CELERY_BROKER_URL to sentinel://host:26379;sentinel://host:26379 and "
            'CELERY_BROKER_TRANSPORT_OPTIONS["master_name"] to the service\'s name.',
            id="renders.E013",
        )
    ]


@pytest.mark.parametrize("url", ["redis+sentinel://host/service", "amqp://host//", "redis://host"])
def test_a_broker_as_the_project_tells_it_to_celery_is_fine(settings, url):
    settings.CELERY_BROKER_URL = broker_url(url)
    settings.CELERY_BROKER_TRANSPORT_OPTIONS = broker_options(url)

    assert found() == []


def test_a_cluster_beside_another_broker_is_fine(settings):
    settings.RENDERS = {**GOOD, "REDIS_URL": "redis+cluster://host:6379"}
    settings.CELERY_BROKER_URL = "redis://host:6379/0"

    assert found() == []


@pytest.mark.parametrize("reap", [29, 30])
def test_reaping_a_submit_under_way_is_an_error(settings, reap):
    settings.RENDERS = {**GOOD, "REAP_AFTER_SECONDS": reap, "REQUEST_TIMEOUT_SECONDS": 30}

    assert found() == [
        Error(
            "REAP_AFTER_SECONDS is not longer than REQUEST_TIMEOUT_SECONDS: "
            "a submit still under way would be taken for dead.",
            hint="Raise RENDERS_REAP_AFTER_SECONDS.",
            id="renders.E005",
        )
    ]


@pytest.mark.parametrize(
    "url", ["", "api.sume.com", "ftp://api.sume.com", "//api.sume.com", "https://"]
)
def test_an_address_that_is_none_is_an_error(settings, url):
    settings.RENDERS = {**GOOD, "BASE_URL": url}

    assert found() == [
        Error(
            "SUME_BASE_URL is not an http or https address.",
            hint="For instance https://api.sume.com.",
            id="renders.E006",
        )
    ]


def test_a_key_that_would_travel_in_the_clear_is_an_error(settings):
    settings.RENDERS = {**GOOD, "BASE_URL": "http://api.sume.com"}

    assert found() == [
        Error(
            "SUME_BASE_URL is not https: the API key would cross the internet in the clear.",
            hint="Write https://, or take SUME_BASE_URL out of the environment.",
            id="renders.E026",
        )
    ]

    settings.DEBUG = True
    assert [message.id for message in found()] == ["renders.W068"]


def test_settings_that_cannot_be_read_are_all_reported_with_their_help(settings):
    settings.RENDERS = {**GOOD, "SWEEP_SECONDS": -1, "SAVE_MEDIA": "perhaps"}

    assert found() == [
        Error(
            'RENDERS["SWEEP_SECONDS"] (RENDERS_SWEEP_SECONDS in the environment): '
            "a number of seconds, zero or more, is needed.",
            hint=Conf.SWEEP_SECONDS.help,
            id="renders.E001",
        ),
        Error(
            'RENDERS["SAVE_MEDIA"] (RENDERS_SAVE_MEDIA in the environment): 1 or 0 is needed.',
            hint=Conf.SAVE_MEDIA.help,
            id="renders.E001",
        ),
    ]


def test_a_storage_that_is_not_there_is_an_error(settings):
    settings.RENDERS = {**GOOD, "MEDIA_STORAGE": "bucket"}

    assert found() == [
        Error(
            "MEDIA_STORAGE names a storage that STORAGES does not hold.",
            hint="Set RENDERS_MEDIA_STORAGE to one of: default, staticfiles.",
            id="renders.E010",
        )
    ]


def test_a_download_that_celery_would_cut_off_is_an_error(settings):
    settings.CELERY_TASK_SOFT_TIME_LIMIT = 60

    assert found() == [
        Error(
            "MEDIA_TIMEOUT_SECONDS reaches Celery's time limit: "
            "a long download would be cut off by it.",
            hint="Lower RENDERS_MEDIA_TIMEOUT_SECONDS, or raise CELERY_TASK_SOFT_TIME_LIMIT "
            "and CELERY_TASK_TIME_LIMIT.",
            id="renders.E011",
        )
    ]
    settings.CELERY_TASK_SOFT_TIME_LIMIT = None
    assert found() == []


def test_no_message_shows_a_value(settings):
    settings.RENDERS = {
        name: "canary" for name in vars(Conf) if name.isupper() and name != "BASE_URL"
    }

    assert found()
    assert "canary" not in repr(found())


@pytest.mark.parametrize(
    "name",
    [
        "REQUEST_TIMEOUT_SECONDS",
        "MIN_POLL_SECONDS",
        "SWEEP_SECONDS",
        "SWEEP_BATCH",
        "PAUSE_SECONDS",
        "WEBHOOK_MAX_AGE_SECONDS",
        "MEDIA_TIMEOUT_SECONDS",
        "READS_AT_ONCE",
    ],
)
def test_a_zero_that_stops_the_work_is_an_error(settings, name):
    settings.RENDERS = {**GOOD, name: 0}

    [message] = found()

    assert isinstance(message, Error)
    assert name in f"{message.msg} {message.hint}"


def test_several_faults_are_all_reported(settings):
    settings.SECRET_KEY = ""
    settings.RENDERS = {"API_KEY": "", "BASE_URL": "", "REAP_AFTER_SECONDS": 1}

    assert [message.id for message in found()] == [
        "renders.W001",
        "renders.E006",
        "renders.E002",
        "renders.E005",
    ]


# --- Who has due reads made -------------------------------------------------------------------

SET = {**GOOD, "SCHEDULER": "sortedset"}


@pytest.mark.parametrize("limit", [41, 30])
def test_a_tick_that_celery_would_cut_off_is_an_error(settings, limit):
    settings.RENDERS = {**SET, "MEDIA_TIMEOUT_SECONDS": 5}
    settings.CELERY_TASK_SOFT_TIME_LIMIT = limit

    assert found() == [
        Error(
            "REQUEST_TIMEOUT_SECONDS reaches Celery's time limit: a tick, which waits for the "
            "last reads it began, would be cut off by it.",
            hint="Raise CELERY_TASK_SOFT_TIME_LIMIT and CELERY_TASK_TIME_LIMIT above 41 s, "
            "or lower RENDERS_REQUEST_TIMEOUT_SECONDS.",
            id="renders.E025",
        )
    ]


@pytest.mark.parametrize(
    ("ours", "limit"),
    [
        (SET, 42),
        (SET, None),
        ({**SET, "TICKS": 0}, 10),
        ({**GOOD, "SCHEDULER": "countdown"}, 10),
        ({**GOOD, "SCHEDULER": "database"}, 10),
    ],
    ids=["long enough", "no limit", "no ticks", "messages", "the table"],
)
def test_no_tick_is_cut_off_where_there_is_time_or_none_of_them(settings, ours, limit):
    settings.RENDERS = {**ours, "MEDIA_TIMEOUT_SECONDS": 5}
    settings.CELERY_TASK_SOFT_TIME_LIMIT = limit

    assert found() == []


@pytest.mark.parametrize("scheduler", ["countdown", "sortedset", "database"])
@pytest.mark.parametrize("ticks", [0, 3])
@pytest.mark.parametrize("broker", ["redis://host/0", "amqp://host//"])
def test_every_scheduler_goes_with_every_broker(settings, scheduler, ticks, broker):
    settings.RENDERS = {**GOOD, "SCHEDULER": scheduler, "TICKS": ticks}
    settings.CELERY_BROKER_URL = broker
    settings.CELERY_BROKER_TRANSPORT_OPTIONS = broker_options(broker)

    assert found() == []


# --- Webhooks -----------------------------------------------------------------------------

WEBHOOKS = {"WEBHOOK_SECRET": "a-secret-that-is-long-enough", "PUBLIC_URL": "https://a.example"}


def test_webhooks_with_all_they_need_are_quiet(settings):
    settings.RENDERS = {**GOOD, **WEBHOOKS}

    assert found() == []


def test_a_secret_without_an_address_is_a_warning(settings):
    settings.RENDERS = {**GOOD, **WEBHOOKS, "PUBLIC_URL": ""}

    assert found() == [
        Warning(
            "SUME_WEBHOOK_SECRET is set, yet Sume is not told where to send webhooks.",
            hint="Set RENDERS_PUBLIC_URL to the address of this site, "
            "for instance https://example.com.",
            id="renders.W021",
        )
    ]


def test_an_address_without_a_secret_is_pointed_out(settings):
    settings.RENDERS = {**GOOD, **WEBHOOKS, "WEBHOOK_SECRET": " , "}

    assert found() == [
        Info(
            "PUBLIC_URL is set and SUME_WEBHOOK_SECRET is not: Sume sends no webhooks.",
            hint="Set SUME_WEBHOOK_SECRET to the secret of the webhook in your Sume account "
            "if you want them; without, renders are polled.",
            id="renders.I022",
        )
    ]


def test_an_open_address_for_webhooks_outside_debug_is_a_warning(settings):
    settings.RENDERS = {**GOOD, **WEBHOOKS, "PUBLIC_URL": "http://a.example"}

    assert found() == [
        Warning(
            "PUBLIC_URL is not https: Sume sends no webhooks there.",
            hint="Serve the site over https and set RENDERS_PUBLIC_URL to that address.",
            id="renders.W023",
        )
    ]

    turn_on_debug(settings)
    assert found() == []


@pytest.mark.parametrize("secret", ["canary", "a-secret-that-is-long-enough,canary"])
def test_a_short_secret_is_a_warning(settings, secret):
    settings.RENDERS = {**GOOD, **WEBHOOKS, "WEBHOOK_SECRET": secret}

    assert found() == [
        Warning(
            "A secret in SUME_WEBHOOK_SECRET has fewer than 16 characters: "
            "it was cut short, or can be guessed.",
            hint="Copy it whole; commas stand between two secrets only.",
            id="renders.W024",
        )
    ]


def test_a_lease_that_ends_with_its_read_is_an_error(settings):
    settings.RENDERS = {**GOOD, "LEASE_MARGIN_SECONDS": 0}

    assert found() == [
        Error(
            "LEASE_MARGIN_SECONDS is 0: a lease would not outlast REQUEST_TIMEOUT_SECONDS, "
            "and a job would be read twice at once.",
            hint="Set RENDERS_LEASE_MARGIN_SECONDS to some seconds, for instance 15.",
            id="renders.E035",
        )
    ]
