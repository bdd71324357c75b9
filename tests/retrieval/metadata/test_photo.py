"""Metadata of photos' files, written by Pillow, or by hand as the specifications say."""

import io
import os
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.metadata.containers import find_blocks
from retrieval.metadata.dates import after, beginnings, date_of_name, read_date, read_day
from retrieval.metadata.fields import Metadata
from retrieval.metadata.iptc import read_iptc
from retrieval.metadata.photo import read_metadata
from retrieval.metadata.text import clean, clean_position, clean_tags
from retrieval.metadata.xmp import read_xmp
from tests.support.hostile import hostile_files
from tests.support.metadata_files import (
    DATE_TIME,
    DESCRIPTION,
    DIGITISED,
    MAKE,
    MODEL,
    ORIGINAL,
    exif,
    iptc,
    jpeg,
    listed,
    picture,
    png,
    resources,
    tiff,
    xmp,
)

PARIS = {1: "N", 2: (48.0, 51.0, 30.24), 3: "E", 4: (2.0, 17.0, 40.2)}
WHOLE = exif(
    {MAKE: "NIKON CORPORATION", MODEL: "NIKON D70", DATE_TIME: "2011:11:11 11:11:11"},
    {ORIGINAL: "2009:05:17 14:30:05", DIGITISED: "2010:01:01 00:00:00"},
    PARIS,
)
READ = Metadata("2009-05-17T14:30:05", "NIKON D70", 48.8584, 2.2945)
ARCHIVE = iptc((1, 90, b"\x1b%G"), (2, 5, "Straße".encode()), (2, 25, b"roof"), (2, 25, "Kölner Dom".encode()))


@pytest.fixture
def read(tmp_path: Path) -> Any:
    """Reads metadata from the bytes of a file."""

    def of(data: bytes) -> Metadata:
        (tmp_path / "photo").write_bytes(data)
        return read_metadata(tmp_path / "photo")

    return of


def _saved(format: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    picture(64).save(buffer, format, **options)
    return buffer.getvalue()


def _block(one: Any) -> bytes:
    return one.tobytes()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "data",
    [
        jpeg(exif=WHOLE),
        _saved("MPO", exif=WHOLE),
        tiff(WHOLE),
        tiff(WHOLE, big=True),
        _saved("PNG", exif=WHOLE),
        png(_block(WHOLE)),
        png(_block(WHOLE).removeprefix(b"Exif\0\0"), late=True),
        _saved("WEBP", exif=WHOLE),
        _saved("AVIF", exif=WHOLE),
    ],
    ids=["jpeg", "mpo", "tiff", "bigtiff", "png", "png with a head", "png, late", "webp", "avif"],
)
def test_exif_is_read_from_every_format(read: Any, data: bytes) -> None:
    found = read(data)
    assert found == READ


def test_heic_needs_no_decoder(read: Any) -> None:
    heif = pytest.importorskip("pillow_heif")
    written = heif.from_pillow(picture(64))
    buffer = io.BytesIO()
    written.save(buffer, exif=_block(WHOLE), xmp=xmp(f"<dc:subject>{listed('Bag', 'dom')}</dc:subject>"))
    assert read(buffer.getvalue()) == Metadata(READ.taken, READ.camera, READ.latitude, READ.longitude, None, ("dom",))


XMP = xmp(
    f"<dc:title>{listed('Alt', 'Brücke', 'Bridge &amp; river', 'Pont')}</dc:title>"
    f"<dc:subject>{listed('Bag', 'bridge', 'Rhine', 'BRIDGE')}</dc:subject>",
    'photoshop:DateCreated="1923-05" xmp:CreateDate="2015-02-03T10:00:00.123+01:00" '
    'tiff:Make="Epson" tiff:Model="V850" exif:GPSLatitude="48,51.504N" exif:GPSLongitude="2,17,40.2W"',
)
BRIDGE = Metadata("1923-05", "Epson V850", 48.8584, -2.2945, "Bridge & river", ("bridge", "Rhine"))


