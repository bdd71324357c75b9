"""Storage: a folder, an object store in memory, and S3 over HTTP have one contract."""

import errno
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec
import pytest

from index.cluster.storage import FolderStorage, ObjectStorage, Storage, StorageError, open_storage

BUCKET = "photos"


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The address of a bucket of an S3 server."""
    server = pytest.importorskip("moto.server")
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    running.start()
    host, port = running.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "a-key")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        fsspec.filesystem("s3").mkdir(BUCKET)
        yield f"s3://{BUCKET}/collection"
    running.stop()


@pytest.fixture(params=["folder", "memory", "s3"])
def opened(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Storage]:
    """Open one storage, as on one of several machines."""
    if request.param == "folder":
        place = str(tmp_path / "shared")
    elif request.param == "memory":
        place = f"memory://{tmp_path.name}"
    else:
        place = f"{request.getfixturevalue('s3')}/{tmp_path.name}"

    def of(machine: str) -> Storage:
        monkeypatch.setenv("CAIRN_CACHE", str(tmp_path / machine))
        return open_storage(place)

    return of


def written(folder: Path, **contents: str) -> Path:
    for name, text in contents.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def read(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_what_one_machine_sends_another_fetches(opened: Callable[[str], Storage], tmp_path: Path) -> None:
    one, other = opened("one"), opened("two")
    assert not other.has("segments/000001")
    assert other.names("segments") == []
    source = written(tmp_path / "made", a="1", b__c="2", meta="3")
    one.send("segments/000001", source)
    one.send("options", source / "a")
    assert other.has("segments/000001")
    assert other.has("segments/000001/meta")
    assert not other.has("segments/00000")  # a prefix of a name does not exist
    assert read(other.fetch("segments/000001")) == {"a": "1", "b/c": "2", "meta": "3"}
    assert other.fetch("options").read_text() == "1"
    assert other.fetch("segments/000001/b/c").read_text() == "2"
    assert other.names("segments") == ["000001"]
    assert other.names("") == ["options", "segments"]


def test_what_is_sent_again_takes_the_place_of_what_was_there(opened: Callable[[str], Storage], tmp_path: Path) -> None:
    one, other = opened("one"), opened("two")
    one.send("it", written(tmp_path / "made", a="1", gone="2"))
    assert read(other.fetch("it")) == {"a": "1", "gone": "2"}
    one.send("it", written(tmp_path / "again", a="7", new="8"))  # of the same size
    assert read(other.fetch("it")) == {"a": "7", "new": "8"}


def test_what_is_removed_is_gone(opened: Callable[[str], Storage], tmp_path: Path) -> None:
    one, other = opened("one"), opened("two")
    one.send("it", written(tmp_path / "made", a="1"))
    other.fetch("it")
    one.remove("it")
    one.remove("it")  # removing again is harmless
    assert not other.has("it")
    with pytest.raises(StorageError, match="is not there"):
        other.fetch("it")


def test_a_copy_is_not_fetched_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = ObjectStorage(f"memory://{tmp_path.name}", tmp_path / "cache")
    storage.send("it", written(tmp_path / "made", a="1"))
    storage.fetch("it")
    monkeypatch.setattr(storage._files, "get_file", lambda *_: pytest.fail("fetched again"))
    assert read(storage.fetch("it")) == {"a": "1"}
    storage.forget("it")
    assert not (tmp_path / "cache" / "it").exists()


def test_processes_of_a_machine_fetch_at_once(tmp_path: Path) -> None:
    storage = ObjectStorage(f"memory://{tmp_path.name}", tmp_path / "cache")
    storage.send("it", written(tmp_path / "made", a="1", b="2"))
    there = storage.fetch("it")
    other = there / ".b.01234567.tmp"  # as another process writes it now
    other.write_text("2")
    (there / "old").write_text("3")
    assert read(storage.fetch("it")) == {"a": "1", "b": "2", other.name: "2"}


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "it is full"),
        (OSError(errno.EROFS, "Read-only file system"), "it is read-only"),
        (PermissionError("Access Denied"), "check keys and rights"),
        (RuntimeError("the store's own words"), "the store's own words"),
    ],
)
def test_what_a_store_refuses_is_one_sentence(
    error: Exception, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = ObjectStorage(f"memory://{tmp_path.name}", tmp_path / "cache")

    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(storage._files, "put_file", refuse)
    with pytest.raises(StorageError, match=said) as caught:
        storage.send("it", written(tmp_path / "made", a="1"))
    assert str(caught.value).count("\n") == 0
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    ("place", "said"),
    [("nosuch://bucket/x", "no place for files"), ("s3://no-such-bucket/x", "cannot be used|is not there")],
)
def test_a_place_that_is_none(place: str, said: str, s3: str) -> None:
    with pytest.raises(StorageError, match=said):
        open_storage(place).fetch("it")
    if place.startswith("s3"):
        with pytest.raises(StorageError, match="cannot be used"):
            open_storage(place).send("it", Path(__file__))


def test_a_store_that_nobody_answers_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("s3fs")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    monkeypatch.setenv("CAIRN_CACHE", str(tmp_path))
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    fsspec.filesystem("s3").clear_instance_cache()
    with pytest.raises(StorageError, match="cannot be used"):
        open_storage("s3://bucket/x").has("it")
    fsspec.filesystem("s3").clear_instance_cache()


def test_a_folder_is_sent_by_being_there(tmp_path: Path) -> None:
    storage = FolderStorage(tmp_path)
    path = written(tmp_path / "it", a="1") / "a"
    before = path.stat().st_ino
    storage.send("it", tmp_path / "it")
    assert path.stat().st_ino == before


def test_an_object_is_never_copied_out_of_the_cache(tmp_path: Path) -> None:
    place = f"memory://{tmp_path.name}"
    store, root = fsspec.url_to_fs(place)
    store.pipe_file(f"{root}/segments/1/meta.json", b"{}")
    storage = ObjectStorage(place, tmp_path / "deep" / "cache")
    assert storage.fetch("segments").is_dir()
    store.store[f"{root}/segments/../../../written"] = store.store[f"{root}/segments/1/meta.json"]
    with pytest.raises(StorageError, match="which is no name"):
        storage.fetch("segments")
    assert not list(tmp_path.rglob("written"))
