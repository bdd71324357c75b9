"""Tables of metadata: read as programs write them, matched with photos, imported whole or not at all."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import CairnError
from retrieval.catalogue.browsing import numbers_of
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.filters import PhotoFilter
from retrieval.catalogue.metadata_store import (
    LABELS_KEY,
    LONGEST_VALUE,
    imported_values,
    key_counts,
    metadata_of,
    store_metadata,
)
from retrieval.catalogue.photo_lookup import PhotoLookup
from retrieval.catalogue.schema import ImageRow
from retrieval.catalogue.segment_rows import commit_segment
from retrieval.catalogue.settings import keep_setting, reserve_numbers
from retrieval.catalogue.tables.exporting import export_table
from retrieval.catalogue.tables.importing import TableOptions, import_table, read_table
from retrieval.metadata.fields import Metadata
from retrieval.metadata.text import clean
from tests.retrieval.catalogue.test_catalogue import segment_row

NAMES = ["a.jpg", "rome/1.jpg", "rome/2.JPG", "paris/1.jpg", "paris/Cafe\u0301.tif", "paris/x.tif", "paris/x.jpg"]


@pytest.fixture
def catalogue(tmp_path: Path) -> Iterator[Catalogue]:
    with Catalogue.open(tmp_path / "c", create=True) as opened:
        opened.write(reserve_numbers, len(NAMES))
        rows = [ImageRow(number=i, path=f"/scans/{name}", name=name, position=i) for i, name in enumerate(NAMES)]
        opened.write(commit_segment, segment_row("000001", len(rows)), rows)
        opened.write(store_metadata, [(0, Metadata("2015", title="scan"))])
        yield opened


@pytest.fixture
def table(tmp_path: Path) -> Any:
    """Writes a table; text is UTF-8."""

    def write(content: str | bytes) -> Path:
        path = tmp_path / "table.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_ratings_marks_and_captions_are_understood_where_the_cells_bear_it_out(
    catalogue: Catalogue, table: Any
) -> None:
    content = "name,Bewertung,Favorit,Légende\na.jpg,4,ja,Seen from the mill\nrome/1.jpg,2.0,nein,\nrome/2.JPG,3,ja,\n"
    report = import_table(catalogue, table(content + "paris/x.tif,good,,\nparis/x.jpg,5,,\n"))
    assert [(one["column"], one["as"]) for one in report.columns["understood"]] == [
        ("Bewertung", "rating"),
        ("Favorit", "favourite"),
        ("Légende", "caption"),
    ]
    (warning,) = report.warnings
    assert (warning["line"], warning["reason"]) == (
        5,
        "'good' is not a number of stars, 1 to 5; kept as text under 'Bewertung (column)'",
    )
    known = catalogue.read(metadata_of, [0, 1, 2])
    assert [(one.rating, one.favourite, one.caption) for one in known.values()] == [
        (4, True, "Seen from the mill"),
        (2, False, None),
        (3, True, None),
    ]


def test_a_column_whose_cells_are_no_ratings_is_kept_as_it_is(catalogue: Catalogue, table: Any) -> None:
    report = import_table(catalogue, table("name,Rating,Favorit\na.jpg,very good,Anna\nrome/1.jpg,poor,Ben\n"))
    assert (report.columns["understood"], report.columns["kept"]) == ([], ["Rating (column)", "Favorit"])


WHOLE = (
    "Name,Title,Date,Tags,Lat,Lon,Archive No.,\n"
    'a.jpg,"Bridge, ""old""",17.05.1923,Dom; Rhine|dom,48.8584,2.2945,17,\n'
    'rome/1.jpg,"two\nlines",1923-05,,,,,\n'
)


