"""The catalogue, over SQLite and over PostgreSQL."""

import contextlib
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from index.errors import CairnError
from index.text import check_storable, printable
from retrieval.catalogue.browsing import folders_of, numbers_of
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.changes import make_tombstones, quantisation_errors
from retrieval.catalogue.database import BUSY_TIMEOUT_MS, Database
from retrieval.catalogue.failures import Failure, failures_in, forget_failures, keep_failures
from retrieval.catalogue.filters import PhotoFilter
from retrieval.catalogue.names import unique_name
from retrieval.catalogue.photos import (
    Known,
    all_indexed,
    counts_of_photos,
    first_and_last_added,
    missing_photos,
    names_in_order,
    paths_of,
    photo_of_name,
    rows_of,
)
from retrieval.catalogue.schema import FORMAT, ImageRow, SegmentRow
from retrieval.catalogue.segment_rows import commit_segment, orphans_in, segments_in, tombstones_in
from retrieval.catalogue.settings import keep_setting, reserve_numbers
from tests.support.paths import ROOT


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        return request.getfixturevalue("postgresql")()
    return str(tmp_path / "holiday.cairn")


@pytest.fixture
def catalogue(address: str) -> Iterator[Catalogue]:
    with Catalogue.open(address, create=True) as catalogue:
        yield catalogue


def segment_row(folder: str, images: int = 1) -> SegmentRow:
    return SegmentRow(
        folder=folder,
        images=images,
        features=10 * images,
        bytes=170 * images,
        vocabulary_fingerprint="a" * 64,
        descriptor_fingerprint="b" * 64,
    )


def by_path(catalogue: Catalogue, path: str) -> ImageRow | None:
    return next((image for image in catalogue.read(all_indexed) if image.path == path), None)


def add(catalogue: Catalogue, folder: str, paths: list[str], **values: object) -> list[ImageRow]:
    """Commit a segment of these photos, and return them as they are read back."""
    first = catalogue.write(reserve_numbers, len(paths))
    rows = [ImageRow(number=first + i, path=path, position=i, features=10, **values) for i, path in enumerate(paths)]
    catalogue.write(commit_segment, segment_row(folder, len(paths)), rows)
    return catalogue.read(rows_of, [row.number for row in rows])


HARD_NAMES = [
    'o\'clock "x".jpg',
    "100%s %(a)s.jpg",
    "two\nlines.jpg",
    "<b>&amp;.jpg",
    "\U0001f5ff 石.jpg",
    "\\xff.jpg",
    " .jpg",
]


def test_what_is_committed_is_read_back(address: str) -> None:
    paths = [f"/photos/{name}" for name in HARD_NAMES]
    with Catalogue.open(address, create=True) as catalogue:
        written = add(catalogue, "000001", paths, sha256="c" * 64, size=2**40, mtime_ns=2**60, width=4000, height=3000)
    with Catalogue.open(address) as catalogue:
        images = catalogue.read(all_indexed)
        assert images == written
        assert [image.path for image in images] == paths
        assert [image.name for image in images] == HARD_NAMES
        assert [image.position for image in images] == list(range(len(paths)))
        assert {(image.size, image.mtime_ns, image.width, image.height) for image in images} == {
            (2**40, 2**60, 4000, 3000)
        }
        for image in images:
            assert catalogue.read(photo_of_name, image.name or "") == image
            assert by_path(catalogue, image.path) == image
        (segment,) = catalogue.read(segments_in)
        assert (segment.folder, segment.images, segment.features) == ("000001", len(paths), 10 * len(paths))
        assert {image.segment_id for image in images} == {segment.id}
        numbers = [image.number for image in reversed(images)]
        assert catalogue.read(names_in_order, numbers) == HARD_NAMES[::-1]
        assert catalogue.read(paths_of, np.array(numbers, dtype=np.uint32)) == dict(
            zip(numbers, paths[::-1], strict=True)
        )
        assert catalogue.known()[paths[0]] == Known(images[0].number, "indexed", 2**40, 2**60, "c" * 64)
        assert catalogue.read(counts_of_photos) == {"indexed": 7, "failed": 0, "removed": 0, "features": 70}
        assert catalogue.read(photo_of_name, "nothing") is None
        with pytest.raises(KeyError):
            catalogue.read(names_in_order, [999])
        with pytest.raises(KeyError):
            catalogue.read(rows_of, [999])