@pytest.mark.parametrize(
    "data",
    [
        jpeg(xmp=XMP),
        png(xmp_block=XMP),
        png(xmp_block=XMP, compressed=True, late=True),
        tiff(exif(), xmp_block=XMP),
        _saved("WEBP", xmp=XMP),
        _saved("AVIF", xmp=XMP),
    ],
    ids=["jpeg", "png", "png, compressed", "tiff", "webp", "avif"],
)
def test_xmp_is_read_from_every_format(read: Any, data: bytes) -> None:
    assert read(data) == BRIDGE


def test_xmp_may_be_in_elements_and_in_other_encodings() -> None:
    elements = xmp(
        "<dc:title>plain</dc:title><dc:description><rdf:Alt><rdf:li>said</rdf:li></rdf:Alt></dc:description>"
        "<photoshop:DateCreated>1923</photoshop:DateCreated>"
        "<exif:DateTimeOriginal>2001-02-03T04:05</exif:DateTimeOriginal>"
        "<tiff:Make>A</tiff:Make><dc:subject><rdf:Seq><rdf:li> one </rdf:li><rdf:li/></rdf:Seq></dc:subject>"
    )
    wanted = {
        "xmp:dc:title": ["plain"],
        "xmp:dc:description": ["said"],
        "xmp:photoshop:DateCreated": ["1923"],
        "xmp:exif:DateTimeOriginal": ["2001-02-03T04:05"],
        "xmp:tiff:Make": ["A"],
        "xmp:dc:subject": ["one"],
    }
    assert read_xmp(elements) == wanted
    assert read_xmp(elements.decode().encode("utf-16")) == wanted
    assert read_xmp(elements + bytes(2000)) == wanted  # padding
    # What other packets within the packet say is not about this photo.
    assert read_xmp(xmp(f"<dc:creator>{elements.decode().partition('?>')[2]}</dc:creator>")) == {}


def test_entities_of_xmp_are_never_expanded(read: Any) -> None:
    bomb = b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>' + XMP.replace(b"Bridge", b"&b;")
    outside = b'<!DOCTYPE x [<!ENTITY b SYSTEM "file:///etc/passwd">]>' + XMP.replace(b"Bridge", b"&b;")
    assert read(jpeg(xmp=bomb)) == read(jpeg(xmp=outside)) == Metadata()
    assert read(jpeg(xmp=b"<?xml version='1.0' encoding='klingon'?>" + XMP[XMP.index(b"<x:") :])) == Metadata()


def test_xmp_that_is_too_deep_or_too_large_is_left(read: Any) -> None:
    deep = xmp("<dc:creator>" + "<dc:creator>" * 100_000 + "</dc:creator>" * 100_000 + "</dc:creator>")
    assert read_xmp(deep) == {}
    assert read_xmp(XMP + bytes(5 << 20)) == {}
    assert read(png(xmp_block=xmp("<dc:title>" + "x" * (5 << 20) + "</dc:title>"), compressed=True)) == Metadata()
    long = read(jpeg(xmp=xmp(f"<dc:title>{'x' * 20_000}</dc:title>")))
    assert long.title == "x" * 1000


def test_iptc_is_read_from_jpeg_and_tiff(read: Any) -> None:
    dated = ARCHIVE + iptc((2, 55, b"19230000"), (2, 60, b"120000+0100"))
    wanted = Metadata("1923", None, None, None, "Straße", ("roof", "Kölner Dom"))
    assert read(jpeg(iptc=dated)) == wanted
    assert read(tiff(exif(), iptc_block=dated)) == wanted
    resourced = exif()
    resourced[34377] = resources(dated)
    assert read(tiff(resourced)) == wanted


def test_iptc_has_its_time_its_caption_and_its_codes() -> None:
    block = iptc(
        (2, 5, "Stra\xdfe".encode("latin-1")), (2, 120, b"said"), (2, 55, b"20090517"), (2, 60, b"143005+0200")
    )
    found = read_iptc(block)
    assert (found["iptc:2:5"], found["iptc:2:120"], found["iptc:2:55"]) == (
        ["Straße"],
        ["said"],
        ["2009-05-17T14:30:05"],
    )
    long = b"\x1c\x02\x78\x80\x04" + (40_000).to_bytes(4, "big") + b"y" * 40_000
    assert read_iptc(long)["iptc:2:120"] == ["y" * 40_000]
    for length in range(len(block)):
        read_iptc(block[:length])  # cut off anywhere
    assert read_iptc(block[:-1])["iptc:2:55"] == ["2009-05-17"]
    assert read_iptc(iptc((2, 55, b"20091317")))["iptc:2:55"] == []