@pytest.mark.parametrize(
    "content",
    [
        WHOLE,
        WHOLE.replace("\n", "\r\n"),
        "\ufeff" + WHOLE,
        WHOLE.encode("utf-16"),
        WHOLE.replace("Bridge,", "Bridge\0")
        .replace(",", ";")
        .replace("\0", ",")
        .replace("Dom;", '"Dom;')
        .replace("m;4", 'm";4'),
        WHOLE.replace("Bridge,", "Bridge\0").replace(",", "\t").replace("\0", ",").encode("utf-16"),
    ],
    ids=["commas", "Windows", "BOM", "UTF-16", "semicolons", "Excel's Unicode text"],
)
def test_tables_are_read_as_they_are_written(table: Any, content: str | bytes) -> None:
    read = read_table(table(content))
    assert (read.warnings, read.unmatched, read.notes) == ([], [], [])
    assert [(row.line, row.name) for row in read.rows] == [(2, "a.jpg"), (3, "rome/1.jpg")]
    assert read.rows[0].values == {
        "title": ('Bridge, "old"',),
        "taken": ("1923-05-17",),
        "tag": ("Dom", "Rhine"),
        "latitude": ("48.8584",),
        "longitude": ("2.2945",),
        "archive no.": ("17",),
    }
    assert read.rows[1].values == {"title": ("two lines",), "taken": ("1923-05",)}


def test_windows_1252_is_read_with_a_note(table: Any) -> None:
    read = read_table(table("file;title\na;Köln €\x81\n".replace("\x81", "").encode("cp1252") + b"b;\x81\n"))
    assert read.rows[0].values == {"title": ("Köln €",)}
    assert len(read.notes) == 1 and "Windows-1252" in str(read.notes[0])


def test_rows_find_photos_by_what_people_call_them(catalogue: Catalogue) -> None:
    photos = PhotoLookup(list(catalogue.places()))
    for called, number in {
        "a.jpg": 0,
        "/scans/a.jpg": 0,
        "A": 0,
        "rome/1.jpg": 1,
        "ROME\\1.jpg": 1,
        "2.jpg": 2,
        "2": 2,
        "/SCANS/rome/2.jpg": 2,
        "rome/1": 1,
        "Caf\u00e9.tif": 4,
        "x.tif": 5,
    }.items():
        assert photos.find(called) == number, called
    assert photos.find("1.jpg") == photos.find("x") == "2 photos are called so"
    assert photos.find("b.jpg") == photos.find("") == photos.find("rome") == "no photo is called so"


def test_an_import_tells_what_it_could_not_use(catalogue: Catalogue, table: Any) -> None:
    content = (
        "file,date,lat,lon,title,tags,box\n"
        "a,circa 1923,91,10,,,\n"  # 2
        "1.jpg,1923,,,,,\n"
        "nobody,1923,,,,,\n"
        ",1923,,,,,\n"
        ",,,,,,\n"
        "rome/1.jpg,1923,,10,x,a,,,shifted\n"
        "rome/2,,41.9,,Trevi,,\n"  # 8
        f'rome/2,,"41,9","12,5",,one;two,{"y" * 20_000}\n'
        "ROME/2.jpg,,,,Fountain,two;three,\n"
    )
    report = import_table(catalogue, table(content))
    assert (report.rows, report.matched, report.photos) == (8, 4, 2)
    assert [(one["line"], one["reason"]) for one in report.unmatched] == [
        (3, "2 photos are called so"),
        (4, "no photo is called so"),
        (5, "the row names no photo"),
        (7, "the row has 9 cells, and the first line 7"),
    ]
    assert [(one["line"], one["column"]) for one in report.warnings] == [
        (2, "taken"),
        (2, "latitude"),
        (8, "latitude"),
        (9, "box"),
        (9, ""),
        (10, ""),
    ]
    assert "'circa 1923' is no date" in str(report.warnings)
    assert "line 9 is about the same photo" in str(report.warnings)
    known = catalogue.read(metadata_of, [0, 2])
    assert (known[0].taken, known[0].title) == ("2015", "scan")  # empty cells leave what is there
    assert (known[2].title, known[2].tags) == ("Fountain", ("one", "two", "three"))
    assert (known[2].latitude, known[2].longitude) == (41.9, 12.5)
    assert known[0].others == {"date (column)": ("circa 1923",), "lat (column)": ("91",), "lon (column)": ("10",)}
    assert known[2].others == {"box": ("y" * LONGEST_VALUE,)}  # line 9 says the place that line 8 says half


