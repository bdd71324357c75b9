"""Books: every page of a file is a photo of its own, in all that is done with photos."""

import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import cairn as public
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.settings import keep_setting
from retrieval.collection.collection import Collection
from retrieval.collection.layout import PAGES_KEY
from retrieval.collection.options import CollectionOptions
from retrieval.indexing.add_options import AddOptions
from retrieval.indexing.adding import index_photos
from retrieval.photos.apart import decoding_here
from retrieval.photos.decoding import other_pages, read_photo
from retrieval.photos.tiff import MOST_DIRECTORIES, MOST_PAGES
from tests.conftest import Ran
from tests.support.books import PAGES, write_book
from tests.support.hostile import photo
from tests.support.odd_photos import tiff_pages

Cairn = Callable[..., Ran]
NAMES = ["book.tif", "book.tif#2", "book.tif#3", "book.tif#4"]
OPTIONS = ("--words", 40, "--workers", 1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a book and a photo."""
    folder = tmp_path / "photos"
    folder.mkdir()
    write_book(folder / "book.tif")
    photo("page").save(folder / "single.tif")
    return folder


@pytest.fixture
def collection(tmp_path: Path, folder: Path, cairn: Cairn) -> Path:
    """These, indexed."""
    reported = cairn("index", tmp_path / "a.cairn", folder, *OPTIONS, "--json").json
    assert (reported["added"], reported["failed"], reported["pages_left"], reported["remarks"]) == (5, [], 0, [])
    return tmp_path / "a.cairn"


def names(collection: Path) -> list[str]:
    with public.open(collection) as opened:
        return [one.name for one in opened.photos()]


def test_every_page_is_found_and_named(collection: Path, folder: Path, tmp_path: Path, cairn: Cairn) -> None:
    assert names(collection) == [*NAMES, "single.tif"]
    for number, shown in enumerate(PAGES, 1):
        photo(shown, (300, 225)).save(tmp_path / "query.png")
        reported = cairn("query", collection, tmp_path / "query.png", "--json").json["results"][0]
        assert reported["found"] and reported["name"] == NAMES[number - 1]
        assert reported["path"] == str(folder / "book.tif") and reported["page"] == (number if number > 1 else None)
        by_name = cairn("query", collection, NAMES[number - 1], "--json").json["results"][0]
        assert by_name["name"] == NAMES[number - 1]
        by_path = cairn("query", collection, folder / NAMES[number - 1], "--json").json["results"][0]
        assert by_path["name"] == NAMES[number - 1]
    with public.open(collection) as opened:
        pages = [one for one in opened.photos() if one.path == str(folder / "book.tif")]
        assert [(one.page, one.width) for one in pages] == [(None, 320), (2, 319), (3, 318), (4, 317)]
        assert len({one.thumbnail(128) for one in pages}) == 4
        assert pages[2].to_dict()["page"] == 3
    assert cairn("metadata", collection, "--photo", "book.tif#3", "--json").json["page"] == 3


def test_the_first_page_may_be_asked_for_by_its_number(collection: Path, folder: Path, cairn: Cairn) -> None:
    reported = cairn("query", collection, folder / "book.tif#1", "--json").json["results"][0]
    assert reported["name"] == "book.tif" and reported["found"]
    assert "has 4 pages, and no page 9" in cairn("query", collection, folder / "book.tif#9").refused()
    assert "has 1 page, and no page 2" in cairn("query", collection, folder / "single.tif#2").refused()


def test_an_unchanged_book_is_not_read_again(
    collection: Path, folder: Path, cairn: Cairn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retrieval.indexing.file_pages.other_pages", lambda path: pytest.fail("it was opened"))
    reported = cairn("index", collection, folder, "--json").json
    assert (reported["added"], reported["unchanged"], reported["vanished"], reported["moved"]) == (0, 5, [], [])


def test_a_book_whose_time_changed_is_the_same(collection: Path, folder: Path, cairn: Cairn) -> None:
    os.utime(folder / "book.tif", (1e9, 1e9))
    reported = cairn("index", collection, folder, "--json").json
    assert (reported["added"], reported["unchanged"], reported["vanished"]) == (0, 5, [])
    assert cairn("query", collection, "book.tif#2", "--json").json["results"][0]["name"] == "book.tif#2"


def test_pages_move_with_their_file(collection: Path, folder: Path, cairn: Cairn) -> None:
    (folder / "book.tif").rename(folder / "old book.tif")
    reported = cairn("index", collection, folder, "--json").json
    assert (reported["added"], reported["vanished"]) == (0, [])
    assert sorted(reported["moved"]) == [name.replace("book", "old book") for name in NAMES]
    assert sorted(names(collection)) == sorted(["single.tif", *reported["moved"]])


def test_pages_go_and_come_back_with_their_file(collection: Path, folder: Path, cairn: Cairn, tmp_path: Path) -> None:
    shutil.move(folder / "book.tif", tmp_path / "away.tif")
    reported = cairn("index", collection, folder, "--json").json
    assert sorted(reported["vanished"]) == NAMES and reported["unchanged"] == 1
    shutil.move(tmp_path / "away.tif", folder / "book.tif")
    reported = cairn("index", collection, folder, "--json").json
    assert sorted(reported["back"]) == NAMES and (reported["added"], reported["unchanged"]) == (0, 5)
    (folder / "book.tif").unlink()
    cairn("index", collection, folder)
    assert cairn("remove", collection, "--missing", "--json").json["removed"] == NAMES


def test_pages_that_are_torn_out_are_missing_and_others_keep_what_is_known(
    collection: Path, folder: Path, tmp_path: Path, cairn: Cairn
) -> None:
    (tmp_path / "table.csv").write_text("photo,title\nbook.tif#2,The cup\n")
    cairn("metadata", collection, tmp_path / "table.csv")
    write_book(folder / "book.tif", PAGES[:2])
    reported = cairn("index", collection, folder, "--json").json
    assert (reported["added"], sorted(reported["vanished"])) == (2, NAMES[2:])
    assert cairn("remove", collection, "--missing", "--json").json["removed"] == NAMES[2:]
    assert names(collection) == [*NAMES[:2], "single.tif"]
    assert cairn("metadata", collection, "--photo", "book.tif#2", "--json").json["title"] == "The cup"
    write_book(folder / "book.tif", PAGES[:1])
    cairn("index", collection, folder)
    assert cairn("remove", collection, "--missing", "--json").json["removed"] == NAMES[1:2]


def test_a_copy_of_a_book_is_the_same_page_by_page(collection: Path, folder: Path, cairn: Cairn) -> None:
    shutil.copy(folder / "book.tif", folder / "copy.tif")
    os.link(folder / "book.tif", folder / "link.tif")
    reported = cairn("index", collection, folder, "--json").json
    assert (reported["added"], len(reported["places"])) == (4, 4)
    with Collection.open(collection) as opened:
        contents = opened.catalogue.read(lambda session: _contents(session))
    assert all(contents[name] == contents[name.replace("book", "copy")] for name in NAMES)
    assert len(set(contents.values())) == 5


def _contents(session: object) -> dict[str, str]:
    from retrieval.catalogue.photos import all_indexed

    return {str(row.name): str(row.sha256) for row in all_indexed(session)}  # type: ignore[arg-type]


def _damage(file: Path, page: int) -> None:
    """Have a page of an uncompressed TIFF claim a compression that nobody knows."""
    data = bytearray(file.read_bytes())
    place = struct.unpack_from("<I", data, 4)[0]
    for _ in range(page - 1):
        count = struct.unpack_from("<H", data, place)[0]
        place = struct.unpack_from("<I", data, place + 2 + 12 * count)[0]
    for entry in range(struct.unpack_from("<H", data, place)[0]):
        if struct.unpack_from("<H", data, place + 2 + 12 * entry)[0] == 259:
            struct.pack_into("<H", data, place + 2 + 12 * entry + 8, 999)
    file.write_bytes(data)


def test_damaged_pages_are_told_one_by_one_and_the_others_kept(folder: Path, tmp_path: Path, cairn: Cairn) -> None:
    for page in (1, 3):
        _damage(folder / "book.tif", page)
    reported = cairn("index", tmp_path / "a.cairn", folder, *OPTIONS, "--json").json
    failed = [str(folder / name) for name in ("book.tif", "book.tif#3")]
    assert reported["added"] == 3 and sorted(one["path"] for one in reported["failed"]) == failed
    assert names(tmp_path / "a.cairn") == ["book.tif#2", "book.tif#4", "single.tif"]
    again = cairn("index", tmp_path / "a.cairn", folder, "--json").json
    assert (again["added"], again["unchanged"], again["failed_before"]) == (0, 3, 2)
    write_book(folder / "book.tif")
    mended = cairn("index", tmp_path / "a.cairn", folder, "--json").json
    assert (mended["added"], mended["failed"]) == (4, [])
    assert cairn("info", tmp_path / "a.cairn", "--json").json["failed"] == []


def test_one_damaged_page_is_tried_again_although_the_file_is_as_it_was(
    folder: Path, tmp_path: Path, cairn: Cairn
) -> None:
    _damage(folder / "book.tif", 3)
    reported = cairn("index", tmp_path / "a.cairn", folder, *OPTIONS, "--json").json
    assert (reported["added"], len(reported["failed"])) == (4, 1)
    again = cairn("index", tmp_path / "a.cairn", folder, "--json").json
    assert (again["unchanged"], again["failed_before"]) == (4, 1)


def test_a_run_that_was_broken_off_goes_on_with_the_other_pages(folder: Path, tmp_path: Path) -> None:
    left = []
    with Collection.create(tmp_path / "a.cairn", CollectionOptions(words=40, batch=2)) as made:
        while not left or left[-1]:
            left.append(index_photos(made, [folder], AddOptions(time_limit=0.001)).left)
            assert len(left) < 9
    assert len(left) > 1 and names(tmp_path / "a.cairn") == [*NAMES, "single.tif"]


def test_what_an_earlier_version_indexed_keeps_its_name_and_gets_its_other_pages(
    folder: Path, tmp_path: Path, cairn: Cairn, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("retrieval.indexing.file_pages.PAGED_SUFFIXES", frozenset())
        earlier = cairn("index", tmp_path / "a.cairn", folder, *OPTIONS, "--json").json
    assert (earlier["added"], earlier["pages_left"]) == (2, 3)
    with Catalogue.open(tmp_path / "a.cairn") as catalogue:
        catalogue.write(keep_setting, PAGES_KEY, "[]")  # it knew no such setting
    before = cairn("metadata", tmp_path / "a.cairn", "--photo", "book.tif", "--json").json["date_added"]
    with monkeypatch.context() as patch:
        patch.setattr("retrieval.indexing.adding._add_segment", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert cairn("index", tmp_path / "a.cairn", folder).code
    assert names(tmp_path / "a.cairn") == ["book.tif", "single.tif"]
    reported = cairn("index", tmp_path / "a.cairn", folder, "--json").json
    assert (reported["added"], reported["unchanged"]) == (3, 2)
    assert names(tmp_path / "a.cairn") == [*NAMES, "single.tif"]
    assert cairn("metadata", tmp_path / "a.cairn", "--photo", "book.tif", "--json").json["date_added"] == before
    looked: list[Path] = []
    monkeypatch.setattr("retrieval.indexing.file_pages.other_pages", lambda path: looked.append(path) or [2, 3, 4])
    for _ in range(3):  # once more, to see that all pages are there, and never again
        assert cairn("index", tmp_path / "a.cairn", folder, "--json").json["unchanged"] == 5
    assert looked == [folder / "book.tif"]


def test_the_largest_page_stands_for_the_file(tmp_path: Path, cairn: Cairn) -> None:
    (tmp_path / "photos").mkdir()
    pages = [photo("coffee", (200, 150)), photo("chelsea", (320, 240)), photo("rocket", (200, 150))]
    pages[0].save(tmp_path / "photos" / "book.tif", save_all=True, append_images=pages[1:])
    cairn("index", tmp_path / "a.cairn", tmp_path / "photos", *OPTIONS)
    assert names(tmp_path / "a.cairn") == ["book.tif", "book.tif#1", "book.tif#3"]
    with public.open(tmp_path / "a.cairn") as opened:
        assert [(one.width, one.page) for one in opened.photos()] == [(320, None), (200, 1), (200, 3)]


def test_a_file_that_is_really_called_so_is_meant_before_a_page(tmp_path: Path, folder: Path, cairn: Cairn) -> None:
    shutil.copy(folder / "single.tif", folder / "book.tif#2")
    reported = cairn("index", tmp_path / "a.cairn", folder, folder / "book.tif#2", *OPTIONS, "--json").json
    assert (reported["added"], reported["pages_left"]) == (5, 1)
    with public.open(tmp_path / "a.cairn") as opened:
        real = next(one for one in opened.photos() if one.name == "book.tif#2")
        assert (real.path, real.page) == (str(folder / "book.tif#2"), None)
    assert cairn("query", tmp_path / "a.cairn", folder / "book.tif#2", "--json").json["results"][0]["name"] in (
        "book.tif#2",
        "single.tif",
    )


def test_pages_beyond_a_limit_are_passed_over_told_and_taken_later(
    folder: Path, tmp_path: Path, cairn: Cairn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def index(*limit: str | int) -> tuple[int, int, int, list[str]]:
        reported = cairn("index", tmp_path / "a.cairn", folder, *limit, "--json").json
        return reported["added"], reported["pages_left"], len(reported["vanished"]), names(tmp_path / "a.cairn")

    ran = cairn("index", tmp_path / "a.cairn", folder, *OPTIONS, "--max-pages", 2)
    assert "book.tif: 2 more pages of the file left out" in ran.out and "Pages left out: 2, beyond" in ran.out
    assert names(tmp_path / "a.cairn") == [*NAMES[:2], "single.tif"]
    assert index("--max-pages", 3) == (1, 0, 0, [*NAMES[:3], "single.tif"])
    os.utime(folder / "book.tif", (1e9, 1e9))
    assert index("--max-pages", 1) == (0, 0, 0, [*NAMES[:3], "single.tif"])  # what is there stays
    index("--max-pages", 3)
    with monkeypatch.context() as patch:  # neither as many pages nor fewer are a reason to look again
        patch.setattr("retrieval.indexing.file_pages.other_pages", lambda path: pytest.fail("it was opened"))
        assert index("--max-pages", 2)[0] == index("--max-pages", 3)[0] == 0
    assert index() == (1, 0, 0, [*NAMES, "single.tif"])
    with pytest.raises(public.CairnError, match="max_pages"), public.open(tmp_path / "a.cairn") as opened:
        opened.add(folder, max_pages=0)


def test_a_removed_page_stays_out_and_the_others_stay_in(collection: Path, folder: Path, cairn: Cairn) -> None:
    cairn("remove", collection, "book.tif#3", "--for-good")
    os.utime(folder / "book.tif", (1e9, 1e9))
    reported = cairn("index", collection, folder, "--json").json
    assert (reported["added"], reported["unchanged"], reported["kept_out"]) == (0, 4, [str(folder / "book.tif#3")])
    assert cairn("index", collection, folder, "--again", "--json").json["added"] == 1
    assert names(collection) == [*NAMES, "single.tif"]


def test_a_library_that_is_damaged_is_mended_page_by_page(collection: Path, folder: Path, cairn: Cairn) -> None:
    segment = next((collection / "segments").iterdir())
    for file in segment.glob("*.npy"):
        file.write_bytes(b"")
    (folder / "book.tif").rename(folder / "moved.tif")
    assert cairn("check", collection).code == 1
    cairn("repair", collection, "--photos", folder)
    assert cairn("check", collection).code == 0
    assert cairn("query", collection, "book.tif#3", "--json").json["results"][0]["name"] == "book.tif#3"


def test_of_too_many_pages_the_first_are_taken_and_the_others_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retrieval.photos.tiff.MOST_DIRECTORIES", 40)
    monkeypatch.setattr("retrieval.photos.decoding.MOST_PAGES", 30)
    with decoding_here():
        _read_tiny_pages(tmp_path / "tiny.tif", 40, 30)


@pytest.mark.slow
def test_many_tiny_pages_do_not_hang(tmp_path: Path) -> None:
    _read_tiny_pages(tmp_path / "tiny.tif", MOST_DIRECTORIES, MOST_PAGES)


def _read_tiny_pages(file: Path, most_directories: int, most_pages: int) -> None:
    """Look for the pages of a TIFF that has some more than are looked at, and read the first and the last."""
    count, entries = most_directories + 5, ((256, 3, 8), (257, 3, 8), (258, 3, 8), (259, 3, 1), (262, 3, 1))
    size = 2 + 12 * (len(entries) + 3) + 4
    start = 8 + 64
    data = bytearray(b"II*\0" + struct.pack("<I", start) + bytes(range(64)))
    for page in range(count):
        rows = [*entries, (273, 4, 8), (277, 3, 1), (279, 4, 64)]
        data += struct.pack("<H", len(rows)) + b"".join(
            struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in sorted(rows)
        )
        data += struct.pack("<I", start + (page + 1) * size if page < count - 1 else start)  # at last in a circle
    file.write_bytes(data)
    assert other_pages(file) == list(range(2, most_pages + 1))
    lead = read_photo(file)
    assert lead.grey.shape == (8, 8) and lead.remarks.pages == most_directories - 1
    assert np.array_equal(read_photo(Path(f"{file}#{most_pages}")).grey, lead.grey)


def test_the_bin_takes_a_file_with_all_of_its_pages_that_are_there(
    collection: Path, folder: Path, tmp_path: Path
) -> None:
    from retrieval.catalogue.changes import make_tombstones
    from retrieval.catalogue.photos import all_indexed
    from retrieval.curation.bin import move_to_bin
    from retrieval.curation.discarding import discard, restore

    book, bin_, there = folder / "book.tif", tmp_path / "bin", [*NAMES, "single.tif"]
    before = book.read_bytes()
    with Collection.open(collection) as opened:
        catalogue = opened.catalogue
        rows = catalogue.read(all_indexed)
        numbers = {str(row.name): row.number for row in rows}
        for some in (["book.tif"], ["book.tif#2", "book.tif#3", "book.tif#4"]):
            came = discard(catalogue, [numbers[name] for name in some], bin_, collection)
            assert not came.moved and all("choose all 4 pages" in str(reason) for reason in came.failed.values())
            assert len(came.failed) == len(some) and book.read_bytes() == before and names(collection) == there
        came = discard(catalogue, list(numbers.values()), bin_, collection)
        assert not came.failed and sorted(one.name for one in came.moved) == ["book.tif", "single.tif"]
        assert names(collection) == [] and not book.exists()
        assert not restore(catalogue, [one.id for one in came.moved] * 2, bin_).forgotten
        assert book.read_bytes() == before and catalogue.read(all_indexed) == rows and names(collection) == there
        # Without the page that stands for the file; then killed after the file was moved, and asked for again.
        catalogue.write(make_tombstones, [numbers["book.tif"], numbers["book.tif#3"]])
        left = [row for row in rows if row.name in ("book.tif#2", "book.tif#4")]
        entry = move_to_bin(left[0], bin_, collection, left[1:])
        assert not book.exists() and entry.path == str(book)
        assert discard(catalogue, [row.number for row in left], bin_, collection).moved == (entry,)
        assert names(collection) == ["single.tif"]
        catalogue.write(make_tombstones, [left[1].number])
        assert [one.number for one in restore(catalogue, [entry.id], bin_).moved] == [left[0].number]
    assert book.read_bytes() == before and names(collection) == ["book.tif#2", "book.tif#4", "single.tif"]


def test_tables_that_name_a_file_mean_the_photo_that_stands_for_it(
    collection: Path, tmp_path: Path, cairn: Cairn
) -> None:
    (tmp_path / "table.csv").write_text("photo,title\nbook,A book\nbook#3,The third page\nbook.tif#4,The fourth\n")
    reported = cairn("metadata", collection, tmp_path / "table.csv", "--json")
    assert reported.json["matched"] == 3
    with public.open(collection) as opened:
        titles = {one.name: one.title for one in opened.photos() if one.title}
    assert titles == {"book.tif": "A book", "book.tif#3": "The third page", "book.tif#4": "The fourth"}


def test_what_is_decided_of_a_page_is_written_beside_its_file_and_read_for_it_alone(
    collection: Path, folder: Path, tmp_path: Path, cairn: Cairn
) -> None:
    (tmp_path / "table.csv").write_text("photo,title\nbook.tif#3,The third page\n")
    cairn("metadata", collection, tmp_path / "table.csv")
    reported = cairn("metadata", collection, "--write-sidecars", "--json").json["sidecars"]
    assert (reported["written"], reported["missing"], reported["failed"]) == (1, 0, [])
    assert (folder / "book.tif#3.xmp").is_file()
    cairn("index", tmp_path / "b.cairn", folder, *OPTIONS)
    with public.open(tmp_path / "b.cairn") as opened:
        assert {one.name: one.title for one in opened.photos() if one.title} == {"book.tif#3": "The third page"}


def test_a_new_vocabulary_is_made_of_pages(collection: Path, folder: Path, cairn: Cairn) -> None:
    assert cairn("retrain", collection, "--words", 30, "--descriptor", "sift").code == 0
    assert names(collection) == [*NAMES, "single.tif"]
    found = cairn("query", collection, folder / "book.tif#4", "--json").json["results"][0]
    assert (found["name"], found["found"]) == ("book.tif#4", True)


def test_reduced_pages_masks_and_what_lies_below_are_no_pages(tmp_path: Path) -> None:
    rgb, page = np.asarray(photo("coffee")), {"photometric": "rgb"}
    small, mask = rgb[::2, ::2].copy(), np.zeros(rgb.shape[:2], bool)
    file = tmp_path / "pyramid.tif"
    file.write_bytes(
        tiff_pages(
            (rgb, {"subifds": 1, **page}),
            (small, page),  # below the first
            (small, {"subfiletype": 1, **page}),
            (mask, {"subfiletype": 4, "photometric": "minisblack"}),
            (rgb[::-1].copy(), page),
        )
    )
    assert other_pages(file) == [2]
    Image.fromarray(rgb).save(tmp_path / "one.tif")
    assert other_pages(tmp_path / "one.tif") == []
    Image.fromarray(rgb).save(tmp_path / "one.jpg")
    assert other_pages(tmp_path / "one.jpg") == []
