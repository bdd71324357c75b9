"""What is passed over in folders: known ones of devices, and what a user says, which a collection remembers."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import cairn as public
from retrieval.photos.listing import list_photos
from retrieval.photos.passing import PassedOver, Passing
from tests.conftest import Ran
from tests.support.hostile import encode, photo

Cairn = Callable[..., Ran]
OPTIONS = ("--words", 20, "--workers", 1, "--json")
OF_DEVICES = (
    *("@eaDir/a.jpg/SYNOPHOTO_THUMB_M.jpg", "@__thumb/s100a.jpg", "#recycle/old.jpg", "@Recycle/old.jpg"),
    *("$RECYCLE.BIN/S-1/$R1.jpg", ".Trash-1000/files/old.jpg", ".thumbnails/normal/x.png", "__MACOSX/2020/._a.jpg"),
    *("Lightroom Catalog Previews.lrdata/A/x.jpg", "lost+found/x.jpg", "System Volume Information/x.jpg"),
    *("Mine.photoslibrary/resources/derivatives/x.jpg", "Mine.photoslibrary/scopes/x.jpg", "#snapshot/day/a.jpg"),
    "@EADIR/b.jpg",
)
PHOTOS = ("a.jpg", "2020/b.jpg", "2020/raw/c.jpg", "Mine.photoslibrary/originals/0/d.jpg", "recycle/e.jpg")
BESIDE = ("a.jpg.xmp", "a.json", "a.AAE", "a.jpg.pp3", "Thumbs.db", "2020/desktop.ini")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    content = encode(photo(size=(160, 120)), "JPEG")
    for place, name in enumerate((*OF_DEVICES, *PHOTOS, *BESIDE, "list.odt")):
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content + bytes([place]))
    return tmp_path / "photos"


def listed(folder: Path, passing: Passing, passed_over: PassedOver | None = None) -> set[str]:
    found = list_photos([folder], passed_over, passing=passing)
    return {path.relative_to(folder).as_posix() for _, path in found}


def test_folders_of_devices_are_passed_over_and_counted_and_sidecars_are_no_files_of_their_own(folder: Path) -> None:
    passed_over = PassedOver()
    assert listed(folder, Passing(), passed_over) == set(PHOTOS)
    assert passed_over.files == {".odt": 1}
    assert passed_over.folders == {
        **{name: 1 for name in ("@__thumb", "#recycle", "@Recycle", "$RECYCLE.BIN", "__MACOSX", "*.lrdata")},
        **{"@eaDir": 2, "lost+found": 1, "System Volume Information": 1, "#snapshot": 1, "*.photoslibrary": 2},
    }


def test_a_folder_that_is_given_is_taken_whatever_it_is_called(folder: Path) -> None:
    assert listed(folder / "#recycle", Passing()) == {"old.jpg"}


@pytest.mark.parametrize(
    ("passing", "others"),
    [
        (Passing(exclude=("RAW",)), {"2020/raw/c.jpg"}),
        (Passing(exclude=("b.*",)), {"2020/b.jpg"}),
        (Passing(exclude=("2020/b.jpg",)), {"2020/b.jpg"}),
        (Passing(exclude=("2020/",)), {"2020/b.jpg", "2020/raw/c.jpg"}),
        (Passing(exclude=("20*/raw",)), {"2020/raw/c.jpg"}),
        (Passing(exclude=("*.jpg",), include=("2020", "b.jpg")), {*PHOTOS} - {"2020/b.jpg"}),
        (Passing(exclude=("b.jpg/x", "[")), set()),
    ],
)
def test_patterns_are_compared_with_names_and_those_with_a_slash_with_paths(
    folder: Path, passing: Passing, others: set[str]
) -> None:
    assert listed(folder, passing) == set(PHOTOS) - others


def test_a_known_folder_is_included_by_its_name(folder: Path) -> None:
    assert listed(folder, Passing(include=("#recycle",))) == {*PHOTOS, "#recycle/old.jpg"}


def test_a_pattern_that_is_given_to_one_is_taken_from_the_other() -> None:
    once = Passing().changed(["raw", "*.png"], [])
    assert once.changed([], ["raw"]) == Passing(("*.png",), ("raw",))
    assert once.changed([], ["raw"]).changed(["raw"], []) == Passing(("*.png", "raw"), ())


def test_a_collection_remembers_its_patterns(cairn: Cairn, folder: Path, tmp_path: Path) -> None:
    collection = tmp_path / "a.cairn"
    reported = cairn("index", collection, folder, *OPTIONS, "--exclude", "raw", "--exclude", "recycle").json
    assert (reported["added"], reported["folders_passed_over"]["raw"], reported["passed_over"]) == (3, 1, {".odt": 1})
    assert cairn("index", collection, folder, *OPTIONS).json["added"] == 0
    assert cairn("index", collection, folder, *OPTIONS, "--include", "raw").json["added"] == 1
    assert "Folders that were skipped" in cairn("index", collection, folder).out
    assert "pattern" in cairn("index", collection, folder, "--exclude", " ").refused()
    with public.open(collection) as opened:
        assert opened.add(folder, include=["recycle"], exclude="raw").added == 1


def test_a_folder_removed_for_good_stays_out_with_what_comes_later(cairn: Cairn, folder: Path, tmp_path: Path) -> None:
    collection = tmp_path / "a.cairn"
    cairn("index", collection, folder, *OPTIONS)
    assert cairn("remove", collection, "--folder", "2020", "--for-good", "--json").json["images"] == 3
    shutil.copy(folder / "a.jpg", folder / "2020" / "new.jpg")
    (folder / "2020" / "later.jpg").write_bytes(encode(photo("coffee", (160, 120)), "JPEG"))
    (folder / "2020b").mkdir()
    (folder / "2020b" / "other.jpg").write_bytes(encode(photo("rocket", (160, 120)), "JPEG"))
    reported = cairn("index", collection, folder, *OPTIONS).json
    assert (reported["added"], reported["images"]) == (1, 4)
    again = cairn("index", collection, folder, *OPTIONS, "--again").json
    assert (again["added"], again["images"]) == (4, 8)
