"""Which file and which page the path of a photo means."""

import hashlib
from pathlib import Path

import pytest

from retrieval.metadata.pages import file_of, hash_photo, page_content, page_path, split_page, stem_of
from retrieval.metadata.photo import read_metadata
from retrieval.metadata.sidecars import sidecars_of
from tests.support.books import write_book
from tests.support.metadata_files import xmp


@pytest.mark.parametrize(
    ("path", "file", "page"),
    [
        ("a/book.tif#12", "a/book.tif", 12),
        ("a/book.tif#1", "a/book.tif", 1),
        ("a/scan#2#3", "a/scan#2", 3),
        ("a/book.tif#0", "a/book.tif#0", None),
        ("a/book.tif#012", "a/book.tif#012", None),
        ("a/book.tif#12345678", "a/book.tif#12345678", None),
        ("a/book.tif#", "a/book.tif#", None),
        ("a/book#2.tif", "a/book#2.tif", None),
        ("a/#2", "a/#2", None),
        ("#2", "#2", None),
        ("a#1/book.tif", "a#1/book.tif", None),
        ("a/b\nc.tif#2", "a/b\nc.tif", 2),
        ("a/\udce9.tif#2", "a/\udce9.tif", 2),
        ("a/" + 300 * "b" + "#2", "a/" + 300 * "b", 2),
    ],
)
def test_a_path_is_of_a_file_or_of_a_page_of_one(path: str, file: str, page: int | None) -> None:
    assert split_page(path) == (Path(file), page)
    assert str(page_path(file, page)) == path and file_of(path) == Path(file)


def test_a_file_that_is_really_called_so_has_no_pages(tmp_path: Path) -> None:
    (tmp_path / "book.tif#2").touch()
    assert split_page(tmp_path / "book.tif#2") == (tmp_path / "book.tif#2", None)
    (tmp_path / "book.tif#3").symlink_to(tmp_path / "nowhere")
    assert split_page(tmp_path / "book.tif#3")[1] is None


def test_contents_of_pages_differ_and_hang_on_nothing_but_file_and_number(tmp_path: Path) -> None:
    for name in ("a.tif", "b.tif"):
        (tmp_path / name).write_bytes(b"one")
    whole = hashlib.sha256(b"one").hexdigest()
    assert hash_photo(tmp_path / "a.tif") == whole == page_content(whole, None)
    assert hash_photo(tmp_path / "a.tif#2") == hash_photo(tmp_path / "b.tif#2") == page_content(whole, 2)
    assert page_content(whole, 2) == hashlib.sha256(f"{whole}#2".encode()).hexdigest()
    assert len({page_content(whole, page) for page in (None, 1, 2, 11, 12)}) == 5
    with pytest.raises(FileNotFoundError):
        hash_photo(tmp_path / "c.tif#2")


def test_stems_keep_their_page() -> None:
    assert [stem_of(name) for name in ("a/b.tif", "a/b.tif#2", "b", "b#2")] == ["b", "b#2", "b", "b#2"]


def test_pages_have_what_their_file_says_but_for_a_sidecar_of_their_own(tmp_path: Path) -> None:
    book = write_book(tmp_path / "book.tif")
    (tmp_path / "book.tif.xmp").write_bytes(xmp("<dc:title>The book</dc:title>"))
    assert {read_metadata(Path(f"{book}{page}"), strict=True).title for page in ("", "#2")} == {"The book"}
    own = sidecars_of(page_path(book, 2))[0]
    own.write_bytes(xmp("<dc:title>Its second page</dc:title>"))
    titles = [read_metadata(Path(f"{book}{page}")).title for page in ("", "#2", "#3")]
    assert titles == ["The book", "Its second page", "The book"]
