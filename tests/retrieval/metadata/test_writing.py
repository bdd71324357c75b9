"""XMP sidecars that are written: read back by Cairn, and by readers that know nothing of it."""

import os
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.metadata.fields import Metadata
from retrieval.metadata.photo import read_metadata
from retrieval.metadata.writing import NoSidecar, merged, sidecar_for, write_sidecar
from retrieval.metadata.xmp import LARGEST, read_xmp
from tests.support.metadata_files import RDF, SPACES, jpeg, listed, xmp

ALL = ("title", "caption", "tag", "taken", "rating", "latitude", "longitude", "favourite")
KNOWN = Metadata(
    taken="1923-05",
    latitude=-33.8567844,
    longitude=151.2152967,
    title="Brücke & <river>",
    tags=("Rhine", "Köln"),
    caption="Seen from the mill",
    rating=4,
    favourite=True,
)
THERE = xmp(
    f"<dc:title>{listed('Alt', 'Alte Brücke', 'Old bridge', 'Vieux pont')}</dc:title>"
    f"<dc:subject>{listed('Bag', 'mill', 'RHINE')}</dc:subject><!-- of the archive -->"
    f"<lr:hierarchicalSubject>{listed('Bag', 'Places|Köln', 'Albums|Gone')}</lr:hierarchicalSubject>"
    "<photoshop:History>cropped</photoshop:History>",
    'xmp:Rating="2" xmp:CreatorTool="darktable" photoshop:DateCreated="1999"',
)


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    path = tmp_path / "photo.jpg"
    path.write_bytes(jpeg())
    return path


def _properties(packet: bytes) -> dict[str, list[str]]:
    """Properties of a packet, by an XML reader of another kind."""
    (sheet, *_) = ElementTree.fromstring(packet).iter(f"{{{RDF}}}Description")
    prefixes = {address: prefix for prefix, address in SPACES.items()}
    found = {}
    for name, value in [*sheet.attrib.items(), *((one.tag, one) for one in sheet)]:
        space, _, local = name[1:].partition("}")
        items = [value] if isinstance(value, str) else [one.text or "" for one in value.iter(f"{{{RDF}}}li")]
        key = f"{prefixes.get(space, space)}:{local}"
        assert key not in found, "a property is said once"
        found[key] = items or [value.text]
    return found


def test_a_new_sidecar_is_read_as_it_was_written(photo: Path) -> None:
    before = photo.read_bytes()
    assert write_sidecar(photo, KNOWN, ALL, ["Holiday 1923"])
    assert read_metadata(photo) == KNOWN
    assert photo.read_bytes() == before
    sidecar = photo.with_name("photo.jpg.xmp")
    assert _properties(sidecar.read_bytes()) == {
        f"{RDF}:about": [""],
        "dc:title": ["Brücke & <river>"],
        "dc:description": ["Seen from the mill"],
        "dc:subject": ["Rhine", "Köln"],
        "exif:DateTimeOriginal": ["1923-05"],
        "photoshop:DateCreated": ["1923-05"],
        "xmp:Rating": ["4"],
        "exif:GPSLatitude": ["33,51.407064S"],
        "exif:GPSLongitude": ["151,12.917802E"],
        "xmpDM:good": ["True"],
        "lr:hierarchicalSubject": ["Rhine", "Köln", "Albums|Holiday 1923"],
    }
    assert not write_sidecar(photo, KNOWN, ALL, ["Holiday 1923"])
    assert sorted(one.name for one in photo.parent.iterdir()) == ["photo.jpg", "photo.jpg.xmp"]


def test_a_sidecar_that_is_there_keeps_what_else_it_says(photo: Path) -> None:
    sidecar = photo.with_name("photo.jpg.xmp")
    sidecar.write_bytes(THERE)
    assert write_sidecar(photo, KNOWN, ("title", "tag", "rating"), ["Holiday"])
    written = sidecar.read_bytes()
    assert b"<!-- of the archive -->" in written
    found = _properties(written)
    assert found["dc:title"] == ["Brücke & <river>", "Alte Brücke", "Vieux pont"]  # the default, German, French
    assert found["dc:subject"] == ["mill", "RHINE", "Köln"]
    assert found["lr:hierarchicalSubject"] == ["Places|Köln", "Rhine", "Albums|Holiday"]
    assert (found["xmp:Rating"], found["xmp:CreatorTool"]) == (["4"], ["darktable"])
    assert (found["photoshop:History"], found["photoshop:DateCreated"]) == (["cropped"], ["1999"])


