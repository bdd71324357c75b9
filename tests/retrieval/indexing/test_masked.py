from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from PIL import Image

import cairn
from retrieval.catalogue.masked import count_masked, names_of_text_alone, note_masked
from retrieval.features.encoding import decode_geometry
from retrieval.photos.remarks import Remarks
from retrieval.search.query import PhotoUnusable
from tests.retrieval.metadata.test_mets import METS
from tests.support.hostile import photo

_ALTO = b"""<alto xmlns="http://www.loc.gov/standards/alto/ns-v4#"><Layout><Page WIDTH="320" HEIGHT="240"><PrintSpace>
<TextBlock HPOS="0" VPOS="0" WIDTH="%d" HEIGHT="240"/></PrintSpace></Page></Layout></alto>"""


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """A collection that leaves out text: of one page none, of one the left half, of one all of it."""
    folder = tmp_path_factory.mktemp("masked")
    pages = folder / "pages"
    (pages / "img").mkdir(parents=True)
    (pages / "mets.xml").write_bytes(METS)
    photo("coffee", (320, 240)).save(pages / "img" / "a.png")
    for name, width in (("half", 160), ("text", 320)):
        photo("rocket" if name == "half" else "chelsea", (320, 240)).save(pages / f"{name}.png")
        (pages / f"{name}.xml").write_bytes(_ALTO % width)
    with cairn.create(folder / "book.cairn", ignore="text", words=50) as collection:
        report = collection.add(pages)
        assert (report.added, report.text_masked, report.text_only, report.featureless) == (3, 2, 1, 1)
        yield collection, pages


def test_what_was_left_out_is_counted_and_photos_of_text_alone_are_named(book, cairn):
    collection, _ = book
    info = collection.info()
    assert (info.text_masked, info.text_only, info.featureless) == (2, ["text.png"], ["text.png"])
    printed = cairn("info", collection.folder).out
    assert "left out of 2 photos" in printed and "text.png: nothing but text" in printed


def test_features_of_text_are_gone_and_kept_with_the_collection(book):
    collection, pages = book
    opened = collection.opened
    assert opened.options.features.ignore == "text"
    with cairn.create(pages.parent / "plain.cairn", words=50) as plain:
        plain.add(pages / "half.png")
        assert plain.opened.features_fingerprint != opened.features_fingerprint
        assert not plain.info().text_masked
    (row,) = (one for one in collection.photos() if one.name == "half.png")
    columns = opened.index.images.features(row.number).columns
    x = decode_geometry(columns, np.arange(row.features)).centres[:, 0] * 320
    assert row.features and (x > 159).all()


def test_a_box_and_an_upload_of_text_alone_are_told_in_a_sentence(book, tmp_path):
    collection, pages = book
    with pytest.raises(PhotoUnusable, match="only printed text in the box"):
        collection.search(pages / "half.png", box=(5, 5, 120, 200))
    assert collection.search(pages / "half.png", box=(170, 5, 310, 235)).results[0].name == "half.png"
    photo("astronaut", (320, 240)).save(tmp_path / "new.png")
    (tmp_path / "new.xml").write_bytes(_ALTO % 320)
    with pytest.raises(PhotoUnusable, match="only printed text in the photo"):
        collection.search(tmp_path / "new.png")
    Image.new("L", (320, 240), 200).save(tmp_path / "blank.png")
    assert not collection.search(tmp_path / "blank.png")


def test_what_mets_says_is_metadata(book):
    collection, _ = book
    (row,) = (one for one in collection.photos() if one.name == "img/a.png")
    assert row.title == "Of Tulips, 12r"
    reported = {label.casefold(): tuple(values) for label, values in row.others.items()}
    assert (reported["page"], reported["page order"], reported["section"]) == (
        ("12r",),
        ("1",),
        ("Book I", "Chapter 3"),
    )


def test_other_kinds_are_refused(tmp_path):
    with pytest.raises(cairn.CairnError, match="ignore"):
        cairn.create(tmp_path / "a.cairn", ignore="faces")


def test_numbers_are_kept_as_ranges_and_those_of_no_photo_do_not_count(book):
    collection, _ = book
    catalogue = collection.opened.catalogue
    before = catalogue.read(count_masked), catalogue.read(names_of_text_alone)
    catalogue.write(note_masked, [1000, 1001, 1002, 2000])
    assert "1000-1002,2000" in catalogue.setting("text.masked")
    assert (catalogue.read(count_masked), catalogue.read(names_of_text_alone)) == before


def test_a_match_of_type_alone_asks_whether_it_is_the_same_text(book, tmp_path):
    _, pages = book
    (tmp_path / "p").mkdir()
    for name in ("half", "text"):
        for ending in ("png", "xml"):
            (tmp_path / "p" / f"{name}.{ending}").write_bytes((pages / f"{name}.{ending}").read_bytes())
    with cairn.create(tmp_path / "plain.cairn", words=50) as plain:
        plain.add(tmp_path / "p")
        reported = {}
        for name in ("half", "text"):
            photo_of = tmp_path / "p" / f"{name}.png"
            match = plain.match(photo_of, f"{name}.png")
            reported[name] = match.to_dict()["is_of_text"]
            assert match.found
        assert reported == {"half": False, "text": True}
        match = plain.match(tmp_path / "p" / "text.png", "text.png")
        for name in ("half", "text"):  # the same pages once more, in other files
            Image.open(tmp_path / "p" / f"{name}.png").resize((319, 239)).save(tmp_path / "p" / f"{name}-2.png")
            (tmp_path / "p" / f"{name}-2.xml").write_bytes((pages / f"{name}.xml").read_bytes())
        plain.add(tmp_path / "p")
        for name, expected in (("half", ()), ("text", (plain.photo("text-2.png").number,))):
            answer = plain.search(tmp_path / "p" / f"{name}.png")
            assert f"{name}-2.png" in [one.name for one in answer.found]
            assert answer.text_alone == expected
        (tmp_path / "p" / "text.png").write_bytes((tmp_path / "p" / "half.png").read_bytes())
        assert not match.is_of_text  # its file is no longer what was indexed


def test_a_page_whose_text_is_elsewhere_now_is_described_again(tmp_path):
    folder = tmp_path / "pages"
    folder.mkdir()
    for name in ("rocket", "coffee"):
        photo(name, (320, 240)).save(folder / f"{name}.png")
    (folder / "rocket.xml").write_bytes(_ALTO % 160)

    def leftmost(collection):
        (row,) = (one for one in collection.photos() if one.name == "rocket.png")
        columns = collection.opened.index.images.features(row.number).columns
        return decode_geometry(columns, np.arange(row.features)).centres[:, 0].min() * 320

    with cairn.create(tmp_path / "book.cairn", ignore="text", words=50) as collection:
        collection.add(folder)
        assert leftmost(collection) > 159
        (folder / "rocket.xml").write_bytes(_ALTO % 40)
        report = collection.add(folder)
        assert report.unchanged == 1 and len(collection) == 2
        assert 39 < leftmost(collection) < 159
        assert collection.add(folder).unchanged == 2
        assert collection.check().ok


def test_remarks_are_numbers_that_earlier_versions_wrote_too():
    for flags in product((False, True), repeat=3):
        remarks = Remarks(0.25, flags[0], 3, flags[1], flags[2])
        assert Remarks.of_numbers(remarks.numbers()) == remarks
    assert Remarks.of_numbers((0.0, 1.0, 0.0, 1.0)) == Remarks(rough=True, over_dark=True)
