"""Files as replies to browsers: whole, in part (RFC 9110, Range), or not modified (ETag).

Players seek in clips by requesting parts, and Safari plays nothing without them. Only a single
range is supported; for several, the whole file is sent, as the standard allows.
"""

import re
from collections.abc import Iterator
from typing import IO

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response

CHUNK_BYTES = 65_536
ONE_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)


class Unsatisfiable(Exception):
    """The file has no such part."""


class Part:
    """A range of bytes of an open file, read while it is sent; closing it closes the file."""

    def __init__(self, file: IO[bytes], start: int, length: int) -> None:
        self._file = file
        self._start = start
        self._length = length

    def __iter__(self) -> Iterator[bytes]:
        if self._start:
            self._file.seek(self._start)
        left = self._length
        while left > 0 and (chunk := self._file.read(min(CHUNK_BYTES, left))):
            left -= len(chunk)
            yield chunk

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def not_modified(request: HttpRequest, etag: str) -> HttpResponseBase | None:
    """304 if the browser has this file already, 412 if it wants another one (If-Match), or None."""
    return get_conditional_response(request, etag=etag) if etag else None


def reply(request: HttpRequest, file: IO[bytes], size: int, etag: str) -> HttpResponseBase:
    """The file, or the requested part of it. The reply closes the file."""
    try:
        part = _requested(request, size, etag)
    except Unsatisfiable:
        file.close()
        return HttpResponse(status=416, headers={"Content-Range": f"bytes */{size}"})
    start, length = part or (0, size)
    response = StreamingHttpResponse(Part(file, start, length), status=206 if part else 200)
    if part:
        response["Content-Range"] = f"bytes {start}-{start + length - 1}/{size}"
    response["Accept-Ranges"] = "bytes"
    response["Content-Length"] = str(length)
    return response


def _requested(request: HttpRequest, size: int, etag: str) -> tuple[int, int] | None:
    """The requested part; None for the whole file, also if the file has changed (If-Range)."""
    unchanged = request.headers.get("If-Range", etag) == etag
    if request.method != "GET" or not unchanged:
        return None
    return find(request.headers.get("Range", ""), size)


def find(header: str, size: int) -> tuple[int, int] | None:
    """The first byte and the length that a Range header asks for; None for the whole file.

    Raises `Unsatisfiable`.
    """
    match = ONE_RANGE.fullmatch(header.replace(" ", "").lower())
    if not match or match[1] == match[2] == "":
        return None
    if not match[1]:
        start, end = max(0, size - int(match[2])), size - 1
    else:
        start = int(match[1])
        end = min(int(match[2]), size - 1) if match[2] else size - 1
        if match[2] and int(match[2]) < start:
            return None
    if start >= size:
        raise Unsatisfiable
    return start, end - start + 1
