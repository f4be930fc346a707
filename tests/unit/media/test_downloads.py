"""A download brings the whole file, from where it may come from, or says why not."""

import io
import socket
import threading
import traceback
from contextlib import contextmanager

import pytest
from urllib3.exceptions import HTTPError

from renders.conf.networks import read_private
from renders.exceptions import MediaError
from renders.media.downloads import MOST_REDIRECTS, download
from tests.unit.sume.test_client import (  # noqa: F401 (fixtures)
    OK,
    one_server,
    outcomes_of,
    raw,
    reply,
    server,
    serving,
    stall,
    trickle,
)

SECRET = "s1gn4ture"
HERE = read_private("127.0.0.1")
LIMITS = {"timeout": 3.0, "max_bytes": 10_000, "private": HERE}


def fetch(url, **limits):
    target = io.BytesIO()
    download(url, target, **(LIMITS | limits))
    return target.getvalue()


def failure_of(url, **limits):
    """Why it is not fetched; the account of it shows no signature."""
    with pytest.raises(MediaError) as caught:
        fetch(url, **limits)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


@contextmanager
def serving_once(listener, said):
    """Take one connection, note the first bytes, and hang up."""

    def take():
        connection, _ = listener.accept()
        with connection:
            said.append(connection.recv(4096))

    thread = threading.Thread(target=take)
    thread.start()
    yield
    thread.join()


# --- The file -----------------------------------------------------------------------------

BAD = {
    "404": (reply(404, body=b""), "status 404"),
    "500, a page": (reply(500, body=b"<html>"), "status 500"),
    "204": (raw(b"HTTP/1.1 204 No Content\r\n\r\n"), "status 204"),
    "304": (raw(b"HTTP/1.1 304 Not Modified\r\n\r\n"), "status 304"),
    "302 to an odd address": (reply(302, body=b"", Location="http://[::1"), "redirects to"),
    "302 to nowhere": (reply(302, body=b""), "redirects to"),
    "no reply": (raw(b""), "could not be downloaded"),
    "no HTTP": (raw(b"SSH-2.0-OpenSSH\r\n"), "could not be downloaded"),
    "cut": (raw(OK + b"Content-Length: 99\r\n\r\nabc"), "could not be downloaded"),
    "cut chunk": (
        raw(OK + b"Transfer-Encoding: chunked\r\n\r\n40\r\nabc"),
        "could not be downloaded",
    ),
    "bad gzip": (reply(200, body=b"no gzip", Content_Encoding="gzip"), "could not be downloaded"),
    "too large": (reply(200, body=bytes(10_001)), "larger than 10,000 bytes"),
    "too large, without a length": (
        raw(OK + b"Connection: close\r\n\r\n" + bytes(10_001)),
        "larger than 10,000 bytes",
    ),
}


@pytest.mark.parametrize(("answer", "message"), BAD.values(), ids=BAD)
def test_what_is_not_the_whole_file_is_a_media_error(server, answer, message):  # noqa: F811
    server.will(answer)

    assert message in failure_of(f"{server.url}/a.png?{SECRET}")
    assert len(server.requests) == 1


def test_a_file_as_large_as_may_be_is_written_whole(server):  # noqa: F811
    server.will(reply(200, body=bytes(10_000)))

    assert fetch(f"{server.url}/a.png") == bytes(10_000)


def test_an_empty_file_is_written(server):  # noqa: F811
    server.will(reply(200, body=b""))

    assert fetch(f"{server.url}/a.png") == b""


def test_of_a_file_that_says_it_is_too_large_nothing_is_read(server):  # noqa: F811
    server.will(raw(OK + b"Content-Length: 10001\r\n\r\n"))
    target = io.BytesIO()

    with pytest.raises(MediaError, match="larger than 10,000 bytes"):
        download(f"{server.url}/a.png", target, **LIMITS)
    assert target.getvalue() == b""


DEADLINE = 0.3
SLOW = {
    "silent": stall(),
    "stops in the body": stall(OK + b"Content-Length: 99\r\n\r\n{"),
    "trickles a body": trickle(OK + b"Connection: close\r\n\r\n"),
    "trickles a body on a connection that stays": trickle(OK + b"Content-Length: 999\r\n\r\n"),
    "trickles chunks": trickle(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "trickles the head": trickle(OK + b"X-Slow: ", b"x"),
    "trickles the head of a redirect": trickle(b"HTTP/1.1 302 Found\r\nX-Slow: ", b"x"),
}


@pytest.fixture(scope="module")
def outcomes():
    def call(url):
        fetch(f"{url}/a.png", timeout=DEADLINE)

    return outcomes_of(SLOW, call)


@pytest.mark.parametrize("name", SLOW)
def test_no_download_outlives_its_deadline(outcomes, name):
    seconds, found = outcomes[name]

    assert seconds < DEADLINE + 0.2
    assert isinstance(found, MediaError)


def test_neither_a_key_nor_a_cookie_is_sent(server):  # noqa: F811
    server.will(
        reply(302, body=b"", Location="/b.png", Set_Cookie="tracked=1"), reply(200, body=b"x")
    )

    fetch(f"{server.url}/a.png?X-Signature={SECRET}")

    first, second = server.requests
    assert first.path == f"/a.png?X-Signature={SECRET}"
    assert set(second.headers) == {"host", "accept", "accept-encoding", "user-agent"}


# --- Where it comes from ------------------------------------------------------------------

NO_ADDRESS = [
    "",
    "a.png",
    "//media.example/a.png",
    f"file:///etc/passwd?{SECRET}",
    f"ftp://media.example/a.png?{SECRET}",
    f"gopher://127.0.0.1/{SECRET}",
    f"javascript:alert('{SECRET}')",
    f"data:image/png;base64,{SECRET}",
]


@pytest.mark.parametrize("url", NO_ADDRESS)
def test_only_web_addresses_are_fetched(url):
    assert failure_of(url) == "Its address is neither http nor https."


@pytest.mark.parametrize(
    "url",
    [
        f"http://[::1?{SECRET}",
        f"http://?{SECRET}",
        f"http://127.0.0.1:99999/{SECRET}",
        f"http://a..b/{SECRET}",
        f"http://127.0.0.1:9/{SECRET}",
        f"http://\ufffd/{SECRET}",
        f"http://{'a' * 300}/{SECRET}",
        f"http://a%00b/{SECRET}",
    ],
)
def test_an_address_that_leads_nowhere_is_a_media_error(url):
    assert failure_of(url).startswith("It")


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0.0.0.0",  # noqa: S104
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "localhost",
        "LOCALHOST.",
        "\uff11\uff12\uff17.0.0.1",
        "127\u30020.0.1",
        "\u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3",
    ],
)
def test_no_spelling_of_this_machine_is_fetched_unless_it_is_allowed(server, host):  # noqa: F811
    failure = failure_of(f"http://{host}:{server.server_address[1]}/{SECRET}", private=())

    assert "may not be fetched" in failure or "could not be downloaded" in failure
    assert server.connections == 0