@pytest.mark.parametrize("letters", ["a", "\u4e00"])
def test_a_name_of_any_length_is_stored_in_every_database(
    catalogue: Catalogue, letters: str, caplog: pytest.LogCaptureFixture
) -> None:
    rng = np.random.default_rng(0)
    folder = "".join(chr(ord(letters) + int(step)) for step in rng.integers(0, 20, 1100))
    wishes = [f"{folder}/x/1.jpg", f"{folder}/y/1.jpg", "short.jpg"]
    first = catalogue.write(reserve_numbers, 3)
    rows = [ImageRow(number=first + i, path=f"/{wish}", name=wish, position=i) for i, wish in enumerate(wishes)]
    names = catalogue.write(commit_segment, segment_row("000001", 3), rows)
    assert len(set(names)) == 3
    assert names[2] == "short.jpg"
    for name, row in zip(names, rows, strict=True):
        assert len(name.encode()) <= 1000 and name.startswith(row.path[1:6]) and name.endswith(".jpg")
        assert by_path(catalogue, row.path) == catalogue.read(photo_of_name, name)
    assert not caplog.records


BROWSED = [
    *("a.jpg", "B.JPG", "rome/1.jpg", "rome/2.jpg", "rome/forum/1.jpg", "rome2/1.jpg", "Rome/1.jpg", "rom/e.jpg"),
    *("100%.jpg", "100x.jpg", "a_b.jpg", "axb.jpg", "a\\b.jpg", "ÉTÉ/Plage.jpg", "été/plage.jpg", "x/%/_/y.jpg"),
    *("rome 1/x.jpg", "rome-1/x.jpg", "z'; DROP TABLE images; --.jpg", "a/b/c/d/e.jpg", "\U0001f5ff/石.jpg"),
]
NAME_FILTERS = [None, "", "1", "JPG", ".jpg", "%", "_", "\\", "rome", "ROME/", "/", "'; drop", "石", "nothing", "0%"]
FOLDER_FILTERS = [
    None,
    "",
    "rome",
    "rome/",
    "/rome",
    "Rome",
    "rome/forum",
    "rom",
    "x/%",
    "x/_",
    "%",
    "a/b",
    "\U0001f5ff",
]


def _below(name: str, folder: str) -> bool:
    """Whether a name lies in a folder or below it, by its parts."""
    wanted = [part for part in folder.split("/") if part]
    return name.split("/")[:-1][: len(wanted)] == wanted


def test_pages_are_what_filtering_and_sorting_all_names_gives(catalogue: Catalogue) -> None:
    rows = [ImageRow(number=i, path=f"/p/{name}", name=name, position=i) for i, name in enumerate(BROWSED)]
    catalogue.write(reserve_numbers, len(rows))
    catalogue.write(commit_segment, segment_row("000001", len(rows)), rows)
    catalogue.write(keep_failures, [Failure("/p/rome/bad.jpg", "It is truncated.")])
    (gone,) = add(catalogue, "000002", ["/p/rome-gone.jpg"])
    catalogue.write(make_tombstones, [gone.number])

    ordered = sorted(range(len(BROWSED)), key=lambda number: BROWSED[number].encode())
    for name in NAME_FILTERS:
        for folder in FOLDER_FILTERS:
            passing = [
                number
                for number in ordered
                if (name or "").casefold() in BROWSED[number].casefold() and _below(BROWSED[number], folder or "")
            ]
            wanted = PhotoFilter(name=name or "", folder=folder or "")
            assert catalogue.read(numbers_of, replace(wanted, hidden=None)).tolist() == sorted(passing)
            for offset, limit in ((0, 100), (2, 3), (len(passing), 5), (0, 0)):
                total, page = catalogue.page(offset, limit, wanted)
                assert total == len(passing)
                assert [row.number for row in page] == passing[offset : offset + limit]
    assert catalogue.page(0, 3)[1] == catalogue.read(rows_of, ordered[:3])
    assert catalogue.read(numbers_of).dtype == np.int64
    with pytest.raises(ValueError, match="page"):
        catalogue.page(-1, 3)

    counted = Counter(name.rpartition("/")[0] for name in BROWSED)
    assert catalogue.read(folders_of) == sorted(counted.items())