def test_a_date_that_people_gave_comes_before_that_of_the_scanner(read: Any) -> None:
    scanned = exif({DATE_TIME: "2011:11:11 11:11:11"}, {DIGITISED: "2010:01:01 00:00:00"})
    assert read(jpeg(exif=scanned)).taken == "2010-01-01T00:00:00"
    assert read(jpeg(exif=scanned, xmp=XMP)).taken == "1923-05"
    assert read(jpeg(exif=scanned, xmp=XMP, iptc=iptc((2, 55, b"19220000")))).taken == "1922"
    assert read(jpeg(exif=WHOLE, xmp=XMP)).taken == READ.taken
    assert read(jpeg(exif=exif({DATE_TIME: "2011:11:11 11:11:11"}))).taken == "2011-11-11T11:11:11"


def test_titles_and_tags_of_several_sources_are_put_together(read: Any) -> None:
    found = read(jpeg(xmp=XMP, iptc=ARCHIVE))
    assert (found.title, found.tags) == ("Bridge & river", ("bridge", "Rhine", "roof", "Kölner Dom"))
    assert read(jpeg(iptc=iptc((2, 120, b"said")), exif=exif({DESCRIPTION: "described"}))).title == "said"
    assert read(jpeg(exif=exif({DESCRIPTION: "described"}))).title == "described"
    assert read(jpeg(exif=exif({DESCRIPTION: "OLYMPUS DIGITAL CAMERA         "}))).title is None
    subject = "a keyword that is longer than the sixty-four bytes that IPTC keeps of it"
    cut = iptc((2, 25, subject[:64].encode()), (2, 25, b"a keyword"))
    tagged = xmp(f"<dc:subject>{listed('Bag', subject)}</dc:subject>")
    assert read(jpeg(xmp=tagged, iptc=cut)).tags == (subject, "a keyword")


@pytest.mark.parametrize(
    ("gps", "position"),
    [
        ({1: "S", 2: (33.0, 51.0, 24.0), 3: "E", 4: (151.0, 12.0, 54.0)}, (-33.8566667, 151.215)),
        ({1: "N", 2: (48.8584, 0.0, 0.0), 3: "W", 4: (2.5, 0.0, 0.0)}, (48.8584, -2.5)),
        ({1: "N", 2: (91.0, 0.0, 0.0), 3: "W", 4: (2.5, 0.0, 0.0)}, (None, None)),
        ({1: "N", 2: (48.0, 0.0, 0.0), 3: "E", 4: (180.0, 0.0, 1.0)}, (None, None)),
        ({1: "X", 2: (48.0, 0.0, 0.0), 3: "E", 4: (18.0, 0.0, 1.0)}, (None, None)),
        ({1: "N", 2: (48.0, 0.0, 0.0)}, (None, None)),
        ({1: "N", 2: (0.0, 0.0, 0.0), 3: "E", 4: (0.0, 0.0, 0.0)}, (None, None)),  # no fix
        ({2: (48.0, 0.0, 0.0), 4: (18.0, 0.0, 1.0)}, (None, None)),
    ],
)
def test_positions_that_are_none_are_left_out(read: Any, gps: dict[int, Any], position: Any) -> None:
    found = read(jpeg(exif=exif(gps=gps)))
    assert (found.latitude, found.longitude) == (pytest.approx(position[0], abs=1e-6), pytest.approx(position[1]))


