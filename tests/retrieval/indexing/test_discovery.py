"""What is found in folders: links that lead out are passed over, and edited metadata is noticed."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from PIL import Image

from retrieval.catalogue.settings import keep_setting
from retrieval.collection.collection import Collection
from retrieval.collection.layout import CHANGES_KEY
from retrieval.photos.listing import first_photos, stays_below
from tests.conftest import Indexed
from tests.support.metadata_files import DESCRIPTION, exif, xmp

REASON = "its link leads out of the folders that photos may be taken from"


@pytest.fixture
def root(indexed: Indexed, tmp_path: Path) -> Path:
    """A folder with photos, and links within it and out of it."""
    photos = sorted(indexed.photos.iterdir())
    root, secret = tmp_path / "root", tmp_path / "secret"
    for place, photo in ((root / "a.png", 0), (root / "deep" / "b.png", 1), (secret / "c.png", 2)):
        place.parent.mkdir(exist_ok=True, parents=True)
        shutil.copy(photos[photo], place)
    (root / "file.png").symlink_to(secret / "c.png")
    (root / "folder").symlink_to(secret)
    (root / "deep" / "up").symlink_to(root)
    (root / "within.png").symlink_to(root / "deep" / "b.png")
    return root


def test_links_out_of_the_folders_are_passed_over_with_a_reason(
    root: Path, indexed: Indexed, tmp_path: Path, cairn: Callable[..., Any]
) -> None:
    folder = tmp_path / "new.cairn"
    options = ("--words", 8, "--workers", 1, "--json")
    found = cairn("index", folder, root, *options, "--below", root).json
    assert found["added"] == 2
    assert {(Path(one["path"]).name, one["reason"]) for one in found["failed"]} == {
        *(("file.png", REASON), ("folder", REASON))
    }
    assert (cairn("index", folder, root / "folder", *options, "--below", root).json["failed"][0]["reason"]) == REASON
    more = cairn("index", folder, root, *options, "--below", root, "--below", tmp_path / "secret").json
    assert (more["added"], more["failed"]) == (1, [])
    assert cairn("index", tmp_path / "all.cairn", root, *options).json["added"] == 3


def test_the_first_photos_stay_below_the_folders(root: Path) -> None:
    assert [path.name for path in first_photos([root], 9, [root])] == ["a.png", "b.png", "within.png"]
    assert len(first_photos([root], 9, [root.parent])) == 5
    assert first_photos([root / "folder", root / "file.png"], 9, [root]) == []


def test_what_stays_below_is_told_by_where_links_lead(root: Path) -> None:
    secret = root.parent / "secret"
    assert stays_below(root, [root]) and stays_below(root / "none" / "x", [secret, root])
    assert not any(
        stays_below(place, [root]) for place in (root / "folder", root / ".." / "secret", root.parent, f"{root}2", "/")
    )
    (root.parent / "link").symlink_to(root)
    assert stays_below(root / "a.png", [root.parent / "link"])


# Metadata that is edited, with the times of files kept


@pytest.fixture
def run(indexed: Indexed, tmp_path: Path, cairn: Callable[..., Any]) -> Callable[[], Any]:
    """Indexes two photos of a folder, again and again."""
    photos = tmp_path / "photos"
    photos.mkdir()
    for stem in ("coffee_001", "coffee_002"):
        picture = Image.open(indexed.photos / f"{stem}.jpg")
        picture.save(photos / f"{stem}.jpg", exif=exif({DESCRIPTION: "morning"}))

    def index() -> Any:
        return cairn(
            *("index", tmp_path / "c.cairn", photos, "--vocabulary", indexed.folder, "--workers", 1, "--json")
        ).json

    assert index()["added"] == 2
    return index


def _counts(report: dict[str, Any]) -> list[int]:
    return [report[key] for key in ("added", "unchanged", "reread")]


def _changed(path: Path, change: Callable[[], object]) -> None:
    """Change a file later than it was, by the clock of the drive, and keep its time."""
    before = path.stat()
    while path.stat().st_ctime_ns == before.st_ctime_ns:
        change()
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        time.sleep(0.01)


def _known(cairn: Callable[..., Any], tmp_path: Path) -> dict[str, Any]:
    reported: dict[str, Any] = cairn("metadata", tmp_path / "c.cairn", "--photo", "coffee_001", "--json").json
    return reported


def test_metadata_that_was_edited_in_place_with_the_time_kept_is_noticed(
    run: Callable[[], Any], tmp_path: Path, cairn: Callable[..., Any]
) -> None:
    assert _counts(run()) == [0, 2, 0]
    path = tmp_path / "photos" / "coffee_001.jpg"
    edited = path.read_bytes().replace(b"morning", b"evening")
    _changed(path, lambda: path.write_bytes(edited))
    assert _counts(run()) == [1, 1, 0]
    assert _known(cairn, tmp_path)["title"] == "evening"
    assert _counts(run()) == [0, 2, 0]


def test_a_sidecar_is_noticed_and_read_without_finding_features_again(
    run: Callable[[], Any], tmp_path: Path, cairn: Callable[..., Any]
) -> None:
    sidecar = tmp_path / "photos" / "coffee_001.jpg.xmp"
    for title in ("Coffee", "Cup"):
        time.sleep(0.02)  # of two files that were changed in one tick of the drive's clock, none is later
        sidecar.write_bytes(xmp(f"<dc:title>{title}</dc:title>"))
        assert _counts(run()) == [0, 2, 1]
        assert _known(cairn, tmp_path)["title"] == title
        assert _counts(run()) == [0, 2, 0]


def test_a_file_whose_rights_alone_were_changed_is_what_it_was(run: Callable[[], Any], tmp_path: Path) -> None:
    path = tmp_path / "photos" / "coffee_001.jpg"
    _changed(path, lambda: path.chmod(0o600))
    assert _counts(run()) == [0, 2, 1]
    assert _counts(run()) == [0, 2, 0]


@pytest.mark.parametrize("kept", ["", "[]", "nonsense", '{"/": "x"}', None])
def test_a_collection_that_does_not_know_of_changes_learns_of_them(
    run: Callable[[], Any], tmp_path: Path, kept: str | None
) -> None:
    with Collection.open(tmp_path / "c.cairn") as collection, collection.catalogue.writing() as session:
        if kept is None:
            session.execute(sa.text("DELETE FROM settings WHERE key = 'cairn.changes'"))
        else:
            keep_setting(session, CHANGES_KEY, kept)
    assert _counts(run()) == [0, 2, 0]
    path = tmp_path / "photos" / "coffee_001.jpg"
    _changed(path, lambda: path.chmod(0o600))
    assert run()["reread"] == 1
