"""Uploaded photos: portable names, free space on the disk, and a folder in the collection.

They are in the folder ``uploads`` of the collection, in one folder for each day. Collections are skipped when a folder
above is indexed, so uploads are indexed by naming the folder itself, as in ``cairn index COLLECTION
COLLECTION/uploads``. Searches, ``cairn check`` and ``cairn repair`` handle them like all other photos.
"""

import contextlib
import filecmp
import os
import re
import shutil
import tempfile
import time
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from index.errors import CairnError
from index.files.rights import make_folders
from index.messages import said
from retrieval.collection.layout import INCOMING, UPLOADS
from retrieval.metadata.pages import is_film
from retrieval.photos.listing import is_photo_suffix, stays_below

SPARE = 500_000_000
"""Bytes that uploads leave free on the disk."""

_FOREIGN = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*]')  # not allowed in file names on some system
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
_LONGEST = 180  # bytes of a name
_DEEPEST = 8  # most nested folders of an upload
_ABANDONED = 24 * 3600.0  # seconds after which files received by a killed server are deleted


class NotAPhotoError(CairnError):
    """The name of a file does not end like that of a photo."""

    _kind = "photo"


class NoRoomError(CairnError):
    """Photos cannot be stored: the disk is full, or its folder is not writable."""

    _kind = "full"


class LeadsElsewhereError(CairnError):
    """The folder of uploads is a link that leads out of the collection."""

    _kind = "elsewhere"


def safe_name(name: str, films: bool = False) -> str:
    """Convert the name of an uploaded photo, or film if those are accepted, to a file name valid on every system.

    >>> safe_name("../.../Übung:1?.JPG")
    'Übung_1_.JPG'
    """
    plain = _plain(name.replace("\\", "/").rpartition("/")[2])
    stem, dot, suffix = plain.rpartition(".")
    if not dot or not (is_photo_suffix(f".{suffix}") or (films and is_film(Path(plain)))):
        display = plain[-80:] or "a file without a name"
        raise NotAPhotoError(
            "{shown} does not have the ending of a photo: send JPEG, PNG, TIFF, WebP or HEIC files.", shown=display
        )
    stem = stem.strip(" .") or "photo"
    if _RESERVED.fullmatch(stem):
        stem = f"{stem}_"
    return f"{stem.encode()[: _LONGEST - len(suffix)].decode('utf-8', 'ignore')}.{suffix}"


def safe_folder(path: str) -> PurePosixPath:
    """Convert a sender's folder of a photo to a relative path that is valid on every system.

    >>> safe_folder("/../Sommer/C:/.versteckt/Burg.").as_posix()
    'Sommer/C_/versteckt/Burg'
    """
    parts = []
    for part in map(_plain, path.replace("\\", "/").split("/")):
        short = part.encode()[: _LONGEST // 3].decode("utf-8", "ignore").strip(" .")
        if short:
            parts.append(f"{short}_" if _RESERVED.fullmatch(short) else short)
    return PurePosixPath(*parts[:_DEEPEST])


def uploads_folder(collection: Path) -> Path:
    """Create the folder of a collection's uploads; raises as `incoming_folder`."""
    folder = collection / UPLOADS
    with _refusing(said("The server cannot store photos ({strerror}): find the cause on the server.")):
        _make_own(folder, collection)
    return folder


def incoming_folder(collection: Path) -> Path:
    """Create a folder for receiving uploads, on the disk of their final folder; leftovers of killed servers are
    deleted.

    Raises NoRoomError if it cannot be created, LeadsElsewhereError if a link leads elsewhere.
    """
    folder = uploads_folder(collection)
    with _refusing(said("The server cannot store photos ({strerror}): find the cause on the server.")):
        for left in folder.glob(f"{INCOMING}*"):
            with contextlib.suppress(FileNotFoundError):  # another server may delete it at the same time
                if time.time() - left.stat().st_mtime > _ABANDONED:
                    shutil.rmtree(left, ignore_errors=True)
        return Path(tempfile.mkdtemp(prefix=INCOMING, dir=folder))


def check_room(incoming: Path, size: int) -> None:
    """Raise NoRoomError if the disk of a folder of `incoming_folder` has less free space than `size` bytes."""
    with _refusing(said("The server cannot store photos ({strerror}): find the cause on the server.")):
        incoming.mkdir(mode=0o700, exist_ok=True)  # another server may have deleted it as abandoned
        os.utime(incoming)
        free = shutil.disk_usage(incoming).free
    if free < SPARE + size:
        raise NoRoomError("The disk of the server is nearly full: free some space there, and upload again.")


def keep_uploads(collection: Path, received: Sequence[Path], names: Sequence[str], within: PurePosixPath) -> list[str]:
    """Move received photos to unique paths, and return their names; identical files are not duplicated.

    They go into the folder `within` (see `safe_folder`) of that of the day. Raises like `incoming_folder`.
    """
    uploads = folder = collection / UPLOADS
    with _refusing(said("The server cannot store the photo ({strerror}): free some space there.")):
        _make_own(uploads, collection)
        for part in (datetime.now(UTC).strftime("%Y-%m-%d"), *within.parts):
            folder /= part
            while os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir()):  # a photo of that name
                folder = folder.with_name(f"{folder.name}_")
        below = folder.relative_to(uploads)
        _, mode = make_folders(uploads, *below.parts)
        for path in received:
            path.chmod(mode)
        return [(below / _place(path, folder, name)).as_posix() for path, name in zip(received, names, strict=True)]


@contextlib.contextmanager
def _refusing(sentence: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise NoRoomError(sentence, strerror=error.strerror) from None


def _make_own(folder: Path, above: Path) -> None:
    """Create a folder of uploads; raises LeadsElsewhereError if it is a link that leads elsewhere."""
    make_folders(folder)
    if not stays_below(folder, [above]):
        raise LeadsElsewhereError(
            "The folder of uploads of this collection is a link to another place: replace the link by a folder."
        )


def _plain(name: str) -> str:
    """Remove characters from a name that are not allowed on some system, or change the direction of text."""
    plain = unicodedata.normalize("NFC", name)
    plain = _FOREIGN.sub("_", "".join(one if unicodedata.category(one) != "Cs" else "_" for one in plain))
    return "".join(one for one in plain if unicodedata.category(one) != "Cf").strip(" .")


def _place(path: Path, folder: Path, name: str) -> str:
    _flush(path)
    for candidate in _names(name):
        target = folder / candidate
        try:
            _move(path, target)
        except FileExistsError:
            with contextlib.suppress(OSError):
                if filecmp.cmp(path, target, shallow=False):
                    return candidate
        else:
            return candidate
    raise AssertionError


def _names(name: str) -> Iterator[str]:
    stem, _, suffix = name.rpartition(".")
    yield name
    number = 2
    while True:
        yield f"{stem} ({number}).{suffix}"
        number += 1


def _move(path: Path, target: Path) -> None:
    """Rename a file; raises FileExistsError if the name is taken."""
    try:
        target.hardlink_to(path)  # never overwrites; the old name is deleted with the request
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        with target.open("xb"):
            pass
        path.replace(target)


def _flush(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
