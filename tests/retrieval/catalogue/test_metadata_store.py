"""Metadata in the catalogue, and filters by it, over SQLite and over PostgreSQL."""

import random
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from index.errors import CairnError
from retrieval.catalogue.browsing import numbers_of, values_of
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.changes import make_tombstones, replace_segments
from retrieval.catalogue.curation.hidden import hide
from retrieval.catalogue.filters import PhotoFilter, parse_condition
from retrieval.catalogue.metadata_store import (
    PhotoMetadata,
    column_key,
    copy_imported,
    import_values,
    key_counts,
    metadata_of,
    store_metadata,
    tag_counts,
)
from retrieval.catalogue.photos import rows_of
from retrieval.catalogue.schema import ImageRow
from retrieval.catalogue.segment_rows import commit_segment
from retrieval.catalogue.settings import reserve_numbers
from retrieval.metadata.fields import Metadata
from retrieval.metadata.places import Near, great_circle_km
from tests.retrieval.catalogue.test_catalogue import add, segment_row

HOSTILE = "<script>alert('1')</script> %_\\ \"; DROP TABLE metadata; --"


@pytest.fixture(params=["sqlite", "postgresql"])
def catalogue(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalogue]:
    address = request.getfixturevalue("postgresql")() if request.param == "postgresql" else str(tmp_path / "c")
    with Catalogue.open(address, create=True) as opened:
        yield opened


def _rows(catalogue: Catalogue) -> int:
    with catalogue.reading() as session:
        return session.execute(sa.text("SELECT count(*) FROM metadata")).scalar_one()


def test_fields_without_a_column_are_filtered_and_counted(catalogue: Catalogue) -> None:
    numbers = [row.number for row in add(catalogue, "000001", [f"/{name}.jpg" for name in "abcde"])]
    said = [
        Metadata(caption="Seen from the Mühle", rating=3),
        Metadata(caption="The mill", rating=5, favourite=True),
        Metadata(rating=1),
        Metadata(caption="100% wool"),
        Metadata(),
    ]
    catalogue.write(store_metadata, list(zip(numbers, said, strict=True)))
    one, two, three, four, _ = numbers

    def found(**asked: Any) -> list[int]:
        return list(catalogue.read(numbers_of, PhotoFilter(**asked)))

    assert found(caption="FROM THE M") == [one]
    assert found(caption="the mill") == [two]
    assert found(caption="0%") == [four]
    assert found(rating=3) == [one, two]
    assert found(rating=1) == [one, two, three]
    assert found(favourite=True) == [two]
    # What was imported counts, and not what the file says.
    catalogue.write(
        import_values,
        {one: {"rating": ["1"], "caption": ["Chapel"]}, two: {"favourite": ["no"]}, three: {"rating": ["fine"]}},
    )
    assert found(rating=3) == [two]
    assert found(caption="from the m") == found(favourite=True) == []
    assert catalogue.read(values_of, "rating") == [("1", 1), ("5", 1)]
    catalogue.write(hide, [two], "a copy")
    assert catalogue.read(values_of, "rating") == [("1", 1)]
    known = catalogue.read(metadata_of, numbers)
    assert (known[one].rating, known[one].caption, known[two].favourite) == (1, "Chapel", False)


def test_pages_are_known_by_their_order_in_the_book_or_the_file(catalogue: Catalogue) -> None:
    paths = ["/a.tif", "/a.tif#2", "/a.tif#10", "/b#2.tif", "/c12", "/d#x3", "/e#12345678", "/f#2"]
    numbers = [row.number for row in add(catalogue, "000001", paths)]
    catalogue.write(import_values, {numbers[0]: {"page order": ["11"]}, numbers[1]: {"page order": ["2b", "3"]}})

    def found(pages: str | int) -> list[str]:
        there = catalogue.read(numbers_of, PhotoFilter(pages=pages))  # type: ignore[arg-type]
        return [paths[numbers.index(one)] for one in there]

    assert found("1") == ["/b#2.tif", "/c12", "/d#x3", "/e#12345678"]
    assert found(2) == ["/a.tif#2", "/f#2"]
    assert found(" 2 - 10 ") == ["/a.tif#2", "/a.tif#10", "/f#2"] and found("10–") == ["/a.tif", "/a.tif#10"]
    for wrong in ("0", "-3", "5-2", "a", "1,2", "1" * 8, "²"):
        with pytest.raises(CairnError, match="Write pages as 12, as 1-10 or, from one page on, as 5-"):
            PhotoFilter(pages=wrong)


