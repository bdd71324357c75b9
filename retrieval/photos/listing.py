"""Which files of a folder are photos."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

from index.errors import CairnError
from index.messages import Message
from retrieval.metadata.pages import FILMS, file_of, is_film
from retrieval.photos.passing import PassedOver, Passing
from retrieval.photos.reasons import system_reason

EVERYTHING = Passing()
"""Skip only the files that devices and programs keep next to photos."""

COLLECTION_FILE = "collection.toml"
"""A folder with this file in it is a collection, and what lies in it no photo of anybody's."""

CACHE = "cache"
"""Folder of a collection that may be deleted at any time."""

THUMBNAILS = "thumbnails"
"""Folder of thumbnails in that."""

TILES = "tiles"
"""Folder of photos that are cut into tiles, in the same."""

PHOTO_SUFFIXES = frozenset(
    (".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".tif", ".tiff", ".webp", ".heic", ".heif", ".hif", ".avif")
) | {".bmp", ".gif", ".ppm", ".pgm"}

PAGED_SUFFIXES = frozenset((".tif", ".tiff", ".pdf", *FILMS))
"""Files of these extensions may have several pages, each one a photo."""


def is_photo_suffix(suffix: str) -> bool:
    """Whether files of an extension, in any case, are photos; PDF only if its reader is installed."""
    return suffix.lower() in PHOTO_SUFFIXES or (suffix.lower() == ".pdf" and _reads_pdf())


@cache
def _reads_pdf() -> bool:
    return find_spec("pypdfium2") is not None


def list_photos(
    paths: Sequence[Path],
    passed_over: PassedOver | None = None,
    below: Sequence[Path] | None = None,
    passing: Passing = EVERYTHING,
) -> list[tuple[Path, Path]]:
    """List the photo files that files and folders stand for, as pairs (root, path), in a reproducible order.

    A folder (the root) yields all files in it, at any depth, with a photo's extension in any case; hidden files and
    folders, collections, and files of devices and programs (`Passing`) are skipped, links are followed once. A file
    named explicitly is taken whatever its extension, and its root is its folder. A file that is reached twice is listed
    once, by its own name and not by a link's. Unreadable entries, such as a broken link or a locked subfolder, are
    listed too: `read_photo` then reports the error. So are links to folders outside of `below`, if passed.
    """
    listed: dict[str, tuple[int, Path, Path]] = {}  # by real path: place in `paths`, root and path
    led: set[str] = set()  # real paths reached by a link so far
    for place, start in enumerate(map(Path, paths)):
        try:
            is_folder = stat.S_ISDIR(start.stat().st_mode)
        except FileNotFoundError:
            raise CairnError("There is no file or folder {path}; check the name.", path=repr(str(start))) from None
        except (OSError, ValueError) as error:
            raise CairnError(
                "{path} cannot be read: {reason}.", path=repr(str(start)), reason=Message(system_reason(error))
            ) from None
        root = start if is_folder else start.parent
        real_root = Path(os.path.realpath(root))
        for path in _walk(start, passed_over, below, passing) if is_folder else (start,):
            real = os.path.realpath(path)
            is_own = real == str(real_root / path.relative_to(root))
            if real not in listed or (is_own and real in led):
                listed[real] = place, root, path
                led.discard(real) if is_own else led.add(real)
    return [(root, path) for _, root, path in sorted(listed.values())]


def leads_elsewhere(path: str | os.PathLike[str]) -> bool:
    """Whether the path of a photo is a link, or lies behind one."""
    file = file_of(path)
    return os.path.realpath(file) != os.fspath(file)


def root_of(path: str, name: str) -> str | None:
    """Return the folder that was indexed with a photo: its path without its name, if it ends in that."""
    return path.removesuffix(f"/{name}") if path.endswith(f"/{name}") else None


def away(path: str, name: str) -> str | None:
    """Return the folder that a photo was indexed from if it is missing or empty: its drive may not be connected.

    The name of a photo is the part of its path after that folder.
    """
    root = indexed_folder(path, name)
    return root if is_away(root) else None


def indexed_folder(path: str, name: str) -> str:
    """Return the folder that a photo was indexed from; if its path does not end in its name, the photo's own folder."""
    return root_of(path, name) or os.path.dirname(path)  # noqa: PTH120 (it is a text)


def is_away(folder: str) -> bool:
    """Whether a folder is certainly missing or empty; False if it cannot be examined."""
    try:
        return not any(Path(folder).iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False


def is_one_file(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Whether two paths of photos lead to the same existing file, by symbolic or hard links."""
    try:
        return file_of(one).samefile(file_of(other))
    except (OSError, ValueError):
        return False


def first_photos(paths: Sequence[Path], most: int, below: Sequence[Path]) -> list[Path]:
    """List photo files by files and folders, without opening them, up to a limit.

    Those of one folder come in the order of their names. Unreadable entries, and links out of `below`, are ignored.
    """
    photos: dict[Path, None] = {}
    for start in paths:
        walked = _walk(start, None, below, EVERYTHING) if start.is_dir() else [start]
        there = (path for path in walked if path.is_file() and stays_below(path, below))
        photos.update(dict.fromkeys(islice(there, most - len(photos))))
        if len(photos) >= most:
            break
    return list(photos)


def count_by_root(places: Iterable[tuple[int, str, str]]) -> list[tuple[str, int]]:
    """List the folders that photos were indexed with, and how many each has: of photos as number, name and path."""
    return sorted(Counter(indexed_folder(path, name) for _, name, path in places).items())


def lies_below(path: Path, folder: str) -> bool:
    """Whether a photo lies in a folder, at any depth, by their paths or by their real paths."""
    real, file = os.path.realpath(folder), file_of(path)
    return any(Path(one).is_relative_to(place) for one in (file, os.path.realpath(file)) for place in (folder, real))


def stays_below(path: str | os.PathLike[str], folders: Iterable[Path]) -> bool:
    """Return whether a photo or folder lies in one of some folders, or is one, wherever links of its path lead."""
    real = Path(os.path.realpath(file_of(path)))
    return any(real.is_relative_to(os.path.realpath(folder)) for folder in folders)


def _walk(root: Path, passed_over: PassedOver | None, below: Sequence[Path] | None, passing: Passing) -> Iterator[Path]:
    """Yield the photo files under a folder; those behind links come last, so that files go by their own names."""
    folders: list[Path] = [root]
    links: list[Path] = []
    seen: set[str] = set()
    while folders or links:
        if not folders:
            link = links.pop(0)
            is_folder = os.path.isdir(link)  # noqa: PTH112 (Path.is_dir raises where a folder above is locked)
            if not is_folder or (below is not None and not stays_below(link, below)):
                yield link
                continue
            folders.append(link)
        folder = folders.pop()
        real = os.path.realpath(folder)
        if real in seen:
            continue
        seen.add(real)
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            yield folder  # reading it fails with the reason, which is how the user learns of it
            continue
        for entry in entries:
            if entry.name.startswith("."):
                continue
            path = folder / entry.name
            is_photo = is_photo_suffix(path.suffix) or (passing.films and is_film(path))
            is_folder = entry.is_dir(follow_symlinks=False) or (entry.is_symlink() and os.path.isdir(path))  # noqa: PTH112
            if (is_photo or is_folder) and (pattern := passing.reason(path, root, is_folder)) is not None:
                if passed_over is not None:
                    passed_over.folders[pattern] += 1
            elif entry.is_symlink():
                if is_photo or is_folder:
                    links.append(path)
            elif is_folder:
                if not os.path.lexists(path / COLLECTION_FILE):
                    folders.append(path)
            elif is_photo:
                yield path
            elif passed_over is not None:
                passed_over.count(path)
