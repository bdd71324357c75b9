"""What is found in folders: links that lead out of those that photos may be taken from are passed over."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from retrieval.photos.listing import first_photos, stays_below
from tests.conftest import Indexed

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
