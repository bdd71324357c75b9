"""Photos that somebody uploads: names that every system may have, room on the disk, and a place in the collection.

They lie in the folder ``uploads`` of the collection, in one for each day. A collection is skipped where a folder above
it is indexed, so that they are found by indexing that folder itself, as ``cairn index COLLECTION COLLECTION/uploads``
does. Searches, ``cairn check`` and ``cairn repair`` know them by their paths as all other photos.
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

_FOREIGN = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*]')  # what no file may be called on some system
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
_LONGEST = 180  # bytes of a name
_DEEPEST = 8  # folders below one another that an upload keeps
_ABANDONED = 24 * 3600.0  # seconds after which what a killed server received is removed


class NotAPhotoError(CairnError):
    """The name of a file does not end like that of a photo."""

    _kind = "photo"


class NoRoomError(CairnError):
    """Photos cannot be kept: the disk is full, or its folder cannot be written to."""

    _kind = "full"


class LeadsElsewhereError(CairnError):
    """The folder of uploads is a link that leads out of the collection."""

    _kind = "elsewhere"


def safe_name(name: str, films: bool = False) -> str:
    """Make a name that a file may have on every system of what a sender calls a photo, or a film where those are kept.

    Raises
    ------
    NotAPhotoError
        It does not end like the name of a photo.

    >>> safe_name("../.../Übung:1?.JPG")
    'Übung_1_.JPG'
    """
    plain = _plain(name.replace("\\", "/").rpartition("/")[2])
    stem, dot, suffix = plain.rpartition(".")
    if not dot or not (is_photo_suffix(f".{suffix}") or (films and is_film(Path(plain)))):
        shown = plain[-80:] or "a file without a name"
        raise NotAPhotoError(
            "{shown} is no photo, by its ending: send JPEG, PNG, TIFF, WebP or HEIC files.", shown=shown
        )
    stem = stem.strip(" .") or "photo"
    if _RESERVED.fullmatch(stem):
        stem = f"{stem}_"
    return f"{stem.encode()[: _LONGEST - len(suffix)].decode('utf-8', 'ignore')}.{suffix}"


def safe_folder(path: str) -> PurePosixPath:
    """Make a path below a folder, that every system may have, of what a sender says of the folder of a photo.

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
    """Make the folder of photos that a collection keeps; raises as `incoming_folder`."""
    folder = collection / UPLOADS
    with _refusing(said("The server cannot keep photos ({strerror}): see why there.")):
        _make_own(folder, collection)
    return folder


def incoming_folder(collection: Path) -> Path:
    """Make a folder on the disk where uploads stay, to receive them in; what killed servers left there is removed.

    Raises
    ------
    NoRoomError
        It cannot be made.
    LeadsElsewhereError
        The folder of uploads leads elsewhere.
    """
    folder = uploads_folder(collection)
    with _refusing(said("The server cannot keep photos ({strerror}): see why there.")):
        for left in folder.glob(f"{INCOMING}*"):
            with contextlib.suppress(FileNotFoundError):  # another server removes it, or its own at its end
                if time.time() - left.stat().st_mtime > _ABANDONED:
                    shutil.rmtree(left, ignore_errors=True)
        return Path(tempfile.mkdtemp(prefix=INCOMING, dir=folder))


def check_room(incoming: Path, size: int) -> None:
    """Raise NoRoomError if the disk of a folder of `incoming_folder` has no room for so many bytes."""
    with _refusing(said("The server cannot keep photos ({strerror}): see why there.")):
        incoming.mkdir(mode=0o700, exist_ok=True)  # another server may have taken it for abandoned
        os.utime(incoming)
        free = shutil.disk_usage(incoming).free
    if free < SPARE + size:
        raise NoRoomError("The disk of the server is nearly full: free some room there, and upload again.")


def keep_uploads(collection: Path, received: Sequence[Path], names: Sequence[str], within: PurePosixPath) -> list[str]:
    """Give received photos a place and a name of their own; nothing is overwritten, what is there already stays one.

    Parameters
    ----------
    collection : Path
        Its folder.
    received : sequence of Path
        Files, in a folder of `incoming_folder`.
    names : sequence of str
        What they are to be called: see `safe_name`.
    within : PurePosixPath
        Below the folder of the day: see `safe_folder`.

    Returns
    -------
    list of str
        Names of the photos, once they are indexed.

    Raises
    ------
    NoRoomError
        A photo cannot be kept.
    LeadsElsewhereError
        The folder of uploads leads elsewhere.
    """
    uploads = folder = collection / UPLOADS
    with _refusing(said("The server cannot keep the photo ({strerror}): free some room there.")):
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
    """Make a folder of uploads; LeadsElsewhereError where it is a link that leads elsewhere."""
    make_folders(folder)
    if not stays_below(folder, [above]):
        raise LeadsElsewhereError(
            "The folder of uploads of this collection leads elsewhere: put a folder in the place of the link."
        )


def _plain(name: str) -> str:
    """Take out of a name what no file may be called on some system, and what turns text round."""
    plain = unicodedata.normalize("NFC", name)
    plain = _FOREIGN.sub("_", "".join(one if unicodedata.category(one) != "Cs" else "_" for one in plain))
    return "".join(one for one in plain if unicodedata.category(one) != "Cf").strip(" .")


def _place(path: Path, folder: Path, name: str) -> str:
    _flush(path)
    for candidate in _names(name):
        there = folder / candidate
        try:
            _move(path, there)
        except FileExistsError:
            with contextlib.suppress(OSError):
                if filecmp.cmp(path, there, shallow=False):
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


def _move(path: Path, there: Path) -> None:
    """Name a file anew; FileExistsError where that name is taken."""
    try:
        there.hardlink_to(path)  # the one way that never overwrites; the old name goes with the request
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        with there.open("xb"):
            pass
        path.replace(there)


def _flush(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
