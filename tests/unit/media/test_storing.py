"""A finished artifact comes into the storage, or an error says why, without its address."""

import hashlib
import io
import logging
import traceback

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import InMemoryStorage, Storage, storages
from PIL import Image

from renders.exceptions import LinkExpired, MediaError
from renders.media import storing
from renders.media.storage import storage
from tests.unit.sume.test_client import one_server, reply, server  # noqa: F401 (fixtures)

SECRET = "s1gn4ture"


def png(size=(600, 300)):
    out = io.BytesIO()
    Image.new("RGB", size, "red").save(out, "PNG")
    return out.getvalue()


PNG = png()
SHA256 = hashlib.sha256(PNG).hexdigest()
NAME = f"renders/render-1/0-{SHA256[:16]}.png"
SMALL = f"renders/render-1/0-{SHA256[:16]}-small.webp"


class Renaming(InMemoryStorage):
    """Stores each file under a name of its own choice."""

    def get_available_name(self, name, max_length=None):
        return super().get_available_name(f"elsewhere/{name}", max_length)


class Bare(Storage):
    """Can do no more than open, save and delete; has no paths."""

    def __init__(self):
        self.kept = {}

    def _open(self, name, mode="rb"):
        return ContentFile(self.kept[name])

    def _save(self, name, content):
        self.kept[name] = content.read()
        return name

    def get_available_name(self, name, max_length=None):
        return name


class Failing(InMemoryStorage):
    """Keeps pictures and no thumbnails."""

    def _save(self, name, content):
        if "small" in name:
            raise RuntimeError("this storage fails")
        return super()._save(name, content)


@pytest.fixture(autouse=True)
def _settings(settings):
    use(settings, "django.core.files.storage.InMemoryStorage")


def use(settings, backend):
    settings.RENDERS = {
        "MEDIA_MAX_BYTES": 10_000,
        "MEDIA_STORAGE": "media",
        "MEDIA_PRIVATE_HOSTS": "127.0.0.1",
    }
    settings.STORAGES = {**settings.STORAGES, "media": {"BACKEND": backend}}


def artifact(server, **fields):  # noqa: F811
    return {
        "url": f"{server.url}/a.png?X-Signature={SECRET}",
        "type": "image",
        "content_type": "image/png",
        **fields,
    }


def read(name):
    with storage().open(name) as file:
        return file.read()


def files():
    return sorted(storage().listdir("renders/render-1")[1])


def test_an_artifact_is_stored_under_its_render_with_its_checksum(server):  # noqa: F811
    server.will(reply(200, body=PNG))

    saved = storing.save("render-1", 0, artifact(server))

    assert saved.facts == {
        "file": NAME,
        "content_type": "image/png",
        "sha256": SHA256,
        "bytes": len(PNG),
        "thumbnail": SMALL,
    }
    assert saved.names == {NAME, SMALL}
    assert read(NAME) == PNG
    assert Image.open(io.BytesIO(read(SMALL))).size == (480, 240)


def test_it_goes_where_the_setting_says(server, settings):  # noqa: F811
    server.will(reply(200, body=PNG))

    storing.save("render-1", 0, artifact(server))

    assert storages["media"].exists(NAME)
    assert not storages["default"].exists(NAME)


PAGE = b"<html><script>alert(1)</script>"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


BINARY = b"\x00\x01\x02 neither text nor known"


@pytest.mark.parametrize(
    ("body", "told", "found", "suffix"),
    [
        (PNG, "image/png", "image/png", ".png"),
        (PNG, "text/html", "image/png", ".png"),
        (PNG, "", "image/png", ".png"),
        (SVG, "image/svg+xml", "image/svg+xml", ".bin"),
        (BINARY, "image/png", "application/octet-stream", ".bin"),
        (BINARY, "../../etc/passwd", "../../etc/passwd", ".bin"),
    ],
)
def test_what_it_is_its_first_bytes_say(server, body, told, found, suffix):  # noqa: F811
    """No page that calls itself a picture is ever shown; no name derives from what is said."""
    server.will(reply(200, body=body, Content_Type="image/png"))

    facts = storing.save("render-1", 3, artifact(server, content_type=told), "image").facts

    assert facts["content_type"] == found
    name, end = facts["file"].split(".")
    assert f".{end}" == suffix
    assert name == f"renders/render-1/3-{hashlib.sha256(body).hexdigest()[:16]}"


