"""Files that all machines of a cluster can reach: a shared folder, or an object store such as S3 with a local copy."""

import contextlib
import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from index.arrays import hash_file, temporary_path
from index.errors import CairnError
from index.extras import EXTRAS, install_command
from index.files.names import CACHE_VARIABLE, is_plain_path
from index.messages import Message, said

_TOKENS = ".tokens"  # folder of a cache with the metadata of each file when it was fetched


class StorageError(CairnError):
    """A store that cannot be reached, is full, or refuses access."""


class Storage(Protocol):
    """Files and folders by names such as ``segments/000001``, with ``/`` between the parts.

    All machines see a file once `send` has returned, and a folder as a whole: its description, the last ``*.json``, is
    sent last.
    """

    place: str
    """Argument of `open_storage` on another machine for the same files."""

    def has(self, name: str) -> bool:
        """Whether there is a file or folder of this name."""

    def fetch(self, name: str) -> Path:
        """Return the current file or folder as a local path; raises CairnError if it does not exist."""

    def send(self, name: str, source: Path) -> None:
        """Put a file or folder of this machine in the store, replacing any of the same name."""

    def remove(self, name: str) -> None:
        """Remove a file or folder, if it exists."""

    def names(self, folder: str) -> list[str]:
        """Sorted names of the files and folders in a folder; empty if it does not exist."""


class FolderStorage:
    """A folder that all machines see under the same path. Its files need no sending."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        self.place = str(folder)

    def has(self, name: str) -> bool:
        """Whether there is a file or folder: see `Storage.has`."""
        return (self.folder / name).exists()

    def fetch(self, name: str) -> Path:
        """Return a path: see `Storage.fetch`."""
        path = self.folder / name
        if not path.exists():
            raise StorageError(
                "{path} is not there: on each machine, the collection's folder must be at this path.", path=path
            )
        return path

    def send(self, name: str, source: Path) -> None:
        """Copy a file or folder, unless source and target are the same: see `Storage.send`."""
        path = self.folder / name
        if path.exists() and path.samefile(source):
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = temporary_path(path)
        try:
            if source.is_dir():
                shutil.copytree(source, temporary)
                shutil.rmtree(path, ignore_errors=True)
            else:
                shutil.copyfile(source, temporary)
            temporary.replace(path)
        finally:
            if temporary.is_dir():
                shutil.rmtree(temporary, ignore_errors=True)
            else:
                temporary.unlink(missing_ok=True)

    def remove(self, name: str) -> None:
        """Remove a file or folder: see `Storage.remove`."""
        path = self.folder / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def names(self, folder: str) -> list[str]:
        """Names of the entries of a folder: see `Storage.names`."""
        path = self.folder / folder
        return sorted(one.name for one in path.iterdir()) if path.is_dir() else []


class ObjectStorage:
    """An object store, by fsspec, such as ``s3://bucket/folder``; each machine caches fetched files below `cache` (by
    default the folder of CAIRN_CACHE, or the user's cache), and a copy is valid while size and ETag (or time) stay the
    same. Raises StorageError for an unknown kind of store.
    """

    def __init__(self, place: str, cache: Path | None = None) -> None:
        self.place = place.rstrip("/")
        kind = place.split("://", 1)[0]
        try:
            import fsspec

            with _refusals(self.place):
                self._files: Any
                self._files, self._root = fsspec.url_to_fs(self.place)
        except ImportError as error:
            wanted = kind if kind in EXTRAS else "cluster"
            raise StorageError(
                "Files at {place} need another package: {command}.", place=place, command=install_command(wanted)
            ) from error
        except ValueError as error:
            raise StorageError(
                f"{place!r} is no place for files: give a folder, or one such as s3://bucket/folder."
            ) from error
        self._cache = cache or object_cache() / hashlib.sha256(self.place.encode()).hexdigest()[:16]

    def has(self, name: str) -> bool:
        """Whether there is a file or folder: see `Storage.has`."""
        return bool(self._metadata(name))

    def fetch(self, name: str) -> Path:
        """Return a local path, after fetching new and changed files: see `Storage.fetch`."""
        files = self._metadata(name)
        if not files:
            raise StorageError(
                "{place}/{name} is not there: was it indexed with this {--storage}?", place=self.place, name=name
            )
        for relative, info in files.items():
            self._fetch(relative, info)
        here = self._cache / name
        if here.is_dir():  # files removed from the store are removed here too
            for path in [path for path in here.rglob("*") if path.is_file()]:
                # Leave the files that another process of this machine is fetching.
                is_coming = path.name.startswith(".") and path.name.endswith(".tmp")
                if not is_coming and path.relative_to(self._cache).as_posix() not in files:
                    path.unlink(missing_ok=True)
        return here

    def send(self, name: str, source: Path) -> None:
        """Upload a file or folder: see `Storage.send`."""
        before = set(self._metadata(name))
        files = [source] if source.is_file() else sorted(path for path in source.rglob("*") if path.is_file())
        # The description is written last: if it exists, so do all others.
        files.sort(key=lambda path: path.suffix == ".json")
        sent = set()
        for path in files:
            relative = name if path == source else f"{name}/{path.relative_to(source).as_posix()}"
            with _refusals(f"{self.place}/{relative}"):
                try:
                    self._files.put_file(str(path), f"{self._root}/{relative}")
                except FileNotFoundError as error:  # the bucket
                    raise OSError(_short(error)) from error
            sent.add(relative)
        for relative in sorted(before - sent):
            self._remove_file(relative)

    def remove(self, name: str) -> None:
        """Remove a file or folder from the store and the cache: see `Storage.remove`."""
        # The description is removed first: if it exists, so do all others.
        for relative in sorted(self._metadata(name), key=lambda one: not one.endswith(".json")):
            self._remove_file(relative)
        path = f"{self._root}/{name}"
        with _refusals(f"{self.place}/{name}"), contextlib.suppress(FileNotFoundError):
            if self._files.isdir(path):  # the store has real folders, now empty
                self._files.rm(path, recursive=True)
        self.forget(name)

    def forget(self, name: str) -> None:
        """Remove the cached copy of a file or folder."""
        for here in (self._cache / name, self._cache / _TOKENS / name):
            if here.is_dir():
                shutil.rmtree(here, ignore_errors=True)
            else:
                here.unlink(missing_ok=True)

    def names(self, folder: str) -> list[str]:
        """Names of the entries of a folder: see `Storage.names`."""
        path = f"{self._root}/{folder}".rstrip("/")
        with _refusals(f"{self.place}/{folder}"):
            self._files.invalidate_cache()
            try:
                entries = self._files.ls(path, detail=False)
            except FileNotFoundError:
                return []
        return sorted({str(one).rstrip("/").rsplit("/", 1)[-1] for one in entries} - {""})

    def _metadata(self, name: str) -> dict[str, dict[str, Any]]:
        """Metadata of a file, or of all files of a folder, by name."""
        path = f"{self._root}/{name}"
        with _refusals(f"{self.place}/{name}"):
            self._files.invalidate_cache()
            try:
                entries = self._files.find(path, detail=True)
            except FileNotFoundError:
                return {}
        files = {str(one)[len(self._root) + 1 :]: dict(info) for one, info in entries.items()}
        for relative in files:
            if not is_plain_path(relative):  # a store takes any name: the copy could land outside the cache
                raise StorageError(
                    "{place} holds {name}, which is no name: remove it there.",
                    place=self.place,
                    name=repr(relative[:200]),
                )
        return files

    def _remove_file(self, relative: str) -> None:
        with _refusals(f"{self.place}/{relative}"), contextlib.suppress(FileNotFoundError):
            self._files.rm_file(f"{self._root}/{relative}")

    def _fetch(self, relative: str, info: dict[str, Any]) -> None:
        here, token = self._cache / relative, self._cache / _TOKENS / relative
        stamp = json.dumps([info.get("size"), str(info.get("ETag") or info.get("mtime") or info.get("created"))])
        with contextlib.suppress(OSError):
            if here.stat().st_size == info.get("size") and token.read_text() == stamp:
                return
        for path in (here, token):
            path.parent.mkdir(parents=True, exist_ok=True)
        temporary = temporary_path(here)
        try:
            with _refusals(f"{self.place}/{relative}"):
                self._files.get_file(f"{self._root}/{relative}", str(temporary))
            token.unlink(missing_ok=True)
            temporary.replace(here)
            token.write_text(stamp)
        finally:
            temporary.unlink(missing_ok=True)


def open_storage(place: str) -> Storage:
    """Open the files at a place: a folder, or an address such as ``s3://bucket/folder``. Raises StorageError."""
    if place.startswith("file://"):
        place = place.removeprefix("file://")
    return ObjectStorage(place) if "://" in place else FolderStorage(Path(place))


