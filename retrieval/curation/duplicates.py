"""Near duplicates and similar shots for decisions: the best photo of each set, and which others may go."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.orm import Session

from retrieval.catalogue.browsing import rows_there
from retrieval.catalogue.curation.albums import in_albums
from retrieval.catalogue.database import chunks
from retrieval.catalogue.metadata_store import TAG, values_by_number
from retrieval.catalogue.schema import IMPORTED, ImageRow
from retrieval.catalogue.settings import keep_setting, setting_of
from retrieval.groups.groups import FoundGroup
from retrieval.groups.looks import COPY, FRAMED, PART, TURNED
from retrieval.groups.originals import is_among_copies, is_numbered, says_copy
from retrieval.metadata.pages import file_of, split_page, stem_of
from retrieval.photos.listing import leads_elsewhere

KEPT_KEY = "cairn.duplicates_kept"
"""Setting of the catalogue: sets of near duplicates that are kept entirely, JSON lists of numbers."""

# Lossless formats of cameras and scanners come before lossy compression.
_FORMATS = (
    ("dng", "cr2", "cr3", "nef", "arw", "raf", "orf", "rw2", "pef", "srw"),
    ("tif", "tiff"),
    ("png", "bmp"),
    ("heic", "heif", "avif", "jpg", "jpeg", "jp2", "webp"),
    ("gif",),
)
_RANKS = {suffix: rank for rank, suffixes in enumerate(_FORMATS) for suffix in suffixes}


SAID, KIND = "said", "kind"
"""Why a photo is not proposed to be cleared away, see `DecisionSet`."""


class Said(NamedTuple):
    """Entered metadata of a photo."""

    words: frozenset[tuple[str, str]] = frozenset()  # key and value of its title, caption and tags
    by_people: bool = False  # some of these were typed in or imported, or it is in an album


@dataclass(frozen=True)
class DecisionSet:
    """A set of near duplicates, or of similar shots."""

    photos: tuple[int, ...]  # their numbers, the best first
    # why the first is the best, by its differences to the others: "there" (files of others are missing), "link"
    # (others are links), "kind" (others are parts, framed, negatives, rotated, mirrored or without colours), "said"
    # (of equal files, the one with an entered title, tag or caption, or in an album), "copy" (others are named as
    # copies), "resolution", "date", "name" (names of others are numbered), "format", "folder" (others lie in a folder
    # of copies), "size"
    reasons: tuple[str, ...]
    # relations of near duplicates to the original of the set, the only photo without one: one of
    # `retrieval.groups.looks.KINDS`. Empty for similar shots
    kinds: Mapping[int, str]
    # photos that are not proposed for removal, and why: `SAID`, if it has an entered title, tag or caption, is in an
    # album, or its file has words that the best photo lacks; or `KIND`, if it shows something that others do not: it
    # is a part or framed, or the upright whole if the best is not
    stays: Mapping[int, str]
    # whether the others can safely go: not if one is rotated, and only the size of its file decides whether it or the
    # first is the upright original, and not if all of them stay
    is_sure: bool


@dataclass(frozen=True)
class Undecided:
    """Undecided sets."""

    copies: int  # numbers of sets of near duplicates, and of similar shots
    similar: int
    page: list[tuple[DecisionSet, list[ImageRow]]]  # one page of the requested sets, with their photos, the best first


def format_of(row: ImageRow) -> str:
    """A photo's format, by the extension of its file: "jpg", "tif"; "" without one."""
    suffix = file_of(row.path).suffix.casefold().removeprefix(".")
    return {"jpeg": "jpg", "tiff": "tif"}.get(suffix, suffix)


# Criteria for photos of one kind with existing files, in this order: smaller is better.
_CRITERIA: tuple[tuple[str, Callable[[ImageRow], Any]], ...] = (
    # These may distinguish an original from derived photos;
    ("copy", lambda row: says_copy(_stem(row))),
    ("resolution", lambda row: -(row.width or 0) * (row.height or 0)),
    ("date", lambda row: row.taken or "~"),
    ("name", lambda row: is_numbered(_stem(row))),
    ("format", lambda row: _RANKS.get(format_of(row), len(_FORMATS))),
    ("folder", is_among_copies),
    # these do not.
    ("size", lambda row: -(row.size or 0)),
    ("", lambda row: (len(_stem(row)), row.number)),
)


