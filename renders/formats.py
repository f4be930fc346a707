"""What a file is, by its first bytes: what anybody says about it counts for nothing.

Only what is known here is ever shown by a browser from this site. Anything else, a page that
calls itself a picture for instance, is kept, and is a download.
"""

IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"})
VIDEOS = frozenset({"video/mp4", "video/webm", "video/ogg", "video/quicktime"})
"""What a browser may show from this site. Anything else (SVG and HTML can hold scripts) is only
ever offered as a download."""

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