def test_what_is_exported_is_imported_again(catalogue: Catalogue, table: Any, tmp_path: Path) -> None:
    content = (
        "path;title;date;tags;lat;lon;box;Box;name;x,y;empty\n"
        '/scans/a.jpg;"a ""b"", c";1923-05;one|two;-10,5;20.25;7;8;signed;"two\nlines";\n'
        "/scans/paris/Cafe\u0301.tif;=1+1;;;;;9;;;;\n"
    )
    import_table(catalogue, table(content), TableOptions(name_column="path"))
    before, known = catalogue.read(imported_values), catalogue.read(metadata_of, range(len(NAMES)))
    assert before[0]["box"] == ["7", "8"] and len(before[0]) == 8 and before.keys() == {0, 4}
    written = tmp_path / "out.csv"
    assert export_table(catalogue, written) == (2, 8)
    with pytest.raises(CairnError, match="already exists"):
        export_table(catalogue, written)
    with pytest.raises(CairnError, match="cannot be written"):
        export_table(catalogue, tmp_path / "none" / "out.csv")
    import_table(catalogue, table("name,title\nrome/1.jpg,x\n"), replace=True)
    report = import_table(catalogue, written, replace=True)
    assert (report.matched, report.unmatched, report.warnings) == (2, [], [])
    assert catalogue.read(imported_values) == before
    assert catalogue.read(metadata_of, range(len(NAMES))) == known


@pytest.mark.slow
def test_later_imports_add_or_replace(catalogue: Catalogue, table: Any) -> None:
    import_table(catalogue, table("name,title,tags\na.jpg,one,x;y\nrome/1.jpg,two,\n"))
    import_table(catalogue, table("name,tags,camera\na.jpg,z,Leica\n"))
    known = catalogue.read(metadata_of, [0, 1])
    assert (known[0].title, known[0].tags, known[0].camera, known[1].title) == ("one", ("z",), "Leica", "two")
    import_table(catalogue, table("name,camera\nrome/1.jpg,Contax\n"), replace=True)
    known = catalogue.read(metadata_of, [0, 1])
    assert (known[0].title, known[0].tags, known[0].camera) == ("scan", (), None)
    assert (known[1].title, known[1].camera) == (None, "Contax")


def test_paths_may_begin_in_the_folder_of_the_table(tmp_path: Path) -> None:
    (tmp_path / "album").mkdir()
    photos = PhotoLookup([(1, "dom", str(tmp_path / "album" / "1.jpg")), (2, "1", "/other/1.jpg")], near=(tmp_path,))
    assert photos.find("album/1.jpg") == photos.find("./album/../album/1.jpg") == 1
    assert photos.find("/other/1.jpg") == photos.find("1") == 2
    assert photos.find("1.jpg") == "2 photos are called so"
    assert PhotoLookup(photos.places).find("./album/1.jpg") == photos.find("a\0b") == "no photo is called so"


@pytest.mark.parametrize(
    ("content", "options", "sentence"),
    [
        ("", {}, "names the photo of each row"),
        ("title,date\nx,1923\n", {}, r"columns are 'title', 'date'.*name_column"),
        ("name,title\n", {"name_column": "signature"}, "no column 'signature'"),
        ("name,date,Date\n", {}, "2 columns for the date, 'date', 'Date': keep one of them, .*map DATE=date"),
        ("name,lat,LAT,lon\n", {}, "2 columns for the latitude.*map LATITUDE=lat"),
        ('name,title\na.jpg,"never closed\nrome/1.jpg,x\n', {}, "from line 2 on: the quotes do not pair"),
        ('name,title\na.jpg,x\nrome/1.jpg,"x" y\n', {}, "from line 3 on"),
        ("name,title\na.jpg," + "x" * 200_000, {}, "from line 2 on"),
        (b"\xff\xfe\0", {}, "names the photo of each row"),
    ],
)
def test_what_is_no_table_is_refused_and_changes_nothing(
    catalogue: Catalogue, table: Any, content: str | bytes, options: dict[str, Any], sentence: str
) -> None:
    before = catalogue.read(metadata_of, range(len(NAMES)))
    with pytest.raises(CairnError, match=sentence):
        import_table(catalogue, table(content), TableOptions(**options), replace=True)
    assert catalogue.read(metadata_of, range(len(NAMES))) == before


