"""A folder that the files of photos are moved to in place of being deleted, and are put back from.

Each file has its own folder there, with a record of its origin. Nothing is ever overwritten, and at every moment the
whole file is in one of the two places, or in both: a process killed between two steps loses nothing.
"""

import contextlib
import datetime
import errno
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from index.arrays import hash_file, save_bytes
from index.errors import CairnError
from index.files.reading import IrregularFile, read_regular
from retrieval.catalogue.schema import ImageRow
from retrieval.metadata.pages import page_content, split_page

RECORD, FILE_FOLDER = "record.json", "photo"
"""What lies in the folder of a file: where it came from, and a folder with the file under its own name."""

_ENTRY = re.compile(r"[0-9]{8}T[0-9]{6}-[0-9a-f]{16}")
_LINKS_REFUSED = (errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS)


class FileNotMoved(CairnError):
    """A file was not moved; the message is the reason."""


@dataclass(frozen=True)
class BinEntry:
    """A file in the bin."""

    id: str  # name of its folder
    path: str  # original path
    name: str  # of the photo in the collection; of its first page, if there are several
    number: int  # that the photo had
    sha256: str
    collection: str  # folder of the collection
    moved: str  # when: ISO 8601, UTC
    others: tuple[tuple[int, str], ...] = ()  # numbers and names of the other pages

    @property
    def photos(self) -> dict[int, str]:
        """Names of all photos of the file, by their numbers."""
        return {self.number: self.name, **dict(self.others)}


def move_to_bin(row: ImageRow, folder: Path, collection: Path, others: Sequence[ImageRow] = ()) -> BinEntry:
    """Move the unchanged file of a photo to a bin, recording `others`, the other pages of the file in the collection.

    It can be repeated after an interruption. Raises FileNotMoved, and leaves the file, if it is changed or cannot be
    moved.
    """
    path, page = split_page(row.path)
    pages = tuple((one.number, one.name or "") for one in others)
    try:
        state = os.lstat(path)
    except (OSError, ValueError):
        for earlier in binned(folder):
            is_same = page_content(earlier.sha256, page) == row.sha256
            if is_same and (earlier.path, earlier.number, earlier.others) == (str(path), row.number, pages):
                return earlier
        raise FileNotMoved("The file of {name} is no longer there.", name=row.name) from None
    if not stat.S_ISREG(state.st_mode):
        raise FileNotMoved("The file of {name} is a link, or not a regular file: move it yourself.", name=row.name)
    try:
        content = hash_file(path)
        if any(page_content(content, split_page(one.path)[1]) != one.sha256 for one in (row, *others)):
            raise FileNotMoved("The file of {name} is no longer what was indexed: index it again first.", name=row.name)
        now = datetime.datetime.now(datetime.UTC)
        entry = folder / f"{now:%Y%m%dT%H%M%S}-{secrets.token_hex(8)}"
        (entry / FILE_FOLDER).mkdir(parents=True)
        record = BinEntry(
            entry.name,
            str(path),
            row.name or "",
            row.number,
            content,
            str(collection),
            now.isoformat(timespec="seconds"),
            pages,
        )
        save_bytes(entry / RECORD, json.dumps(asdict(record), indent=2).encode())
        _sync(folder)
        try:
            _move(path, entry / FILE_FOLDER / path.name, content)
        except BaseException:
            # Delete the incomplete entry, unless it has the file.
            if path.exists():
                shutil.rmtree(entry, ignore_errors=True)
            raise
    except OSError as error:
        raise FileNotMoved(
            "The file of {name} cannot be moved ({value}): it is where it was.",
            name=row.name,
            value=error.strerror or error,
        ) from error
    return record


