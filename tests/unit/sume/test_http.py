"""Kept connections for reads: one pool for each process, and nothing of one reply in the next."""

import os
import ssl

import pytest

from renders.sume import http
from renders.sume.http import Connections

HEADERS = {"Accept": "application/json"}


class FakeResponse:
    def __init__(self):
        self.did = []

    def close(self):
        self.did.append("close")

    def release_conn(self):
        self.did.append("release")


class FakePool:
    made = []

    def __init__(self, host, port, **options):
        self.place, self.options, self.asked = (host, port), options, []
        self.response = FakeResponse()
        FakePool.made.append(self)

    def urlopen(self, method, url, **options):
        self.asked.append((method, url, options))
        return self.response


@pytest.fixture(autouse=True)
def pools(monkeypatch):
    monkeypatch.setattr(FakePool, "made", [])
    monkeypatch.setattr(http, "POOLS", {"http": FakePool, "https": FakePool})
    return FakePool.made


def test_a_get_goes_below_the_address_and_is_tried_once(pools):
    with Connections("http://sume.test:81/api", 7).get("/v1/jobs/1", HEADERS, 30) as response:
        assert response is pools[0].response

    [pool] = pools
    assert (pool.place, pool.options) == (("sume.test", 81), {"maxsize": 7})
    [(method, url, options)] = pool.asked
    assert (method, url) == ("GET", "/api/v1/jobs/1")
    assert options["headers"] == HEADERS
    assert (options["timeout"].connect_timeout, options["timeout"].read_timeout) == (10, 30)
    assert (options["retries"], options["redirect"]) == (False, False)
    assert options["preload_content"] is False


def test_over_https_the_certificate_is_checked(pools):
    with Connections("https://sume.test", 7).get("/", HEADERS, 30):
        pass

    context = pools[0].options["ssl_context"]
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert context.cert_store_stats()["x509_ca"] > 50


def test_connections_are_kept_from_read_to_read(pools):
    reads = Connections("http://sume.test", 7)
    for _ in range(3):
        with reads.get("/", HEADERS, 30):
            pass

    assert len(pools) == 1
    assert pools[0].response.did == ["release"] * 3


def test_after_a_fork_the_child_has_its_own(pools, monkeypatch):
    reads = Connections("http://sume.test", 7)
    with reads.get("/", HEADERS, 30):
        pass
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with reads.get("/", HEADERS, 30):
        pass

    assert len(pools) == 2
    assert len(pools[0].asked) == len(pools[1].asked) == 1


def test_a_reply_that_was_not_read_to_its_end_takes_its_connection_along(pools):
    reads = Connections("http://sume.test", 7)

    with pytest.raises(TimeoutError), reads.get("/", HEADERS, 30):
        raise TimeoutError

    assert pools[0].response.did == ["close", "release"]


@pytest.mark.parametrize("address", ["", "sume.test", "ftp://sume.test", "http://", "//sume.test"])
def test_an_address_that_is_none_is_told(address, pools):
    with (
        pytest.raises(ValueError, match="No http or https address"),
        Connections(address, 7).get("/", HEADERS, 30),
    ):
        pass
    assert pools == []
