"""Checks of segments: their files by their checksums, and their contents by the catalogue's rows."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import sqlalchemy as sa

from index.arrays import hash_file, load_json
from index.errors import CairnError, Unreadable, refuse_unreadable
from index.segments.description import META, TEMPORARY_SUFFIX, verify_segment
from retrieval.catalogue.database import Database
from retrieval.collection.layout import SEGMENTS
from retrieval.integrity.compare_rows import check_rows, compare_segment, read_segment_rows, segment_ids
from retrieval.integrity.report import Findings, size_of

_LOOKS = 5


def check_folders(findings: Findings) -> None:
    """Check each segment's folder separately, if the segments of the collection are unknown."""
    parent = findings.folder / SEGMENTS
    for folder in sorted(parent.iterdir()) if parent.is_dir() else []:
        if folder.is_dir() and not folder.name.endswith(TEMPORARY_SUFFIX):
            for name, what in _damaged_files(findings, folder, None):
                findings.damage(name, what)


def check_segments(findings: Findings, database: Database, fingerprints: Mapping[str, str | None]) -> str | None:
    """Check the segments of a catalogue and all its rows; return damage of the catalogue itself."""
    wrong: list[str] = []
    try:
        seen: set[int] = set()
        # Segments that another process adds or replaces meanwhile are checked too.
        for _ in range(_LOOKS):
            todo = [one for one in segment_ids(database) if one not in seen]
            for one in todo:
                what = _check_segment(findings, database, one, fingerprints)
                if what is not None:
                    wrong.append(what)
            seen.update(todo)
            if not todo:
                break
        wrong += check_rows(database)
    except Unreadable:
        raise
    except (CairnError, sa.exc.SQLAlchemyError, TypeError, ValueError) as error:
        # Values of damaged rows may have any type.
        wrong.append(f"It cannot be read ({' '.join(str(error).split())[:200]}).")
    return wrong[0] if wrong else None


def _check_segment(
    findings: Findings, database: Database, one: int, fingerprints: Mapping[str, str | None]
) -> str | None:
    """Check one segment; return errors of the catalogue about it."""
    found = read_segment_rows(database, one)
    if found is None:
        return None
    row, images = found
    folder = findings.folder / SEGMENTS / row.folder
    damaged = dict(_damaged_files(findings, folder, row.sha256))
    what = None
    if not damaged:
        try:
            what = compare_segment(folder, row, images, fingerprints)
        except Unreadable:
            raise
        except CairnError as error:
            damaged[f"{SEGMENTS}/{row.folder}"] = str(error)
    # It may have been merged with others while it was read.
    if (damaged or what) and read_segment_rows(database, one) is None:
        return None
    for name, why in damaged.items():
        findings.damage(name, why)
    return what


def _damaged_files(findings: Findings, folder: Path, meta: str | None) -> Iterator[tuple[str, str]]:
    """Damaged files of a segment with the damage; its description is compared with `meta`, a checksum, if not None."""
    name = f"{SEGMENTS}/{folder.name}"
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        refuse_unreadable(folder, error)
        yield name, "The segment is missing."
        return
    odd = [path for path in entries if path.exists() and not path.is_file()]
    if odd:
        yield f"{name}/{odd[0].name}", "It is not a regular file."
        return
    size = sum(map(size_of, entries))
    try:
        same = meta is None or hash_file(folder / META) == meta
    except OSError as error:
        refuse_unreadable(folder / META, error)
        same = False
    bad = verify_segment(folder) if same else [META]
    findings.was_read(len(entries), size)
    findings.tell(size)
    for file in bad:
        there = (folder / file).exists()
        yield f"{name}/{file}", "The file is not what was written." if there else "The file is missing."
    if not bad:
        try:
            known = {META, *(f"{part}.npy" for part in load_json(folder / META)["files"])}
        except CairnError:
            return  # it was sound a moment ago, and has been merged with others since
        for path in entries:
            if path.name not in known:
                findings.notes.append(f"{name}/{path.name} is not one of the collection's files.")
