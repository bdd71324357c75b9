"""Folders that photos can be chosen from: those below some roots, resolving links, and indexed folders."""

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import Field

from index.errors import CairnError
from retrieval.collection.layout import OPTIONS
from retrieval.metadata.pages import is_film
from retrieval.photos.listing import is_photo_suffix

MOST_LISTED = 2000
"""Folders that are listed of one, and entries that are looked at are ten times as many."""


class FolderNotFound(CairnError):
    """There is no such folder below the roots."""

    _kind = "missing"


class FolderLockedError(CairnError):
    """A folder may not be read."""

    _kind = "locked"


@dataclass(frozen=True)
class SubFolder:
    """A folder in another."""

    name: str
    path: Annotated[str, Field(description="Below the root.")]


@dataclass(frozen=True)
class RootFolder:
    """Contents of a folder."""

    root: int
    name: str
    path: str
    photos: Annotated[int, Field(description="Files in it that look like photos, those of folders in it not counted.")]
    films: Annotated[int, Field(description="Those that look like films.")]
    folders: list[SubFolder]  # without collections and hidden ones
    more: Annotated[bool, Field(description="Whether there is more in it than was looked at.")]


def folder_below(roots: Sequence[Path], root: int, path: str) -> Path:
    """Return a folder below a root, by its real path.

    Raises FolderNotFound if it does not exist, lies in a collection, or links lead out of the root.
    """
    if root >= len(roots):
        raise FolderNotFound("There is no such folder to choose from.")
    top = roots[root].resolve()
    parts = PurePosixPath(path).parts
    if "\0" in path or path.startswith("/") or ".." in parts or any(part.startswith(".") for part in parts):
        raise FolderNotFound("There is no such folder.")
    try:
        folder = (top / path).resolve(strict=True)
        inside = folder.is_relative_to(top) and folder.is_dir()
    except (OSError, ValueError, RuntimeError):
        inside = False
    if not inside or _is_collection(folder, top):
        raise FolderNotFound("There is no such folder.")
    return folder


def list_folder(roots: Sequence[Path], root: int, path: str) -> RootFolder:
    """List a folder below a root: its subfolders, and the number of photos."""
    folder = folder_below(roots, root, path)
    top = roots[root].resolve()
    folders: list[str] = []
    photos = films = looked = 0
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                looked += 1
                if looked > 10 * MOST_LISTED or len(folders) >= MOST_LISTED:
                    break
                if entry.name.startswith("."):
                    continue
                if _is_folder_in(entry, top):
                    folders.append(entry.name)
                elif is_photo_suffix(PurePosixPath(entry.name).suffix):
                    photos += 1
                elif is_film(entry.name):
                    films += 1
    except OSError as error:
        raise FolderLockedError(
            "This folder cannot be read ({strerror}): choose another.", strerror=error.strerror
        ) from None
    more = looked > 10 * MOST_LISTED or len(folders) >= MOST_LISTED
    names = sorted(filter(_is_text, folders), key=str.casefold)
    below = [SubFolder(name, (PurePosixPath(path) / name).as_posix()) for name in names]
    return RootFolder(root, folder.name, path, photos, films, below, more)


def under_known_names(photos: Sequence[Path], folders: Collection[Path]) -> list[Path]:
    """Return the paths to index so that photos below folders that were indexed before keep their names."""
    above = {path: next((one for one in path.parents if one in folders), path.parent) for path in photos}
    return list(dict.fromkeys(path if folder == path.parent else folder for path, folder in above.items()))


def _is_folder_in(entry: os.DirEntry[str], top: Path) -> bool:
    """Whether an entry is a folder within a root, wherever links lead, and no collection."""
    try:
        if not entry.is_dir():
            return False
        real = Path(entry.path).resolve()
        return real.is_relative_to(top) and not os.path.lexists(Path(entry.path) / OPTIONS)
    except (OSError, RuntimeError):
        return False


def _is_collection(folder: Path, top: Path) -> bool:
    """Whether a folder is a collection, or lies in one."""
    above = [folder, *folder.parents]
    return any(os.path.lexists(one / OPTIONS) for one in above[: above.index(top) + 1])


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # bytes that are no text
        return False
    return True