@pytest.mark.parametrize(
    "before", [f"user:{SECRET}@", f"{SECRET}@", f":{SECRET}@"], ids=["both", "user", "password"]
)
def test_an_address_with_a_password_is_refused(server, before):  # noqa: F811
    url = server.url.replace("//", f"//{before}")

    assert failure_of(f"{url}/a.png") == "Its address holds a user or a password."
    assert server.connections == 0


def test_the_connection_is_made_to_the_address_that_was_checked(
    server,  # noqa: F811
    monkeypatch,
):
    """A name that leads elsewhere when it is looked up again leads nowhere."""
    asked = []
    real = socket.getaddrinfo

    def look_up(host, *args, **kwargs):
        if host == "media.example":
            asked.append(host)
            host = "127.0.0.1" if len(asked) == 1 else "127.0.0.9"
        return real(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    server.will(reply(200, body=b"x"))

    assert fetch(f"http://media.example:{server.server_address[1]}/a.png") == b"x"
    assert asked == ["media.example"]
    assert server.requests[0].headers["host"].startswith("media.example")


def test_with_tls_the_name_is_asked_for_and_checked_not_the_address(monkeypatch):
    real = socket.getaddrinfo
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda host, *rest, **more: real(
            "127.0.0.1" if host == "media.example" else host, *rest, **more
        ),
    )
    said = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(3)
        port = listener.getsockname()[1]
        with serving_once(listener, said):
            failure = failure_of(f"https://media.example:{port}/{SECRET}")

    assert failure.startswith("It could not be downloaded (SSLError")
    assert b"media.example" in said[0]


# --- Redirects ----------------------------------------------------------------------------


def test_a_redirect_is_followed_on_the_same_server_and_to_another(server):  # noqa: F811
    with serving() as other:
        other.will(reply(200, body=b"here"))
        server.will(
            reply(302, body=b"", Location="b?x=1"),
            reply(307, body=b"", Location=f"{other.url}/c?X-Signature={SECRET}"),
        )

        assert fetch(f"{server.url}/dir/a") == b"here"

    assert [request.path for request in server.requests] == ["/dir/a", "/dir/b?x=1"]
    assert [request.path for request in other.requests] == [f"/c?X-Signature={SECRET}"]


def test_a_chain_of_redirects_has_an_end(server):  # noqa: F811
    server.will(reply(302, body=b"", Location=f"/again?{SECRET}"))

    assert failure_of(f"{server.url}/a") == "Its server redirects more than 5 times."
    assert len(server.requests) == 1 + MOST_REDIRECTS


@pytest.mark.parametrize(
    "location",
    [
        f"http://127.0.0.2:PORT/{SECRET}",
        f"http://[::1]:PORT/{SECRET}",
        f"//127.0.0.3:PORT/{SECRET}",
        f"http://169.254.169.254/latest/{SECRET}",
        f"file:///etc/passwd?{SECRET}",
        f"ftp://127.0.0.1/{SECRET}",
        f"http://user:{SECRET}@127.0.0.1:PORT/",
        f"http://[::1/{SECRET}",
    ],
)
def test_a_redirect_leads_nowhere_that_the_first_address_could_not(
    server,  # noqa: F811
    location,
):
    port = str(server.server_address[1])
    server.will(reply(302, body=b"", Location=location.replace("PORT", port)))

    failure_of(f"{server.url}/a")

    assert len(server.requests) == 1


def test_from_https_no_redirect_leads_to_http():
    from renders.media.downloads import _following
    from renders.redaction import Link

    class Response:
        headers = {"Location": "http://media.example/a.png"}

    assert _following(Link("https://media.example/"), Response()) is None
    assert _following(Link("http://media.example/"), Response()) == Response.headers["Location"]


def test_no_error_below_shows_the_address(server, monkeypatch):  # noqa: F811
    """Whatever is raised where the address is known."""

    def fail(*args, **kwargs):
        raise HTTPError(f"http://media.example/{SECRET}")

    monkeypatch.setattr("urllib3.connectionpool.HTTPConnectionPool._get_conn", fail)

    assert failure_of(f"{server.url}/{SECRET}") == "It could not be downloaded (HTTPError)."