def test_a_text_that_was_imported_before_there_was_such_a_field_is_kept_as_text(catalogue: Catalogue) -> None:
    (one,) = (row.number for row in add(catalogue, "000001", ["/a.jpg"]))
    catalogue.write(
        import_values, {one: {"rating": ["A+"], "caption": ["Bridge", "River"]}}, labels={"rating": "Rating"}
    )
    known = catalogue.read(metadata_of, [one])[one]
    assert (known.rating, known.caption, dict(known.others)) == (None, "Bridge", {"Rating": ("A+",)})
    assert list(catalogue.read(numbers_of, PhotoFilter(where=(("Rating", "a+"),)))) == [one]


@pytest.mark.parametrize("asked", [{"rating": 0}, {"rating": 6}, {"rating": "good"}, {"favourite": "very"}])
def test_a_filter_of_another_type_is_refused(asked: dict[str, Any]) -> None:
    with pytest.raises(CairnError, match=r"rating is|favourite is"):
        PhotoFilter(**asked)


def test_what_was_imported_wins_and_is_kept_beside_what_the_file_says(catalogue: Catalogue) -> None:
    one, two = (row.number for row in add(catalogue, "000001", ["/a.jpg", "/b.jpg"]))
    file = Metadata("2015-02-03T10:00:00", "Epson V850", 48.8584, 2.2945, "scan 17", ("scan", "Köln"))
    catalogue.write(store_metadata, [(one, file), (two, Metadata())])
    assert catalogue.read(metadata_of, [one, two, 99]) == {
        one: PhotoMetadata(*file.__dict__.values()),
        two: PhotoMetadata(),
        99: PhotoMetadata(),
    }
    catalogue.write(
        import_values, {one: {"taken": ["1923"], "tag": ["Dom", "KÖLN"], "archive": [HOSTILE]}, 99: {"x": ["y"]}}
    )
    known = catalogue.read(metadata_of, [one])[one]
    assert (known.taken, known.title, known.tags) == ("1923", "scan 17", ("Dom", "Köln", "scan"))
    assert (known.others, known.imported) == ({"archive": (HOSTILE,)}, {"taken", "tag", "archive"})
    row = catalogue.read(rows_of, [one])[0]
    assert (row.taken, row.latitude, row.camera, row.title) == ("1923", 48.8584, "Epson V850", "scan 17")

    # Another import leaves what it does not speak of; the file is read again, and what was imported stays.
    catalogue.write(import_values, {one: {"archive": ["7"], "latitude": ["-10.5"], "longitude": ["20"]}})
    catalogue.write(store_metadata, [(one, Metadata("2016", title="new"))])
    known = catalogue.read(metadata_of, [one])[one]
    assert (known.taken, known.title, known.latitude, known.others) == ("1923", "new", -10.5, {"archive": ("7",)})
    assert catalogue.read(key_counts) == [(k, 1) for k in ("archive", "latitude", "longitude", "tag", "taken", "title")]

    # Forgetting what was imported brings back what the file says.
    catalogue.write(import_values, {two: {"title": ["two"]}}, replace=True)
    assert catalogue.read(metadata_of, [one])[one] == PhotoMetadata("2016", title="new")
    row = catalogue.read(rows_of, [one])[0]
    assert (row.taken, row.latitude, row.title, row.camera) == ("2016", None, "new", None)


