"""What Celery is told of the broker."""

from typing import Any

import pytest
from celery import current_app
from celery.app.routes import prepare
from kombu import Connection

from renders import tasks
from renders.celery_settings import (
    QUEUES,
    TASK_ROUTES,
    beat_schedule,
    broker_options,
    broker_tls,
    broker_url,
    queues,
)

URL = "redis+sentinel://ann:p%40s%3Bs@a,b:5000/service/3?sentinel_password=other"


def test_sentinels_are_told_in_celerys_own_words() -> None:
    url, options = broker_url(URL), broker_options(URL)
    assert url == "sentinel://ann:p%40s%3Bs@a:26379/3;sentinel://ann:p%40s%3Bs@b:5000/3"
    assert options["master_name"] == "service"
    provider = options["sentinel_kwargs"]["credential_provider"]
    assert provider.get_credentials() == ("other",)
    assert options["visibility_timeout"] == broker_options("redis://a")["visibility_timeout"]
    assert not broker_tls(URL)


def test_celery_reads_that_as_it_is_meant() -> None:
    connection: Any = Connection(broker_url(URL))
    assert connection.alt == broker_url(URL).split(";")
    for address in connection.alt:
        one: Any = Connection(address)
        assert (one.userid, one.password, one.virtual_host) == ("ann", "p@s;s", "3")
    assert "p%40s" not in connection.as_uri()


def test_nothing_that_celery_is_told_shows_a_password() -> None:
    assert "p%40s" not in repr([broker_url(URL)])
    assert "other" not in repr(broker_options(URL))


def test_tls_goes_to_the_server_and_to_the_sentinels() -> None:
    url = "rediss+sentinel://a/service?ssl_ca_certs=/ca.pem"
    assert broker_url(url) == "sentinel://a:26379/0"
    assert broker_tls(url) == {"ssl_cert_reqs": "required", "ssl_ca_certs": "/ca.pem"}
    asked = broker_options(url)["sentinel_kwargs"]
    assert asked["ssl"] is True and asked["ssl_ca_certs"] == "/ca.pem"


@pytest.mark.parametrize(
    "url",
    ["redis://:p@a/0", "rediss://a", "amqp://a//", "redis+cluster://a", "redis+sentinel://a", ""],
)
def test_any_other_address_stays_as_it_is(url: str) -> None:
    assert broker_url(url) == url
    assert not broker_tls(url)
    assert "master_name" not in broker_options(url)


@pytest.mark.parametrize("given", ["", "soon", -1, 0, "nan", "inf"])
def test_a_wrong_period_leaves_the_sweep_at_its_own(given: object) -> None:
    """A system check names the wrong value; beat must not sweep without a pause."""
    entry = beat_schedule(given)["sweep-renders"]
    assert (entry["schedule"], entry["options"]) == (30.0, {"expires": 30.0})


def test_the_sweep_has_the_period_that_is_given() -> None:
    entry = beat_schedule("7.5")["sweep-renders"]
    assert (entry["schedule"], entry["options"]) == (7.5, {"expires": 7.5})


def test_every_task_has_a_queue_of_the_app() -> None:
    assert tasks.submit_render.name in current_app.tasks
    named = {name for name in current_app.tasks if name.startswith("renders.tasks.")}
    router = current_app.amqp.Router(queues=current_app.amqp.queues)
    router.routes = prepare(TASK_ROUTES)
    queues = {name: router.route({}, name)["queue"].name for name in named}

    assert set(queues.values()) == set(QUEUES)
    assert queues["renders.tasks.poll_render"] == "renders.poll"
    assert queues["renders.tasks.sweep_renders"] == "renders.finish"


def test_each_queue_has_a_routing_key_of_its_own() -> None:
    made = queues("celery", "mail")

    assert [queue.name for queue in made] == ["celery", "mail", *QUEUES]
    assert [queue.routing_key for queue in made] == [queue.name for queue in made]