def test_a_zero_denominator_is_no_position(read: Any) -> None:
    good = _block(exif(gps=PARIS))
    place = (
        good.index((48).to_bytes(4, "big") + (1).to_bytes(4, "big"))
        if b"MM" in good[:10]
        else good.index((48).to_bytes(4, "little") + (1).to_bytes(4, "little"))
    )
    bad = good[: place + 4] + bytes(4) + good[place + 8 :]
    assert read(jpeg(exif=good)).latitude == READ.latitude
    assert read(jpeg(exif=bad)).latitude is None
    assert clean_position(float("nan"), 1) == clean_position(1, float("inf")) == (None, None)


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        ("1923", "1923"),
        ("1923-05", "1923-05"),
        ("1923-5-7", "1923-05-07"),
        ("1923/05/17", "1923-05-17"),
        ("17.05.1923", "1923-05-17"),
        ("7.5.1923 9:30", "1923-05-07T09:30:00"),
        ("7.5.1923 09:30", "1923-05-07T09:30:00"),
        ("05.1923", "1923-05"),
        ("19230517", "1923-05-17"),
        ("1923:05:17 14:30:00", "1923-05-17T14:30:00"),
        ("1923-05-17T14:30:00.25Z", "1923-05-17T14:30:00"),
        ("1923-05-17T14:30+01:00", "1923-05-17T14:30:00"),
        ("2009:05:17 25:61:00", "2009-05-17"),
        ("1923:00:00 00:00:00", "1923"),
        ("1923:05:   ", "1923-05"),
        ("0000:00:00 00:00:00", None),
        ("    :  :     :  :  ", None),
        ("0001-01-01T00:00:00", None),
        ("1923-13", None),
        ("1923-02-29", None),
        ("1924-02-29", "1924-02-29"),
        ("1923-00-17", None),
        ("٣٤٥٦", None),
        ("circa 1923", None),
        ("2009:05:17 02:15:38下午", "2009-05-17T14:15:38"),
        ("2009:05:17 14:15:38下午", "2009-05-17T14:15:38"),
        ("2009:05:17 下午 2:15:38", "2009-05-17T14:15:38"),
        ("2009:05:17 오전 12:15:38", "2009-05-17T00:15:38"),
        ("2009:05:17 02:40:24 PM", "2009-05-17T14:40:24"),
        ("5/17/2009 2:40\u202fPM", "2009-05-17T14:40:00"),
        ("2009:05:17 12:40:24 am", "2009-05-17T00:40:24"),
        ("2009:05:17 14:30:05 DST", "2009-05-17T14:30:05"),
        ("٢٠٠٩:٠٥:١٧ ٠٢:٣٠:٠٥ م", "2009-05-17T14:30:05"),
        ("۲۰۰۹-۰۵-۱۷", "2009-05-17"),
        ("2009:05:17 at noon", None),
        ("1" * 100_000, None),
        ("", None),
    ],
)
def test_dates_are_read_as_they_are_written(written: str, read_as: str | None) -> None:
    assert read_date(written) == read_as
    if read_as is not None:
        assert read_date(read_as) == read_as
        assert all(read_as.startswith(one) for one in beginnings(read_as))
        assert read_as < after(read_as)


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        ("2009:05:17 at noon", "2009-05-17"),
        ("2009:05:17 1\ufffd:30:05", "2009-05-17"),
        ("2009:05:17 14:30:05 half past", "2009-05-17"),
        ("2009:13:17 at noon", None),
        ("2009:05:17", "2009-05-17"),
        ("around 2009", None),
    ],
)
def test_a_file_keeps_the_day_of_a_date_whose_time_is_not_understood(
    read: Any, written: str, read_as: str | None
) -> None:
    assert read_day(written) == read_as
    assert read(jpeg(xmp=xmp(attributes=f'photoshop:DateCreated="{written}"'))).taken == read_as


def test_the_date_of_the_receiver_of_positions_is_better_than_that_of_the_last_change(read: Any) -> None:
    assert read(jpeg(exif=exif(gps={29: "2009:05:17"}))).taken == "2009-05-17"
    assert read(jpeg(exif=exif({DATE_TIME: "2011:11:11 11:11:11"}, gps={29: "2009:05:17"}))).taken == "2009-05-17"
    assert read(jpeg(exif=exif(times={DIGITISED: "2010:01:01 00:00:00"}, gps={29: "2009:05:17"}))).taken[:4] == "2010"