@pytest.mark.parametrize("content", ["name,title\n", "name,title\nnowhere.jpg,x\n,y\n"])
def test_a_table_about_no_photo_replaces_nothing(catalogue: Catalogue, table: Any, content: str) -> None:
    import_table(catalogue, table("name,title\na.jpg,one\n"))
    with pytest.raises(CairnError, match=r"names a photo of the collection.*nothing was imported or removed"):
        import_table(catalogue, table(content), replace=True)
    assert catalogue.read(metadata_of, [0])[0].title == "one"


def test_the_name_column_and_the_delimiter_may_be_told(table: Any, tmp_path: Path) -> None:
    path = table("name;Signature\tx;title\nsomebody;a.jpg;t\n")
    read = read_table(path, TableOptions(name_column="signature x", delimiter=";"))
    assert [(row.name, row.values) for row in read.rows] == [("a.jpg", {"name": ("somebody",), "title": ("t",)})]
    with pytest.raises(CairnError, match="delimiter"):
        TableOptions(delimiter="x")
    for wrong in (tmp_path, tmp_path / "none.csv"):
        with pytest.raises(CairnError, match="no table"):
            read_table(wrong)


@pytest.mark.parametrize(
    ("content", "photo", "matched"),
    [
        ("Datei;Name;Titel\na.jpg;Ann Meier;Tor\n2.JPG;Bo Li;Dom\n", "Datei", 2),
        ("Datei;Name\na;Ann Meier\nrome/2;Bo Li\n", "Datei", 2),  # without endings, as the photos are known
        ("Name;Datei\na;D:/old/7.jpg\nrome/2;D:/old/8.jpg\n", "Name", 2),
        ("name,path\na.jpg,/scans/a.jpg\n", "name", 1),  # both do: the better header
        ("name,file\nAnn Meier,new.jpg\n", "file", 0),
    ],
)
def test_the_column_that_names_photos_is_told_by_its_cells(
    catalogue: Catalogue, table: Any, content: str, photo: str, matched: int
) -> None:
    report = import_table(catalogue, table(content))
    assert (report.columns["photo"], report.matched) == (photo, matched)
    warning = " ".join(map(str, report.columns["warnings"]))
    assert f"{photo!r} is used" in warning and "name_column" in warning
    assert any("name_column" in str(note) for note in report.notes) == (not matched)


def test_cells_tell_the_column_of_files_where_no_collection_is_known(table: Any) -> None:
    read = read_table(table("Datei;Name\na.JPG;Ann Meier\n"))
    assert read.rows[0].values == {"name": ("Ann Meier",)}
    reported = read_table(table("Datei;Name\na.JPG;Ann Meier\n"), TableOptions(name_column="Name"))
    assert reported.columns.report["photo"] == "Name" and not reported.columns.report["warnings"]


HEADERS = {
    "Datum": "taken",
    "DATE": "taken",
    "date_taken": "taken",
    "DateTaken": "taken",
    "Aufnahme-Datum": "taken",
    " Aufnahmedatum ": "taken",
    "Date de prise de vue": "taken",
    "Fecha": "taken",
    "Data di scatto": "taken",
    "Datum opname": "taken",
    "Titel": "title",
    "TITRE": "title",
    "T\u00edtulo": "title",
    "Ti\u0301tulo": "title",
    "Titolo": "title",
    "Kamera": "camera",
    "Appareil photo": "camera",
    "C\u00e1mara": "camera",
    "Camara": "camera",
    "Fotocamera": "camera",
    "Tag": "tag",
    "Schlagworte": "tag",
    "Schlagw\u00f6rter": "tag",
    "Schlagwo\u0308rter": "tag",
    "mots-cl\u00e9s": "tag",
    "Mots Cles": "tag",
    "palabras_clave": "tag",
    "Parole chiave": "tag",
    "Trefwoorden": "tag",
}


