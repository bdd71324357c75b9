"""What people reported of other programs, acted out: docs/explanations/reports.md says where each was reported."""

from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

import cairn as public
from tests.conftest import Ran
from tests.support.hostile import encode, photo

SIZE = (320, 240)
NULL_ISLAND: dict[int, object] = {1: "N", 2: (0.0, 0.0, 0.0), 3: "E", 4: (0.0, 0.0, 0.0)}


def with_exif(image: Image.Image, fields: dict[int, object], **ifds: dict[int, object]) -> bytes:
    """Return a JPEG with fields of EXIF, and of its parts `photo` and `gps`."""
    exif = Image.Exif()
    exif.update(fields)
    for name, tag in (("photo", 0x8769), ("gps", 0x8825)):
        exif.get_ifd(tag).update(ifds.get(name, {}))
    return encode(image, "JPEG", quality=95, exif=exif)


def without_adobe_marker(jpeg: bytes) -> bytes:
    """Return a JPEG of four colours without the segment that says how they are meant."""
    start = jpeg.index(b"Adobe") - 4
    return jpeg[:start] + jpeg[start + 2 + int.from_bytes(jpeg[start + 2 : start + 4], "big") :]


def with_bytes_behind_exif(jpeg: bytes) -> bytes:
    """Return a JPEG with seven bytes that belong to nothing behind its EXIF."""
    start = jpeg.index(b"\xff\xe1")
    end = start + 2 + int.from_bytes(jpeg[start + 2 : start + 4], "big")
    return jpeg[:end] + bytes(7) + jpeg[end:]


@pytest.mark.slow
def test_files_of_reports_are_found_as_what_they_show_or_refused_with_the_reason(
    cairn: Callable[..., Ran], tmp_path: Path
) -> None:
    image = photo("chelsea", SIZE)
    grey, turned = image.convert("L"), image.transpose(Image.Transpose.ROTATE_90)
    same = {
        "up.jpg": encode(image, "JPEG", quality=95),
        "JPEG.heic": encode(image, "JPEG"),  # endings that say something else
        "WebP.gif": encode(image, "WEBP"),
        "PNG.JPG": encode(image, "PNG"),
        "P[1].jpg": encode(image, "JPEG"),  # names that shells and patterns read otherwise
        "a\nb.jpg": encode(image, "JPEG"),
        '-it\'s "😀" 100%20 a*?#.jpg': encode(image, "JPEG"),
        "colours.jpg": encode(image.convert("CMYK"), "JPEG", quality=95),
        "colours without a marker.jpg": without_adobe_marker(encode(image.convert("CMYK"), "JPEG", quality=95)),
        "grey.png": encode(grey, "PNG"),
        "palette.png": encode(grey.convert("P"), "PNG"),
        "grey with alpha.png": encode(grey.convert("LA"), "PNG"),
        "colour with alpha.png": encode(grey.convert("RGBA"), "PNG"),
        "turned by EXIF.jpg": with_exif(turned, {0x112: 6}),
        "turned by EXIF, bytes behind.jpg": with_bytes_behind_exif(with_exif(turned, {0x112: 6})),
        "turned.jpg": encode(turned, "JPEG"),
        "stretched.jpg": encode(photo("chelsea", (360, 220)), "JPEG", quality=95),
        "nowhere.jpg": with_exif(image, {}, gps=NULL_ISLAND, photo={0x9003: "2050:12:31 10:00:00"}),
    }
    huge = bytearray(encode(image, "GIF"))
    huge[6:10] = b"\xff" * 4
    others = {
        "black 1.png": encode(Image.new("RGB", SIZE), "PNG"),
        "black 2.png": encode(Image.new("L", SIZE, 2), "PNG"),
    }
    others |= {"coffee.png": encode(photo("coffee", SIZE), "PNG"), "huge.gif": bytes(huge)}
    folder, collection = tmp_path / "photos", tmp_path / "a.cairn"
    (folder / "sub").mkdir(parents=True)
    for name, content in (same | others).items():
        (folder / name).write_bytes(content)
    (folder / "sub" / "deep.png").write_bytes(encode(photo("rocket", SIZE), "PNG"))
    # A folder and what lies in it, twice: each photo is there once.
    output = cairn("index", collection, folder, folder / "sub", folder / "up.jpg", "--words", 50, "--json").json
    assert [Path(one["path"]).name for one in output["failed"]] == ["huge.gif"]
    assert "65535x65535" in output["failed"][0]["reason"]
    with public.open(collection) as opened:
        names = {one.name for one in opened.photos()}
        assert len(opened) == len(names) and names == same.keys() | others.keys() - {"huge.gif"} | {"sub/deep.png"}
        assert {one.name for one in opened.search("up.jpg", top=50) if one.found} == same.keys()
        assert all(opened.photo(name).name == name for name in same)
        nowhere = opened.photo("nowhere.jpg")
        assert (nowhere.latitude, nowhere.longitude, nowhere.taken) == (None, None, "2050-12-31T10:00:00")
        assert len(opened.search("black 1.png")) == 0
        groups = opened.group(workers=1)
        assert [len(group) for group in groups] == [len(same)]


def test_names_that_differ_in_case_alone_are_two_photos(cairn: Callable[..., Ran], tmp_path: Path) -> None:
    folder, collection = tmp_path / "photos", tmp_path / "a.cairn"
    folder.mkdir()
    for name, shows in (("a.jpg", "chelsea"), ("a.JPG", "coffee")):
        (folder / name).write_bytes(encode(photo(shows, SIZE), "JPEG"))
    names = sorted(path.name for path in folder.iterdir())  # one where the file system takes both for one
    assert cairn("index", collection, folder, "--words", 50, "--json").json["added"] == len(names)
    for name in names:
        assert cairn("query", collection, name, "--json").json["results"][0]["name"] == name
    if len(names) > 1:
        assert "2 photos are called 'A.JPG'" in cairn("query", collection, "A.JPG").refused()