def put_back(one: BinEntry, folder: Path) -> None:
    """Restore a file of a bin to its original path; it is in both places until `forget`.

    Raises FileNotMoved if another file is there now, or it cannot be moved: it stays in the bin.
    """
    entry = folder / one.id
    stored = _file_of(entry)
    path = Path(one.path)
    if stored is None:
        raise FileNotMoved("The file of {name} is no longer in the bin.", name=one.name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(path):
            # It may have been restored before; a link, of the file or of a folder, may lead to the file in the bin.
            is_link = path.is_symlink() or path.resolve() == stored.resolve()
            if is_link or not path.is_file() or hash_file(path) != one.sha256:
                raise FileNotMoved(
                    "There is now another file where {name} was: {name} stays in the bin.", name=one.name
                )
        else:
            _lay(stored, path, one.sha256)
    except OSError as error:
        raise FileNotMoved(
            "The file of {name} cannot be put back ({value}): it is in the bin.",
            name=one.name,
            value=error.strerror or error,
        ) from error


def forget(one: BinEntry, folder: Path) -> None:
    """Delete a restored file from a bin."""
    shutil.rmtree(folder / one.id, ignore_errors=True)


def binned(folder: Path) -> Iterator[BinEntry]:
    """Entries of a bin, the latest first, without invalid records and those without a file."""
    try:
        names = sorted(os.listdir(folder), reverse=True)  # noqa: PTH208 (names alone)
    except OSError:
        return
    for name in names:
        if _ENTRY.fullmatch(name) and (record := _record(folder / name)) is not None:
            yield record


def find_binned(folder: Path, entry: str) -> BinEntry | None:
    """One file of a bin by its `BinEntry.id`; None if it does not exist."""
    return _record(folder / entry) if _ENTRY.fullmatch(entry) else None


def _record(entry: Path) -> BinEntry | None:
    try:
        said = json.loads(read_regular(entry / RECORD))
        others = tuple((number, name) for number, name in said.pop("others", ()))  # missing in earlier versions
        record = BinEntry(**{key: said[key] for key in BinEntry.__dataclass_fields__ if key != "others"}, others=others)
    except (IrregularFile, OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    texts = (record.path, record.name, record.sha256, record.collection, record.moved)
    photos = [(record.number, record.name), *record.others]
    if not all(isinstance(text, str) for text in texts) or not all(
        type(number) is int and isinstance(name, str) for number, name in photos
    ):
        return None
    is_here = record.id == entry.name and Path(record.path).is_absolute() and "\0" not in record.path
    return record if is_here and _file_of(entry) is not None else None


def _file_of(entry: Path) -> Path | None:
    """The one whole file of a folder of the bin."""
    with contextlib.suppress(OSError):
        files = [one for one in (entry / FILE_FOLDER).iterdir() if not one.name.endswith(_PART)]
        if len(files) == 1 and files[0].is_file() and not files[0].is_symlink():
            return files[0]
    return None


_PART = ".cairn-part"


def _move(source: Path, target: Path, sha256: str) -> None:
    """Move a file to a path where there is no file; the source is removed once the target is on the disk."""
    _lay(source, target, sha256)
    source.unlink()
    with contextlib.suppress(OSError):
        _sync(source.parent)


def _lay(source: Path, target: Path, sha256: str) -> None:
    """Give a file a second, free path as a whole: by a hard link, or across file systems by a verified copy."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _LINKS_REFUSED:
            raise
        _copy(source, target, sha256)
    _sync(target.parent)


def _copy(source: Path, target: Path, sha256: str) -> None:
    """Copy a file, with its times, to a free path; a copy that differs is an error."""
    part = target.with_name(f"{secrets.token_hex(8)}{_PART}")
    try:
        with source.open("rb") as reading, part.open("xb") as writing:
            shutil.copyfileobj(reading, writing, 1 << 20)
            writing.flush()
            os.fsync(writing.fileno())
        shutil.copystat(source, part)
        if hash_file(part) != sha256:
            raise OSError(errno.EIO, "the copy differs from the file")
        try:
            os.link(part, target)  # fails if the path exists, unlike renaming
        except OSError as error:
            if error.errno not in _LINKS_REFUSED:
                raise
            with target.open("xb"):  # reserves the name, if links are not supported
                pass
            part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    """Sync a folder's entries to disk, if the system supports it."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