OTHERS = {"an HTML page": PAGE, "an SVG drawing": SVG, "a JSON document": b"{}", "text": b"Busy."}


@pytest.mark.parametrize("words", OTHERS)
@pytest.mark.parametrize(
    "told",
    [
        {"type": "image", "content_type": "text/html"},
        {"type": "", "content_type": "video/mp4; a=b"},
        {"type": "file", "content_type": ""},
    ],
    ids=["a picture by its type", "a clip by its content type", "by the render's kind"],
)
def test_what_is_no_picture_where_one_was_declared_is_a_failed_try(server, words, told):  # noqa: F811
    server.will(reply(200, body=OTHERS[words], Content_Type="image/png"))

    with pytest.raises(MediaError, match=f"sent {words} instead of a picture or clip") as caught:
        storing.save("render-1", 0, artifact(server, **told), "image")

    assert SECRET not in str(caught.value)
    with pytest.raises(FileNotFoundError):
        files()


@pytest.mark.parametrize(
    "told",
    [{"type": "transcript", "content_type": "image"}, {"type": "", "content_type": "text/html"}],
)
def test_what_was_declared_as_something_else_is_kept(server, told):  # noqa: F811
    server.will(reply(200, body=PAGE))

    facts = storing.save("render-1", 0, artifact(server, **told), "video").facts

    assert facts["file"].endswith(".bin")


def test_what_is_in_an_unknown_encoding_is_a_failed_try_unless_its_bytes_are_a_picture(server):  # noqa: F811
    server.will(reply(200, body=BINARY, Content_Encoding="odd"))
    with pytest.raises(MediaError, match="sent data in the unknown encoding odd instead"):
        storing.save("render-1", 0, artifact(server))

    server.will(reply(200, body=PNG, Content_Encoding="odd"))
    assert storing.save("render-1", 0, artifact(server)).facts["content_type"] == "image/png"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((status, LinkExpired) for status in (401, 403, 404, 410)),
        *((status, MediaError) for status in (400, 500, 503)),
    ],
)
def test_a_link_that_has_expired_is_told_from_other_failures(server, status, kind):  # noqa: F811
    server.will(reply(status, body=b"no"))

    with pytest.raises(MediaError, match=f"Artifact not stored: .* status {status}.") as caught:
        storing.save("render-1", 0, artifact(server))

    assert type(caught.value) is kind


def url(path, signature=""):
    return {"url": f"https://a.example/{path}?s={signature}"}


@pytest.mark.parametrize(
    ("fresh", "links"),
    [
        ([url("a", 2), url("b", 2)], ["a?s=2", "b?s=2"]),
        ([url("b", 2), url("a", 2)], ["a?s=2", "b?s=2"]),
        ([url("c", 2), url("d", 2)], ["c?s=2", "d?s=2"]),
        ([url("b", 2)], ["a?s=1", "b?s=2"]),
        ([], ["a?s=1", "b?s=1"]),
        ([url("a", 2), url("a", 3)], ["a?s=2", "a?s=3"]),
    ],
    ids=["same order", "another order", "other places", "one is left", "none", "not told apart"],
)
def test_each_artifact_gets_its_own_fresh_url(fresh, links):
    renewed = storing.renewed([url("a", 1), url("b", 1)], fresh)

    assert [link.removeprefix("https://a.example/") for link in map(str.__str__, renewed)] == links


def test_a_second_try_finds_what_the_first_left(server):  # noqa: F811
    server.will(reply(200, body=PNG))

    first, second = (storing.save("render-1", 0, artifact(server)) for _ in range(2))

    assert first == second
    assert len(files()) == 2


