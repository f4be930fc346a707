"""What a file is, by its first bytes: what anybody says about it counts for nothing.

Only what is known here is ever shown by a browser from this site. Anything else, a page that
calls itself a picture for instance, is kept, and is a download.
"""

import codecs
import re

IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"})
VIDEOS = frozenset({"video/mp4", "video/webm", "video/ogg", "video/quicktime"})
"""What a browser may show from this site. Anything else (SVG and HTML can hold scripts) is only
ever offered as a download."""

# So much of a file tells text from anything else.
TEXT_BYTES = 1_024
UNKNOWN = "application/octet-stream"
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
# How text in other encodings begins.
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
# The brand of an ISO container; others of it are taken for MP4.
BRANDS = {b"avis": "image/avif", b"qt  ": "video/quicktime"}
NO_FILM = (b"heic", b"heix", b"hevc", b"mif1", b"msf1", b"M4A ", b"jp2 ")


def content_type(head: bytes, told: str = "") -> str:
    """The content type of a file that begins with these bytes (`HEAD_BYTES` are enough).

    `told` is believed only where the file is unknown, and only if no browser shows that.
    """
    found = _look(head)
    told = told.partition(";")[0].strip().lower()
    return told if found == UNKNOWN and told and told not in IMAGES | VIDEOS else found


def other_than_media(head: bytes) -> str:
    """What a file is that certainly holds no picture or clip, in words; else empty.

    `head` is its first `TEXT_BYTES`. A page of errors, for instance. An unknown binary file may be
    a picture of a kind that is not known here.
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


def _text(head: bytes) -> str:
    """These bytes as text; empty where they are none."""
    for mark, name in MARKS.items():
        if head.startswith(mark):
            return head[len(mark) :].decode(name, "ignore")
    if any(byte < 32 and byte not in b"\t\n\f\r\x1b" for byte in head):
        return ""
    try:
        # The last character may be cut off.
        return codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        letters = sum(byte < 127 for byte in head)
        return head.decode("latin-1") if letters >= max(32, 0.8 * len(head)) else ""


def _look(head: bytes) -> str:
    for beginning, found in BEGINNINGS.items():
        if head.startswith(beginning):
            return found
    if head.startswith(b"RIFF"):
        return RIFF.get(head[8:12], UNKNOWN)
    if head[4:8] == b"ftyp":
        brand = head[8:12]
        if b"avif" in head:  # also where it is one of several
            return "image/avif"
        return UNKNOWN if brand in NO_FILM else BRANDS.get(brand, "video/mp4")
    if head.startswith(b"\x1a\x45\xdf\xa3") and b"webm" in head:
        return "video/webm"
    return UNKNOWN


def suffix(content_type: str) -> str:
    """How the name of a stored file of this type ends."""
    return SUFFIXES.get(content_type, SUFFIXES[UNKNOWN])