def test_what_nobody_decided_is_not_written(photo: Path) -> None:
    assert not write_sidecar(photo, KNOWN, (), ())
    assert not photo.with_name("photo.jpg.xmp").exists()
    sidecar = photo.with_name("photo.jpg.xmp")
    sidecar.write_bytes(THERE)
    assert write_sidecar(photo, KNOWN, (), ())  # taken out of its album
    assert _properties(sidecar.read_bytes())["lr:hierarchicalSubject"] == ["Places|Köln"]
    assert not write_sidecar(photo, KNOWN, (), ())


def test_a_caption_that_stands_for_a_title_is_not_written_as_one() -> None:
    known = Metadata(title="Seen from the mill", caption="Seen from the mill")
    packet = merged(xmp(), known, ("title", "caption"), ())
    assert packet is not None
    assert read_xmp(packet) == {"xmp:dc:description": ["Seen from the mill"]}


def test_tags_go_into_the_list_that_digikam_reads_first() -> None:
    there = xmp(f"<digiKam:TagsList>{listed('Seq', 'People/Anna')}</digiKam:TagsList>")
    packet = merged(there, Metadata(tags=("Anna", "Rhine")), ("tag",), ["A/B"])
    assert packet is not None
    assert _properties(packet)["digiKam:TagsList"] == ["People/Anna", "Rhine", "Albums/A B"]


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ([], "photo.jpg.xmp"),
        (["photo.jpg.xmp", "photo.xmp"], "photo.jpg.xmp"),
        (["photo.jpg.XMP"], "photo.jpg.XMP"),
        (["photo.xmp"], "photo.xmp"),
        (["photo.xmp", "photo.cr2"], "photo.jpg.xmp"),  # that of the raw file
    ],
)
def test_the_sidecar_that_is_there_is_taken(photo: Path, files: list[str], name: str) -> None:
    for one in files:
        photo.with_name(one).write_bytes(xmp())
    assert sidecar_for(photo) == photo.with_name(name)


@pytest.mark.parametrize(
    ("contents", "reason"),
    [
        (b"", "not XML"),
        (b"<x>", "not XML"),
        (b"<x/>", "not XMP"),
        (b"\xff\xfe\x00", "not XML"),
        (b'<!DOCTYPE x [<!ENTITY a "b">]>' + xmp(), "document type"),
        (b"<x>" * 1000 + b"</x>" * 1000, "deeply"),
        (xmp() + b" " * LARGEST, "too large"),
    ],
)
def test_what_is_no_sidecar_is_left_as_it_is(photo: Path, contents: bytes, reason: str) -> None:
    sidecar = photo.with_name("photo.jpg.xmp")
    sidecar.write_bytes(contents)
    with pytest.raises(NoSidecar, match=reason):
        write_sidecar(photo, KNOWN, ALL, ["Holiday"])
    assert sidecar.read_bytes() == contents


@given(edits=st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=8)), max_size=6))
def test_of_a_damaged_sidecar_nothing_is_made_or_one_that_says_what_was_decided(
    edits: list[tuple[float, bytes]],
) -> None:
    data = bytearray(THERE)
    for share, replacement in edits:
        place = int(share * (len(data) - 1))
        data[place : place + len(replacement)] = replacement
    try:
        packet = merged(bytes(data), KNOWN, ALL, ["Holiday"])
    except NoSidecar:
        return
    assert packet is not None
    found = read_xmp(packet)
    assert found["xmp:dc:title"][0] == KNOWN.title and {*found["xmp:dc:subject"]} >= {"Köln"}
    assert found["xmp:xmp:Rating"] == ["4"] and "Albums|Holiday" in found["xmp:lr:hierarchicalSubject"]
    assert merged(packet, KNOWN, ALL, ["Holiday"]) is None


def test_a_link_is_not_written_through(photo: Path) -> None:
    elsewhere = photo.parent / "elsewhere"
    elsewhere.write_bytes(xmp())
    photo.with_name("photo.jpg.xmp").symlink_to(elsewhere)
    with pytest.raises(NoSidecar, match="link"):
        write_sidecar(photo, KNOWN, ALL, [])
    assert elsewhere.read_bytes() == xmp()


def test_another_program_reads_what_was_written(photo: Path) -> None:
    exiv2 = pytest.importorskip("exiv2")
    write_sidecar(photo, KNOWN, ALL, ["Holiday"])
    image = exiv2.ImageFactory.open(os.fspath(photo.with_name("photo.jpg.xmp")))
    image.readMetadata()
    found = {one.key(): one.toString() for one in image.xmpData()}
    assert found["Xmp.dc.title"] == 'lang="x-default" Brücke & <river>'
    assert found["Xmp.dc.subject"] == "Rhine, Köln"
    assert found["Xmp.lr.hierarchicalSubject"] == "Rhine, Köln, Albums|Holiday"
    assert (found["Xmp.xmp.Rating"], found["Xmp.exif.DateTimeOriginal"]) == ("4", "1923-05")
