"""Where renders are sent, and whether that bills, by the address alone."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from renders.conf import conf, destination, workspaces
from renders.conf.destination import Billing, destinations

STAND_IN = (
    "a stand-in on this machine or a private network: "
    "nothing is billed there unless it passes requests on to Sume."
)


def in_words(found):
    return " ".join(one.sentence for one in found)


@pytest.fixture
def asked(settings):
    """Sets `BASE_URL`, and the workspaces beside the default one."""

    def asked(url, key="sk-key", **others):
        settings.RENDERS = {"BASE_URL": url, "API_KEY": key, "WORKSPACES": others}
        return destinations()

    return asked


@pytest.mark.parametrize(
    ("url", "host", "billing"),
    [
        ("https://api.sume.com", "api.sume.com", Billing.BILLED),
        ("https://api.sume.com/v1/", "api.sume.com", Billing.BILLED),
        (" https://API.Sume.com. ", "api.sume.com.", Billing.BILLED),
        ("https://eu.api.sume.com:8443", "eu.api.sume.com:8443", Billing.BILLED),
        ("http://api.sume.com", "api.sume.com", Billing.BILLED),
        ("https://sume.com", "sume.com", Billing.BILLED),
        ("http://127.0.0.1:8999", "127.0.0.1:8999", Billing.STAND_IN),
        ("http://[::1]:8999", "[::1]:8999", Billing.STAND_IN),
        ("http://sandbox", "sandbox", Billing.STAND_IN),
        ("http://10.1.2.3:80", "10.1.2.3:80", Billing.STAND_IN),
        ("https://notsume.com", "notsume.com", Billing.UNKNOWN),
        ("https://api.sume.com.example.org", "api.sume.com.example.org", Billing.UNKNOWN),
        ("https://8.8.8.8", "8.8.8.8", Billing.UNKNOWN),
        ("https://api.sume.com@proxy.example.com", "proxy.example.com", Billing.UNKNOWN),
        ("https://api.sume.com:nonsense", "api.sume.com", Billing.BILLED),
        ("", "an invalid address", Billing.NOWHERE),
        ("api.sume.com", "an invalid address", Billing.NOWHERE),
        ("https://", "an invalid address", Billing.NOWHERE),
    ],
)
def test_an_address_tells_the_host_and_whether_it_bills(asked, url, host, billing):
    [one] = asked(url)

    assert (one.host, one.billing) == (host, billing)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://api.sume.com", "Renders go to api.sume.com: every render is billed."),
        ("http://127.0.0.1:8999", f"Renders go to 127.0.0.1:8999, {STAND_IN}"),
        (
            "https://sume.example.com",
            "Renders go to sume.example.com, not Sume's own host: "
            "ask whoever runs it whether it bills.",
        ),
        ("sume", "Renders go to an invalid address: BASE_URL is not an http or https address."),
    ],
)
def test_it_is_said_in_one_sentence(asked, url, words):
    assert in_words(asked(url)) == words


def test_without_a_key_nothing_is_sent(asked):
    assert in_words(asked("https://api.sume.com", key="")) == (
        "Renders go to api.sume.com: every render is billed. "
        "No API key is set here: nothing is sent."
    )


def test_neither_a_password_in_the_address_nor_the_key_is_shown(asked):
    found = asked("https://ann:s3cret@sume.example.com:8443/?token=s3cret", key="s3cret")

    assert in_words(found).startswith("Renders go to sume.example.com:8443, ")
    assert "s3cret" not in repr(found) + in_words(found) and "ann" not in repr(found)


def test_workspaces_with_one_host_are_not_named(asked):
    found = asked("https://api.sume.com", acme={"API_KEY": "sk-2"}, beta={"API_KEY": ""})

    assert in_words(found) == "Renders go to api.sume.com: every render is billed."


def test_each_host_is_named_once_with_its_workspaces(asked):
    others = {name: {"API_KEY": "sk", "BASE_URL": "https://api.sume.com"} for name in "bcdef"}
    found = asked("http://127.0.0.1:8999", a={"API_KEY": ""}, **others)

    assert [one.sentence for one in found] == [
        f"Renders go to 127.0.0.1:8999 (workspaces default, a), {STAND_IN}",
        "Renders go to api.sume.com (workspaces b, c, d and 2 more): every render is billed.",
    ]


def test_a_single_workspace_that_has_no_key_is_said_to_send_nothing(asked):
    [_, one] = asked("http://127.0.0.1:8999", a={"BASE_URL": "https://api.sume.com"})

    assert one.sentence == (
        "Renders go to api.sume.com (workspace a): every render is billed. "
        "No API key is set here: nothing is sent."
    )


def test_where_one_workspace_sends_can_be_asked_by_itself(asked):
    asked("http://127.0.0.1:8999", a={"API_KEY": "sk", "BASE_URL": "https://api.sume.com"})

    assert destination.of(workspaces.get("a")).words == "api.sume.com: every render is billed"


def test_workspaces_that_cannot_be_read_are_an_error_of_the_settings(asked):
    with pytest.raises(ImproperlyConfigured):
        asked("https://api.sume.com", default={})


def test_an_own_project_that_sets_no_address_asks_sume(settings, monkeypatch):
    """Nothing of the app reads `SUME_BASE_URL`: only this repository's project does."""
    monkeypatch.setenv("SUME_BASE_URL", "http://127.0.0.1:8999")
    settings.RENDERS = {"API_KEY": "sk-key"}

    assert conf.BASE_URL == "https://api.sume.com"
    assert [one.billing for one in destinations()] == [Billing.BILLED]
