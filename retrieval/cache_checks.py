"""Checks of what a collection keeps to be quick, and can always make again: groups, links and thumbnails."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from retrieval.grouping import FILE as GROUPS
from retrieval.grouping import LOG, groups_are_whole
from retrieval.linklog import check_log
from retrieval.thumbnails import FOLDER as THUMBNAILS
from retrieval.thumbnails import is_whole, is_without_checksum

CACHE = "cache"
CACHES = (GROUPS, LOG)

_THUMBNAIL = re.compile(rf"{CACHE}/{THUMBNAILS}/[0-9a-f]{{2}}/[0-9a-f]{{64}}-[0-9]+\.jpg")


class Listener(Protocol):
    """Who is told what a check finds."""

    folder: Path  # of the collection

    def damage(self, file: str, what: str, remedy: str = ...) -> None:
        """Told of a damaged file."""

    def note(self, text: str) -> None:
        """Told what is no damage."""

    def was_read(self, files: int, size: int) -> None:
        """Told of files that were read to their end."""

    def tell(self, size: int) -> None:
        """Told of bytes that were read."""


def check_caches(listener: Listener) -> None:
    """Check all caches of a collection."""
    _check_groups(listener)
    _check_links(listener)
    _check_thumbnails(listener)


def files_below(folder: Path) -> Iterator[Path]:
    """Files in a folder and all below it, in order; folders that vanish meanwhile are passed over."""
    for where, folders, names in os.walk(folder):
        folders.sort()
        yield from (Path(where) / name for name in sorted(names))


def _check_groups(listener: Listener) -> None:
    path = listener.folder / GROUPS
    if not path.is_file():
        return
    whole = groups_are_whole(path)
    listener.was_read(1, path.stat().st_size)
    if whole is False and groups_are_whole(path) is False:
        listener.damage(
            GROUPS, "The groups are not what was written.", f"Run cairn group {listener.folder}, which finds them anew."
        )
    elif whole is None:
        listener.note(f"{GROUPS} has no checksum, as an earlier version wrote it: cairn group writes one.")


def _check_links(listener: Listener) -> None:
    path = listener.folder / LOG
    if not path.is_file():
        return
    damaged, unsummed = check_log(path)
    if damaged:
        listener.damage(
            LOG,
            f"Line {damaged} of the log of links is not what was written.",
            f"Run cairn group {listener.folder}, which asks again for what it said from there on.",
        )
    elif unsummed:
        listener.note(f"{unsummed} lines of {LOG} have no checksum, as an earlier version wrote them.")
    listener.was_read(1, path.stat().st_size)
    listener.tell(path.stat().st_size)


def _check_thumbnails(listener: Listener) -> None:
    unchecked = others = 0
    for path in files_below(listener.folder / CACHE):
        name = path.relative_to(listener.folder).as_posix()
        if not path.is_file() or not _THUMBNAIL.fullmatch(name):
            others += 1
            continue
        try:
            contents = path.read_bytes()
        except FileNotFoundError:
            continue  # cairn compact removes what nobody needs
        listener.was_read(1, len(contents))
        listener.tell(len(contents))
        if is_whole(contents):
            continue
        if is_without_checksum(contents):
            unchecked += 1
            continue
        listener.damage(
            name,
            "The thumbnail is not what was written.",
            f"Run cairn repair {listener.folder}, which deletes it; it is made again when it is shown.",
        )
    if unchecked:
        listener.note(f"{unchecked} thumbnails have no checksum, as an earlier version made them.")
    if others:
        listener.note(f"{others} files in {CACHE} are none of the collection's.")
