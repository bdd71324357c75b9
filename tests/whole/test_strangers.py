"""Collections that somebody else has made: nothing in them names anything outside of them, or is run."""

import base64
import json
import os
import shutil
import socket
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from index.errors import CairnError
from retrieval.collection.collection import Collection
from retrieval.collection.sealing import seal
from tests.conftest import Indexed, Ran
from tests.support.strangers import CATALOGUE, describe, digest_tree, reshape, write_sql

Cairn = Callable[..., Ran]
WRITING = (
    ("compact",),
    ("repair",),
    ("retrain", "--words", "50"),
    ("group",),
)


@pytest.fixture(scope="module")
def sealed(indexed: Indexed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small collection, sealed; nobody may change it."""
    folder = tmp_path_factory.mktemp("sealed") / "demo.cairn"
    shutil.copytree(indexed.folder, folder)
    with Collection.open(folder) as collection:
        seal(collection)
    return folder


@pytest.fixture
def sent(sealed: Path, tmp_path: Path) -> Path:
    """A collection that somebody has sent."""
    return Path(shutil.copytree(sealed, tmp_path / "theirs" / "sent.cairn"))


@pytest.fixture
def mine(sealed: Path, tmp_path: Path) -> Iterator[Path]:
    """A folder of this user, with a collection and pictures in it, that is as it was at the end."""
    folder = tmp_path / "mine"
    shutil.copytree(sealed, folder / "own.cairn")
    for place in ("aa", "plain"):
        (folder / "pictures" / place).mkdir(parents=True)
        (folder / "pictures" / place / f"{'a' * 64}-256.jpg").write_bytes(b"mine")
        (folder / "pictures" / place / "rome.jpg").write_bytes(b"mine")
    (folder / "letter.txt").write_bytes(b"mine")
    before = digest_tree(folder)
    yield folder
    assert digest_tree(folder) == before


@pytest.mark.parametrize("how", ["relative", "absolute"])
@pytest.mark.parametrize(
    "command",
    [
        *(("compact",), ("check",)),
        *(pytest.param(one, marks=pytest.mark.slow) for one in (*WRITING[1:], ("info",), ("remove", "cat_0.jpg"))),
    ],
)
def test_a_segment_is_named_by_no_path(
    sent: Path, mine: Path, cairn: Cairn, how: str, command: tuple[str, ...]
) -> None:
    there = mine / "own.cairn" / "segments"
    name = str(there / "000001") if how == "absolute" else os.path.relpath(there / "000001", sent / "segments")
    write_sql(sent, f"UPDATE segments SET folder = '{name}'", "UPDATE images SET state = 'removed', name = NULL")
    ran = cairn(command[0], sent, *command[1:])
    assert ran.code in (0, 1, 2)
    if command[0] == "compact":
        assert "where the plain name of a segment's folder belongs" in ran.refused()
    if command[0] == "check":
        assert ran.code == 1 and "where the plain name of" in ran.out
        assert cairn("repair", sent).code in (0, 1) and cairn("check", sent).code == 0
    assert (mine / "own.cairn" / "segments" / "000001").is_dir()


@pytest.mark.parametrize("name", ["..", "../../mine", "vocabulary/..", "segments", "vocabulary-x"])
def test_a_vocabulary_is_named_by_no_path(sent: Path, mine: Path, cairn: Cairn, name: str) -> None:
    copies = {f"{name}/written": base64.b64encode(b"theirs").decode()}
    write_sql(
        sent,
        "INSERT OR REPLACE INTO settings VALUES ('cairn.vocabulary', ?)",
        "INSERT OR REPLACE INTO settings VALUES ('cairn.copies', ?)",
        values=[(name,), (json.dumps(copies),)],
    )
    (sent / "collection.sums").unlink()
    for command in ("compact", "repair", "check"):
        assert cairn(command, sent).code in (0, 1, 2)
    assert not list(sent.parent.rglob("written"))


def test_options_name_no_file_of_this_machine(sent: Path, mine: Path, cairn: Cairn) -> None:
    shutil.copy("data/models/pr-proj.npz", sent.parent / "other.npz")
    options = (sent / "collection.toml").read_text()
    for name in (sent.parent / "other.npz", "../other.npz", "other.npz"):
        (sent / "collection.toml").write_text(options.replace('"rootsift"', f'"{name}"'))
        assert "names a file that is not the collection's own" in cairn("info", sent).refused()


@pytest.mark.parametrize(
    ("place", "target"),
    [
        ("segments/000001", "own.cairn/segments/000001"),
        ("segments", "own.cairn/segments"),
        ("segments/000009", "pictures"),
        ("segments/000009.writing", "pictures"),
        ("collection.lock", "letter.txt"),
        ("sums.lock", "letter.txt"),
        ("links.lock", "letter.txt"),
        ("cache", "pictures"),
        ("cache/thumbnails", "pictures"),
        ("cache/thumbnails/aa", "pictures/aa"),
        ("staging", "pictures"),
        ("retrain", "pictures"),
        ("augmentation", "pictures"),
        ("vocabulary", "own.cairn/vocabulary"),
        ("vocabulary/meta.json", "own.cairn/vocabulary/meta.json"),
        ("uploads", "pictures"),
        ("catalogue.sqlite", "own.cairn/catalogue.sqlite"),
        ("catalogue.sqlite-wal", "letter.txt"),
        (".catalogue.sqlite.00000000.tmp", "pictures"),
    ],
)
def test_no_link_leads_out(sent: Path, mine: Path, cairn: Cairn, place: str, target: str) -> None:
    link = sent / place
    if link.is_dir():
        shutil.rmtree(link)
    link.unlink(missing_ok=True)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(mine / target)
    said = f"{link} is a link that leads out of the collection: put what it leads to in its place"
    for command in (*WRITING, ("check",), ("info",)):
        assert cairn(command[0], sent, *command[1:]).refused().startswith(said)
    assert link.is_symlink()


def test_a_collection_that_is_being_made_follows_no_link(
    tmp_path: Path, mine: Path, cairn: Cairn, indexed: Indexed
) -> None:
    sent = tmp_path / "new.cairn"
    sent.mkdir()
    for place, target in (("collection.lock", "letter.txt"), ("segments", "pictures")):
        (sent / place).symlink_to(mine / target)
        assert "leads out of the collection" in cairn("index", sent, indexed.photos).refused()
        (sent / place).unlink()


def test_compacting_removes_thumbnails_and_nothing_that_is_called_otherwise(sent: Path, cairn: Cairn) -> None:
    folder = sent / "cache" / "thumbnails"
    for place in ("aa", "album"):
        (folder / place).mkdir(parents=True)
        (folder / place / f"{'a' * 64}-256.jpg").write_bytes(b"made")
        (folder / place / "rome.jpg").write_bytes(b"put there")
    assert cairn("compact", sent).code == 0
    left = sorted(
        path.relative_to(folder).as_posix() for place in ("aa", "album") for path in (folder / place).rglob("*.jpg")
    )
    assert left == ["aa/rome.jpg", f"album/{'a' * 64}-256.jpg", "album/rome.jpg"]


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
FOREIGN = {
    "trigger": "CREATE TRIGGER odd AFTER INSERT ON images BEGIN DELETE FROM images; END",
    "trigger on settings": "CREATE TRIGGER odd AFTER UPDATE ON settings BEGIN DELETE FROM images; END",
    "view": "CREATE VIEW odd AS SELECT 1",
    "table": "CREATE TABLE odd (one)",
    "index of an expression": "CREATE INDEX odd ON images (abs(number))",
    "index of a condition": "CREATE INDEX odd ON images (number) WHERE abs(number) > 1",
    "unique index": "CREATE UNIQUE INDEX odd ON images (state, number)",
    "generated column": "ALTER TABLE images ADD COLUMN odd TEXT AS (hex(zeroblob(1000)))",
    "default": "ALTER TABLE images ADD COLUMN odd TEXT DEFAULT 'one'",
    "virtual table": "CREATE VIRTUAL TABLE odd USING fts4(one)",
}
REBUILT = {
    "view for a table": ("settings", f"CREATE VIEW settings AS {ENDLESS} SELECT '' AS key, i AS value FROM n"),
    "view for the photos": ("images", f"CREATE VIEW images AS {ENDLESS} SELECT i AS number FROM n"),
    "check": ("links", "CREATE TABLE links (number BIGINT PRIMARY KEY, found BLOB CHECK (length(hex(found)) > 1))"),
    "collation": ("links", "CREATE TABLE links (number BIGINT PRIMARY KEY, found BLOB COLLATE NOCASE)"),
    "generated": ("links", "CREATE TABLE links (number BIGINT, found BLOB AS (zeroblob(9)), found_hash BIGINT)"),
}


@pytest.mark.parametrize("what", [*FOREIGN, *REBUILT])
def test_a_catalogue_holds_nothing_but_what_cairn_makes(sent: Path, cairn: Cairn, what: str) -> None:
    _make_foreign(sent, what)
    for command in ("info", "compact"):
        assert "which Cairn has not made. Run cairn check, then cairn repair." in cairn(command, sent).refused()
    ran = cairn("check", sent)
    assert ran.code == 1 and "which Cairn has not made" in ran.out


def _make_foreign(folder: Path, what: str) -> None:
    if what in FOREIGN:
        write_sql(folder, FOREIGN[what])
    else:
        table, sql = REBUILT[what]
        write_sql(folder, f"DROP TABLE {table}", sql)


@pytest.mark.parametrize("what", ["trigger", "view for the photos", "generated column"])
def test_a_catalogue_with_foreign_objects_is_repaired(sent: Path, cairn: Cairn, what: str) -> None:
    photos = cairn("info", sent, "--json").json["images"]
    _make_foreign(sent, what)
    assert cairn("repair", sent).code == 0
    assert cairn("info", sent, "--json").json["images"] == photos
    assert cairn("check", sent).code == 0


def test_a_snapshot_with_a_trigger_is_not_restored(sent: Path, cairn: Cairn, monkeypatch: pytest.MonkeyPatch) -> None:
    write_sql(sent, FOREIGN["trigger"])
    with monkeypatch.context() as patch:  # as who sends it would
        for module in ("collection.snapshot", "catalogue.database"):
            patch.setattr(f"retrieval.{module}.refuse_foreign_objects", lambda *_: None)
        from retrieval.collection.snapshot import write_snapshot

        write_snapshot(sent / CATALOGUE, sent / "catalogue.snapshot")
    (sent / CATALOGUE).unlink()
    assert cairn("repair", sent).code in (0, 1)
    ran = cairn("info", sent, "--json")
    assert ran.json["images"] > 0
    assert b"TRIGGER" not in (sent / CATALOGUE).read_bytes()


def test_a_later_version_is_told_by_its_own_sentence(sent: Path, cairn: Cairn) -> None:
    write_sql(sent, "CREATE TABLE later (one)", "UPDATE settings SET value = '99' WHERE key = 'cairn.format'")
    assert "was written by a later version of Cairn (format 99): update Cairn." in cairn("info", sent).refused()


ODD_FILES = (
    *("catalogue.sqlite", "catalogue.sqlite-wal", "catalogue.sqlite-journal", "catalogue.sqlite-shm"),
    *("collection.toml", "collection.sums", "collection.statistics", "collection.id", "collection.lock", "sums.lock"),
    *("catalogue.snapshot", "vocabulary/meta.json", "vocabulary/centres.npy", "vocabulary/descriptor.txt"),
    *("vocabulary/beside.npy", "vocabulary/search.npz", "vocabulary/search.json", "segments/000001/meta.json"),
    *("segments/000001/offsets.npy", "segments/000001/column_geometry.npy", "groups.json", "improvement.json"),
    *("augmentation/augmentation.json", "descriptor.npz"),
)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param(name, kind, marks=[pytest.mark.slow] if kind != "pipe" or place % 3 else [])
        for place, name in enumerate(ODD_FILES)
        for kind in ("pipe", "socket", "folder")
    ],
)
def test_nothing_is_waited_for(
    sent: Path, cairn: Cairn, indexed: Indexed, monkeypatch: pytest.MonkeyPatch, name: str, kind: str
) -> None:
    place = sent / name
    place.unlink(missing_ok=True)
    place.parent.mkdir(exist_ok=True)
    monkeypatch.chdir(place.parent)  # the path of a socket may not be long
    if kind == "pipe":
        os.mkfifo(place.name)
    elif kind == "folder":
        Path(place.name).mkdir()
    else:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(place.name)
    photo = next(indexed.photos.iterdir())
    for command in (("info", sent), ("check", sent), ("query", sent, photo), ("group", sent), ("compact", sent)):
        assert cairn(*command).code in (0, 1, 2)


def _tampered_catalogue(random: np.random.Generator, folder: Path) -> None:
    """Write other values into the catalogue, of any kind and in any place, or things that Cairn does not make."""
    with closing(sqlite3.connect(folder / CATALOGUE)) as connection:
        named = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").fetchall()
        tables = [name for (name,) in named if not name.startswith("sqlite_")]
        for _ in range(int(random.integers(1, 4))):
            table = "settings" if random.random() < 0.3 else str(random.choice(tables))
            columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
            column = str(random.choice(columns))
            # Some tables of the search by words have no row numbers.
            key = "rowid" if table not in ("photo_words_idx", "photo_words_config") else f'"{columns[0]}"'
            rows = [row for (row,) in connection.execute(f'SELECT {key} FROM "{table}"')]
            where = rows[int(random.integers(len(rows)))] if rows else 0
            value = VALUES[int(random.integers(len(VALUES)))].replace("MINE", str(folder.parents[1] / "mine"))
            with suppress(sqlite3.Error):
                connection.execute(f'UPDATE "{table}" SET "{column}" = {value} WHERE {key} = ?', [where])
            if random.random() < 0.2:
                with suppress(sqlite3.Error):
                    connection.execute(FOREIGN[str(random.choice(list(FOREIGN)))])
        connection.commit()


VALUES = (
    *("NULL", "-1", "0", "9223372036854775807", "1e308", "9e999", "x'ff00'", "'..'", "'../../mine'", "'MINE'", "''"),
    *("'MINE/own.cairn/segments/000001'", "'../../../mine/own.cairn/segments/000001'", "'/dev/zero'", "'a' || char(0)"),
    *("'indexed'", "'removed'", "'MINE/letter.txt'", "'vocabulary-000002'", "'9'", "zeroblob(100000)", "'s3://x/y'"),
    *("CAST(x'ed' AS TEXT)", "'hamming-64'", "'{}'", "4294967295"),
)


def _tampered_segment(random: np.random.Generator, folder: Path) -> None:
    """Put an array of another shape, type, order or values in the place of one of a segment, or a wrong description."""
    names = sorted(path.stem for path in (folder / "segments" / "000001").glob("*.npy"))
    for _ in range(int(random.integers(1, 3))):
        what = random.random()
        if what < 0.2:
            describe(folder, change=lambda meta: _changed_description(random, meta))
            continue
        name = str(random.choice(names))
        with suppress(CairnError, ValueError, TypeError):
            reshape(folder, name, lambda array: _changed_array(random, array))
        if what > 0.9:
            path = folder / "segments" / "000001" / f"{name}.npy"
            os.truncate(path, int(random.integers(path.stat().st_size)))


def _changed_description(random: np.random.Generator, meta: dict[str, Any]) -> None:
    entry = meta["files"][str(random.choice(list(meta["files"])))]
    odd = ("..", "../letter.txt", -1, [2**40], [], None, "|O", "<f8", {}, 1.5, "a" * 64)
    key = str(random.choice(["dtype", "shape", "sha256"]))
    entry[key] = odd[int(random.integers(len(odd)))]
    if random.random() < 0.3:
        meta["files"][str(random.choice(["../own", "column_../x", "column_x", "words"]))] = dict(entry)


def _changed_array(random: np.random.Generator, array: NDArray[Any]) -> NDArray[Any]:
    change = int(random.integers(9))
    if change == 0:
        return array[:, :1] if array.ndim > 1 else array[:, None]
    if change == 1:
        return array[..., 0] if array.ndim > 1 else array[:0]
    if change == 2:
        return array.astype(random.choice(["<f8", ">u4", "<u8", "|u1", "<f2", "<i8", "|S3"]))
    if change == 3:
        return np.asfortranarray(array[::-1])
    if change == 4:
        return np.concatenate([array, array])
    if change == 5:
        return array[: len(array) // 2]
    changed = array.copy()
    spots = random.integers(0, max(1, changed.size), 20)
    top = np.nan if changed.dtype.kind == "f" else np.iinfo(changed.dtype).max
    changed.reshape(-1)[spots[: changed.size]] = top if change == 6 else 0
    return changed if change < 8 else np.full_like(array, top)


@pytest.mark.slow
@pytest.mark.parametrize("tamper", [_tampered_catalogue, _tampered_segment])
@pytest.mark.parametrize("batch", range(10))
def test_nothing_that_is_tampered_with_reaches_out(
    sealed: Path, tmp_path: Path, mine: Path, cairn: Cairn, indexed: Indexed, tamper: Any, batch: int
) -> None:
    """Ten of each at a time: a sentence or an answer, nothing touched elsewhere, and no waiting without end."""
    random = np.random.default_rng(batch)
    photo = next(indexed.photos.iterdir())
    commands = [("info",), ("check",), ("query", photo), ("compact",), ("group",), ("remove", "cat_0.jpg"), ("repair",)]
    photos = digest_tree(indexed.photos)
    for number in range(10):
        sent = Path(shutil.copytree(sealed, tmp_path / "theirs" / f"{number}.cairn"))
        tamper(random, sent)
        for place in random.permutation(len(commands))[:3]:
            command, *rest = commands[place]
            if command == "query":
                ran = cairn(
                    "query", sent, *rest, "--json", "--engine", str(random.choice(["tf-idf", "signatures", "raw"]))
                )
            else:
                ran = cairn(command, sent, *rest)
            assert ran.code in (0, 1, 2), (batch, number, command, ran.err)
            assert ran.code != 2 or ran.err.count("\n") >= 1
        shutil.rmtree(sent)
        assert os.listdir(tmp_path / "theirs") == []  # noqa: PTH208
    assert digest_tree(indexed.photos) == photos