@pytest.mark.parametrize(("header", "key"), HEADERS.items(), ids=str)
def test_usual_headers_of_six_languages_are_understood(table: Any, header: str, key: str) -> None:
    read = read_table(table(f"Datei;{header}\na.jpg;1923-05\n"))
    assert read.rows[0].values == {key: ("1923-05",)}
    assert read.columns.report["understood"] == [{"column": clean(header, 64), "as": key}]
    assert read.columns.report["photo"] == "Datei"


@pytest.mark.parametrize(
    ("latitude", "longitude"),
    [
        ("Breitengrad", "L\u00e4ngengrad"),
        ("Latitud", "Longitud"),
        ("Latitudine", "Longitudine"),
        ("Breedtegraad", "Lengtegraad"),
        ("GPS-Latitude", "GPS_Longitude"),
        ("Breite", "La\u0308nge"),
    ],
)
def test_places_are_read_with_decimal_commas(table: Any, latitude: str, longitude: str) -> None:
    read = read_table(table(f"file;{latitude};{longitude}\na;52,5163;13,3777\nb;52,52;-13,4050\n"))
    places = [(row.values["latitude"], row.values["longitude"]) for row in read.rows]
    assert places == [(("52.5163",), ("13.3777",)), (("52.52",), ("-13.405",))]


@pytest.mark.parametrize(
    ("latitude", "longitude", "place"),
    [
        ("52.5 N", "13.4 W", ("52.5", "-13.4")),
        ("33,9° s", "18.4°E", ("-33.9", "18.4")),
        ("+52.5", "-.5", ("52.5", "-0.5")),
        ("1e-05", "13.", ("1e-05", "13.0")),  # small numbers as an export writes them
        ("-13.4 W", "52.5", None),
        ("-33.9 S", "18.4", None),
        ("+52.5 N", "13.4", None),
        ("52.5 E", "13.4", None),
        ("52.5", "13.4 N", None),
        ("52.5", "-13.4 W", None),
        ("52.5", "13.4 O", None),  # east in German, west in French
        ("1_0", "13.4", None),
        ("٥٢", "13.4", None),
        ("1e1", "13.4", None),
        ("nan", "13.4", None),
    ],
)
def test_only_places_that_are_clear_are_read(
    table: Any, latitude: str, longitude: str, place: tuple[str, str] | None
) -> None:
    read = read_table(table(f"file;lat;lon\na;{latitude};{longitude}\n"))
    values = read.rows[0].values
    assert (values.get("latitude"), values.get("longitude")) == (((place[0],), (place[1],)) if place else (None, None))
    assert ("is no place in degrees north and east" in str(read.warnings)) == (place is None)


@pytest.mark.parametrize(
    ("content", "kept", "warned"),
    [
        ("file;Breite;L\u00e4nge\na;24;18\nb;30,5;24,5\n", ["Breite", "L\u00e4nge"], "do not look like places"),
        ("file;Breite;L\u00e4nge\na;2400,125;1800,125\n", ["Breite", "L\u00e4nge"], "do not look like places"),
        ("file;L\u00e4nge\na;13,3777\n", ["L\u00e4nge"], ""),
        ("file,Data\na,raw\nb,1923\nc,none\n", ["Data"], ""),
        ("file,Made\na,31/12/1923\nb,03/04/1923\n", ["Made"], "map DATE=Made"),
        ("file,Year\na,1923\nb,1924\n", ["Year"], "map DATE=Year"),
        ("file,No.\na,1923\nb,1924\n", ["No."], ""),
        ("file,N,E\na,48.8584,2.2945\n", ["N", "E"], "look like coordinates"),
        ('file,GPS\na,"48.8584, 2.2945"\n', ["GPS"], "looks like coordinates"),
        ("file,Datum,Aufnahmedatum\na,1923,1924\n", ["Datum"], "'Aufnahmedatum' already gives the date"),
        ("file,Titel,Title\na,x,y\n", ["Titel"], "'Title' already gives the title"),
    ],
)
def test_columns_that_may_mislead_are_kept_as_text_and_told(
    table: Any, content: str, kept: list[str], warned: str
) -> None:
    read = read_table(table(content))
    assert read.columns.report["kept"] == kept
    assert all(name.casefold() in read.rows[0].values for name in kept)
    warnings = read.columns.report["warnings"]
    assert bool(warnings) == bool(warned) and warned in " ".join(map(str, warnings))