def judge_set(
    rows: Sequence[ImageRow], kinds: Mapping[int, str] | None = None, said: Mapping[int, Said] | None = None
) -> DecisionSet:
    """Choose the best of some photos of one picture; return it with the reasons, and which others should stay.

    Photos with missing files come last, before them links. Of the others those come first that show the whole picture
    upright, in colours, without a frame, and not as a negative, then those that are not named as copies. The best of
    these has the most pixels, then the earliest date, then a name without a number, then a format with less loss, then
    a place outside folders of copies, then the largest file. Among identical files, the one with entered metadata comes
    first.
    """
    kinds, said = kinds or {}, said or {}
    known = {row.number: said.get(row.number, Said()) for row in rows}
    kind = {row.number: kinds.get(row.number, COPY) for row in rows}
    first: tuple[tuple[str, Callable[[ImageRow], Any]], ...] = (
        ("there", lambda row: row.missing_since is not None),
        ("link", lambda row: leads_elsewhere(row.path)),
        ("kind", lambda row: kind[row.number] != COPY),
    )
    best = min(rows, key=lambda row: [measure(row) for _, measure in (*first, *_CRITERIA)])

    def unsaid(row: ImageRow) -> bool:
        is_twin = row is best or (row.sha256 is not None and row.sha256 == best.sha256)
        return not (is_twin and known[row.number].by_people)

    criteria = (*first, ("said", unsaid), *_CRITERIA)
    best, *others = ordered = sorted(rows, key=lambda row: [measure(row) for _, measure in criteria])
    deciding = {next(word for word, measure in criteria if measure(best) != measure(one)) for one in others}
    is_whole = kind[best.number] == COPY
    stays = {}
    for row in ordered:
        words, by_people = known[row.number]
        if by_people or not words <= known[best.number].words:
            stays[row.number] = SAID
        elif kind[row.number] in (PART, FRAMED) or (kind[row.number] == COPY and not is_whole):
            stays[row.number] = KIND
    going = [row for row in others if row.number not in stays]
    turned = [row for row in going if kind[row.number] == TURNED]
    is_clear = all(any(measure(row) != measure(best) for _, measure in _CRITERIA[:-2]) for row in turned)
    return DecisionSet(
        tuple(row.number for row in ordered),
        tuple(word for word, _ in criteria if word and word in deciding),
        {row.number: kinds[row.number] for row in ordered if row.number in kinds},
        stays,
        bool(going) and is_clear,
    )


def apart(rows: Sequence[ImageRow], order: Sequence[int]) -> list[int]:
    """Numbers of photos in an order, without those with the file of an earlier one: links are no copies."""
    files: set[tuple[int, int, int | None]] = set()
    distinct = []
    paths = {row.number: row.path for row in rows}
    for number in order:
        try:
            file, page = split_page(paths[number])
            status = file.stat()
        except (OSError, ValueError):
            distinct.append(number)
            continue
        if (one := (status.st_dev, status.st_ino, page)) not in files:
            files.add(one)
            distinct.append(number)
    return distinct


def duplicate_sets(
    groups: Iterable[FoundGroup], kept: Iterable[frozenset[int]] = (), *, similar: bool = False
) -> list[tuple[int, ...]]:
    """Return the sets of near duplicates of groups, or of similar shots, as numbers; without subsets of `kept` ones."""
    decided: defaultdict[int, list[frozenset[int]]] = defaultdict(list)
    for one in kept:
        for number in one:
            decided[number].append(one)
    candidates: list[frozenset[int]] = []
    for group in groups:
        sets: defaultdict[int, set[int]] = defaultdict(set)
        for copy, original in group.duplicates.items():
            sets[original] |= {copy, original}
        candidates += map(frozenset, group.similar if similar else sets.values())
    return sorted(tuple(sorted(some)) for some in candidates if not any(some <= one for one in decided[min(some)]))