def test_a_photo_that_changed_keeps_what_was_imported(catalogue: Catalogue) -> None:
    (old,) = add(catalogue, "000001", ["/a.jpg"])
    catalogue.write(store_metadata, [(old.number, Metadata("2015", title="old", tags=("x",)))])
    catalogue.write(import_values, {old.number: {"title": ["bridge"], "tag": ["river"], "box": ["7"]}})
    (new,) = add(catalogue, "000002", ["/b.jpg"])
    catalogue.write(
        store_metadata, [(new.number, Metadata("2016", title="new", tags=("y",))), (old.number, Metadata("1"))]
    )
    with catalogue.writing() as session:
        copy_imported(session, old.number, new.number)
        copy_imported(session, 99, new.number)
    catalogue.write(make_tombstones, [old.number])
    known = catalogue.read(metadata_of, [new.number])[new.number]
    assert (known.taken, known.title, known.tags, known.others) == ("2016", "bridge", ("river", "y"), {"box": ("7",)})
    assert catalogue.read(rows_of, [new.number])[0].title == "bridge"
    assert catalogue.read(tag_counts) == [("river", 1), ("y", 1)]  # the tombstone's do not count
    rows = _rows(catalogue)
    catalogue.write(replace_segments, [old.segment_id], [])  # type: ignore[list-item]
    assert 0 < _rows(catalogue) < rows  # they go with it


def test_nothing_is_imported_where_the_database_refuses_a_part(catalogue: Catalogue) -> None:
    one, two = (row.number for row in add(catalogue, "000001", ["/a.jpg", "/b.jpg"]))
    catalogue.write(import_values, {one: {"title": ["before"]}})
    with pytest.raises(CairnError):
        catalogue.write(import_values, {one: {"title": ["after"]}, two: {None: ["x"]}}, replace=True)  # type: ignore[dict-item]
    assert catalogue.read(metadata_of, [one])[one].title == "before" == catalogue.read(rows_of, [one])[0].title


# By name: taken, camera, position, title, tags, imported.
PHOTOS: dict[str, tuple[Any, ...]] = {
    "rome/1.jpg": ("1923", "Leica III", (41.8902, 12.4922), "Colosseo", ("Rome", "arch"), {"archive": "Berlin"}),
    "rome/2.jpg": ("1923-05", "Leica III", (41.9, 12.5), "Trevi 100%", ("rome",), {"archive": "berlin", "box": "7"}),
    "rome/3.jpg": ("1923-05-17", None, None, "été_", ("arch",), {"archive": "Köln"}),
    "fiji/1.jpg": ("1923-05-17T14:30:05", "NIKON D70", (-17.0, 179.95), None, (), {}),
    "fiji/2.jpg": ("1923-12-31T23:59:59", "NIKON D90", (-17.0, -179.95), "Été", ("Straße",), {"box": HOSTILE}),
    "pole/1.jpg": ("1924", None, (89.9, 10.0), HOSTILE, (HOSTILE,), {"title": HOSTILE}),
    "pole/2.jpg": ("1922-12", None, (89.95, -170.0), None, (), {}),
    "none.jpg": (None, None, None, None, (), {}),
}
DATES = ["", "1922", "1923", "1923-01", "1923-05", "1923-05-17", "1923-05-18", "1923-12", "1924", "1923-05-17 14:30:05"]
NEAR = [
    Near(41.8902, 12.4922, 0.001),
    Near(41.8902, 12.4922, 2),
    Near(-17, 180, 6),
    Near(-17, -180, 6),
    Near(-17, 179.95, 5),
    Near(90, 0, 12),
    Near(89.9, 10, 20),
    Near(0, 0, 21_000),
]


@pytest.fixture
def filled(catalogue: Catalogue) -> Catalogue:
    names = list(PHOTOS)
    rows = [ImageRow(number=i, path=f"/p/{name}", name=name, position=i) for i, name in enumerate(names)]
    catalogue.write(reserve_numbers, len(rows))
    catalogue.write(commit_segment, segment_row("000001", len(rows)), rows)
    found = []
    for number, (taken, camera, place, title, tags, _) in enumerate(PHOTOS.values()):
        found.append((number, Metadata(taken, camera, *(place or (None, None)), title, tags)))
    catalogue.write(store_metadata, found)
    imported = {i: {k: [v] for k, v in one[-1].items()} for i, one in enumerate(PHOTOS.values())}
    catalogue.write(import_values, imported)
    (gone,) = add(catalogue, "000002", ["/gone.jpg"])
    catalogue.write(store_metadata, [(gone.number, Metadata("1923", title="Colosseo", tags=("rome",)))])
    catalogue.write(make_tombstones, [gone.number])
    return catalogue


