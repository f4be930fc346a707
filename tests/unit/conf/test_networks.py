"""Where a download may lead: what is public, what a setting allows, and nothing else."""

import socket

import pytest

from renders.conf.networks import NotAllowed, find, is_public, read_private

PUBLIC = [
    "8.8.8.8",
    "93.184.216.34",
    "2606:2800:220:1:248:1893:25c8:1946",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
]
NOT_PUBLIC = [
    "0.0.0.0",  # noqa: S104
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.8",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "198.18.0.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:808:808::",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%1",
    "fec0::1",
    "ff02::1",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_addresses_that_mean_the_same_to_everybody_are_public(address):
    assert is_public(address)


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_addresses_of_this_machine_of_its_network_and_of_no_machine_are_not(address):
    assert not is_public(address)


# --- Hosts --------------------------------------------------------------------------------


@pytest.fixture
def dns(monkeypatch):
    """Names and their addresses; what is no name here is read by the system, without a network."""
    names = {}
    real = socket.getaddrinfo

    def look_up(host, port, *args, **kwargs):
        if host in names:
            return [(socket.AF_INET, 1, 6, "", (address, port)) for address in names[host]]
        return real(host, port, *args, flags=socket.AI_NUMERICHOST, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return names


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0x7f000001",
        "0177.0.0.1",
        "0",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:7f00:1",
        "169.254.169.254",
        "10.1",
    ],
)
def test_however_it_is_spelled_a_private_address_is_refused(dns, host):
    with pytest.raises(NotAllowed, match="not at a public address"):
        find(host, 80)


def test_a_name_with_one_private_address_among_others_is_refused(dns):
    dns["media.example"] = ["8.8.8.8", "10.0.0.1"]

    with pytest.raises(NotAllowed):
        find("media.example", 443)


def test_the_addresses_of_a_public_name_are_found_in_order_and_once(dns):
    dns["media.example"] = ["8.8.8.8", "8.8.4.4", "8.8.8.8"]

    assert find("media.example", 443) == ["8.8.8.8", "8.8.4.4"]


@pytest.mark.parametrize(("port", "fine"), [(80, 1), (443, 1), (9000, 1), (22, 0), (25, 0), (0, 0)])
def test_ports_of_other_services_are_refused(dns, port, fine):
    if fine:
        assert find("8.8.8.8", port) == ["8.8.8.8"]
    else:
        with pytest.raises(NotAllowed, match="not one of the web's"):
            find("8.8.8.8", port)


@pytest.mark.parametrize(
    ("allowed", "host", "address", "fine"),
    [
        ("127.0.0.1", "127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1", "127.0.0.2", "127.0.0.2", False),
        ("10.0.0.0/8", "minio", "10.2.3.4", True),
        ("10.0.0.0/8", "minio", "192.168.0.1", False),
        ("minio", "minio", "192.168.0.1", True),
        ("MINIO.", "minio", "192.168.0.1", True),
        ("minio", "mini", "192.168.0.1", False),
        ("minio", "a.minio", "192.168.0.1", False),
        ("127.0.0.1", "::ffff:127.0.0.1", "::ffff:127.0.0.1", True),
        ("fd00::/8, ::1", "::1", "::1", True),
        ("10.0.0.0/8", "public", "8.8.8.8", True),
    ],
)
def test_a_setting_may_allow_hosts_and_networks(dns, allowed, host, address, fine):
    dns[host] = [address]
    private = read_private(allowed)

    if fine:
        assert find(host, 9000, private) == [address]
    else:
        with pytest.raises(NotAllowed):
            find(host, 9000, private)


@pytest.mark.parametrize("text", ["10.0.0.0/33", "http://minio", "a b", "300.1.1.1", "::g", "a@b"])
def test_what_is_neither_host_nor_network_is_no_setting(text):
    with pytest.raises(ValueError):
        read_private(text)


def test_the_refusal_says_what_to_do_and_nothing_but_the_host(dns):
    with pytest.raises(NotAllowed) as caught:
        find("127.1", 80)

    assert str(caught.value) == (
        "127.1 is not at a public address; if that is right, name it in RENDERS_MEDIA_PRIVATE_HOSTS"
    )