@pytest.mark.parametrize(
    ("written", "position"),
    [
        (
            'exif:GPSLatitude="33,51.4" exif:GPSLatitudeRef="S" exif:GPSLongitude="151,12,54" exif:GPSLongitudeRef="E"',
            "SE",
        ),
        ('exif:GPSLatitude="-33.8566667" exif:GPSLongitude="151.215"', "SE"),
        ('exif:GPSLatitude="33.8566667S" exif:GPSLongitude="151.215 E"', "SE"),
        ('exif:GPSLatitude="33.8566667" exif:GPSLatitudeRef="South" exif:GPSLongitude="151.215°"', "SE"),
        ('exif:GPSLatitude="-33.8566667" exif:GPSLatitudeRef="S" exif:GPSLongitude="151.215E"', "SE"),
        ('exif:GPSLatitude="33.8566667" exif:GPSLongitude="-151.215"', "NW"),
        ('exif:GPSLatitude="-33.8566667N" exif:GPSLongitude="151.215E"', ""),
        ('exif:GPSLatitude="33,51.4" exif:GPSLongitude="151,12.9"', ""),
        ('exif:GPSLatitude="33.8566667E" exif:GPSLongitude="151.215N"', ""),
        ('exif:GPSLatitude="33.8566667"', ""),
    ],
)
def test_positions_in_xmp_have_their_side_in_many_ways(read: Any, written: str, position: str) -> None:
    found = read(jpeg(xmp=xmp(attributes=written)))
    if not position:
        assert (found.latitude, found.longitude) == (None, None)
        return
    north, east = (1 if position[0] == "N" else -1), (1 if position[1] == "E" else -1)
    assert (found.latitude, found.longitude) == (
        pytest.approx(33.8566667 * north, abs=1e-6),
        pytest.approx(151.215 * east, abs=1e-6),
    )


def test_what_windows_writes_is_read(read: Any) -> None:
    windows = {
        0x9C9B: "Brücke 橋\0".encode("utf-16-le"),
        0x9C9C: "Seen from the mill\0".encode("utf-16-le"),
        0x9C9E: "Rhine;Köln; bridge \0".encode("utf-16-le"),
        0x4746: 4,
    }
    found = read(jpeg(exif=exif(windows)))
    assert (found.title, found.caption, found.tags, found.rating) == (
        "Brücke 橋",
        "Seen from the mill",
        ("Rhine", "Köln", "bridge"),
        4,
    )
    assert read(jpeg(exif=exif({0x9C9B: b"\xff" * 7, 0x9C9E: b"", 0x4746: 99}))).rating is None


def test_hierarchical_subjects_are_tags_level_by_level(read: Any) -> None:
    packet = xmp(
        f"<dc:subject>{listed('Bag', 'Rome')}</dc:subject>"
        f"<lr:hierarchicalSubject>{listed('Bag', 'Places|Italy|Rome', 'Albums|Holiday')}</lr:hierarchicalSubject>"
        f"<digiKam:TagsList>{listed('Seq', 'People/Anna', '_Digikam_Internal_Tags_/Scanned')}</digiKam:TagsList>"
    )
    assert read(jpeg(xmp=packet)).tags == ("Rome", "Places", "Italy", "People", "Anna")


PEOPLE = (
    '<mwg-rs:Regions rdf:parseType="Resource"><mwg-rs:RegionList><rdf:Bag>'
    '<rdf:li><rdf:Description mwg-rs:Name="Anna Weiß" mwg-rs:Type="Face"><mwg-rs:Area/></rdf:Description></rdf:li>'
    '<rdf:li rdf:parseType="Resource"><mwg-rs:Name>Rex</mwg-rs:Name><mwg-rs:Type>Pet</mwg-rs:Type></rdf:li>'
    '<rdf:li rdf:parseType="Resource"><mwg-rs:Type>Focus</mwg-rs:Type><mwg-rs:Name>AF</mwg-rs:Name></rdf:li>'
    '<rdf:li rdf:parseType="Resource"><mwg-rs:Type>Face</mwg-rs:Type></rdf:li>'
    "</rdf:Bag></mwg-rs:RegionList></mwg-rs:Regions>"
)