def _found(catalogue: Catalogue, **wanted: Any) -> list[str]:
    """Names of the photos that pass, by both ways of asking."""
    asked = PhotoFilter(**wanted)
    total, rows = catalogue.page(0, 100, wanted=asked)
    assert (
        total == len(rows) and sorted(row.number for row in rows) == catalogue.read(numbers_of, wanted=asked).tolist()
    )
    return [str(row.name) for row in rows]


def _expected(passes: Any) -> list[str]:
    return sorted(name for name, photo in PHOTOS.items() if passes(photo))


def _span(date: str) -> tuple[str, str]:
    """The first and the last second that a date may stand for."""
    date = date.replace(" ", "T")
    return date + "0000-01-01T00:00:00"[len(date) :], date + "9999-12-31T23:59:59"[len(date) :]


def test_dates_pass_that_may_be_in_the_time(filled: Catalogue) -> None:
    for first, last in product(DATES, DATES):
        since, until = _span(first)[0] if first else "", _span(last)[1] if last else "9999"
        if since > until:
            with pytest.raises(CairnError, match="earlier date first"):
                PhotoFilter(taken_from=first, taken_to=last)
            continue

        def passes(photo: Any, since: str = since, until: str = until, any: bool = not first + last) -> bool:
            if photo[0] is None or any:
                return any
            begins, ends = _span(photo[0])
            return begins <= until and ends >= since

        assert _found(filled, taken_from=first, taken_to=last) == _expected(passes), (first, last)
    assert "rome/1.jpg" in _found(filled, taken_from="1920", taken_to="1923")
    assert "fiji/2.jpg" in _found(filled, taken_to="1923")


def test_places_pass_that_are_near(filled: Catalogue) -> None:
    counts = []
    for near in NEAR:

        def passes(photo: Any, near: Near = near) -> bool:
            return photo[2] is not None and great_circle_km(near.latitude, near.longitude, *photo[2]) <= near.kilometres

        counts.append(len(_found(filled, near=near)))
        assert _found(filled, near=near) == _expected(passes), near
    assert counts == [1, 2, 2, 2, 1, 2, 2, 6]


OTHERS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, sorted(PHOTOS)),
    ({"camera": "leica"}, ["rome/1.jpg", "rome/2.jpg"]),
    ({"camera": "D_0"}, []),
    ({"title": "0%"}, ["rome/2.jpg"]),
    ({"title": "_"}, ["pole/1.jpg", "rome/3.jpg"]),
    ({"title": HOSTILE.upper()}, ["pole/1.jpg"]),
    ({"tags": ("ROME",)}, ["rome/1.jpg", "rome/2.jpg"]),
    ({"tags": ("rome", "arch")}, ["rome/1.jpg"]),
    ({"tags": ("rom",)}, []),
    ({"tags": ("STRASSE", " ", "")}, ["fiji/2.jpg"]),
    ({"tags": (HOSTILE,)}, ["pole/1.jpg"]),
    ({"tags": ("arch",), "without_tags": ("rome",)}, ["rome/3.jpg"]),
    ({"where": (("Archive", "BERLIN"),)}, ["rome/1.jpg", "rome/2.jpg"]),
    ({"where": (("archive", "berlin"), ("box", "7"))}, ["rome/2.jpg"]),
    ({"where": (("box", HOSTILE),)}, ["fiji/2.jpg"]),
    ({"where": (("keywords", "arch"),)}, ["rome/1.jpg", "rome/3.jpg"]),
    ({"where": (("title", "colosseo"),)}, ["rome/1.jpg"]),
    ({"where": (("archive' OR 1=1 --", "x"),)}, []),
    ({"name": "1", "folder": "rome", "camera": "III", "tags": ("arch",), "taken_to": "1923"}, ["rome/1.jpg"]),
    ({"name": "\0"}, []),
    ({"title": "\0x\ud800"}, []),
    ({"tags": ("\0\ud800",)}, []),
]