def test_what_is_asked_of_all_photos_is_answered_from_an_index(tmp_path: Path) -> None:
    """The table itself is ten times as large."""
    from sqlalchemy import event

    with Catalogue.open(tmp_path / "c", create=True) as catalogue:
        add(catalogue, "000001", ["/a/b.jpg", "/a/c.jpg"])
        for ask, index, searched in (
            (lambda: catalogue.read(folders_of), "ix_images_folder", True),
            (lambda: catalogue.read(counts_of_photos), "sqlite_autoindex_images_2 (name=?)", True),
            (lambda: catalogue.read(first_and_last_added), "ix_images_added", True),
            (lambda: catalogue.read(quantisation_errors, 1), "ix_images_counted", True),
            (lambda: catalogue.page(0, 60), "sqlite_autoindex_images_2", True),
            (lambda: catalogue.read(tombstones_in), "sqlite_autoindex_images_2 (name=?)", True),
            (lambda: catalogue.read(failures_in), "sqlite_autoindex_images_2 (name=?)", True),
            (lambda: catalogue.read(missing_photos), "ix_images_missing", True),
            (lambda: catalogue.read(rows_of, [1, 0]), "(number=?", True),
        ):
            plans: list[str] = []

            def explain(
                connection: Any, cursor: Any, statement: str, parameters: Any, *_: Any, plans: list[str] = plans
            ) -> None:
                cursor.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
                plans += [row[3] for row in cursor.fetchall()]

            engine = catalogue._database._engine
            event.listen(engine, "before_cursor_execute", explain)
            ask()
            event.remove(engine, "before_cursor_execute", explain)
            assert any(index in plan and (plan.startswith("SEARCH") or not searched) for plan in plans), (ask, plans)
            assert "SCAN images" not in plans, (ask, plans)


def test_letters_beyond_ascii_are_found_in_upper_and_lower_case(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path / "c", create=True) as catalogue:
        rows = [ImageRow(number=i, path=f"/p/{name}", name=name, position=i) for i, name in enumerate(BROWSED)]
        catalogue.write(reserve_numbers, len(rows))
        catalogue.write(commit_segment, segment_row("000001", len(rows)), rows)
        found = [row.name for row in catalogue.page(0, 10, PhotoFilter(name="ÉTé/PLAGE"))[1]]
        assert found == sorted(["ÉTÉ/Plage.jpg", "été/plage.jpg"])


@pytest.mark.parametrize("part", ["\0", "a\0", "\ud800", "x" * 2000, "%" * 100_000])
def test_what_no_name_has_in_it_finds_nothing(catalogue: Catalogue, part: str) -> None:
    add(catalogue, "000001", ["/a.jpg"])
    for wanted in (PhotoFilter(name=part), PhotoFilter(folder=part)):
        assert catalogue.page(0, 10, wanted) == (0, [])
        assert catalogue.read(numbers_of, wanted).tolist() == []


def test_a_commit_is_all_or_nothing(catalogue: Catalogue) -> None:
    add(catalogue, "000001", ["/a.jpg"])
    first = catalogue.write(reserve_numbers, 2)
    rows = [ImageRow(number=first + i, path=path, position=i) for i, path in enumerate(["/a.jpg", "/b.jpg"])]
    rows[1].number = 0  # taken
    with pytest.raises(CairnError, match="catalogue"):
        catalogue.write(commit_segment, segment_row("000002", 2), rows)
    assert [segment.folder for segment in catalogue.read(segments_in)] == ["000001"]
    assert [(image.number, image.name) for image in catalogue.read(all_indexed)] == [(0, "a.jpg")]
    with pytest.raises(ValueError, match="reserved"):
        catalogue.write(commit_segment, segment_row("000002"), [ImageRow(number=77, path="/c.jpg", position=0)])
    with pytest.raises(CairnError):  # a folder belongs to one segment
        add(catalogue, "000001", ["/c.jpg"])


def test_numbers_are_never_used_again(catalogue: Catalogue) -> None:
    (first,) = add(catalogue, "000001", ["/a.jpg"])
    catalogue.write(keep_failures, [Failure("/bad.jpg", "It is truncated.")])
    catalogue.write(reserve_numbers, 5)
    catalogue.write(forget_failures, ["/bad.jpg"])
    catalogue.write(make_tombstones, [first.number])
    (second,) = add(catalogue, "000002", ["/a.jpg"])
    assert first.number == 0 and second.number == 1 + 1 + 5
    assert second.name == "a.jpg"  # a removed photo's name is free
    assert catalogue.read(tombstones_in) == {0}
    assert [image.number for image in catalogue.read(all_indexed)] == [second.number]


