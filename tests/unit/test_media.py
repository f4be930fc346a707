"""A finished artifact comes into the storage, or an error says why, without its address."""

import io
import traceback

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from renders import media
from renders.client import download
from renders.exceptions import MediaError
from tests.unit.test_client import (  # noqa: F401 (fixtures)
    OK,
    one_server,
    outcomes_of,
    raw,
    reply,
    server,
    stall,
    trickle,
)

PNG = b"\x89PNG\r\n\x1a\n" + bytes(2_000)
SECRET = "s1gn4ture"
LIMITS = {"timeout": 3.0, "max_bytes": 10_000}


@pytest.fixture(autouse=True)
def storage(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    settings.RENDERS = {"MEDIA_MAX_BYTES": 10_000}
    return tmp_path


def artifact(server, **fields):  # noqa: F811
    return {
        "url": f"{server.url}/a.png?X-Signature={SECRET}",
        "type": "image",
        "content_type": "image/png",
        **fields,
    }


# --- Save ---------------------------------------------------------------------------------


def test_an_artifact_is_stored_under_its_render(server):  # noqa: F811
    server.will(reply(200, body=PNG))

    name = media.save("render-1", 0, artifact(server))

    assert name == "renders/render-1/0.png"
    with default_storage.open(name) as file:
        assert file.read() == PNG


def test_the_server_of_the_media_gets_the_whole_address_and_no_key(server):  # noqa: F811
    server.will(reply(200, body=PNG))

    media.save("render-1", 0, artifact(server))

    [request] = server.requests
    assert request.path == f"/a.png?X-Signature={SECRET}"
    assert "authorization" not in request.headers
    assert "test-key" not in str(request.headers)


@pytest.mark.parametrize(
    ("content_type", "suffix"),
    [
        ("image/png", ".png"),
        ("image/jpeg", ".jpg"),
        ("video/mp4", ".mp4"),
        ("", ".bin"),
        ("../../etc/passwd", ".bin"),
        ("\x00", ".bin"),
        ("image/png; charset=\ufffd", ".bin"),
    ],
)
def test_the_name_ends_as_the_type_says(server, content_type, suffix):  # noqa: F811
    server.will(reply(200, body=PNG))

    name = media.save("render-1", 3, artifact(server, content_type=content_type))

    assert name == f"renders/render-1/3{suffix}"


def test_a_second_try_replaces_what_the_first_left(server):  # noqa: F811
    server.will(reply(200, body=b"old"), reply(200, body=PNG))

    names = {media.save("render-1", 0, artifact(server)) for _ in range(2)}

    assert names == {"renders/render-1/0.png"}
    with default_storage.open("renders/render-1/0.png") as file:
        assert file.read() == PNG
    assert default_storage.listdir("renders/render-1")[1] == ["0.png"]


def test_a_failed_try_leaves_the_good_file_of_an_earlier_one(server):  # noqa: F811
    default_storage.save("renders/render-1/0.png", ContentFile(PNG))
    server.will(reply(500, body=b"no"))

    with pytest.raises(MediaError):
        media.save("render-1", 0, artifact(server))

    with default_storage.open("renders/render-1/0.png") as file:
        assert file.read() == PNG


@pytest.mark.parametrize(
    "url",
    [
        "",
        "a.png",
        "//media.example/a.png",
        f"file:///etc/passwd?{SECRET}",
        f"ftp://media.example/a.png?{SECRET}",
        f"javascript:alert('{SECRET}')",
        f"data:image/png;base64,{SECRET}",
    ],
)
def test_only_web_addresses_are_fetched(url):
    with pytest.raises(MediaError) as caught:
        media.save("render-1", 0, {"url": url, "content_type": "image/png"})

    assert str(caught.value) == "Artifact not stored: its address is neither http nor https."


@pytest.mark.parametrize(
    "url",
    [
        f"http://[::1?{SECRET}",
        f"http://?{SECRET}",
        f"http://127.0.0.1:99999/{SECRET}",
        f"http://a..b/{SECRET}",
        f"http://127.0.0.1:9/{SECRET}",
        f"http://\ufffd/{SECRET}",
    ],
)
def test_an_impossible_address_is_a_media_error_without_the_address(url):
    with pytest.raises(MediaError) as caught:
        media.save("render-1", 0, {"url": url, "content_type": "image/png"})

    assert str(caught.value).startswith("Artifact not stored: ")
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_an_artifact_without_an_address_is_a_media_error():
    with pytest.raises(MediaError):
        media.save("render-1", 0, {"content_type": "image/png"})


def test_a_storage_that_fails_is_a_media_error(server, monkeypatch):  # noqa: F811
    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device", "/secret/path")

    server.will(reply(200, body=PNG))
    monkeypatch.setattr(default_storage, "save", fail)

    with pytest.raises(MediaError, match=r"the media storage failed \(OSError\)\.$"):
        media.save("render-1", 0, artifact(server))


# --- Download -----------------------------------------------------------------------------

BAD = {
    "404": (reply(404, body=b""), "status 404"),
    "500, a page": (reply(500, body=b"<html>"), "status 500"),
    "204": (raw(b"HTTP/1.1 204 No Content\r\n\r\n"), "status 204"),
    "302": (reply(302, body=b"", Location="/elsewhere"), "status 302"),
    "302 to an odd address": (reply(302, body=b"", Location="http://[::1"), r"\.$"),
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

    with pytest.raises(MediaError, match=message) as caught:
        download(f"{server.url}/a.png?{SECRET}", io.BytesIO(), **LIMITS)

    assert len(server.requests) == 1
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_a_file_as_large_as_may_be_is_written_whole(server):  # noqa: F811
    server.will(reply(200, body=bytes(10_000)))
    target = io.BytesIO()

    download(f"{server.url}/a.png", target, **LIMITS)

    assert target.getvalue() == bytes(10_000)


def test_an_empty_file_is_written(server):  # noqa: F811
    server.will(reply(200, body=b""))
    target = io.BytesIO()

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
    "trickles the body of a redirect": trickle(
        b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 999\r\n\r\n"
    ),
}


@pytest.fixture(scope="module")
def outcomes():
    def call(url):
        download(f"{url}/a.png", io.BytesIO(), timeout=DEADLINE, max_bytes=10_000)

    return outcomes_of(SLOW, call)


@pytest.mark.parametrize("name", SLOW)
def test_no_download_outlives_its_deadline(outcomes, name):
    seconds, found = outcomes[name]

    assert seconds < DEADLINE + 0.2
    assert isinstance(found, MediaError)