def test_people_who_were_marked_are_tags(read: Any) -> None:
    packet = xmp(f"{PEOPLE}<dc:subject>{listed('Bag', 'garden')}</dc:subject><dc:title>Feast</dc:title>")
    found = read(jpeg(xmp=packet))
    assert (found.tags, found.title) == (("garden", "Anna Weiß", "Rex"), "Feast")


@pytest.mark.parametrize(
    ("written", "rating"), [("5", 5), ("3.0", 3), ("0", None), ("-1", None), ("6", None), ("good", None)]
)
def test_ratings_are_one_to_five_stars(read: Any, written: str, rating: int | None) -> None:
    assert read(jpeg(xmp=xmp(attributes=f'xmp:Rating="{written}"'))).rating == rating


def test_a_caption_stands_beside_the_title(read: Any) -> None:
    both = xmp("<dc:title>Bridge</dc:title><dc:description>Seen from the mill</dc:description>")
    found = read(jpeg(xmp=both))
    assert (found.title, found.caption, found.favourite) == ("Bridge", "Seen from the mill", False)
    assert read(jpeg(iptc=iptc((2, 120, b"said")))).caption == "said"
    assert read(jpeg(xmp=xmp(attributes='xmpDM:good="True"'))).favourite is True


def test_texts_are_clean() -> None:
    assert clean("a\0b\x1b[31m\r\nc\u202ed\ud800", 100) == "a b [31m c d\\ud800"
    assert clean("Cafe\u0301", 100) == "Café"
    assert clean("x" * 10**6, 10) == "x" * 10
    assert clean_tags(["Dom", " dom ", "", "\0", "Straße", "STRASSE"]) == ("Dom", "Straße")
    assert len(clean_tags(str(i) for i in range(10_000))) == 200


@pytest.mark.slow
def test_what_is_no_photo_has_no_metadata(tmp_path: Path, read: Any) -> None:
    assert read_metadata(tmp_path / "none.jpg") == read_metadata(tmp_path) == Metadata()
    assert read_metadata(Path("a\0b.jpg")) == read_metadata(Path("\udcff.jpg")) == Metadata()
    os.mkfifo(tmp_path / "pipe.jpg")
    assert read_metadata(tmp_path / "pipe.jpg") == Metadata()
    for name, data in hostile_files().items():
        assert read(data) == Metadata(), name


GOOD = [
    jpeg(exif=WHOLE, xmp=XMP, iptc=ARCHIVE),
    png(_block(WHOLE), XMP, compressed=True),
    tiff(WHOLE, ARCHIVE, XMP),
    _saved("WEBP", exif=WHOLE, xmp=XMP),
    _saved("AVIF", exif=WHOLE, xmp=XMP),
]


@given(
    which=st.integers(0, len(GOOD) - 1),
    edits=st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=6)), max_size=8),
    length=st.floats(0.05, 1),
)
def test_no_damage_raises_and_all_that_is_read_is_clean(
    tmp_path_factory: pytest.TempPathFactory, which: int, edits: list[tuple[float, bytes]], length: float
) -> None:
    data = bytearray(GOOD[which][: int(length * len(GOOD[which])) + 1])
    for share, replacement in edits:
        place = int(share * (len(data) - 1))
        data[place : place + len(replacement)] = replacement
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(data)
    found = read_metadata(path)
    assert found.taken is None or read_date(found.taken) == found.taken
    for text in (found.title, found.camera, *found.tags):
        assert text is None or (text and clean(text, 1000) == text)
    assert (found.latitude is None) == (found.longitude is None)
    assert found.latitude is None or (abs(found.latitude) <= 90 and abs(found.longitude or 0) <= 180)


def _ifd(entries: list[bytes]) -> bytes:
    return b"II*\0\x08\0\0\0" + len(entries).to_bytes(2, "little") + b"".join(entries) + bytes(4)


