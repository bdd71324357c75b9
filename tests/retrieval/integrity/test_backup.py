"""Backups: of one moment, complete or as they were before, and nobody else's folder."""

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import cairn as library
from index.errors import CairnError
from retrieval.catalogue.metadata_store import import_values, imported_values
from retrieval.catalogue.settings import keep_setting
from retrieval.collection.collection import Collection
from retrieval.collection.layout import AUGMENTATION, BACKUP, SEGMENTS
from retrieval.collection.locking import CollectionLocked, lock_folder
from retrieval.collection.options import CollectionOptions
from retrieval.indexing.adding import index_photos
from retrieval.indexing.compaction import compact
from retrieval.indexing.removal import remove_photos
from retrieval.indexing.retrain_options import RetrainOptions
from retrieval.indexing.retraining import retrain
from retrieval.integrity import backup_files
from retrieval.integrity.backup import back_up
from retrieval.integrity.backup_files import BackedUp
from retrieval.integrity.check import check_collection
from retrieval.photos.options import ImageOptions
from tests.conftest import Ran
from tests.retrieval.integrity.test_rebuild_server import move_to
from tests.support.crashes import SIDE, draw_photo
from tests.support.paths import ROOT
from tests.support.patience import patience
from tests.support.processes import in_child

OPTIONS = CollectionOptions(words=40, iterations=2, batch=2, image=ImageOptions(max_side=SIDE), signature="none")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with photos and a collection of several segments, which nobody may change."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "photos").mkdir()
    for number in range(7):
        draw_photo(folder / "photos" / f"p{number}.png", number)
    with Collection.create(folder / "c.cairn", OPTIONS) as collection:
        index_photos(collection, [folder / "photos"], workers=1)
    uploads = folder / "c.cairn" / "uploads" / "2026-05-04"
    uploads.mkdir(parents=True)
    draw_photo(uploads / "kept.png", 20)
    return folder


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder for more photos."""
    folder = tmp_path / "photos"
    folder.mkdir()
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """The collection of them, which may be changed."""
    return Path(shutil.copytree(made / "c.cairn", tmp_path / "c.cairn"))


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "disk" / "backup"


def back(folder: Path, target: Path, **options: Any) -> BackedUp:
    with Collection.open(folder) as collection:
        report = back_up(collection, target, **options)
    assert report.ok, report.damaged
    return report


def add(folder: Path, photos: Path, *numbers: int) -> None:
    new = [photos / f"p{number}.png" for number in numbers]
    for path, number in zip(new, numbers, strict=True):
        draw_photo(path, number)
    with Collection.open(folder) as collection:
        index_photos(collection, new, workers=1)


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """All files below a folder, with their inodes."""
    return {
        path.relative_to(folder).as_posix(): (path.stat().st_ino, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def state_of(folder: Path) -> dict[str, Any]:
    """What a collection holds and answers; it is sound."""
    assert check_collection(folder).damaged == ()
    with library.open(folder) as collection:
        names = sorted(photo.name for photo in collection)
        answers = {
            name: [(one.name, one.score, one.inliers) for one in collection.search(name, top=9)] for name in names[:3]
        }
        return {"names": names, "answers": answers, "words": collection.info().words}


def files_of_parts(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in (folder / SEGMENTS).rglob("*.*")}


# What is copied


def test_a_backup_is_a_collection_that_answers_the_same(folder: Path, target: Path) -> None:
    (folder / "cache").mkdir(exist_ok=True)
    (folder / "cache" / "thumbnail.jpg").touch()
    (folder / "jobs.sqlite").touch()
    (folder / "uploads" / ".incoming-1").mkdir()
    (folder / "uploads" / ".incoming-1" / "half.png").touch()
    (folder / "uploads" / "2026-05-04").chmod(0o700)
    report = back(folder, target)
    assert (report.images, report.kept, report.removed) == (7, 0, 0)
    assert state_of(target) == state_of(folder)
    assert files_of_parts(target) == files_of_parts(folder)
    kept = target / "uploads" / "2026-05-04" / "kept.png"
    assert kept.read_bytes() == (folder / "uploads" / "2026-05-04" / "kept.png").read_bytes()
    assert kept.parent.stat().st_mode & 0o777 == 0o700
    left_out = {"cache", "jobs.sqlite"} & {path.name for path in target.iterdir()}
    assert left_out == set() and [path.name for path in (target / "uploads").iterdir()] == ["2026-05-04"]
    # Nothing is unfinished, and nothing has to be written when it is opened.
    assert not [path for path in target.rglob("*") if path.name.endswith((".tmp", "-wal", "-journal"))]


@pytest.mark.slow
def test_what_was_copied_is_kept_and_what_has_gone_is_removed(folder: Path, photos: Path, target: Path) -> None:
    first = back(folder, target)
    before = contents(target)
    again = back(folder, target)
    assert again.kept == first.copied and (again.copied, again.bytes, again.removed) == (0, 0, 0)

    for path in target.rglob("*"):  # a disk that keeps no times
        os.utime(path, (0, 0))
    assert back(folder, target).copied == 0

    add(folder, photos, 8, 9)
    (folder / "uploads" / "2026-05-04" / "kept.png").unlink()
    added = back(folder, target)
    after = contents(target)
    new = files_of_parts(folder) - set(before)
    assert new and added.copied <= len(new) + 1  # and the statistics
    assert {name for name in before if before[name] == after.get(name)} >= files_of_parts(folder) - new
    assert added.removed == 1 and not (target / "uploads" / "2026-05-04").exists()

    with Collection.open(folder) as collection:
        remove_photos(collection, ["p1.png"])
        compact(collection)
    compacted = back(folder, target)
    assert compacted.removed and files_of_parts(target) == files_of_parts(folder)
    with Collection.open(folder) as collection:
        retrain(collection, RetrainOptions(words=30))
    retrained = back(folder, target)
    assert retrained.removed and state_of(target) == state_of(folder)
    assert {path.name for path in target.glob("vocabulary*")} == {path.name for path in folder.glob("vocabulary*")}


@pytest.mark.slow
def test_what_people_decided_and_what_photos_borrow_comes_along(folder: Path, target: Path) -> None:
    back(folder, target)
    with library.open(folder) as collection:
        collection.group(5, augment=True, workers=1)
        collection.opened.catalogue.write(import_values, {2: {"place": ["Ghent"]}})
    back(folder, target)
    assert contents(target / AUGMENTATION).keys() == contents(folder / AUGMENTATION).keys() != set()
    assert (target / "groups.json").read_bytes() == (folder / "groups.json").read_bytes()
    assert state_of(target) == state_of(folder)
    with Collection.open(target) as collection:
        assert collection.catalogue.read(imported_values)[2]["place"] == ["Ghent"]
    kept = back(folder, target)
    assert kept.copied == 0


def test_linked_files_take_no_room(folder: Path, target: Path) -> None:
    report = back(folder, target, link=True)
    names = files_of_parts(folder)
    assert all((folder / name).samefile(target / name) for name in names)
    assert not (folder / "uploads/2026-05-04/kept.png").samefile(target / "uploads/2026-05-04/kept.png")
    assert not (folder / "catalogue.sqlite").samefile(target / "catalogue.sqlite")
    assert report.copied > len(names) and report.bytes < sum((folder / name).stat().st_size for name in names)
    # What is mended in one does not reach the other.
    assert state_of(target) == state_of(folder)


def test_a_link_to_another_disk_is_refused(folder: Path, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_link(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", no_link)
    with Collection.open(folder) as collection, pytest.raises(CairnError, match=r"cannot be linked .* link"):
        back_up(collection, target, link=True)


def test_a_collection_without_photos_is_backed_up(tmp_path: Path, target: Path) -> None:
    Collection.create(tmp_path / "empty.cairn", OPTIONS).catalogue.close()
    assert back(tmp_path / "empty.cairn", target).images == 0


def test_a_catalogue_on_a_server_is_copied_into_a_file(
    folder: Path, photos: Path, target: Path, tmp_path: Path, postgresql: Callable[[], str]
) -> None:
    whole = state_of(folder)
    address = f"{postgresql()}&schema=photos"
    move_to(folder, address)
    with Collection.open(folder, catalogue=address) as collection:
        assert back_up(collection, target).ok
        assert state_of(target) == whole
        draw_photo(photos / "p8.png", 8)
        index_photos(collection, [photos / "p8.png"], workers=1)
        assert back_up(collection, target).images == 8
        assert back_up(collection, target).copied == 0
    back(target, tmp_path / "restored.cairn")
    add(tmp_path / "restored.cairn", photos, 9)
    assert "p9.png" in state_of(tmp_path / "restored.cairn")["names"]


@pytest.mark.slow
def test_a_restored_collection_goes_on(folder: Path, photos: Path, target: Path, tmp_path: Path) -> None:
    back(folder, target)
    whole = state_of(folder)
    shutil.rmtree(folder)
    back(target, folder)
    assert state_of(folder) == whole
    add(folder, photos, 8)
    # The restored collection is backed up where it came from; never the other way round any more.
    back(folder, target)
    with Collection.open(target) as collection:
        back_up(collection, tmp_path / "third")
        add(folder, photos, 9)
        with pytest.raises(CairnError, match="was changed since it was made"):
            back_up(collection, folder)


def test_a_collection_that_may_only_be_read_is_restored(folder: Path, target: Path, tmp_path: Path) -> None:
    back(folder, target)
    for path in [target, *target.rglob("*")]:
        path.chmod(path.stat().st_mode & ~0o222)
    try:
        back(target, tmp_path / "restored")
    finally:
        for path in [target, *target.rglob("*")]:
            path.chmod(path.stat().st_mode | 0o200)
    with Collection.open(tmp_path / "restored") as collection:
        collection.catalogue.write(keep_setting, "a", "b")


# What is refused


def test_the_folder_of_something_else_is_refused_and_left_alone(
    folder: Path, made: Path, target: Path, tmp_path: Path
) -> None:
    target.mkdir(parents=True)
    (target / "letter.txt").write_text("mine")
    other = Path(shutil.copytree(made / "c.cairn", tmp_path / "other.cairn"))
    stranger = tmp_path / "stranger.cairn"
    with Collection.create(stranger, OPTIONS) as collection:
        draw_photo(tmp_path / "a.png", 3)
        index_photos(collection, [tmp_path / "a.png"], workers=1)
    back(stranger, tmp_path / "strangers")
    file = tmp_path / "file"
    file.touch()
    before = contents(tmp_path)
    for wrong, sentence in {
        target: "not empty, and not a backup",
        other: "a collection of its own, and not a backup",
        tmp_path / "strangers": "the backup of another collection",
        file: "is not a folder",
        folder: "must not be inside each other",
        folder / "backup": "must not be inside each other",
        tmp_path: "must not be inside each other",
    }.items():
        with Collection.open(folder) as collection, pytest.raises(CairnError, match=sentence):
            back_up(collection, wrong)
    assert contents(tmp_path) == before


def test_a_backup_that_was_written_to_is_refused(folder: Path, target: Path) -> None:
    back(folder, target)
    with Collection.open(target) as collection:
        collection.catalogue.write(import_values, {2: {"place": ["Ghent"]}})
    with Collection.open(folder) as collection, pytest.raises(CairnError, match="changed since it was made"):
        back_up(collection, target)


def test_an_older_state_takes_the_place_of_no_later_one(folder: Path, target: Path, tmp_path: Path) -> None:
    older = shutil.copytree(folder, tmp_path / "older.cairn")
    with Collection.open(folder) as collection:
        collection.catalogue.write(import_values, {2: {"place": ["Ghent"]}})
    back(folder, target)
    before = contents(target)
    with Collection.open(older) as collection, pytest.raises(CairnError, match="is a backup of a later state"):
        back_up(collection, target)
    assert contents(target) == before


def test_a_collection_that_went_another_way_is_refused(
    folder: Path, photos: Path, target: Path, tmp_path: Path
) -> None:
    other = Path(shutil.copytree(folder, tmp_path / "other.cairn"))
    add(folder, photos, 8)
    back(folder, target)
    before = contents(target)
    for number in (31, 32, 33, 34, 35):
        add(other, photos, number)
    with Collection.open(other) as collection, pytest.raises(CairnError, match="has changed in another way since"):
        back_up(collection, target)
    assert contents(target) == before


@pytest.mark.parametrize(
    "mark", [b"{}", b"[]", b"\xff", b'{"format": 1, "collection": 3, "revisions": 5}', b'{"format": 99}']
)
def test_a_mark_that_is_not_as_written_is_one_sentence(
    cairn: Callable[..., Ran], folder: Path, target: Path, mark: bytes
) -> None:
    back(folder, target)
    (target / BACKUP).write_bytes(mark)
    assert str(target) in cairn("backup", folder, target).refused()


def test_links_in_a_backup_lead_nowhere(folder: Path, target: Path, tmp_path: Path) -> None:
    back(folder, target)
    elsewhere = tmp_path / "elsewhere"
    (target / SEGMENTS).rename(elsewhere)
    (elsewhere / "999999").mkdir()
    (target / SEGMENTS).symlink_to(elsewhere)
    with Collection.open(folder) as collection, pytest.raises(CairnError, match="is a link"):
        back_up(collection, target)
    assert (elsewhere / "999999").is_dir()


def test_links_and_pipes_among_uploads_are_left_out(folder: Path, target: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.png"
    secret.write_text("secret")
    with Collection.open(folder) as collection:  # which is not opened with links that lead out of it
        (folder / "uploads" / "2026-05-04" / "link.png").symlink_to(secret)
        (folder / "uploads" / "all").symlink_to(tmp_path)
        if hasattr(os, "mkfifo"):
            os.mkfifo(folder / "uploads" / "pipe.png")
            os.mkfifo(folder / "groups.json")
        back_up(collection, target)
    assert [path.name for path in (target / "uploads").rglob("*.png")] == ["kept.png"]


@pytest.mark.parametrize("name", ["uploads", "segments", "vocabulary"])
def test_folders_that_are_links_are_refused(folder: Path, target: Path, tmp_path: Path, name: str) -> None:
    (folder / name).rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "secret").write_text("secret")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CairnError), Collection.open(folder) as collection:
        back_up(collection, target)
    assert not list(target.rglob("secret"))


@pytest.mark.parametrize("name", ["../../elsewhere", "/elsewhere", "..", "a/b"])
def test_a_segment_that_leads_elsewhere_is_refused(folder: Path, target: Path, name: str) -> None:
    with contextlib.closing(sqlite3.connect(folder / "catalogue.sqlite")) as connection:
        connection.execute("UPDATE segments SET folder = ? WHERE id = 1", [name])
        connection.commit()
    with pytest.raises(CairnError), Collection.open(folder) as collection:
        back_up(collection, target)
    assert not (target / "collection.toml").exists()


# Damage


def flip(path: Path) -> None:
    changed = bytearray(path.read_bytes())
    changed[-1] ^= 0xFF
    state = path.stat()
    path.write_bytes(changed)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


@pytest.mark.slow
@pytest.mark.parametrize(
    "file", ["words.npy", "catalogue.sqlite", "collection.sums", "backup.json", "collection.id", ""]
)
def test_what_the_disk_of_the_backup_damaged_is_copied_again(folder: Path, target: Path, file: str) -> None:
    back(folder, target)
    if file == "":
        shutil.rmtree(target / SEGMENTS / "000001")
    elif file == "backup.json":
        (target / file).write_text((target / file).read_text().replace('"revisions"', '"revision"'))
        with Collection.open(folder) as collection, pytest.raises(CairnError, match="not what was written"):
            back_up(collection, target)
        return
    else:
        path = target / file if (target / file).exists() else next((target / SEGMENTS).rglob("column_*.npy"))
        if file == "catalogue.sqlite":
            path.write_bytes(b"no database" + path.read_bytes()[11:])
        else:
            flip(path)
    back(folder, target)
    assert state_of(target) == state_of(folder)


@pytest.mark.slow
@pytest.mark.parametrize("lost", [False, True])
def test_a_damaged_collection_leaves_the_earlier_backup_whole(
    folder: Path, photos: Path, target: Path, lost: bool
) -> None:
    back(folder, target)
    before, whole = contents(target), state_of(target)
    known = {path.name for path in (folder / SEGMENTS).iterdir()}
    add(folder, photos, 8, 9)
    new = next(path for path in sorted((folder / SEGMENTS).iterdir()) if path.name not in known)
    file = next(new.glob("column_*.npy"))
    if lost:
        file.unlink()
    else:
        flip(file)
    with Collection.open(folder) as collection, pytest.raises(CairnError, match=r"Collection\.check"):
        back_up(collection, target)
    assert state_of(target) == whole
    after = contents(target)
    assert {name: after.get(name) for name in before} == before
    # What was damaged since the backup was made is still whole there.
    flip(next((folder / SEGMENTS / sorted(known)[0]).glob("column_*.npy")))
    assert state_of(target) == whole


# Others at work


def test_two_backups_to_one_folder_take_turns(folder: Path, target: Path) -> None:
    back(folder, target)
    with lock_folder(target), Collection.open(folder) as collection, pytest.raises(CollectionLocked):
        back_up(collection, target)


def test_backups_while_photos_are_indexed_removed_and_merged(folder: Path, photos: Path, target: Path) -> None:
    """Whatever is done meanwhile, each backup is sound."""
    done = threading.Event()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for number in range(8, 14, 2):
                add(folder, photos, number, number + 1)
                with Collection.open(folder) as collection:
                    remove_photos(collection, [f"p{number}.png"])
                    compact(collection)
            with Collection.open(folder) as collection:
                retrain(collection, RetrainOptions(words=30))
        except BaseException as error:
            failures.append(error)
        finally:
            done.set()

    worker = threading.Thread(target=work)
    worker.start()
    sizes = []
    while not done.is_set():
        sizes.append(back(folder, target).images)
    worker.join()
    assert not failures
    back(folder, target)
    assert sizes and min(sizes) >= 7 and max(sizes) <= 13
    assert state_of(target) == state_of(folder)
    assert files_of_parts(target) == files_of_parts(folder)


@pytest.mark.slow
@pytest.mark.parametrize("change", ["compact", "retrain"])
def test_segments_that_go_while_they_are_copied_are_not_missed(
    folder: Path, target: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    copied = []
    original = backup_files._copy_contents

    def copy(path: Path, place: Path, tell: Callable[[int], None]) -> None:
        copied.append(path)
        if len(copied) == 6:
            with Collection.open(folder) as collection:
                if change == "compact":
                    compact(collection)
                else:
                    retrain(collection, RetrainOptions(words=30))
        original(path, place, tell)

    monkeypatch.setattr(backup_files, "_copy_contents", copy)
    back(folder, target)
    assert state_of(target) == state_of(folder)
    assert files_of_parts(target) == files_of_parts(folder)


# Killed, and full disks


def _events(folder: Path, target: Path, at: int, dies: bool) -> int:
    """Back up in this process, which is killed, or finds the disk full, at the n-th change of a file; how many."""
    count = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        writes = event in (
            "os.rename",
            "os.remove",
            "os.mkdir",
            "os.rmdir",
            "os.link",
            "shutil.rmtree",
            "sqlite3.connect",
        )
        opens = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wxa+")
        if not (writes or opens) or not any(str(target) in str(one) for one in arguments):
            return
        count += 1
        if count == at:
            if dies:
                os.kill(os.getpid(), signal.SIGKILL)
            raise OSError(28, "No space left on device", str(arguments[0]))

    with Collection.open(folder) as collection:
        sys.addaudithook(hook)
        with contextlib.suppress(CairnError, OSError):
            back_up(collection, target)
    return count


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="victims are forked")
@pytest.mark.parametrize(
    ("dies", "tries"),
    [(True, 6), (False, 4), pytest.param(True, 1000, marks=pytest.mark.slow)],
    ids=["killed", "full", "killed-anywhere"],
)
def test_the_earlier_backup_or_the_new_one_is_whole_whenever_a_run_ends(
    folder: Path, photos: Path, target: Path, tmp_path: Path, dies: bool, tries: int
) -> None:
    back(folder, target)
    old = state_of(target)
    add(folder, photos, 8, 9)
    with Collection.open(folder) as collection:
        remove_photos(collection, ["p1.png"])
        compact(collection)
        retrain(collection, RetrainOptions(words=30))
    new = state_of(folder)
    assert old != new
    kept = Path(shutil.copytree(target, tmp_path / "kept"))
    many = in_child(__name__, partial(_events, folder, target, 0, dies))
    assert many > 30 and state_of(target) == new
    # Most are near the end, where one takes the place of the other.
    for at in sorted({max(1, round(many * (1 - (one / tries) ** 2))) for one in range(tries)}):
        shutil.rmtree(target)
        shutil.copytree(kept, target)
        with contextlib.suppress(EOFError):
            in_child(__name__, partial(_events, folder, target, at, dies))
        assert state_of(target) in (old, new), at
        back(folder, target)
        assert files_of_parts(target) == files_of_parts(folder), at
        assert not [path for path in target.rglob("*") if path.name.endswith(".tmp")]
    assert state_of(target) == new


def test_a_first_backup_that_was_killed_is_no_collection_and_is_completed(folder: Path, target: Path) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("victims are forked")
    for at in (5, 20):
        with contextlib.suppress(EOFError):
            in_child(__name__, partial(_events, folder, target, at, True))
        with pytest.raises(CairnError):
            Collection.open(target)
    back(folder, target)
    assert state_of(target) == state_of(folder)


def test_a_full_disk_and_a_folder_that_may_not_be_written_are_one_sentence(
    cairn: Callable[..., Ran], folder: Path, target: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(path: Path, copy: Path, tell: Callable[[int], None]) -> None:
        raise OSError(28, "No space left on device", str(copy))

    def forbidden(path: Path, copy: Path, tell: Callable[[int], None]) -> None:
        raise PermissionError(13, "Permission denied", str(copy))

    monkeypatch.setattr(backup_files, "_copy_contents", full)
    assert "free some space and run the same command again" in cairn("backup", folder, target).refused()
    monkeypatch.setattr(backup_files, "_copy_contents", forbidden)
    assert "Permission denied" in cairn("backup", folder, target).refused()
    (tmp_path / "file").touch()
    assert "file" in cairn("backup", folder, tmp_path / "file" / "backup").refused()


# The command


def test_the_command_tells_what_was_copied(cairn: Callable[..., Ran], folder: Path, target: Path) -> None:
    ran = cairn("backup", folder, target, "--quiet")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"{target}: 7 photos, sound; ")
    report = cairn("backup", folder, target, "--json").json
    assert report["ok"] and report["images"] == 7 and report["copied"] == 0 and report["kept"] > 10
    assert (report["collection"], report["target"], report["damaged"]) == (str(folder), str(target), [])


def test_damage_that_a_backup_cannot_mend_ends_with_1(cairn: Callable[..., Ran], folder: Path, target: Path) -> None:
    flip(folder / "collection.toml")
    text = (folder / "collection.toml").read_bytes()
    (folder / "collection.toml").write_bytes(text[:-1] + b"\n# changed\n")
    ran = cairn("backup", folder, target)
    assert (ran.code, ran.err) == (1, "") and "damaged: collection.toml" in ran.out


@pytest.mark.slow
def test_a_server_goes_on_while_a_backup_is_made_and_told(folder: Path, target: Path) -> None:
    """Also on standard error, where a program reads the progress."""
    ready, reported = os.pipe()
    command = [sys.executable, "-m", "cairn", "backup", str(folder), str(target), "--json"]
    with Collection.open(folder) as collection:  # as a server has it
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=os.environ | {"CAIRN_PROGRESS": str(reported)},
            pass_fds=[reported],
            capture_output=True,
            timeout=patience(120),
        )
        collection.catalogue.write(import_values, {2: {"place": ["Ghent"]}})
    os.close(reported)
    with os.fdopen(ready) as read:
        steps = [json.loads(line) for line in read]
    assert done.returncode == 0, done.stderr
    assert {step["step"] for step in steps} == {"backup", "check"}
    assert all(step["done"] <= step["of"] and step["unit"] == "MB" for step in steps)
