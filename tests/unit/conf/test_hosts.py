"""Where a name leads, told by itself."""

import pytest

from renders.conf.networks import host_of, is_inner, is_loopback


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "db",
        "127.0.0.1",
        "10.0.0.5",
        "[::1]",
        "fe80::1",
        "x.local",
        "App.Internal.",
        "",
    ],
)
def test_it_is_inner(host):
    assert is_inner(host)


@pytest.mark.parametrize("host", ["api.sume.com", "8.8.8.8", "2606:4700::1111", "localhost.com"])
def test_it_is_not_inner(host):
    assert not is_inner(host)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost"])
def test_only_this_machine_is_loopback(host):
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "::", "10.0.0.1", "flower"])
def test_others_reach_any_other_address(host):
    assert not is_loopback(host)


@pytest.mark.parametrize("url", ["", "nonsense", "http://[", "https://"])
def test_an_address_without_a_host_has_none(url):
    assert host_of(url) == ""
