"""What files next to a photo say of it: XMP sidecars, and the JSON of Google Takeout."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from retrieval.metadata.fields import Metadata
from retrieval.metadata.photo import read_metadata
from retrieval.metadata.sidecars import ChangeTimes
from retrieval.metadata.xmp import LARGEST
from tests.support.metadata_files import DATE_TIME, DESCRIPTION, ORIGINAL, exif, iptc, jpeg, listed, xmp

PHOTO = jpeg(exif=exif({DESCRIPTION: "scan"}, {ORIGINAL: "2009:05:17 14:30:05"}))
TAKEOUT = {
    "title": "photo.jpg",
    "description": "Seen from the mill",
    "photoTakenTime": {"timestamp": "1242570605", "formatted": "17.05.2009, 14:30:05 UTC"},
    "geoData": {"latitude": 48.8584, "longitude": 2.2945, "altitude": 0.0},
    "people": [{"name": "Anna Weiß"}, {"name": "Rex"}],
    "favorited": True,
}


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    """A photo that is alone in its folder."""
    path = tmp_path / "photo.jpg"
    path.write_bytes(PHOTO)
    return path


@pytest.mark.parametrize("name", ["photo.jpg.xmp", "photo.xmp", "photo.jpg.XMP", "photo.XMP"])
def test_a_sidecar_counts_before_the_file(photo: Path, name: str) -> None:
    said = xmp(
        f"<dc:title>Bridge</dc:title><dc:subject>{listed('Bag', 'Rhine')}</dc:subject>",
        'photoshop:DateCreated="1923-05" xmp:Rating="4"',
    )
    photo.with_name(name).write_bytes(said)
    assert read_metadata(photo) == Metadata("1923-05", title="Bridge", tags=("Rhine",), caption="scan", rating=4)


def test_of_two_sidecars_the_one_with_the_whole_name_counts_first(photo: Path) -> None:
    photo.with_name("photo.xmp").write_bytes(xmp("<dc:title>Of the raw file</dc:title>", 'xmp:Rating="2"'))
    photo.with_name("photo.jpg.xmp").write_bytes(xmp("<dc:title>Of this one</dc:title>"))
    found = read_metadata(photo)
    assert (found.title, found.rating) == ("Of this one", 2)


@pytest.mark.parametrize("name", ["photo.jpg.json", "photo.jpg.supplemental-metadata.json"])
def test_the_json_of_takeout_fills_what_the_file_does_not_say(photo: Path, name: str) -> None:
    photo.write_bytes(jpeg())
    photo.with_name(name).write_text(json.dumps(TAKEOUT), encoding="utf-8")
    assert read_metadata(photo) == Metadata(
        "2009-05-17",  # its time is that of Greenwich, and that of the camera is not known
        latitude=48.8584,
        longitude=2.2945,
        title="Seen from the mill",
        tags=("Anna Weiß", "Rex"),
        caption="Seen from the mill",
        favourite=True,
    )
    photo.write_bytes(PHOTO)
    found = read_metadata(photo)
    assert (found.taken, found.title, found.favourite) == ("2009-05-17T14:30:05", "scan", True)


def test_when_a_file_was_changed_counts_after_what_any_file_says_of_the_photo(photo: Path) -> None:
    photo.write_bytes(jpeg(exif=exif({DATE_TIME: "2020:01:01 00:00:00"})))
    assert read_metadata(photo).taken == "2020-01-01T00:00:00"
    photo.with_name("photo.jpg.json").write_text(json.dumps(TAKEOUT), encoding="utf-8")
    assert read_metadata(photo).taken == "2009-05-17"


def test_a_title_counts_before_the_caption_of_a_sidecar(photo: Path) -> None:
    photo.write_bytes(jpeg(iptc=iptc((2, 5, b"Bridge"), (2, 120, b"old"))))
    photo.with_name("photo.xmp").write_bytes(xmp("<dc:description>Seen from the mill</dc:description>"))
    found = read_metadata(photo)
    assert (found.title, found.caption) == ("Bridge", "Seen from the mill")


@pytest.mark.parametrize(
    ("photo_name", "name"),
    [
        ("IMG_20090517_143005_a_long_name.jpg", "IMG_20090517_143005_a_long_name.jpg.supplement.json"),
        ("photo(1).jpg", "photo.jpg(1).json"),
        ("photo(1).jpg", "photo.jpg.supplemental-metadata(1).json"),
    ],
)
def test_names_that_takeout_cuts_off_or_numbers_are_found(tmp_path: Path, photo_name: str, name: str) -> None:
    (tmp_path / photo_name).write_bytes(jpeg())
    (tmp_path / name).write_text(json.dumps(TAKEOUT), encoding="utf-8")
    assert read_metadata(tmp_path / photo_name).caption == "Seen from the mill"


@pytest.mark.parametrize(
    "told",
    [
        "",
        "[" * 100_000,
        "null",
        "[]",
        json.dumps({**TAKEOUT, "photoTakenTime": "yesterday", "geoData": None, "people": "all", "favorited": "yes?"}),
        json.dumps({"photoTakenTime": {"timestamp": "9" * 40}, "geoData": {"latitude": True, "longitude": [1]}}),
        json.dumps({"people": [1, None, {"name": {"a": 1}}], "description": ["x"], "title": 3}),
    ],
)
def test_json_of_another_kind_says_nothing_of_date_and_place(photo: Path, told: str) -> None:
    photo.write_bytes(jpeg())
    photo.with_name("photo.jpg.json").write_text(told, encoding="utf-8")
    found = read_metadata(photo)
    assert (found.taken, found.latitude, found.longitude, found.tags) == (None, None, None, ())


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _large(path: Path) -> None:
    path.write_bytes(xmp("<dc:title>Bridge</dc:title>") + b" " * LARGEST)


def _link(path: Path) -> None:
    elsewhere = path.parent / "elsewhere"
    elsewhere.write_bytes(xmp("<dc:title>Bridge</dc:title>"))
    path.symlink_to(elsewhere)


@pytest.mark.parametrize("make", [_pipe, _large, _link, Path.mkdir], ids=["pipe", "large", "link", "folder"])
def test_a_sidecar_that_is_no_small_file_is_passed_over(photo: Path, make: Any) -> None:
    make(photo.with_name("photo.jpg.xmp"))
    assert read_metadata(photo).title == "scan"


def test_folders_are_listed_once_however_photos_of_folders_within_each_other_are_ordered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["1.jpg", "b/2.jpg", "b/c/3.jpg", "b/d.jpg", "b/e/4.jpg", "x.jpg", "y/5.jpg", "z.jpg"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(PHOTO)
    later = tmp_path / "b" / "d.jpg.xmp"
    later.write_bytes(xmp())
    os.utime(later, ns=(0, 0))  # the time of its contents says nothing
    listed_folders: list[Path] = []
    list_folder = os.listdir
    monkeypatch.setattr(os, "listdir", lambda folder: listed_folders.append(folder) or list_folder(folder))
    times = ChangeTimes()
    found = {name: times.of(tmp_path / name, (tmp_path / name).stat()) for name in names}
    assert sorted(listed_folders) == sorted({(tmp_path / name).parent for name in names})
    assert found == {name: (tmp_path / name).stat().st_ctime_ns for name in names} | {
        "b/d.jpg": later.lstat().st_ctime_ns
    }
