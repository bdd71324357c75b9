"""Checks of what a collection keeps to be quick, and can always make again: statistics, groups and thumbnails."""

import re

from retrieval.collection.layout import STATISTICS
from retrieval.collection.statistics import read_statistics
from retrieval.groups.groups import FILE as GROUPS
from retrieval.groups.groups import groups_are_whole
from retrieval.integrity.report import Findings, files_below
from retrieval.photos.thumbnails import CACHE, is_whole, is_without_checksum
from retrieval.photos.thumbnails import FOLDER as THUMBNAILS

_THUMBNAIL = re.compile(rf"{CACHE}/{THUMBNAILS}/[0-9a-f]{{2}}/[0-9a-f]{{64}}-[0-9]+\.jpg")


def check_caches(findings: Findings) -> None:
    """Check all caches of a collection."""
    _check_statistics(findings)
    _check_groups(findings)
    _check_thumbnails(findings)


def _check_statistics(findings: Findings) -> None:
    path = findings.folder / STATISTICS
    if not path.is_file():
        return
    findings.was_read(1, path.stat().st_size)
    # It may have been replaced meanwhile.
    if read_statistics(path) is None and read_statistics(path) is None and path.is_file():
        findings.damage(
            STATISTICS,
            "The statistics of the postings are not what was written.",
            f"Run cairn repair {findings.folder}, which makes them again.",
        )


def _check_groups(findings: Findings) -> None:
    path = findings.folder / GROUPS
    if not path.is_file():
        return
    whole = groups_are_whole(path)
    findings.was_read(1, path.stat().st_size)
    if whole is False and groups_are_whole(path) is False:
        findings.damage(
            GROUPS, "The groups are not what was written.", f"Run cairn group {findings.folder}, which finds them anew."
        )
    elif whole is None:
        findings.note(f"{GROUPS} has no checksum, as an earlier version wrote it: cairn group writes one.")


def _check_thumbnails(findings: Findings) -> None:
    unchecked = others = 0
    for path in files_below(findings.folder / CACHE):
        name = path.relative_to(findings.folder).as_posix()
        if not path.is_file() or not _THUMBNAIL.fullmatch(name):
            others += 1
            continue
        try:
            contents = path.read_bytes()
        except FileNotFoundError:
            continue  # cairn compact removes what nobody needs
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
        findings.note(f"{unchecked} thumbnails have no checksum, as an earlier version made them.")
    if others:
        findings.note(f"{others} files in {CACHE} are none of the collection's.")
