"""The command metadata, and filters of the command query, end to end."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from retrieval.catalogue.curation.albums import take_out
from retrieval.collection.collection import Collection as Opened
from retrieval.curation.albums import make_album
from tests.conftest import Indexed, Ran
from tests.support.metadata_files import MAKE, ORIGINAL, exif, iptc, jpeg

Cairn = Callable[..., Ran]
QUERY = "coffee_001.jpg"


@pytest.fixture
def collection(indexed: Indexed, tmp_path: Path) -> Path:
    """A copy of the small collection, into which metadata may be written."""
    folder = tmp_path / "demo.cairn"
    shutil.copytree(indexed.folder, folder)
    table = tmp_path / "table.csv"
    table.write_text(
        "file,date,tags,lat,lon,title,archive\n"
        "coffee_001,1923-05,cup;brown,48.8584,2.2945,<script>alert(1)</script>,Berlin\n"
        "coffee_002.jpg,1924,cup,48.86,2.35,,Berlin\n"
        "coffee_003.jpg,,,,,,\n"
        "nobody.jpg,1923,,,,,\n"
    )
    return folder


def _names(ran: Ran) -> list[str]:
    return [str(one["name"]) for one in ran.json["results"]]


def test_what_was_imported_is_exported(cairn: Cairn, collection: Path, tmp_path: Path) -> None:
    assert cairn("metadata", collection, tmp_path / "table.csv").code == 0
    out = tmp_path / "out.csv"
    ran = cairn("metadata", collection, "--export", out)
    assert ran.code == 0 and "for 2 photos" in ran.out
    assert "already exists" in cairn("metadata", collection, "--export", out).refused()
    assert "--export writes a table" in cairn("metadata", collection, out, "--export", tmp_path / "x").refused()
    assert cairn("metadata", collection, out, "--replace", "--strict", "--json").json["matched"] == 2


def test_a_table_is_imported_shown_and_filtered_by(cairn: Cairn, collection: Path, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    report = cairn("metadata", collection, table, "--json").json
    assert report == {
        "collection": str(collection),
        "rows": 4,
        "matched": 3,
        "unmatched": [{"line": 5, "name": "nobody.jpg", "reason": "no photo is called so"}],
        "warnings": [],
        "notes": [],
        "photos": 3,
        "columns": {
            "photo": "file",
            "understood": [
                {"column": "date", "as": "taken"},
                {"column": "tags", "as": "tag"},
                {"column": "lat", "as": "latitude"},
                {"column": "lon", "as": "longitude"},
                {"column": "title", "as": "title"},
            ],
            "kept": ["archive"],
            "warnings": [],
        },
    }
    assert cairn("metadata", collection, table, "--strict").code == 1
    said = cairn("metadata", collection, table).out
    assert "4 rows, 3 of them about 3 photos." in said and "line 5, not imported: nobody.jpg: no photo" in said

    counted = cairn("metadata", collection, "--json").json
    assert counted["keys"] == {"archive": 2, "latitude": 2, "longitude": 2, "tag": 2, "taken": 2, "title": 1}
    assert "archive" in cairn("metadata", collection).out
    shown = cairn("metadata", collection, "--photo", QUERY, "--json").json
    assert {key: shown[key] for key in ("photo", "taken", "title", "tags", "other", "latitude")} == {
        "photo": QUERY,
        "taken": "1923-05",
        "title": "<script>alert(1)</script>",
        "tags": ["cup", "brown"],
        "other": {"archive": ["Berlin"]},
        "latitude": 48.8584,
    }
    assert "cup, brown" in cairn("metadata", collection, "--photo", QUERY).out

    requested = ("query", collection, QUERY, "--turns", 1, "--json")
    both, first = ["coffee_001.jpg", "coffee_002.jpg"], ["coffee_001.jpg"]
    for filters, names in (
        (("--tag", "cup", "--tag", "brown"), first),
        (("--without-tag", "brown", "--where", "archive=berlin"), both[1:]),
        (("--taken-from", "1920", "--taken-to", "1923"), first),
        (("--near", "48.8584", "2.2945", "1"), first),
        (("--title", "SCRIPT", "--name", "coffee"), first),
    ):
        assert sorted(_names(cairn(*requested, *filters))) == names, filters
    answer = cairn(*requested, "--tag", "cup", "--near", "48.8584", "2.2945", "10").json
    assert answer["filter"] == {"tags": ["cup"], "near": {"latitude": 48.8584, "longitude": 2.2945, "kilometres": 10.0}}
    assert answer["passing"] == 2


def test_a_german_table_is_understood_and_reported(cairn: Cairn, collection: Path, tmp_path: Path) -> None:
    table = tmp_path / "deutsch.csv"
    table.write_text(
        "Dateiname;Aufnahme-Datum;Schlagwörter;Breite;Länge;Archiv-Nr.;Entstanden\n"
        "coffee_001.jpg;31.12.1923;Tasse;52,5163;13,3777;B 17;1.1.1924\n",
        encoding="utf-8-sig",
    )
    said = cairn("metadata", collection, table).out
    assert "Dateiname says which photo" in said and "Aufnahme-Datum as date, Schlagwörter as tags" in said
    assert "Kept as they are: Archiv-Nr., Entstanden." in said and "'Breite' and 'Länge' are read as" in said
    shown = cairn("metadata", collection, "--photo", "COFFEE_001", "--json").json
    assert (shown["taken"], shown["tags"], shown["longitude"]) == ("1923-12-31", ["Tasse"], 13.3777)
    assert shown["other"] == {"Archiv-Nr.": ["B 17"], "Entstanden": ["1.1.1924"]}
    assert "Archiv-Nr." in cairn("metadata", collection, "--json").json["keys"]
    requested = ("query", collection, "coffee_001", "--turns", 1, "--json")
    for where in ("Archiv-Nr.=b 17", "archiv-nr.=B 17", "Aufnahme-Datum=1923-12-31", "Schlagwörter=tasse"):
        assert _names(cairn(*requested, "--where", where)) == ["coffee_001.jpg"], where
    mapped = ("metadata", collection, table, "--map", "date=entstanden", "--map", "TITLE=Archiv-Nr.", "--json")
    report = cairn(*mapped).json
    assert report["columns"]["kept"] == ["Aufnahme-Datum"] and "'Entstanden' already gives the date" in str(report)
    shown = cairn("metadata", collection, "--photo", "coffee_001", "--json").json
    assert (shown["taken"], shown["title"]) == ("1924-01-01", "B 17")


def test_a_date_that_is_not_understood_is_told_and_kept(cairn: Cairn, collection: Path, tmp_path: Path) -> None:
    table = tmp_path / "vague.csv"
    table.write_text("Datei;Datum\ncoffee_001.jpg;um 1923\n")
    said = cairn("metadata", collection, table).out
    assert "line 2, note: date: 'um 1923' is no date; kept as text under 'Datum (column)'" in said
    assert "um 1923" in cairn("metadata", collection, "--photo", "coffee_001.jpg").out


@pytest.mark.slow
def test_a_bare_name_finds_the_one_photo_that_it_fits(cairn: Cairn, indexed: Indexed, tmp_path: Path) -> None:
    photos, collection = tmp_path / "photos", tmp_path / "c.cairn"
    for folder, stems in (("rome", ("coffee_001", "coffee_002")), ("paris", ("coffee_002",))):
        (photos / folder).mkdir(parents=True)
        for stem in stems:
            shutil.copy(indexed.photos / f"{stem}.jpg", photos / folder)
    assert cairn("index", collection, photos, "--vocabulary", indexed.folder, "--json").json["added"] == 3
    for called in ("coffee_001.jpg", "coffee_001", "rome\\Coffee_001.JPG"):
        assert cairn("metadata", collection, "--photo", called, "--json").json["photo"] == "rome/coffee_001.jpg"
        assert _names(cairn("query", collection, called, "--turns", 1, "--json"))[0] == "rome/coffee_001.jpg"
    for command in (("metadata", collection, "--photo", "coffee_002"), ("query", collection, "coffee_002")):
        sentence = cairn(*command).refused()
        assert "2 photos are called 'coffee_002'" in sentence and "rome/coffee_002.jpg" in sentence
    assert "neither a file nor a name" in cairn("query", collection, "coffee_003").refused()


def test_an_answer_is_empty_where_nothing_passes(cairn: Cairn, indexed: Indexed, tmp_path: Path) -> None:
    requested = ("query", indexed.folder, QUERY, "--turns", 1, "--camera", "no such camera")
    for options in (("--engine", "raw"), ("--expand", "average", "--picture", tmp_path / "found.jpg")):
        answer = cairn(*requested, *options, "--json").json
        assert (answer["results"], answer["passing"], answer["filter"]) == ([], 0, {"camera": "no such camera"})
    assert cairn(*requested, "--engine", "tf-idf").out == "No photo of the collection passes the filters.\n"


def test_files_are_read_again(cairn: Cairn, indexed: Indexed, tmp_path: Path) -> None:
    photos, collection = tmp_path / "photos", tmp_path / "c.cairn"
    photos.mkdir()
    for name in ("coffee_001.jpg", "coffee_002.jpg", "coffee_003.jpg"):
        shutil.copy(indexed.photos / name, photos)
    assert cairn("index", collection, photos, "--vocabulary", indexed.folder, "--json").json["added"] == 3
    tagged = jpeg(exif=exif({MAKE: "Leica"}, {ORIGINAL: "2001:02:03 04:05:06"}), iptc=iptc((2, 25, b"cup")))
    (photos / "coffee_001.jpg").write_bytes(tagged)
    (photos / "coffee_002.jpg").unlink()
    again = cairn("metadata", collection, "--refresh", "--json").json
    assert (again["read"], again["missing"], again["told"]) == (2, 1, 1)
    shown = cairn("metadata", collection, "--photo", "coffee_001.jpg", "--json").json
    assert (shown["taken"], shown["camera"], shown["tags"]) == ("2001-02-03T04:05:06", "Leica", ["cup"])


def test_what_was_decided_is_written_beside_the_photos_and_read_from_there(
    cairn: Cairn, indexed: Indexed, tmp_path: Path
) -> None:
    photos, collection = tmp_path / "photos", tmp_path / "c.cairn"
    photos.mkdir()
    for name in ("coffee_001.jpg", "coffee_002.jpg", "coffee_003.jpg"):
        shutil.copy(indexed.photos / name, photos)
    before = {one.name: one.read_bytes() for one in photos.iterdir()}
    assert cairn("index", collection, photos, "--vocabulary", indexed.folder, "--json").json["added"] == 3
    assert "0 sidecars written" in cairn("metadata", collection, "--write-sidecars").out
    table = tmp_path / "table.csv"
    table.write_text(
        "file,title,date,tags,rating,caption\n"
        "coffee_001.jpg,Morning,1923-05-17,cup;brown,4,On the table\n"
        "coffee_002.jpg,,,cup,2,\n"
    )
    assert cairn("metadata", collection, table, "--strict").code == 0
    with Opened.open(collection) as opened:
        _, second, third = (row.number for row in opened.catalogue.page(0, 3)[1])
        album = opened.catalogue.write(make_album, "Breakfast", [second, third]).album
    (tmp_path / "near").symlink_to(photos)
    for below in (collection, photos / "coffee_001.jpg"):
        refused = cairn("metadata", collection, "--write-sidecars", "--below", below, "--json").json["sidecars"]
        assert refused["written"] == 0 and len(refused["failed"]) == 3 and not list(photos.glob("*.xmp"))
        assert "no folder that photos may be taken from" in refused["failed"][0]["reason"]
    write = ("--write-sidecars", "--below", collection, "--below", tmp_path / "near")
    done = cairn("metadata", collection, *write, "--json").json["sidecars"]
    assert done == {"written": 3, "unchanged": 0, "missing": 0, "failed": []}
    assert cairn("metadata", collection, "--write-sidecars", "--json").json["sidecars"]["unchanged"] == 3
    assert {one.name: one.read_bytes() for one in photos.iterdir() if one.suffix == ".jpg"} == before

    other = tmp_path / "other.cairn"
    assert cairn("index", other, photos, "--vocabulary", indexed.folder, "--json").json["added"] == 3
    shown = cairn("metadata", other, "--photo", "coffee_001.jpg", "--json").json
    assert {key: shown[key] for key in ("title", "taken", "tags", "rating", "caption", "imported")} == {
        "title": "Morning",
        "taken": "1923-05-17",
        "tags": ["cup", "brown"],
        "rating": 4,
        "caption": "On the table",
        "imported": [],
    }
    assert b"Albums|Breakfast" in (photos / "coffee_003.jpg.xmp").read_bytes()
    assert cairn("metadata", other, "--photo", "coffee_003.jpg", "--json").json["tags"] == []

    with Opened.open(collection) as opened:
        opened.catalogue.write(take_out, album, [third])
    (photos / "coffee_001.jpg.xmp").write_bytes(b"no XML")
    (photos / "coffee_002.jpg").unlink()
    ran = cairn("metadata", collection, "--write-sidecars", "--strict", "--json")
    failed = [{"path": str(photos / "coffee_001.jpg"), "reason": "its sidecar is not XML"}]
    assert ran.json["sidecars"] == {"written": 1, "unchanged": 0, "missing": 1, "failed": failed}
    assert ran.code == 1 and b"Breakfast" not in (photos / "coffee_003.jpg.xmp").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--replace",), "need a table"),
        (("--strict",), "needs a table"),
        (("--photo", "a", "--write-sidecars"), "shows one photo"),
        (("--refresh", "--below", "a"), "--below needs"),
        (("--photo", "nobody.jpg"), "no photo 'nobody.jpg'"),
        (("--photo", "a", "--refresh"), "shows one photo"),
        (("none.csv",), "no table"),
        (("none.csv", "--delimiter", "x"), "not a delimiter"),
        (("--map", "date=Datum"), "need a table"),
        (("none.csv", "--map", "when=Datum"), "choose one of date, camera"),
        (("none.csv", "--map", "date"), "FIELD=HEADER"),
    ],
)
def test_wrong_requests_are_one_sentence(
    cairn: Cairn, indexed: Indexed, arguments: tuple[str, ...], sentence: str
) -> None:
    assert sentence in cairn("metadata", indexed.folder, *arguments).refused()


@pytest.mark.parametrize(
    ("filters", "sentence"),
    [
        (("--taken-from", "soon"), "Give a date that exists"),
        (("--taken-from", "1924", "--taken-to", "1923"), "earlier date first"),
        (("--where", "archive"), "KEY=VALUE"),
        (("--near", "91", "0", "1"), "not a place"),
        (("--near", "0", "0", "nan"), "distance"),
    ],
)
def test_filters_that_make_no_sense_are_one_sentence(
    cairn: Cairn, indexed: Indexed, filters: tuple[str, ...], sentence: str
) -> None:
    assert sentence in cairn("query", indexed.folder, QUERY, *filters).refused()
