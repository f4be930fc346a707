"""The addresses of several servers: every part of them, and errors that repeat nothing."""

import traceback

import pytest
import redis
from redis.sentinel import SentinelManagedSSLConnection

from renders.conf.redis_url import RedisUrl, kind_of, read
from renders.coordination.clients import Cluster, connect

SECRET = "s3cret"


def test_a_cluster_is_its_first_nodes_and_an_account() -> None:
    assert read("redis+cluster://ann:p%40ss%2F@a:7000,b,[::1]:7002") == RedisUrl(
        hosts=(("a", 7000), ("b", 6379), ("::1", 7002)), username="ann", password="p@ss/"
    )


def test_sentinels_say_which_service_and_what_they_ask_for_themselves() -> None:
    assert read(
        "redis+sentinel://:secret@a,b:5000/my%20service/3?sentinel_username=u&sentinel_password=p%3F"
    ) == RedisUrl(
        hosts=(("a", 26379), ("b", 5000)),
        password="secret",
        service="my service",
        db=3,
        sentinel_username="u",
        sentinel_password="p?",
    )


def test_tls_is_for_the_sentinels_too_and_checks_certificates_unless_told_otherwise() -> None:
    address = read("rediss+sentinel://a/service")
    assert address and address.tls == {"ssl": True, "ssl_cert_reqs": "required"}
    address = read(
        "rediss+cluster://a?ssl_cert_reqs=none&ssl_ca_certs=%2Fca.pem&ssl_check_hostname=False"
    )
    assert address and address.tls == {
        "ssl": True,
        "ssl_cert_reqs": "none",
        "ssl_ca_certs": "/ca.pem",
        "ssl_check_hostname": False,
    }
    pool = connect("rediss+sentinel://a/service?ssl_ca_certs=/ca.pem").connection_pool
    assert pool.connection_class is SentinelManagedSSLConnection
    [sentinel] = pool.sentinel_manager.sentinels
    for one in (pool, sentinel.connection_pool):
        assert one.connection_kwargs["ssl_ca_certs"] == "/ca.pem"
        assert one.connection_kwargs["ssl_cert_reqs"] == "required"


@pytest.mark.parametrize("url", ["redis://a/0", "rediss://a", "unix:///s", "amqp://a", "a", ""])
def test_any_other_address_is_left_to_others(url: str) -> None:
    assert read(url) is None and kind_of(url) == ""


@pytest.mark.parametrize(
    "url",
    [
        "redis+cluster://",
        "redis+cluster://:s3cret@",
        "redis+cluster://:s3cret@a,",
        "redis+cluster://:s3cret@a:port",
        "redis+cluster://:s3cret@a:0",
        "redis+cluster://:s3cret@a/1",
        "redis+cluster://:s3/cret@a",
        "redis+cluster://:s3?cret@a",
        "redis+cluster://:s3#cret@a",
        "redis+cluster://a?sentinel_password=s3cret",
        "redis+cluster://a?ssl_cert_reqs=none",
        "rediss+cluster://a?ssl_cert_reqs=s3cret",
        "rediss+cluster://a?ssl_check_hostname=s3cret",
        "redis+sentinel://:s3cret@a",
        "redis+sentinel://:s3cret@a/",
        "redis+sentinel://:s3cret@a//1",
        "redis+sentinel://:s3cret@a/service/s3cret",
        "redis+sentinel://u:1/s3cret@a/service",
        "redis+sentinel://a/service?password=s3cret",
        "redis+sentinel://[s3cret/service",
    ],
)
def test_an_address_that_cannot_be_read_is_an_error_that_repeats_nothing(url: str) -> None:
    with pytest.raises(ValueError) as caught:
        read(url)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "redis+cluster://s3cret-user:s3cret@127.0.0.1:9",
        "redis+sentinel://s3cret-user:s3cret@127.0.0.1:9/service?sentinel_password=s3cret",
    ],
)
def test_no_client_shows_a_password(url: str) -> None:
    client = connect(url)
    assert SECRET not in repr([client, vars(client)])
    with pytest.raises(Exception, match=r"No master|cannot be connected") as caught:
        client.get("key")
    assert "s3cret" not in str(caught.value)


def test_a_cluster_that_is_away_is_met_by_commands_only() -> None:
    client = connect("redis+cluster://127.0.0.1:9")
    script = client.register_script("return 1")
    with pytest.raises(Exception, match="cannot be connected"):
        script(keys=["a"], args=[1])
    with pytest.raises(redis.ConnectionError, match="a moment ago"):
        client.get("a")
    client.close()
    assert isinstance(client, Cluster)


def test_a_traceback_with_all_variables_shows_no_password() -> None:
    client = connect("redis+cluster://:s3cret@127.0.0.1:9")
    with pytest.raises(Exception, match="cannot be connected") as caught:
        client.get("key")
    shown = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    assert SECRET not in "".join(shown.format())