def _entry(tag: int, kind: int, count: int, place: int) -> bytes:
    return (
        tag.to_bytes(2, "little")
        + kind.to_bytes(2, "little")
        + count.to_bytes(4, "little")
        + place.to_bytes(4, "little")
    )


def test_hostile_directories_take_little_time_and_memory(read: Any) -> None:
    # Pointers to itself, thousands of tags on the same bytes, counts beyond the file.
    loop = _ifd([_entry(0x8769, 4, 1, 8), _entry(0x8825, 4, 1, 8)])
    many = _ifd([_entry(0x9999, 2, 900_000, 8), *[_entry(0x010F, 7, 900_000, 8)] * 4000]) + b"\0" * 1_000_000
    beyond = _ifd([_entry(0x010F, 2, 0xFFFFFFFF, 0xFFFFFFF0), _entry(0x0132, 2, 20, 0xFFFFFFFF)])
    parts = b"\0\0\0\x14ftypavif\0\0\0\0avif" + b"\0\0\0\x20meta\0\0\0\0\0\0\0\x14iloc\0\0\0\0\0\0\xff\xff\0\0\0\0"
    bombs = b"".join(png(xmp_block=b" " * 4_000_000, compressed=True)[33:-12] for _ in range(50))
    files = [loop, many, beyond, parts, png()[:33] + bombs, b"\xff\xd8\xff" + b"\xff" * 300_000]
    tracemalloc.start()
    began = time.process_time()
    for data in files:
        assert read(data) == Metadata()
    assert time.process_time() - began < 2
    assert tracemalloc.get_traced_memory()[1] < 64 << 20
    tracemalloc.stop()


def _dated(*others: bytes) -> bytes:
    """A TIFF with other tags before its camera and its date."""
    camera = _entry(MAKE, 2, 4, int.from_bytes(b"Fed\0", "little"))
    return (
        _ifd([*others, camera, _entry(DATE_TIME, 2, 20, 8 + 2 + 12 * (len(others) + 2) + 4)]) + b"1955:05:17 14:30:05\0"
    )


DATED = Metadata("1955-05-17T14:30:05", "Fed")


@pytest.mark.parametrize(
    "wrap", [lambda block: block, lambda block: jpeg(exif=b"Exif\0\0" + block)], ids=["tiff", "jpeg"]
)
@pytest.mark.parametrize(
    "odd",
    [
        _entry(DESCRIPTION, 2, 0x7FFFFF00, 8),  # larger than the file
        _entry(DESCRIPTION, 2, 0xFFFFFFFF, 0xFFFFFFF0),
        _entry(DESCRIPTION, 2, 40, 0x7FFFFF00),  # behind the file's end
        _entry(DESCRIPTION, 99, 1, 0),  # no type of TIFF
        _entry(0x8769, 9, 1, 0xFFFFFFFF),  # a directory at -1
        _entry(0x8825, 5, 1, 8),
        _entry(0x0128, 3, 1, 2) + _entry(0x011A, 2, 1, 0),  # a resolution that is no number
        _entry(0x011A, 2, 1, 0) + _entry(0x0128, 3, 1, 2),
    ],
    ids=["long", "longest", "outside", "type", "before", "rational", "resolution", "resolution, first"],
)
def test_an_odd_tag_loses_nothing_else(read: Any, wrap: Any, odd: bytes) -> None:
    tags = [odd[place : place + 12] for place in range(0, len(odd), 12)]
    assert read(wrap(_dated(*tags))) == DATED


def test_an_odd_resolution_loses_no_block_of_a_jpeg_file(read: Any) -> None:
    block = b"Exif\0\0" + _dated(_entry(0x011A, 2, 1, 0), _entry(0x0128, 3, 1, 2))
    found = read(jpeg(exif=block, xmp=XMP, iptc=ARCHIVE))
    assert (found.camera, found.title, found.tags) == (
        "Fed V850",
        "Bridge & river",
        ("bridge", "Rhine", "roof", "Kölner Dom"),
    )


