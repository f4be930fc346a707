"""What a file is, by its first bytes."""

import io

import pytest
from PIL import Image

from renders.media.content_types import (
    IMAGES,
    SUFFIXES,
    UNKNOWN,
    VIDEOS,
    content_type,
    other_than_media,
    suffix,
)


def drawn(kind):
    out = io.BytesIO()
    Image.new("RGB", (8, 8)).save(out, kind)
    return out.getvalue()[:64]


@pytest.mark.parametrize("name", ["png", "jpeg", "gif", "webp", "avif"])
def test_pictures_are_known(name):
    assert content_type(drawn(name)) == f"image/{name}"


def box(brand, others=b"isom"):
    return b"\x00\x00\x00\x20ftyp" + brand + b"\x00\x00\x02\x00" + others


@pytest.mark.parametrize(
    ("head", "found"),
    [
        (box(b"isom"), "video/mp4"),
        (box(b"mp42"), "video/mp4"),
        (box(b"qt  "), "video/quicktime"),
        (box(b"mif1", b"avif"), "image/avif"),
        (box(b"heic"), UNKNOWN),
        (box(b"M4A "), UNKNOWN),
        (b"\x1a\x45\xdf\xa3\x9f\x42\x82\x84webm", "video/webm"),
        (b"\x1a\x45\xdf\xa3\x9f\x42\x82\x88matroska", UNKNOWN),
        (b"OggS\x00", "video/ogg"),
        (b"ID3\x04", "audio/mpeg"),
        (b"RIFF\x00\x00\x00\x00WAVEfmt ", "audio/wav"),
        (b"RIFF\x00\x00\x00\x00AVI LIST", UNKNOWN),
        (b"<svg xmlns=", UNKNOWN),
        (b"<!DOCTYPE html>", UNKNOWN),
        (b"  \x89PNG\r\n\x1a\n", UNKNOWN),
        (b"%PDF-1.7", UNKNOWN),
        (b"", UNKNOWN),
        (b"\xff", UNKNOWN),
    ],
)
def test_other_files_are_known_or_not(head, found):
    assert content_type(head) == found


@pytest.mark.parametrize("told", [*sorted(IMAGES), *sorted(VIDEOS), "IMAGE/PNG ; a=b", ""])
def test_an_unknown_file_is_never_taken_for_one_that_is_shown(told):
    assert content_type(b"<script>", told) == UNKNOWN


def test_whatever_is_shown_has_an_ending_of_its_own():
    assert set(SUFFIXES) > IMAGES | VIDEOS
    assert len(set(SUFFIXES.values())) == len(SUFFIXES)
    assert suffix("text/html") == ".bin"


SVG = "an SVG drawing"
PAGE, DATA, XML = "an HTML page", "a JSON document", "an XML document"


@pytest.mark.parametrize(
    ("head", "found"),
    [
        (b"<!DOCTYPE html><html>", PAGE),
        (b"\xef\xbb\xbf\r\n <html lang=de>", PAGE),
        ("\ufeff<html><body>".encode("utf-16-le"), PAGE),
        (b"<!-- nginx --><html>", PAGE),
        (b"<h1>Not found</h1>", "text"),
        (b'{"error": {"code": "gone"}}', DATA),
        (b"[]", DATA),
        (b"[\n  {", DATA),
        (b"<svg xmlns='http://www.w3.org/2000/svg'>", SVG),
        (b"<?xml version='1.0'?><!-- a --><svg>", SVG),
        (b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", XML),
        (b"upstream request timeout", "text"),
        ("Nicht gefunden: Größe".encode(), "text"),
        ("Zugriff verweigert, weil die Größe nicht stimmt".encode("latin-1"), "text"),
        ("é".encode()[:1].join([b"cut off in a letter ", b""]), "text"),
    ],
)
def test_pages_and_texts_are_no_pictures(head, found):
    assert other_than_media(head) == found


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"  \r\n",
        b"\xff",
        b"\x00\x01\x02\x03",
        b"%PDF-1.7\n%\xe2\xe3\x00",
        b"\x1f\x8b\x08\x00",
        box(b"heic"),
        box(b"isom"),
        b"ID3\x04",
        b"GIF89a",
        *(drawn(name) for name in ("png", "jpeg", "gif", "webp", "avif")),
    ],
)
def test_media_and_unknown_binary_files_are_nothing_else(head):
    assert other_than_media(head) == ""