def test_what_a_killed_try_left_in_part_is_replaced_and_named_for_deletion(server):  # noqa: F811
    storage().save(NAME, ContentFile(PNG[:100]))
    server.will(reply(200, body=PNG))

    saved = storing.save("render-1", 0, artifact(server))

    assert saved.facts["file"] != NAME
    assert read(saved.facts["file"]) == PNG
    storing.discard(saved.names - storing.names_of(saved.facts))
    assert len(files()) == 2


@pytest.mark.parametrize("backend", [Renaming, Bare], ids=["renames", "can do little"])
def test_any_storage_will_do(server, settings, backend):  # noqa: F811
    use(settings, f"{__name__}.{backend.__name__}")
    server.will(reply(200, body=PNG))

    facts = storing.save("render-1", 0, artifact(server)).facts

    assert read(facts["file"]) == PNG
    assert read(facts["thumbnail"])


def test_a_thumbnail_that_cannot_be_stored_is_left_out(server, settings):  # noqa: F811
    use(settings, f"{__name__}.Failing")
    server.will(reply(200, body=PNG))

    facts = storing.save("render-1", 0, artifact(server)).facts

    assert facts["thumbnail"] == ""
    assert read(facts["file"]) == PNG


def test_a_file_that_cannot_be_deleted_is_no_error(settings, caplog, monkeypatch):
    def fail(name):
        raise RuntimeError("no")

    monkeypatch.setattr(storage(), "delete", fail)

    with caplog.at_level(logging.WARNING):
        storing.discard({"a"})

    assert "stays in storage (RuntimeError)" in caplog.text


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (reply(500, body=b"no"), "Its server answered with status 500."),
        (reply(200, body=bytes(10_001)), "It is larger than 10,000 bytes."),
        (reply(200, body=b""), "Its file is empty."),
    ],
    ids=["refused", "too large", "empty"],
)
def test_what_cannot_be_had_is_a_media_error(server, answer, words):  # noqa: F811
    server.will(answer)

    with pytest.raises(MediaError) as caught:
        storing.save("render-1", 0, artifact(server))

    assert str(caught.value) == f"Artifact not stored: {words}"
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert not storage().exists("renders/render-1")


@pytest.mark.parametrize("given", [{}, {"url": ""}, {"url": None}, {"url": "a.png"}])
def test_an_artifact_without_an_address_is_a_media_error(given):
    with pytest.raises(MediaError, match="neither http nor https"):
        storing.save("render-1", 0, given)


def test_no_other_machine_is_asked_unless_a_setting_names_it(server, settings):  # noqa: F811
    settings.RENDERS = {**settings.RENDERS, "MEDIA_PRIVATE_HOSTS": ""}

    with pytest.raises(MediaError, match="RENDERS_MEDIA_PRIVATE_HOSTS"):
        storing.save("render-1", 0, artifact(server))

    assert server.connections == 0


@pytest.mark.parametrize(
    ("artifacts", "index"),
    [
        ([], None),
        ([{}], 0),
        ([{"file": "a"}, {}], 1),
        ([{"failures": 1}, {}], 1),
        ([{"failures": 2}, {"failures": 1}], 1),
        ([{"failures": 5}, {"file": "a"}], None),
        ([{"file": "a", "failures": 1}], None),
    ],
)
def test_the_artifact_with_the_fewest_failed_tries_is_next(artifacts, index):
    assert storing.missing(artifacts) == index


def test_a_result_in_another_order_with_another_place_mixes_nothing_up():
    known = [{"url": "https://m/a.png?s=1"}, {"url": "https://m/b.png?s=1"}]
    fresh = [{"url": "https://m/b2.png?s=2"}, {"url": "https://m/a.png?s=2"}]

    assert storing.renewed(known, fresh) == ["https://m/a.png?s=2", "https://m/b2.png?s=2"]


def test_subtitles_of_a_video_are_no_clip():
    assert not storing.is_shown({"type": "video_subtitles", "content_type": "text/vtt"}, "video")
