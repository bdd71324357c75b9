"""Collections that may only be read: of other accounts, on read-only drives, in snapshots and backups."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from index.errors import Unreadable
from index.segments.description import verify_segment
from retrieval.catalogue.settings import keep_setting
from tests.conftest import Indexed, Ran
from tests.support.paths import ROOT

NOBODY = 65534
# First as who may write, so that all is imported before the rights are gone.
SCRIPT = """
import os, sys
from pathlib import Path
from index.errors import CairnError
from retrieval.catalogue.photos import counts_of_photos
from retrieval.catalogue.settings import keep_setting
from retrieval.collection.collection import Collection
from retrieval.integrity.check import check_collection

def look(folder):
    report = check_collection(folder)
    assert report.ok, report.damaged
    with Collection.open(folder) as collection:
        return collection.catalogue.read(counts_of_photos), len(collection.index.image_numbers)

folder, log = Path(sys.argv[1]), Path(sys.argv[2])
before = look(folder)
if os.geteuid() == 0:
    os.setgroups([]), os.setgid(NOBODY), os.setuid(NOBODY)
assert look(folder) == before
with Collection.open(folder) as collection:
    try:
        collection.catalogue.write(keep_setting, "a", "b")
    except CairnError as error:
        print(error)
for what in (check_collection, Collection.open):
    try:
        what(log)
    except CairnError as error:
        print(error)
"""


@pytest.fixture
def open_to_all(indexed: Indexed) -> Iterator[Path]:
    """A folder that every account reaches, with a copy of the small collection in it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        shutil.copytree(indexed.folder, folder / "read.cairn")
        yield folder


def _let_read(folder: Path) -> None:
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)


def _let_write(folder: Path) -> None:
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs the rights of POSIX")
def test_who_may_not_write_a_collection_can_read_and_check_it(open_to_all: Path) -> None:
    folder, log = open_to_all / "read.cairn", open_to_all / "log.cairn"
    shutil.copytree(folder, log)
    connection = sqlite3.connect(log / "catalogue.sqlite")
    connection.execute("INSERT INTO settings VALUES ('a', 'b')")
    connection.commit()
    wal = (log / "catalogue.sqlite-wal").read_bytes()
    connection.close()
    (log / "catalogue.sqlite-wal").write_bytes(wal)  # as a killed process leaves it
    _let_read(folder)
    _let_read(log)
    script = SCRIPT.replace("NOBODY", str(NOBODY))
    ran = subprocess.run(
        [sys.executable, "-c", script, folder, log], cwd=ROOT, capture_output=True, text=True, check=False
    )
    _let_write(open_to_all)
    assert ran.returncode == 0, ran.stderr
    written, *unread = ran.stdout.splitlines()
    assert "is read-only here" in written
    assert len(unread) == 2
    assert all("still in its write-ahead log" in line for line in unread)


def test_an_open_collection_sees_what_another_account_writes(
    open_to_all: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from retrieval.catalogue import database
    from retrieval.catalogue.catalogue import Catalogue

    folder = open_to_all / "read.cairn"
    with Catalogue.open(folder) as writer:
        writer.write(keep_setting, "a", "before")
    access, connect = os.access, sqlite3.connect

    def refuse(path: Path, mode: int) -> bool:
        return mode != os.W_OK and access(path, mode)

    class Refusing(database._WithoutLog):
        def execute(self, *arguments: object) -> sqlite3.Cursor:
            error = sqlite3.OperationalError("unable to open database file")
            error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
            raise error

    def connect_as_on_a_read_only_drive(address: object, **options: object) -> sqlite3.Connection:
        if "mode=ro" in str(address) and "immutable" not in str(address):
            options["factory"] = Refusing
        return connect(address, **options)  # type: ignore[call-overload, no-any-return]

    with monkeypatch.context() as patch:
        patch.setattr(database.os, "access", refuse)
        patch.setattr(database.sqlite3, "connect", connect_as_on_a_read_only_drive)
        reader = Catalogue.open(folder)
        assert reader.setting("a") == "before"
        with sqlite3.connect(folder / "catalogue.sqlite") as writing:
            writing.execute("UPDATE settings SET value = 'after' WHERE key = 'a'")
        writing.close()
        assert reader.setting("a") == "after"
        reader.close()


def test_what_the_disk_refuses_is_no_damage(
    open_to_all: Path, cairn: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = open_to_all / "read.cairn"
    segment = next(path for path in (folder / "segments").iterdir() if path.is_dir())
    before = (segment / "word_lists.npy").read_bytes()
    plain = Path.open

    def refuse(path: Path, *arguments: object, **options: object) -> object:
        if path.name == "word_lists.npy":
            raise OSError(5, "Input/output error", str(path))
        return plain(path, *arguments, **options)  # type: ignore[call-overload]

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", refuse)
        with pytest.raises(Unreadable):
            verify_segment(segment)
        for command in ("check", "repair"):
            assert "cannot be read (Input/output error)" in cairn(command, folder).refused()
    assert (segment / "word_lists.npy").read_bytes() == before
    assert cairn("check", folder).code == 0