def test_a_photo_indexed_again_replaces_itself(catalogue: Catalogue) -> None:
    old, other = add(catalogue, "000001", ["/p/a.jpg", "/p/b.jpg"], mtime_ns=1)
    (new,) = add(catalogue, "000002", ["/p/a.jpg"], mtime_ns=2)
    assert by_path(catalogue, "/p/a.jpg") == new and new.name == "a.jpg" and new.number > other.number
    assert catalogue.read(tombstones_in) == {old.number}
    assert catalogue.known()["/p/a.jpg"].mtime_ns == 2
    assert catalogue.read(counts_of_photos) == {"indexed": 2, "failed": 0, "removed": 1, "features": 20}
    with pytest.raises(KeyError):
        catalogue.read(names_in_order, [old.number])


def test_failures_are_kept_until_the_photo_succeeds(catalogue: Catalogue) -> None:
    catalogue.write(
        keep_failures, [Failure("/x.jpg", "It is empty.", size=0, mtime_ns=5), Failure("/y.jpg", "It is text.")]
    )
    catalogue.write(keep_failures, [Failure("/x.jpg", "It is truncated.", size=9, mtime_ns=6)])
    assert catalogue.read(failures_in) == [
        Failure("/y.jpg", "It is text."),
        Failure("/x.jpg", "It is truncated.", 9, 6),
    ]
    assert catalogue.known()["/x.jpg"][1:] == ("failed", 9, 6, None, False)
    add(catalogue, "000001", ["/x.jpg"])
    assert [failure.path for failure in catalogue.read(failures_in)] == ["/y.jpg"]
    assert catalogue.known()["/x.jpg"].state == "indexed"
    # What was indexed before a failure stays searchable, and known: the photo may have moved, or come back.
    catalogue.write(keep_failures, [Failure("/x.jpg", "It is truncated.", size=3)])
    assert by_path(catalogue, "/x.jpg") is not None
    assert catalogue.known()["/x.jpg"].state == "indexed"
    assert [failure.path for failure in catalogue.read(failures_in)] == ["/y.jpg", "/x.jpg"]
    catalogue.write(forget_failures, ["/x.jpg", "/y.jpg"])
    assert catalogue.read(failures_in) == []
    assert catalogue.known()["/x.jpg"].state == "indexed"


def test_names_that_are_not_text_fail_alone(catalogue: Catalogue) -> None:
    undecodable = b"/photos/caf\xe9\n.jpg".decode("utf-8", "surrogateescape")
    with pytest.raises(CairnError, match=r"caf\\xe9"):
        check_storable(undecodable)
    with pytest.raises(CairnError):
        add(catalogue, "000001", ["/photos/a\0.jpg"])
    catalogue.write(keep_failures, [Failure(undecodable, f"Cannot read {undecodable}\0")])
    (failure,) = catalogue.read(failures_in)
    assert failure.path == "/photos/caf\\xe9\n.jpg" and failure.reason == "Cannot read /photos/caf\\xe9\n.jpg\\x00"
    assert catalogue.read(photo_of_name, undecodable) is None
    add(catalogue, "000001", ["/photos/fine.jpg"])
    assert printable("\ud800 é") == "\\ud800 é"


def test_names_are_unique(catalogue: Catalogue) -> None:
    first = add(catalogue, "000001", ["/rome/1.jpg", "/paris/1.jpg", "/old/rome/1.jpg", "/old/paris/1.jpg"])
    assert [image.name for image in first] == ["1.jpg", "paris/1.jpg", "rome/1.jpg", "paris/1 (2).jpg"]
    second = add(catalogue, "000002", ["/older/paris/1.jpg", "/lima/1.jpg", "/rome/2.jpg"])
    assert [image.name for image in second] == ["paris/1 (3).jpg", "lima/1.jpg", "2.jpg"]
    assert [image.name for image in add(catalogue, "000003", ["/z/3.jpg"], name="wish")] == ["wish"]
    assert [image.name for image in add(catalogue, "000004", ["/z/4.jpg"], name="wish")] == ["4.jpg"]


def test_unique_name() -> None:
    assert unique_name("/a/x.tar.gz", {"x.tar.gz", "a/x.tar.gz"}) == "a/x.tar (2).gz"
    assert unique_name("/noext", {"noext"}) == "noext (2)"


