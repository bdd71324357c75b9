"""A file that links lead to is one photo, and the links never outrank it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import cairn as public
from retrieval.catalogue.photos import all_indexed, rows_of_content
from retrieval.catalogue.schema import ImageRow
from retrieval.curation.discarding import discard
from retrieval.curation.duplicates import apart, judge_set
from tests.conftest import Ran
from tests.support.hostile import encode, photo

Cairn = Callable[..., Ran]
OPTIONS = ("--words", 20, "--workers", 1, "--json")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder `files` with two photos, and folders of a link and of a hard link to one of them."""
    for name in ("files", "links", "hard"):
        (tmp_path / name).mkdir()
    (tmp_path / "files" / "a.png").write_bytes(encode(photo("coffee"), "PNG"))
    (tmp_path / "files" / "b.png").write_bytes(encode(photo("rocket"), "PNG"))
    (tmp_path / "links" / "0.png").symlink_to(tmp_path / "files" / "a.png")
    os.link(tmp_path / "files" / "a.png", tmp_path / "hard" / "0.png")
    return tmp_path


def paths(collection: Path) -> list[str]:
    with public.open(collection) as opened:
        return sorted(row.path for row in opened.opened.catalogue.read(all_indexed))


@pytest.mark.slow
@pytest.mark.parametrize("first", ["links", "hard", "files"])
@pytest.mark.parametrize("second", ["links", "hard", "files"])
def test_one_file_is_one_photo_in_whatever_order_its_paths_are_found(
    cairn: Cairn, place: Path, first: str, second: str
) -> None:
    collection = place / "a.cairn"
    cairn("index", collection, place / first, *OPTIONS)
    cairn("index", collection, place / second, *OPTIONS)
    last = cairn("index", collection, place / "files", place / "links", place / "hard", *OPTIONS).json
    assert last["images"] == 2 and last["vanished"] == [] and last["failed"] == []
    found = paths(collection)
    assert len(found) == 2 and not any("links" in path for path in found)
    again = cairn("index", collection, place / "links", place / "hard", place / "files", *OPTIONS).json
    assert (again["added"], again["moved"], again["images"]) == (0, [], 2)
    assert {Path(one["path"]).parent.name for one in again["places"]} <= {"links", "hard", "files"}
    assert paths(collection) == found


def test_a_photo_that_was_indexed_by_a_link_moves_to_its_file(cairn: Cairn, place: Path) -> None:
    collection = place / "a.cairn"
    cairn("index", collection, place / "links", *OPTIONS)
    assert [Path(path).parent.name for path in paths(collection)] == ["links"]
    reported = cairn("index", collection, place / "files", *OPTIONS).json
    assert (reported["added"], reported["moved"]) == (1, ["a.png"])
    assert [Path(path).parent.name for path in paths(collection)] == ["files", "files"]
    reported = cairn("index", collection, place / "links", *OPTIONS).json
    assert (reported["added"], reported["places"]) == (
        0,
        [{"path": str(place / "links" / "0.png"), "photo": str(place / "files" / "a.png")}],
    )


def test_a_file_by_its_own_name_comes_before_a_link_in_a_folder_before_it(cairn: Cairn, place: Path) -> None:
    reported = cairn("index", place / "a.cairn", place / "links", place / "files", *OPTIONS).json
    assert reported["added"] == 2
    assert paths(place / "a.cairn") == [str(place / "files" / name) for name in ("a.png", "b.png")]


def _row(number: int, path: Path) -> ImageRow:
    return ImageRow(number=number, path=str(path), name=path.name, width=320, height=240, size=1)


def test_links_are_no_copies_and_none_is_the_best(place: Path) -> None:
    (place / "copy.png").write_bytes((place / "files" / "a.png").read_bytes())
    link, file = _row(1, place / "links" / "0.png"), _row(2, place / "files" / "a.png")
    hard, copy = _row(3, place / "hard" / "0.png"), _row(4, place / "copy.png")
    judged = judge_set([link, file])
    assert judged.photos == (2, 1) and judged.reasons == ("link",)
    assert apart([link, file], judged.photos) == [2]
    assert apart([file, hard, copy], [2, 3, 4]) == [2, 4]


def test_a_file_that_a_kept_photo_leads_to_is_not_moved_to_the_bin(place: Path) -> None:
    """Collections of earlier versions hold a link and its file as two photos."""
    collection, real = place / "a.cairn", place / "files" / "a.png"
    with public.create(collection, words=20) as made:
        made.add(place / "files")
        catalogue = made.opened.catalogue
        with catalogue.writing() as session:
            file = next(row for row in all_indexed(session) if row.path == str(real))
            session.add(
                ImageRow(
                    number=99, path=str(place / "links" / "0.png"), name="0.png", sha256=file.sha256, width=9, height=9
                )
            )
        reported = discard(catalogue, [file.number], place / "bin", collection)
        assert reported.moved == () and "0.png" in str(reported.failed[file.number]) and real.is_file()
        both = discard(catalogue, [file.number, 99], place / "bin", collection)
        assert [one.number for one in both.moved] == [file.number] and not real.exists()
        assert [row.number for row in catalogue.read(rows_of_content, str(file.sha256))] == [99]
