"""What Celery is told of the broker."""

from typing import Any

import pytest
from kombu import Connection

from project.broker import broker_options, broker_tls, broker_url

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
