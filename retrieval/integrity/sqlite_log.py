"""The write-ahead log of an SQLite file, checked for damage.

SQLite takes the first frame whose checksum is wrong for the end of the log, and all that was committed after it is
lost without a word. So the log that a killed process leaves is looked through before SQLite opens it.
Format: https://www.sqlite.org/fileformat2.html, section 4.
"""

import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_HEADER, _FRAME = 32, 24  # bytes
_MAGIC = 0x377F0682  # with 1 added: the checksums' words are big endian
_PAGES = {1 << power for power in range(9, 17)}  # bytes
_LOOKS, _PAUSE = 5, 0.2  # how often a log is looked at that may be written meanwhile, and seconds between


class _Frame(NamedTuple):
    salts: bytes
    claimed: tuple[int, int]  # the checksum that it says it has
    computed: tuple[int, int]  # from that of the frame before


def is_damaged(log: Path) -> bool:
    """Whether a write-ahead log has a frame that was written whole and is not what was written.

    What a killed process wrote in part belongs to no commit, and neither does what an earlier use of the file has left
    behind the last frame: that is no damage.

    Parameters
    ----------
    log : Path
        The file ``…-wal``; where it is missing or empty there is nothing to be damaged.
    """
    before = None
    for look in range(_LOOKS):
        found = _first_bad(log)
        if found is None:
            return False
        if found == before:
            return True
        before = found  # it may have been read while another process wrote: look again
        if look < _LOOKS - 1:
            time.sleep(_PAUSE)
    return False


def _first_bad(log: Path) -> tuple[int, bytes] | None:
    """Place of the first damaged frame, and the log's header; None where there is none."""
    try:
        contents = log.read_bytes()
    except FileNotFoundError:
        return None
    if len(contents) < _HEADER:
        return None
    header = contents[:_HEADER]
    magic, _, page = struct.unpack(">III", header[:12])
    order = ">" if magic & 1 else "<"
    sums = _checksum(header[:24], (0, 0), order)
    if magic & ~1 != _MAGIC or page not in _PAGES or sums != struct.unpack(">II", header[24:]):
        return (0, header) if len(contents) > _HEADER else None
    salts = header[16:24]
    suspect: int | None = None
    for at, frame in enumerate(_frames(contents, page, sums, order), start=1):
        if frame.salts != salts:
            # Of an earlier use: it has another first salt, and a second one that is random.
            half = frame.salts[:4] == salts[:4] or frame.salts[4:] == salts[4:]
            if suspect is None:
                suspect = at
            if half:
                return suspect, header
        elif suspect is not None:
            return suspect, header  # a frame of this use comes after one that is none
        elif frame.claimed != frame.computed:
            return at, header
    return None


def _frames(contents: bytes, page: int, sums: tuple[int, int], order: str) -> Iterator[_Frame]:
    """The whole frames of a log, each checked from what the one before says of itself."""
    for start in range(_HEADER, len(contents) - _FRAME - page + 1, _FRAME + page):
        head = contents[start : start + _FRAME]
        computed = _checksum(contents[start + _FRAME : start + _FRAME + page], _checksum(head[:8], sums, order), order)
        sums = struct.unpack(">II", head[16:])
        yield _Frame(head[8:16], sums, computed)


def _checksum(contents: bytes, sums: tuple[int, int], order: str) -> tuple[int, int]:
    first, second = sums
    words = iter(struct.unpack(f"{order}{len(contents) // 4}I", contents))
    for word in words:
        first = (first + word + second) & 0xFFFFFFFF
        second = (second + next(words) + first) & 0xFFFFFFFF
    return first, second
