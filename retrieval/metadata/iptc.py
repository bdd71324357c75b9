"""IPTC-IIM metadata: the records that archives and agencies write into photos (IIM specification 4.2, 2014)."""

from collections.abc import Iterator

from retrieval.metadata.combining import SourceTexts
from retrieval.metadata.dates import read_date, write_time
from retrieval.metadata.fields import SOURCES

_RESOURCE = 0x0404  # of Photoshop's image resources: the IPTC-NAA record
_UTF8_MARKER = b"\x1b%G"  # 1:90, ISO 2022: the rest is UTF-8
_MOST_DATASETS = 5000
_DATE, _TIME = (2, 55), (2, 60)
_TAKEN = "iptc:2:55"


def read_iptc(data: bytes) -> SourceTexts:
    """Read a block of IPTC-IIM datasets (0x1C, record, number, length, value), up to the first damage.

    Returns texts by record and number, such as ``iptc:2:5``; the time is appended to the date.
    """
    if not data:
        return {}
    found: dict[tuple[int, int], list[bytes]] = {}
    for key, value in _datasets(data):
        found.setdefault(key, []).append(value)
    utf8 = found.get((1, 90), [b""])[0].startswith(_UTF8_MARKER)
    texts = {key: [_decode(value, utf8) for value in values] for key, values in found.items()}
    by_source = {f"iptc:{record}:{number}": some for (record, number), some in texts.items()}
    date, time = (next(iter(texts.get(key, ())), "") for key in (_DATE, _TIME))
    taken = _taken(date, time)
    return {key: some for key, some in by_source.items() if key in SOURCES} | {_TAKEN: [taken] if taken else []}


def iptc_of_resources(data: bytes) -> bytes:
    """Find the IPTC block in Photoshop's image resources (APP13 of a JPEG file, tag 34377 of TIFF); b"" if missing."""
    place = 0
    while data[place : place + 4] == b"8BIM" and place + 12 <= len(data):
        number = int.from_bytes(data[place + 4 : place + 6], "big")
        name = 1 + data[place + 6]
        place += 6 + name + name % 2
        length = int.from_bytes(data[place : place + 4], "big")
        place += 4
        if number == _RESOURCE:
            return data[place : place + length]
        place += length + length % 2
    return b""


def _datasets(data: bytes) -> Iterator[tuple[tuple[int, int], bytes]]:
    place = 0
    for _ in range(_MOST_DATASETS):
        if data[place : place + 1] != b"\x1c" or place + 5 > len(data):
            return
        record, number = data[place + 1], data[place + 2]
        length = int.from_bytes(data[place + 3 : place + 5], "big")
        place += 5
        if length & 0x8000:  # the length of the length: only values of more than 32,767 bytes need that
            size = length & 0x7FFF
            if size > 4:
                return
            length = int.from_bytes(data[place : place + size], "big")
            place += size
        if place + length > len(data):
            return
        yield (record, number), data[place : place + length]
        place += length


def _decode(value: bytes, utf8: bool) -> str:
    if utf8:
        return value.decode("utf-8", "replace")
    # Many programs write UTF-8 without the marker; texts in other encodings are hardly ever valid UTF-8.
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _taken(date: str, time: str) -> str | None:
    if len(date) != 8 or not date.isascii() or not date.isdigit():
        return None
    day = read_date(f"{date[:4]}-{date[4:6]}-{date[6:]}")
    clock = time[:6]
    if day is None or len(day) < 10 or len(clock) < 6 or not clock.isascii() or not clock.isdigit():
        return day
    return day + write_time(int(clock[:2]), int(clock[2:4]), int(clock[4:]))