@pytest.mark.slow
def test_other_filters(filled: Catalogue) -> None:
    for wanted, names in OTHERS:
        assert _found(filled, **wanted) == names, wanted


def test_an_imported_value_hides_that_of_the_file(filled: Catalogue) -> None:
    filled.write(import_values, {0: {"title": ["Amphitheatre"], "taken": ["1930"]}})
    assert _found(filled, where=(("title", "Colosseo"),)) == _found(filled, title="Colosseo") == []
    assert _found(filled, where=(("title", "Amphitheatre"),)) == _found(filled, taken_from="1930") == ["rome/1.jpg"]


def test_tags_are_counted(filled: Catalogue) -> None:
    assert filled.read(tag_counts) == [("arch", 2), ("rome", 2), (HOSTILE, 1), ("Straße", 1)]
    assert filled.read(tag_counts, 1) == [("arch", 2)]
    filled.write(import_values, {0: {"tag": ["ROME"]}})  # both say it
    assert dict(filled.read(tag_counts))["rome"] == 2


def test_keys_and_tags_are_counted_as_one_would_by_hand(catalogue: Catalogue) -> None:
    rng = random.Random(3)
    tags = [f"tag {i}" for i in range(12)]
    photos = [row.number for row in add(catalogue, "000001", [f"/{i}.jpg" for i in range(60)])]

    def some() -> tuple[str, ...]:
        return tuple(rng.sample(tags, rng.randint(0, 4)))

    catalogue.write(
        store_metadata,
        [(number, Metadata(taken="2001" if rng.random() < 0.5 else None, tags=some())) for number in photos],
    )
    imported = {
        number: {"taken": ["1923"], "archive": ["7", "8"]} | ({"tag": list(mine)} if (mine := some()) else {})
        for number in rng.sample(photos, 30)
    }
    catalogue.write(import_values, imported)
    catalogue.write(make_tombstones, rng.sample(photos, 15))
    known = catalogue.read(metadata_of, catalogue.read(numbers_of).tolist()).values()
    counted = Counter(tag for one in known for tag in one.tags)
    assert catalogue.read(tag_counts) == sorted(counted.items(), key=lambda one: (-one[1], one[0]))
    for limit in (1, 4, 7):
        assert catalogue.read(tag_counts, limit) == catalogue.read(tag_counts)[:limit]
    keys = Counter(key for one in known for key in ("taken",) if one.taken)
    keys.update(key for one in known for key in one.others)
    keys["tag"] = sum(bool(one.tags) for one in known)
    assert catalogue.read(key_counts) == sorted(keys.items())


def test_filters_say_what_was_asked_for() -> None:
    assert not PhotoFilter() and not PhotoFilter(title=" \0", tags=("",)) and PhotoFilter(name="a")
    asked = PhotoFilter(taken_to="17.05.1923", tags=("a\0",), near=Near(1, 2, 3), where=(parse_condition("Lat=a=b"),))
    assert asked.describe() == {
        "taken_to": "1923-05-17",
        "tags": ["a"],
        "near": {"latitude": 1, "longitude": 2, "kilometres": 3},
        "where": [["latitude", "a=b"]],
    }
    assert (column_key(" Date\tTaken "), column_key("ARCHIVE"), column_key("x" * 99)) == ("taken", "archive", "x" * 64)
    assert PhotoFilter(taken_from="1923-05", taken_to="1923") == PhotoFilter(taken_from="1923-05", taken_to="1923")
    for wrong in ({"taken_from": "soon"}, {"taken_to": "1923-13"}, {"where": (("", "x"),)}, {"where": (("x", " "),)}):
        with pytest.raises(CairnError, match=r"\.$"):
            PhotoFilter(**wrong)  # type: ignore[arg-type]
    with pytest.raises(CairnError, match="KEY=VALUE"):
        parse_condition("archive")