def is_same_folder(storage: Storage, folder: Path) -> bool:
    """Whether a storage is this local folder, so that its files need no sending."""
    return isinstance(storage, FolderStorage) and storage.folder.exists() and storage.folder.samefile(folder)


def send_new(storage: Storage, name: str, source: Path, described: str = "") -> None:
    """Send a file, or a folder identified by its file `described`, unless the store has the same."""
    there = f"{name}/{described}" if described else name
    if not storage.has(there) or hash_file(storage.fetch(there)) != hash_file(source / described):
        storage.send(name, source)


def object_cache() -> Path:
    """Folder of the copies of object stores: see `ObjectStorage`."""
    folder = os.environ.get(CACHE_VARIABLE)
    if folder:
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cairn"


_REASONS = {
    errno.EROFS: Message(said("it is read-only")),
    errno.ENOSPC: Message(said("it is full")),
    errno.EDQUOT: Message(said("it is full")),
}


@contextlib.contextmanager
def _refusals(what: str) -> Iterator[None]:
    """Turn errors of a store, or of the local disk, into one sentence."""
    try:
        yield
    except FileNotFoundError:
        raise
    except PermissionError as error:
        raise StorageError(
            "{place} cannot be used: we may not read or write there; check keys and rights.", place=what
        ) from error
    except OSError as error:
        reason = _REASONS.get(error.errno or 0) or _short(error)
        raise StorageError("{place} cannot be used: {reason}.", place=what, reason=reason) from error
    except (ValueError, ImportError):
        raise
    except Exception as error:  # each store has its own errors
        raise StorageError("{place} cannot be used: {reason}.", place=what, reason=_short(error)) from error


def _short(error: Exception) -> str:
    text = " ".join(str(error).split())[:160].rstrip(".")
    return text if text.isprintable() and text else type(error).__name__