def test_a_header_that_is_cut_off_or_odd_keeps_its_blocks(read: Any) -> None:
    data = jpeg(exif=WHOLE, xmp=XMP)
    tables = data.index(b"\xff\xdb")  # of quantisation, behind the metadata
    assert read(data[: tables + 20]).taken == READ.taken
    assert read(data[:tables] + b"junk" + data[tables:]).taken == READ.taken
    assert read(data[:2] + b"\xff\xff" + data[2:]).taken == READ.taken
    assert read(data[: data.index(b"Exif") + 60]).title == BRIDGE.title  # EXIF, behind XMP, is cut off


@pytest.mark.slow
def test_layers_of_a_tiff_file_are_not_read(tmp_path: Path) -> None:
    layered = exif(
        {MAKE: "NIKON CORPORATION", MODEL: "NIKON D70", 37724: bytes(40 << 20)},
        {ORIGINAL: "2009:05:17 14:30:05"},
        PARIS,
    )
    path = tmp_path / "layers.tif"
    path.write_bytes(tiff(layered))
    assert path.stat().st_size > 40 << 20
    tracemalloc.start()
    assert read_metadata(path) == READ
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()


class _Counted(io.BytesIO):
    """A file that counts the bytes that are read."""

    given = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self.given += len(data)
        return data


def test_no_more_exif_is_read_than_a_block_may_have() -> None:
    segment = b"\xff\xe1\xff\xff" + b"Exif\0\0" + bytes(0xFFFF - 8)
    data = jpeg(exif=WHOLE)
    start = data.index(b"\xff\xe1")
    end = start + 2 + int.from_bytes(data[start + 2 : start + 4], "big")
    file = _Counted(data[:end] + 500 * segment + data[end:])
    assert find_blocks(file).exif["exif:DateTimeOriginal"] == ["2009:05:17 14:30:05"]
    assert file.given < 5 << 20


@pytest.mark.parametrize(
    ("name", "date"),
    [
        ("IMG-20161224-WA0014.jpg", "2016-12-24"),
        ("IMG_20161224_070809(1).jpg", "2016-12-24T07:08:09"),
        ("PXL_20201017_123456789.PORTRAIT.jpg", "2020-10-17"),  # the time is UTC
        ("20190101_123456.jpg", "2019-01-01T12:34:56"),
        ("2019-01-01 12.34.56-1.jpg", "2019-01-01T12:34:56"),
        ("photo_2021-03-04_12-00-00.jpg", "2021-03-04T12:00:00"),
        ("WIN_20190101_12_34_56_Pro.jpg", "2019-01-01T12:34:56"),
        ("WP_20141225_001.jpg", "2014-12-25"),
        ("Screenshot_2020-05-06-07-08-09.png", "2020-05-06T07:08:09"),
        ("Screenshot 2020-05-06 at 7.08.09\u202fPM.png", "2020-05-06T19:08:09"),
        ("signal-2021-03-04-120000_002.jpg", "2021-03-04T12:00:00"),
        ("WhatsApp Image 2019-05-04 at 10.11.12 (1).jpeg", "2019-05-04T10:11:12"),
        ("scan-19231105-1.tif", None),
        ("20161224.jpg", None),
        ("20161224_0014.jpg", None),
        ("20161224_246161.jpg", None),  # no time
        ("20161224_101112_0001.tif", None),
        ("19231105_101112.tif", None),
        ("BArch_Bild_20161224_101112.jpg", None),
        ("IMG_20161324_101112.jpg", None),  # month 13
        ("IMG_201612241.jpg", None),
        ("IMG_20161224", None),
    ],
)
def test_names_of_cameras_phones_and_messengers_tell_a_date_and_shelf_marks_none(name: str, date: str | None) -> None:
    assert date_of_name(name) == date


def test_the_date_of_a_name_counts_after_all_that_the_file_says(tmp_path: Path) -> None:
    path = tmp_path / "20190101_123456.jpg"
    path.write_bytes(jpeg())
    assert read_metadata(path) == Metadata("2019-01-01T12:34:56")
    path.write_bytes(jpeg(exif=exif({DATE_TIME: "2011:11:11 11:11:11"})))
    assert read_metadata(path).taken == "2011-11-11T11:11:11"
