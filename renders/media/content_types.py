"""The type of a file by its first bytes, not by its declared type.

A browser shows only the types known here from this site. Anything else, for instance a page that
claims to be a picture, is stored but only offered as a download.
"""

import codecs
import re

IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"})
VIDEOS = frozenset({"video/mp4", "video/webm", "video/ogg", "video/quicktime"})
"""Types that a browser may show from this site. SVG and HTML can hold scripts, so they and all
other types are only offered as downloads."""

# This many bytes of a file are enough to recognize text.
TEXT_BYTES = 1_024
UNKNOWN = "application/octet-stream"
# This many bytes are enough for the type.
HEAD_BYTES = 64
SUFFIXES = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
    "image/avif": ".avif",
    "video/mp4": ".mp4",
    "video/webm": ".webm",
    "video/ogg": ".ogv",
    "video/quicktime": ".mov",
    "audio/mpeg": ".mp3",
    "audio/wav": ".wav",
    UNKNOWN: ".bin",
}
SVG = "an SVG drawing"
XML = "an XML document"
# The first bytes of text with a byte order mark.
MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
BEGINNINGS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    b"OggS": "video/ogg",
    b"ID3": "audio/mpeg",
}
RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
# Brands of an ISO container; other brands count as MP4.
BRANDS = {b"avis": "image/avif", b"qt  ": "video/quicktime"}
NO_FILM = (b"heic", b"heix", b"hevc", b"mif1", b"msf1", b"M4A ", b"jp2 ")


def content_type(head: bytes, told: str = "") -> str:
    """The content type of a file that begins with these bytes (`HEAD_BYTES` are enough).

    `told` is the declared type. It counts only if the file is unknown, and only if browsers don't
    show that type.
    """
    recognized = _look(head)
    told = told.partition(";")[0].strip().lower()
    return told if recognized == UNKNOWN and told and told not in IMAGES | VIDEOS else recognized


def other_than_media(head: bytes) -> str:
    """A description of a file that is certainly not a picture or clip; otherwise empty.

    `head` is its first `TEXT_BYTES`. An error page is an example. An unknown binary file may be a
    picture of an unknown format, so it is not described.
    """
    text = _text(head) if _look(head[:HEAD_BYTES]) == UNKNOWN else ""
    start = text.lstrip().lower()
    if not start:
        return ""
    if "<svg" in start and start.startswith("<"):
        return SVG
    if re.match(r"<(!doctype html|html|head|body|script|title|meta|div|p)\b", start):
        return "an HTML page"
    if "<html" in start and start.startswith("<"):
        return "an HTML page"
    if start.startswith("<?xml"):
        return XML
    if re.match(r"""\{\s*("|\}|$)|\[\s*(["\[{\]\d-]|true|false|null|$)""", start):
        return "a JSON document"
    return "text"


def suffix(content_type: str) -> str:
    """The suffix of a stored file of this type."""
    return SUFFIXES.get(content_type, SUFFIXES[UNKNOWN])


def _text(head: bytes) -> str:
    """These bytes as text; empty if they are not text."""
    for mark, name in MARKS.items():
        if head.startswith(mark):
            return head[len(mark) :].decode(name, "ignore")
    if any(byte < 32 and byte not in b"\t\n\f\r\x1b" for byte in head):
        return ""
    try:
        # An incremental decoder, since the last character may be cut off.
        return codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        letters = sum(byte < 127 for byte in head)
        return head.decode("latin-1") if letters >= max(32, 0.8 * len(head)) else ""


def _look(head: bytes) -> str:
    """The content type by these first bytes, or `UNKNOWN`."""
    for beginning, known_type in BEGINNINGS.items():
        if head.startswith(beginning):
            return known_type
    if head.startswith(b"RIFF"):
        return RIFF.get(head[8:12], UNKNOWN)
    if head[4:8] == b"ftyp":
        brand = head[8:12]
        if b"avif" in head:  # also if it is one of several brands
            return "image/avif"
        return UNKNOWN if brand in NO_FILM else BRANDS.get(brand, "video/mp4")
    if head.startswith(b"\x1a\x45\xdf\xa3") and b"webm" in head:
        return "video/webm"
    return UNKNOWN
