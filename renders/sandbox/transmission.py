"""Writes a reply on a socket: whole, late, in pieces, cut short, or not at all."""

import socket
import struct
import sys
import threading
from email.utils import formatdate
from http import HTTPStatus

from .effects import Wire
from .replies import Reply

PIECES = 20
# Linger for 0 seconds: closing the socket sends a reset instead of a polite end.
LINGER = "hh" if sys.platform == "win32" else "ii"
RESET_ON_CLOSE = struct.pack(LINGER, 1, 0)


def encode(reply: Reply, *, close: bool) -> bytes:
    """The reply as the bytes of an HTTP/1.1 message."""
    content = reply.content()
    try:
        phrase = HTTPStatus(reply.status).phrase
    except ValueError:
        phrase = "Unknown"
    lines = [
        f"HTTP/1.1 {reply.status} {phrase}",
        "Server: sume-sandbox",
        f"Date: {formatdate(usegmt=True)}",
        f"Content-Type: {reply.content_type}",
        f"Content-Length: {len(content)}",
        *(f"{name}: {value}" for name, value in reply.headers.items()),
        *(["Connection: close"] if close else []),
    ]
    return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + content


def is_reset(connection: socket.socket) -> bool:
    """Whether `transmit` marked the connection for a reset."""
    try:
        value = connection.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, len(RESET_ON_CLOSE))
    except OSError:
        return False
    return bool(struct.unpack(LINGER, value)[0])


def transmit(connection: socket.socket, message: bytes, wire: Wire, stop: threading.Event) -> bool:
    """Send the message as `wire` says; whether the connection can serve another request.

    `stop` ends every wait early. Raises OSError when the other side is gone.
    """
    if wire.reset:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        return False
    if wire.wait_seconds and stop.wait(wire.wait_seconds):
        return False
    if wire.cut_short:
        connection.sendall(message[: len(message) - max(1, len(message) // 4)])
        return False
    if not wire.spread_seconds:
        connection.sendall(message)
        return True
    size = -(-len(message) // PIECES)
    for start in range(0, len(message), size):
        connection.sendall(message[start : start + size])
        if stop.wait(wire.spread_seconds / PIECES):
            return False
    return True
