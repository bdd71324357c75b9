"""Rules for files and folders to skip: those that devices and programs make next to photos, and a user's patterns."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fnmatch import translate
from functools import cached_property
from pathlib import Path

DEVICES = (
    *("@eaDir", "@__thumb", "@Recycle", "@Recently-Snapshot", "#recycle", "#snapshot"),  # Synology, QNAP
    *("$RECYCLE.BIN", "System Volume Information", "lost+found", "Recycler"),
    *("__MACOSX", "*.lrdata"),
)
"""Names of folders in which devices and programs keep copies, small pictures, and what was deleted."""

_LIBRARIES = (".photoslibrary", ".photolibrary", ".migratedphotolibrary", ".aplibrary")
_ORIGINALS = ("originals", "masters")
SIDECARS = frozenset((".xmp", ".json", ".aae", ".pp3"))
"""Endings of files about the photo next to them."""
_OF_FOLDERS = frozenset(("thumbs.db", "ehthumbs.db", "desktop.ini", "zbthumbnail.info"))


@dataclass(frozen=True)
class Passing:
    """Rules for files to skip in folders.

    A pattern with ``*``, ``?`` and ``[…]`` is compared with the name of each file and folder, ignoring case; one with a
    slash, with its path below the listed folder; one that begins with a slash, with the whole path. Skipped folders are
    not searched.
    """

    # patterns of files to skip, and of files to take although a pattern or `DEVICES` matches them
    exclude: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    films: bool = False  # whether films are taken: phones store many among the photos
    frame_every: float = 0  # seconds between the frames of a film that are taken; 0: by its shots

    def changed(self, exclude: Iterable[str], include: Iterable[str]) -> Passing:
        """Add patterns; one that is added to either is taken from the other, which is how each is taken back."""
        exclude, include = dict.fromkeys(exclude), dict.fromkeys(include)
        return replace(
            self,
            exclude=tuple(dict.fromkeys([*(one for one in self.exclude if one not in include), *exclude])),
            include=tuple(dict.fromkeys([*(one for one in self.include if one not in exclude), *include])),
        )

    def reason(self, path: Path, root: Path, is_folder: bool) -> str | None:
        """Return the pattern by which a file or folder below a root is skipped; None if it is not."""
        if not self.exclude and not is_folder:
            return None
        pattern = _first(self._excluded, path, root)
        if pattern is None and is_folder:
            pattern = _first(_DEVICES, path, root) or _part_of_a_library(path)
        return None if pattern is None or _first(self._included, path, root) is not None else pattern

    @cached_property
    def _excluded(self) -> list[tuple[str, re.Pattern[str]]]:
        return _compiled(self.exclude)

    @cached_property
    def _included(self) -> list[tuple[str, re.Pattern[str]]]:
        return _compiled(self.include)


@dataclass
class PassedOver:
    """Counts of skipped files and folders."""

    files: Counter[str] = field(default_factory=Counter)  # that are no photos, by their endings
    folders: Counter[str] = field(default_factory=Counter)  # and files that a pattern names, by the pattern

    def count(self, path: Path) -> None:
        """Count a file that is no photo, unless it belongs to one, or to a folder."""
        ending = path.suffix.lower()
        if ending not in SIDECARS and path.name.lower() not in _OF_FOLDERS:
            self.files[ending] += 1


def _compiled(patterns: Iterable[str]) -> list[tuple[str, re.Pattern[str]]]:
    return [(one, re.compile(translate(one.rstrip("/")), re.IGNORECASE)) for one in patterns]


_DEVICES = _compiled(DEVICES)


def _first(patterns: list[tuple[str, re.Pattern[str]]], path: Path, root: Path) -> str | None:
    for pattern, compiled in patterns:
        compared = path.name
        if "/" in pattern.rstrip("/"):
            whole = pattern.startswith("/")
            compared = os.path.realpath(path) if whole else path.relative_to(root).as_posix()
        if compiled.match(compared):
            return pattern
    return None


def _part_of_a_library(path: Path) -> str | None:
    """Name a library of Apple's programs, for all of its folders but that of the originals."""
    library = path.parent.suffix.lower()
    return f"*{library}" if library in _LIBRARIES and path.name.lower() not in _ORIGINALS else None