def undecided_sets(
    session: Session, groups: Sequence[FoundGroup], offset: int, limit: int, *, similar: bool = False
) -> Undecided:
    """Find the undecided sets of near duplicates (identical files first) or of similar shots; judge those of a page."""
    decided = kept_sets(session)
    copies, shots = (duplicate_sets(groups, decided, similar=which) for which in (False, True))
    kinds = {copy: kind for group in groups for copy, kind in group.kinds.items()}
    sets = shots if similar else _plainest_first(session, copies, kinds)
    page = []
    for numbers in sets[offset : offset + limit]:
        rows = {row.number: row for row in rows_there(session, numbers)}
        if len(rows) < 2:
            continue  # others were removed just now
        context = {} if similar else kinds, said_of(session, list(rows))
        judged = judge_set(list(rows.values()), *context)
        different = apart(list(rows.values()), judged.photos)
        if 1 < len(different) < len(rows):
            judged = judge_set([rows[number] for number in different], *context)
        if len(different) > 1:
            page.append((judged, [rows[number] for number in judged.photos]))
    return Undecided(len(copies), len(shots), page)


def said_of(session: Session, numbers: Sequence[int]) -> dict[int, Said]:
    """Entered metadata of some photos: effective titles, captions and tags, and whether they are in albums."""
    shelved = in_albums(session, numbers)
    found = {}
    for number, values in values_by_number(session, numbers, ("title", "caption", TAG)).items():
        words = {
            (key, value.casefold())
            for (source, key), some in values.items()
            if source == IMPORTED or key == TAG or (IMPORTED, key) not in values
            for value in some
            if value
        }
        typed = any(any(some) for (source, _), some in values.items() if source == IMPORTED)
        found[number] = Said(frozenset(words), typed or number in shelved)
    return found


def _plainest_first(
    session: Session, sets: Sequence[tuple[int, ...]], kinds: Mapping[int, str]
) -> list[tuple[int, ...]]:
    """Sets of near duplicates: with files that are the same first, then with other plain copies, then all others."""
    content: dict[int, str] = {}
    for some in chunks([number for members in sets for number in members]):
        query = sa.select(ImageRow.number, ImageRow.sha256).where(ImageRow.number.in_(some))
        content.update((number, sha256) for number, sha256 in session.execute(query) if sha256 is not None)

    def key(members: tuple[int, ...]) -> tuple[bool, bool]:
        known = [content[number] for number in members if number in content]
        return len(set(known)) == len(known), COPY not in (kinds.get(number) for number in members)

    return sorted(sets, key=key)


def kept_sets(session: Session) -> list[frozenset[int]]:
    """Sets of near duplicates that were decided to be kept entirely."""
    return _read(setting_of(session, KEPT_KEY))


def keep_all(session: Session, photos: Iterable[int]) -> None:
    """Store the decision to keep all photos of a set, so that it is not proposed again."""
    wanted = frozenset(photos)
    decided = [one for one in kept_sets(session) if not one <= wanted]
    keep_setting(session, KEPT_KEY, json.dumps([sorted(one) for one in [*decided, wanted]]))


def ask_again(session: Session, photos: Iterable[int]) -> None:
    """Delete the decision to keep all photos of a set."""
    wanted = frozenset(photos)
    decided = [one for one in kept_sets(session) if one != wanted]
    keep_setting(session, KEPT_KEY, json.dumps([sorted(one) for one in decided]))


def _read(text: str | None) -> list[frozenset[int]]:
    """The sets of a setting; empty if it is damaged."""
    try:
        return [frozenset(int(number) for number in one) for one in json.loads(text or "[]")]
    except (ValueError, TypeError, RecursionError):
        return []


def _stem(row: ImageRow) -> str:
    return stem_of(row.name or row.path).strip()
