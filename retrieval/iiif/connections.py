"""Connections to addresses that were checked, and reading of answers within bounds."""

import http.client
import re
import socket
import ssl
import zlib
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache

from retrieval.iiif.addresses import FetchError, PageAddress

_PIECE = 1 << 16
_ENDS = ((b"\xff\xd8\xff", b"\xff\xd9"), (b"\x89PNG\r\n", b"IEND\xaeB`\x82"), (b"{", b"}"))  # JPEG, PNG, JSON


class PlainConnection(http.client.HTTPConnection):
    """A connection to addresses that were checked, which can be cut at any time."""

    def __init__(self, address: PageAddress, checked: list[str], connect_seconds: float, seconds: float) -> None:
        super().__init__(address.host, address.port, timeout=connect_seconds)
        self._checked, self._connect_seconds, self._seconds = checked, connect_seconds, seconds
        self.was_cut = False

    def connect(self) -> None:
        """Connect to the first of the addresses that answers."""
        error: OSError | None = None
        for one in self._checked:
            try:
                self.sock = socket.create_connection((one, self.port), self._connect_seconds)
                break
            except OSError as refused:
                error = refused
        else:
            raise error or OSError("no address")
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.was_cut:
            raise TimeoutError
        self._secure()
        self.sock.settimeout(2 * self._seconds)  # not before it is cut

    def _secure(self) -> None:
        """Do nothing without TLS."""

    def cut(self) -> None:
        """Interrupt reading and writing in another thread."""
        self.was_cut = True
        sock = self.sock
        if sock is not None:
            with suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)


class SecureConnection(PlainConnection):
    """The same with TLS, which verifies the name of the host."""

    def _secure(self) -> None:
        wrapped = _tls().wrap_socket(self.sock, server_hostname=self.host, do_handshake_on_connect=False)
        self.sock = wrapped
        wrapped.do_handshake()


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def seconds_to_wait(answer: http.client.HTTPResponse) -> float | None:
    """Seconds that a host asks to wait; None if it does not say."""
    text = (answer.getheader("Retry-After") or "").strip()
    if re.fullmatch("[0-9]{1,9}", text):
        return float(text)
    try:
        return max(0.0, (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def read_answer(answer: http.client.HTTPResponse, most: int, name: str) -> bytes:
    """Read all of an answer; raises FetchError if it is too large, and an HTTPException if it was cut."""
    too_large = FetchError("{name} has more than {size} MB", name=name, size=most >> 20)
    length = answer.length
    if length is not None and length > most:
        raise too_large
    packed = (answer.getheader("Content-Encoding") or "identity").strip().lower()
    if packed not in ("identity", "gzip"):
        raise FetchError("{name} is packed as {packing}, which was not asked for", name=name, packing=repr(packed[:40]))
    unpack = zlib.decompressobj(wbits=31) if packed == "gzip" else None
    content, received = bytearray(), 0
    while piece := answer.read(_PIECE):
        received += len(piece)
        if unpack is not None:
            try:
                piece = unpack.decompress(piece, most + 1 - len(content))
            except zlib.error:
                raise FetchError("{name} is not packed as it says", name=name) from None
        content += piece
        if len(content) > most or received > most or (unpack is not None and unpack.unconsumed_tail):
            raise too_large
    is_cut = received != length if length is not None else _is_cut(content)
    if is_cut or (unpack is not None and not unpack.eof):
        raise http.client.IncompleteRead(b"", None)
    return bytes(content)


def _is_cut(content: bytearray) -> bool:
    """Whether a picture or JSON is truncated: a proxy may end a truncated answer as if it were complete."""
    end = content[-64:].rstrip(b"\0\t\r\n ")
    return any(content.startswith(start) and not end.endswith(last) for start, last in _ENDS)