def test_two_writers_at_once(address: str) -> None:
    failures: list[BaseException] = []

    def write(which: int) -> None:
        try:
            with Catalogue.open(address, create=True) as catalogue:
                for i in range(5):
                    add(catalogue, f"{which}-{i}", [f"/{which}/{i}/{k}.jpg" for k in range(3)])
                    catalogue.known()
        except BaseException as error:
            failures.append(error)

    Catalogue.open(address, create=True).close()
    threads = [threading.Thread(target=write, args=(which,)) for which in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with Catalogue.open(address) as catalogue:
        images = catalogue.read(all_indexed)
        assert len({image.number for image in images}) == len({image.name for image in images}) == 45


@pytest.mark.slow
def test_more_images_than_one_statement_takes(catalogue: Catalogue) -> None:
    paths = [f"/p/{i // 100}/{i}.jpg" for i in range(6_000)]
    images = add(catalogue, "000001", paths)
    assert [image.path for image in images] == paths
    add(catalogue, "000002", paths)
    assert len(catalogue.known()) == len(catalogue.read(tombstones_in)) == 6_000
    catalogue.write(make_tombstones, [image.number for image in catalogue.read(all_indexed)])
    assert catalogue.read(counts_of_photos) == {"indexed": 0, "failed": 0, "removed": 12_000, "features": 0}


def test_settings_are_kept(catalogue: Catalogue) -> None:
    assert catalogue.setting("vocabulary") is None
    for value in ("1", "2 %"):
        catalogue.write(keep_setting, "vocabulary", value)
        assert catalogue.setting("vocabulary") == value


KILLED = """
import os, signal, sys
from pathlib import Path
import numpy as np
import sqlalchemy as sa
from index.segments.writing import write_segment
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.schema import ImageRow, SegmentRow
from retrieval.catalogue.segment_rows import commit_segment
from retrieval.catalogue.settings import reserve_numbers

address, segments, when = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
catalogue = Catalogue.open(address)
first = catalogue.write(reserve_numbers, 1)
folder = segments / catalogue.next_folder(segments)
segment = write_segment(folder, image_numbers=np.array([first], np.uint32), words=[np.array([1])], columns={},
                        vocabulary_fingerprint="a" * 64, descriptor_fingerprint="b" * 64)
if when == "before":
    die()
sa.event.listen(sa.Engine, "commit", die)
row = SegmentRow(folder=folder.name, images=1, features=1, bytes=1, vocabulary_fingerprint="a" * 64,
                 descriptor_fingerprint="b" * 64)
catalogue.write(commit_segment, row, [ImageRow(number=first, path="/b.jpg", position=0)])
"""


@pytest.mark.parametrize("when", ["before", "inside"])
def test_a_process_killed_around_the_commit(address: str, tmp_path: Path, when: str) -> None:
    segments = tmp_path / "segments"
    (segments / "000001").mkdir(parents=True)
    with Catalogue.open(address, create=True) as catalogue:
        (before,) = add(catalogue, "000001", ["/a.jpg"])
        assert catalogue.read(orphans_in, segments) == []
    done = subprocess.run([sys.executable, "-c", KILLED, address, str(segments), when], cwd=ROOT, timeout=60)
    assert done.returncode == -signal.SIGKILL

    with Catalogue.open(address) as catalogue:
        assert catalogue.read(all_indexed) == [before]
        assert catalogue.read(orphans_in, segments) == [segments / "000002"]
        # The next run neither meets the orphan's folder nor the killed process's number.
        assert catalogue.next_folder(segments) == "000003"
        (after,) = add(catalogue, "000003", ["/b.jpg"])
        assert after.number == before.number + 2


def test_orphans_are_unfinished_folders_too(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path, create=True) as catalogue:
        assert catalogue.read(orphans_in, tmp_path / "segments") == []
        assert catalogue.next_folder(tmp_path / "segments") == "000001"
        (tmp_path / "segments" / "000007.1234.writing").mkdir(parents=True)
        assert [path.name for path in catalogue.read(orphans_in, tmp_path / "segments")] == ["000007.1234.writing"]
        assert catalogue.next_folder(tmp_path / "segments") == "000008"


def test_there_is_no_catalogue(address: str, tmp_path: Path) -> None:
    with pytest.raises(CairnError, match=r"cairn\.create"):
        Catalogue.open(address)
    assert list(tmp_path.iterdir()) == []  # a look leaves nothing behind
    Catalogue.open(address, create=True).close()
    Catalogue.open(address, create=True).close()
    Catalogue.open(address).close()


def test_a_catalogue_of_a_later_version(address: str) -> None:
    with Catalogue.open(address, create=True) as catalogue:
        catalogue.write(keep_setting, "cairn.format", str(FORMAT + 1))
    for create in (False, True):
        with pytest.raises(CairnError, match="later version"):
            Catalogue.open(address, create=create)


def test_damaged_and_foreign_databases(tmp_path: Path) -> None:
    file = tmp_path / "catalogue.sqlite"
    file.write_bytes(b"this is no database at all" * 100)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    with sqlite3.connect(foreign / "catalogue.sqlite") as connection:
        connection.execute("CREATE TABLE images (id INTEGER)")
    connection.close()
    whole = tmp_path / "whole"
    with Catalogue.open(whole, create=True) as catalogue:
        add(catalogue, "000001", [f"/{i}.jpg" for i in range(500)])
    sound = (whole / "catalogue.sqlite").read_bytes()
    for create in (False, True):
        with pytest.raises(CairnError, match=r"cannot be used \(file is not a database\)"):
            Catalogue.open(tmp_path, create=create)
        with pytest.raises(CairnError, match="another program"):
            Catalogue.open(foreign, create=create)
    (whole / "catalogue.sqlite").write_bytes(sound[:8192] + b"\xff" * (len(sound) - 8192))
    with pytest.raises(CairnError, match="cannot be used"), Catalogue.open(whole) as catalogue:
        catalogue.read(all_indexed)
    (tmp_path / "file").write_text("")
    with pytest.raises(CairnError):
        Catalogue.open(tmp_path / "file", create=True)
    with pytest.raises(CairnError, match=r"cairn\.create"):
        Catalogue.open(tmp_path / "file")


def test_an_empty_file_is_filled_when_asked(tmp_path: Path) -> None:
    (tmp_path / "catalogue.sqlite").touch()  # what a process killed at the very start leaves
    with pytest.raises(CairnError, match="holds no collection"):
        Catalogue.open(tmp_path)
    Catalogue.open(tmp_path, create=True).close()
    Catalogue.open(tmp_path).close()


@pytest.mark.parametrize("address", ["nonsense://user:secret@host/x", "://", "sqlite+nothing:///x"])
def test_addresses_that_do_not_work(address: str) -> None:
    with pytest.raises(CairnError, match="as the address of a catalogue") as caught:
        Catalogue.open(address)
    assert "secret" not in str(caught.value)
    assert 'pip install "psycopg[binary]"' in str(caught.value)


def test_a_server_that_does_not_answer(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(CairnError, match="cannot be used") as caught:
        Catalogue.open(f"postgresql+psycopg://me:secret@/x?host={tmp_path}")
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_sqlite_is_opened_safely(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path, create=True) as catalogue, catalogue.reading() as session:
        pragmas = {
            name: session.connection().exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "foreign_keys")
        }
        assert pragmas == {"journal_mode": "wal", "foreign_keys": 1}


def test_rows_returned_are_copies(catalogue: Catalogue) -> None:
    (image,) = add(catalogue, "000001", ["/a.jpg"])
    image.name = "other"
    assert [row.name for row in catalogue.read(all_indexed)] == ["a.jpg"]


def test_every_connection_waits_for_a_writer_after_one_has_written(tmp_path: Path) -> None:
    """To empty the log it waits for nobody; that is not for whoever uses the connection next."""
    with Catalogue.open(tmp_path, create=True) as made:
        database = Database(made.address)

    def waits() -> list[int]:
        with contextlib.ExitStack() as stack:  # all at once: those of the pool
            sessions = [stack.enter_context(database.transaction()) for _ in range(3)]
            return [session.scalar(sa.text("PRAGMA busy_timeout")) for session in sessions]

    assert waits() == [BUSY_TIMEOUT_MS] * 3
    with database.transaction(write=True):
        pass
    assert waits() == [BUSY_TIMEOUT_MS] * 3
    with database.transaction() as reader:  # so that the log cannot be emptied
        reader.execute(sa.text("SELECT * FROM settings")).all()
        with database.transaction(write=True) as session:
            session.execute(sa.text("UPDATE settings SET value = 7 WHERE key = 'cairn.next_number'"))
    assert waits() == [BUSY_TIMEOUT_MS] * 3
    database.close()