def test_data_is_a_date_in_an_italian_table(table: Any) -> None:
    read = read_table(table("Nome file;Data;Titolo\na.jpg;17/5/1923;Duomo\nb.jpg;1923;\n"))
    assert [row.values["taken"] for row in read.rows] == [("1923-05-17",), ("1923",)]


@pytest.mark.parametrize(
    ("dates", "taken", "warnings"),
    [
        (["31/12/1923"], ["1923-12-31"], 0),
        (["12/31/1923 14:30"], ["1923-12-31T14:30:00"], 0),
        (["04-04-1923"], ["1923-04-04"], 0),
        (["03/04/1923"], [None], 1),
        (["03/04/1923", "31/12/1923"], ["1923-04-03", "1923-12-31"], 0),  # one row tells the order of all
        (["03/04/1923", "12/31/1923"], ["1923-03-04", "1923-12-31"], 0),
        (["03/04/1923", "31/12/1923", "12/31/1923"], [None, "1923-12-31", "1923-12-31"], 1),
        (["31/12/1923", "31/31/1923"], ["1923-12-31", None], 1),
    ],
)
def test_dates_with_slashes_are_read_where_their_order_is_known(
    table: Any, dates: list[str], taken: list[str | None], warnings: int
) -> None:
    read = read_table(table("file,date\n" + "".join(f"{i},{date}\n" for i, date in enumerate(dates))))
    assert [row.values.get("taken", (None,))[0] for row in read.rows] == taken
    assert len(read.warnings) == warnings
    if dates == ["03/04/1923"]:
        assert "write 1923-04-03 if the day is first, 1923-03-04" in str(read.warnings)


@pytest.mark.parametrize("cell", ["um 1923", "ca. 1923", "1923?", "31.12.23", "03/04/1923"])
def test_dates_that_are_not_understood_are_kept_as_text(
    catalogue: Catalogue, table: Any, tmp_path: Path, cell: str
) -> None:
    report = import_table(catalogue, table(f"Datei;Datum\na;{cell}\nrome/1;1923\n"))
    assert [one["line"] for one in report.warnings] == [2]
    assert report.warnings[0]["reason"].endswith("kept as text under 'Datum (column)'")
    known = catalogue.read(metadata_of, [0, 1])
    assert (known[0].taken, known[0].others) == ("2015", {"Datum (column)": (cell,)})
    assert (known[1].taken, known[1].others) == ("1923", {})
    assert catalogue.read(numbers_of, wanted=PhotoFilter(where=(("datum (column)", cell),))).tolist() == [0]
    before = catalogue.read(imported_values)
    export_table(catalogue, tmp_path / "out.csv")
    assert import_table(catalogue, tmp_path / "out.csv", replace=True).warnings == []
    assert catalogue.read(imported_values) == before
    # A table that says it better takes its place.
    import_table(catalogue, table("Datei;Datum\na;1924\n"))
    assert catalogue.read(metadata_of, [0])[0].others == {} and catalogue.read(metadata_of, [0])[0].taken == "1924"


def test_a_refused_date_stands_beside_a_column_of_that_name(catalogue: Catalogue, table: Any) -> None:
    import_table(catalogue, table("file,Date,Date (column)\na,um 1923,x\na,1923,\n"))
    assert catalogue.read(metadata_of, [0])[0].others == {
        "Date (column)": ("x", "um 1923")
    }  # an empty cell says nothing


