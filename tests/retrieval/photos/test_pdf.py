"""Pages of PDF as photos."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import cairn as public
from index.errors import CairnError
from retrieval.photos import listing
from retrieval.photos.apart import decoding_here
from retrieval.photos.decoding import other_pages, read_colour, read_orientation, read_photo
from retrieval.photos.options import ImageOptions
from retrieval.photos.work import PhotoTooLarge
from tests.conftest import Ran
from tests.support.books import PAGES, write_book
from tests.support.hostile import photo

Cairn = Callable[..., Ran]


@pytest.fixture
def book(tmp_path: Path) -> Path:
    pytest.importorskip("pypdfium2")
    (tmp_path / "photos").mkdir()
    return write_book(tmp_path / "photos" / "book.pdf")


@pytest.fixture
def no_pdf(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the package that reads PDF not be installed."""
    monkeypatch.setitem(__import__("sys").modules, "pypdfium2", None)
    monkeypatch.setattr(listing, "_reads_pdf", lambda: False)


def test_every_page_is_drawn_as_it_is(book: Path) -> None:
    assert other_pages(book) == [2, 3, 4]
    for number, shown in enumerate(PAGES, 1):
        path = Path(f"{book}#{number}")
        read, wanted = read_colour(path), np.asarray(photo(shown, (321 - number, 241 - number)))
        assert np.abs(read.shape[0] - wanted.shape[0]) <= 1 and np.abs(read.shape[1] - wanted.shape[1]) <= 1
        rows, columns = (min(pair) for pair in zip(read.shape, wanted.shape, strict=True) if pair != (3, 3))
        assert np.abs(read[:rows, :columns].astype(float) - wanted[:rows, :columns]).mean() < 12
        with decoding_here():
            np.testing.assert_array_equal(read_colour(path), read)
    np.testing.assert_array_equal(read_photo(book).grey, read_photo(Path(f"{book}#1")).grey)
    assert read_photo(book).remarks.pages == 3 and read_orientation(book) == 1


def test_pages_are_found(book: Path, tmp_path: Path, cairn: Cairn) -> None:
    reported = cairn("index", tmp_path / "a.cairn", book.parent, "--words", 40, "--workers", 1, "--json").json
    assert (reported["added"], reported["failed"], reported["pages_left"]) == (4, [], 0)
    photo("rocket", (300, 225)).save(tmp_path / "query.png")
    found = cairn("query", tmp_path / "a.cairn", tmp_path / "query.png", "--json").json["results"][0]
    assert (found["name"], found["path"], found["page"], found["found"]) == ("book.pdf#3", str(book), 3, True)
    assert cairn("index", tmp_path / "a.cairn", book.parent, "--json").json["unchanged"] == 4
    with public.open(tmp_path / "a.cairn") as opened:
        assert all(one.thumbnail(128).startswith(b"\xff\xd8") for one in opened.photos())


def test_a_large_page_is_refused_before_it_is_drawn(book: Path) -> None:
    with pytest.raises(PhotoTooLarge, match="320x240"):
        read_photo(book, ImageOptions(max_pixels=1000))


def test_what_is_damaged_or_locked_is_said_in_a_sentence(book: Path, tmp_path: Path) -> None:
    whole = book.read_bytes()
    for content in (whole[:9], whole[: len(whole) // 3], b"%PDF-1.4\n" + bytes(5000)):
        book.write_bytes(content)
        with pytest.raises(CairnError, match=r"damaged|truncated|page"):
            read_photo(book)
    book.write_bytes(_locked())
    with pytest.raises(CairnError, match="the PDF is locked by a password"):
        read_photo(book)


def _locked() -> bytes:
    """Return a PDF whose standard encryption no empty password opens."""
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 72 72]>>",
        b"<</Filter/Standard/V 1/R 2/P -4/O<" + b"ab" * 32 + b">/U<" + b"cd" * 32 + b">>>",
    ]
    body, places = b"%PDF-1.4\n", []
    for number, one in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    table = b"xref\n0 5\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % place for place in places)
    trailer = b"trailer<</Size 5/Root 1 0 R/Encrypt 4 0 R/ID[<00><00>]>>\nstartxref\n%d\n%%%%EOF" % len(body)
    return body + table + trailer


def test_without_the_package_pdfs_are_passed_over_and_one_that_is_given_says_what_to_install(
    tmp_path: Path, no_pdf: None, cairn: Cairn
) -> None:
    (tmp_path / "photos").mkdir()
    book = write_book(tmp_path / "photos" / "book.pdf")
    photo("coffee").save(tmp_path / "photos" / "a.png")
    reported = cairn("index", tmp_path / "a.cairn", book.parent, "--words", 40, "--workers", 1, "--json").json
    assert (reported["added"], reported["failed"]) == (1, [])
    with decoding_here(), pytest.raises(CairnError, match="PDF needs an optional package: pip install pypdfium2"):
        read_photo(book)
