"""Checks of caches of a collection, which can always be made again: statistics, loans, groups, thumbnails."""

import re

from index.errors import CairnError, LaterVersion
from retrieval.collection.augmentation import look_at_augmentation
from retrieval.collection.collection import Collection
from retrieval.collection.global_rows import read_global
from retrieval.collection.layout import AUGMENTATION, GLOBAL, GROUPS, STATISTICS
from retrieval.collection.statistics import is_of_later_format, read_statistics
from retrieval.groups.groups import groups_are_whole
from retrieval.integrity.report import Findings, files_below, size_of
from retrieval.photos.listing import CACHE, THUMBNAILS, TILES
from retrieval.photos.thumbnails import is_whole, is_without_checksum
from retrieval.photos.tiles import tiles_are_whole

_THUMBNAIL = re.compile(rf"{CACHE}/{THUMBNAILS}/[0-9a-f]{{2}}/[0-9a-f]{{64}}-[0-9]+\.jpg")
_TILES = re.compile(rf"{CACHE}/{TILES}/[0-9a-f]{{64}}\.zip")


def check_caches(findings: Findings, address: str | None) -> None:
    """Check all caches, last: those of postings are compared with these if everything else is sound."""
    _check_statistics(findings, address)
    _check_augmentation(findings)
    _check_global(findings)
    _check_groups(findings)
    _check_thumbnails(findings)


def _check_statistics(findings: Findings, address: str | None) -> None:
    path = findings.folder / STATISTICS
    if not path.is_file() or is_of_later_format(path):
        return
    findings.was_read(1, path.stat().st_size)
    what = None
    # It may have been replaced meanwhile.
    if read_statistics(path) is None and read_statistics(path) is None and path.is_file():
        what = "The statistics of the postings are not what was written."
    elif not findings.damaged and _are_wrong(findings, address):
        what = "The statistics were computed while postings were damaged."
    if what is not None:
        findings.damage(STATISTICS, what, f"Run cairn repair {findings.folder}, which makes them again.")


def _are_wrong(findings: Findings, address: str | None) -> bool:
    """Whether statistics of the current collection differ from those of its postings."""
    try:
        with Collection.open(findings.folder, catalogue=address) as collection:
            return collection.content.has_right_statistics() is False
    except CairnError:  # without a vocabulary, or if another process changes the collection, they are not used
        return False


def _check_augmentation(findings: Findings) -> None:
    state = look_at_augmentation(findings.folder)
    if state.damaged:  # it may have been replaced meanwhile
        state = look_at_augmentation(findings.folder)
    findings.was_read(len(state.files), sum(map(size_of, state.files)))
    findings.tell(sum(map(size_of, state.files)))
    remedy = f"Run cairn repair {findings.folder}, which removes it, then cairn group, which makes it again."
    for file in state.damaged:
        findings.damage(file, "What photos borrow of others is not what was written.", remedy)
    for name in state.others:
        findings.notes.append(f"{AUGMENTATION}/{name} is left by a killed process, or in use; cairn group removes it.")


def _check_global(findings: Findings) -> None:
    path = findings.folder / GLOBAL
    if not path.is_file():
        return
    findings.was_read(1, size_of(path))
    findings.tell(size_of(path))
    for _ in range(2):  # it may be replaced meanwhile
        try:
            read_global(findings.folder)
            return
        except LaterVersion:
            return
        except CairnError:
            continue
    findings.damage(
        GLOBAL,
        "The global descriptors are not what was written.",
        f"Run cairn repair {findings.folder}, which deletes them, then cairn global, which describes the photos again.",
    )


def _check_groups(findings: Findings) -> None:
    path = findings.folder / GROUPS
    if not path.is_file():
        return
    whole = groups_are_whole(path)
    findings.was_read(1, path.stat().st_size)
    if whole is False and groups_are_whole(path) is False:
        findings.damage(
            GROUPS,
            "The groups are not what was written.",
            f"Run cairn group {findings.folder}, which makes them.",
        )
    elif whole is None:
        findings.notes.append(f"{GROUPS} has no checksum, as an earlier version wrote it: cairn group writes one.")


def _check_thumbnails(findings: Findings) -> None:
    unchecked = others = 0
    for path in files_below(findings.folder / CACHE):
        name = path.relative_to(findings.folder).as_posix()
        if path.is_file() and _TILES.fullmatch(name):
            findings.was_read(1, size_of(path))
            findings.tell(size_of(path))
            if not tiles_are_whole(path) and path.is_file():
                findings.damage(
                    name,
                    "The tiles of a photo are not what was written.",
                    f"Run cairn repair {findings.folder}, which deletes them; they are made again when needed.",
                )
            continue
        if not path.is_file() or not _THUMBNAIL.fullmatch(name):
            others += 1
            continue
        try:
            contents = path.read_bytes()
        except FileNotFoundError:
            continue  # cairn compact removes stale caches
        findings.was_read(1, len(contents))
        findings.tell(len(contents))
        if is_whole(contents):
            continue
        if is_without_checksum(contents):
            unchecked += 1
            continue
        findings.damage(
            name,
            "The thumbnail is not what was written.",
            f"Run cairn repair {findings.folder}, which deletes it; it is made again when it is shown.",
        )
    if unchecked:
        findings.notes.append(f"{unchecked} thumbnails have no checksum, as an earlier version made them.")
    if others:
        findings.notes.append(f"{others} files in {CACHE} are none of the collection's.")