def test_columns_are_mapped_to_fields(table: Any) -> None:
    path = table("file,Title,Motif,Epoch,tags,Themes\na,x,y,1923,one,two\n")
    mapping = (("title", "motif"), ("taken", "EPOCH"), ("tag", "Themes"))
    read = read_table(path, TableOptions(mapping=mapping))
    assert read.rows[0].values == {
        "title": ("y",),
        "taken": ("1923",),
        "tag": ("one", "two"),
        "title (column)": ("x",),
    }
    assert read.columns.report["kept"] == ["Title (column)"]
    for wrong, sentence in (
        ((("title", "nowhere"),), "no column 'nowhere' to map; its columns are 'file', 'Title'"),
        ((("title", "Motif"), ("title", "Epoch")), "two columns for title"),
        ((("title", "Motif"), ("taken", "Motif")), "'Motif' twice"),
        ((("title", "file"),), "names the photo of each row|No column"),
    ):
        with pytest.raises(CairnError, match=sentence):
            read_table(path, TableOptions(mapping=wrong))


@pytest.mark.parametrize(("header", "taken"), [("date", "1923"), ("Date", "1924"), ("DATE", "1923")])
def test_one_of_several_equal_columns_is_chosen_by_mapping(table: Any, header: str, taken: str) -> None:
    read = read_table(table("file,date,Date\na,1923,1924\n"), TableOptions(mapping=(("taken", header),)))
    assert read.rows[0].values["taken"] == (taken,)


def test_names_of_columns_keep_their_case(catalogue: Catalogue, table: Any, tmp_path: Path) -> None:
    import_table(catalogue, table("file,Archive No.,Straße\na,B 17,Am Dom\n"))
    assert catalogue.read(metadata_of, [0])[0].others == {"Archive No.": ("B 17",), "Straße": ("Am Dom",)}
    assert catalogue.read(metadata_of, [0])[0].imported == {"Archive No.", "Straße"}
    assert {"Archive No.": 1, "Straße": 1}.items() <= dict(catalogue.read(key_counts)).items()
    for called in ("Archive No.", "archive no.", "ARCHIVE NO."):
        assert catalogue.read(numbers_of, wanted=PhotoFilter(where=((called, "b 17"),))).tolist() == [0]
    export_table(catalogue, tmp_path / "out.csv")
    assert '"Archive No."' in (tmp_path / "out.csv").read_text("utf-8-sig")
    import_table(catalogue, table("file,ARCHIVE NO.\na,B 18\n"))
    assert catalogue.read(metadata_of, [0])[0].others == {"ARCHIVE NO.": ("B 18",), "Straße": ("Am Dom",)}
    catalogue.write(keep_setting, LABELS_KEY, '{"archive no.": 7, "stra')  # damaged
    assert catalogue.read(metadata_of, [0])[0].others == {"archive no.": ("B 18",), "strasse": ("Am Dom",)}


def test_a_column_that_another_one_beats_is_found_by_its_name(catalogue: Catalogue, table: Any) -> None:
    import_table(catalogue, table("file,taken,date\na,1923,1999\n"))
    assert catalogue.read(metadata_of, [0])[0].others == {"date": ("1999",)}
    for value in ("1999", "1923"):
        assert catalogue.read(numbers_of, wanted=PhotoFilter(where=(("Date", value),))).tolist() == [0]


CELLS = st.text(max_size=12) | st.sampled_from(["1923", "a;b", "1,5", '"', "\0", "\ud7ff", "=1+1", "<b>"])


@given(rows=st.lists(st.lists(CELLS, min_size=3, max_size=3), max_size=6), delimiter=st.sampled_from([",", ";", "tab"]))
def test_any_table_that_a_program_writes_is_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], delimiter: str
) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter={"tab": "\t"}.get(delimiter, delimiter))
    writer.writerows([["name", "title", "box"], *rows])
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_bytes(text.getvalue().encode("utf-8", "replace"))
    read = read_table(path, TableOptions(delimiter=delimiter))
    named = [row for row in rows if row[0].strip()]
    assert [row.name for row in read.rows] == [row[0].strip() for row in named]
    for row, (_, title, box) in zip(read.rows, named, strict=True):
        assert row.values.get("title", ("",))[0] == clean(title, 1000)
        assert row.values.get("box", ("",))[0] == clean(box, 1000)
