"""Near duplicates to be decided about: sets of photos of one picture, the best of each, and why it is the best."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from retrieval.catalogue.browsing import rows_there
from retrieval.catalogue.schema import ImageRow
from retrieval.catalogue.settings import keep_setting, setting_of
from retrieval.groups.groups import Group
from retrieval.groups.looks import FRAMED, PART
from retrieval.groups.originals import is_among_copies, is_numbered, says_copy
from retrieval.metadata.pages import file_of, split_page, stem_of
from retrieval.photos.listing import leads_elsewhere

KEPT_KEY = "cairn.duplicates_kept"
"""Setting of the catalogue: sets of near duplicates all of which somebody keeps, JSON lists of numbers."""

# What keeps all of what the camera or scanner saw comes before what a compression has passed over.
_FORMATS = (
    ("dng", "cr2", "cr3", "nef", "arw", "raf", "orf", "rw2", "pef", "srw"),
    ("tif", "tiff"),
    ("png", "bmp"),
    ("heic", "heif", "avif", "jpg", "jpeg", "jp2", "webp"),
    ("gif",),
)
_RANKS = {suffix: rank for rank, suffixes in enumerate(_FORMATS) for suffix in suffixes}


@dataclass(frozen=True)
class DuplicateSet:
    """Photos of one picture.

    Attributes
    ----------
    photos : tuple of int
        Their numbers, the best first.
    reasons : tuple of str
        Why the first is the best, by what tells it from the others: "there" (files of others are gone), "link" (others
        are links), "copy" (names
        of others say that they are copies), "resolution", "date", "name" (names of others are numbered), "format",
        "folder" (others lie in a folder of copies), "size".
    """

    photos: tuple[int, ...]
    reasons: tuple[str, ...]


def format_of(row: ImageRow) -> str:
    """A photo's format, by the ending of its file's name: "jpg", "tif"; "" if it has none."""
    suffix = file_of(row.path).suffix.casefold().removeprefix(".")
    return {"jpeg": "jpg", "tiff": "tif"}.get(suffix, suffix)


# What speaks for a photo, in this order: the smaller the better.
_CRITERIA: tuple[tuple[str, Callable[[ImageRow], Any]], ...] = (
    ("there", lambda row: row.missing_since is not None),
    ("link", lambda row: leads_elsewhere(row.path)),
    ("copy", lambda row: says_copy(_stem(row))),
    ("resolution", lambda row: -(row.width or 0) * (row.height or 0)),
    ("date", lambda row: row.taken or "~"),
    ("name", lambda row: is_numbered(_stem(row))),
    ("format", lambda row: _RANKS.get(format_of(row), len(_FORMATS))),
    ("folder", is_among_copies),
    ("size", lambda row: -(row.size or 0)),
    ("", lambda row: (len(_stem(row)), row.number)),
)


def judge_set(rows: Sequence[ImageRow]) -> DuplicateSet:
    """Return which of some photos of one picture is the best, and why.

    A photo whose file is gone comes last, before it a link, and one whose name says that it is a copy. Of the others
    the one of most pixels is the best, then the one taken earliest, then one that is not numbered, then one of a format
    that loses less, then one that does not lie in a folder of copies, then the largest file.
    """
    ordered = sorted(rows, key=lambda row: tuple(measure(row) for _, measure in _CRITERIA))
    best, others = ordered[0], ordered[1:]
    deciding = {next(word for word, measure in _CRITERIA if measure(best) != measure(one)) for one in others}
    return DuplicateSet(
        tuple(row.number for row in ordered), tuple(word for word, _ in _CRITERIA if word and word in deciding)
    )


def apart(rows: Sequence[ImageRow], order: Sequence[int]) -> list[int]:
    """Numbers of photos in an order, but for those whose file is that of an earlier one: links are no copies."""
    files: set[tuple[int, int, int | None]] = set()
    kept = []
    paths = {row.number: row.path for row in rows}
    for number in order:
        try:
            file, page = split_page(paths[number])
            status = file.stat()
        except (OSError, ValueError):
            kept.append(number)
            continue
        if (one := (status.st_dev, status.st_ino, page)) not in files:
            files.add(one)
            kept.append(number)
    return kept


def duplicate_sets(groups: Iterable[Group], kept: Iterable[frozenset[int]] = ()) -> list[tuple[int, ...]]:
    """Return the sets of near duplicates of groups, without those that somebody keeps.

    Parameters
    ----------
    groups : iterable of Group
    kept : iterable of frozenset of int
        Sets that were decided about: what is part of one is not given.

    Returns
    -------
    list of tuple of int
        Numbers, ascending; the sets by their smallest number.
    """
    decided: defaultdict[int, list[frozenset[int]]] = defaultdict(list)
    for one in kept:
        for number in one:
            decided[number].append(one)
    found = []
    for group in groups:
        sets: defaultdict[int, set[int]] = defaultdict(set)
        for copy, original in group.duplicates.items():
            if group.kinds.get(copy) in (PART, FRAMED):  # of value for what the other does not show
                continue
            sets[original] |= {copy, original}
        found += [members for members in sets.values() if not any(members <= one for one in decided[min(members)])]
    return sorted(tuple(sorted(members)) for members in found)


def undecided_sets(
    session: Session, groups: Iterable[Group], offset: int, limit: int
) -> tuple[int, list[tuple[DuplicateSet, list[ImageRow]]]]:
    """Find the sets of near duplicates that nobody has decided about.

    Parameters
    ----------
    session : Session
    groups : iterable of Group
    offset, limit : int
        Which of them are judged.

    Returns
    -------
    total : int
        How many sets there are.
    page : list of (DuplicateSet, list of ImageRow)
        Those that are judged, with their photos, the best first.
    """
    found = duplicate_sets(groups, kept_sets(session))
    page = []
    for numbers in found[offset : offset + limit]:
        rows = {row.number: row for row in rows_there(session, numbers)}
        if len(rows) < 2:
            continue  # others were removed just now
        judged = judge_set(list(rows.values()))
        different = apart(list(rows.values()), judged.photos)
        if 1 < len(different) < len(rows):
            judged = judge_set([rows[number] for number in different])
        if len(different) > 1:
            page.append((judged, [rows[number] for number in judged.photos]))
    return len(found), page


def kept_sets(session: Session) -> list[frozenset[int]]:
    """Sets of near duplicates in which people keep every photo."""
    return _read(setting_of(session, KEPT_KEY))


def keep_all(session: Session, photos: Iterable[int]) -> None:
    """Remember that near duplicates are all kept: they are not asked about again."""
    wanted = frozenset(photos)
    kept = [one for one in _read(setting_of(session, KEPT_KEY)) if not one <= wanted]
    keep_setting(session, KEPT_KEY, json.dumps([sorted(one) for one in [*kept, wanted]]))


def ask_again(session: Session, photos: Iterable[int]) -> None:
    """Forget that near duplicates are all kept."""
    wanted = frozenset(photos)
    kept = [one for one in _read(setting_of(session, KEPT_KEY)) if one != wanted]
    keep_setting(session, KEPT_KEY, json.dumps([sorted(one) for one in kept]))


def _read(text: str | None) -> list[frozenset[int]]:
    """The sets of a setting; none where it is damaged."""
    try:
        return [frozenset(int(number) for number in one) for one in json.loads(text or "[]")]
    except (ValueError, TypeError, RecursionError):
        return []


def _stem(row: ImageRow) -> str:
    return stem_of(row.name or row.path).strip()
