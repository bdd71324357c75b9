"""Groups: photos of a collection that verified matches link, and near duplicates among them."""

import itertools
import json
from collections import Counter, defaultdict, deque
from collections.abc import Collection as Several
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.arrays import check_format, fingerprint, load_json, save_json
from index.errors import CairnError
from index.files.reading import IrregularFile, read_regular
from index.progress import Progress, silent
from retrieval.catalogue.browsing import numbers_of
from retrieval.catalogue.curation.hidden import hidden_photos
from retrieval.catalogue.curation.rejections import rejected_pairs
from retrieval.catalogue.photos import contents_of_photos, rows_of
from retrieval.catalogue.schema import ImageRow
from retrieval.collection.augmentation import is_augmented
from retrieval.collection.collection import Collection, CollectionChanged
from retrieval.collection.layout import EARLIER_LINKS, GROUPS
from retrieval.collection.sealing import sealed_afterwards
from retrieval.groups.augmentation import augment_photos, forget_loans
from retrieval.groups.clustering import cluster
from retrieval.groups.links import Asker, Link, components, link_photos
from retrieval.groups.looks import COPY, FRAMED, GREY, KINDS, PART, Copy, find_copies
from retrieval.groups.originals import original_first
from retrieval.groups.registration import (
    DuplicateOptions,
    Registered,
    register_photos,
    shown_shares,
)
from retrieval.groups.sightings import see_photos
from retrieval.photos.listing import CACHE

FORMAT = 1
_RULES = 5  # version of the rules of grouping: groups of other rules are out of date
# Links of this many inliers are always stored, so that a later run can use a lower threshold.
KEPT_INLIERS = 10
_ROWS = 1_000  # rows of photos that are read at a time


@dataclass(frozen=True)
class GroupOptions:
    """How groups are formed."""

    inliers: int = 20  # fewest inliers that link two photos
    augment: bool | None = None  # let linked photos borrow features from each other; None: if they did before
    duplicates: DuplicateOptions = field(default_factory=DuplicateOptions)  # near duplicates

    def __post_init__(self) -> None:
        if self.inliers < 1:
            raise CairnError(f"Two photos are linked by one inlier at least, not by {self.inliers}.")


@dataclass(frozen=True)
class FoundGroup:
    """Photos that show the same, as far as enough of them are linked with each other."""

    number: int  # from 1, the group of most photos first
    photos: tuple[int, ...]  # image numbers, ascending; at least two
    links: int  # pairs of them that are linked
    duplicates: Mapping[int, int]  # from a near duplicate to its original, which is not one itself
    kinds: Mapping[int, str] = field(default_factory=dict)  # from each near duplicate to one of `KINDS`
    similar: tuple[tuple[int, ...], ...] = ()  # sets of photos of one view that are not one picture, ascending


@dataclass(frozen=True)
class FoundGroups:
    """All groups of a collection."""

    groups: tuple[FoundGroup, ...]
    inliers: int  # fewest of a link
    photos: int  # number of photos used as queries
    out_of_date: bool = False  # photos were added or removed since; removed ones are left out
    augmented: int | None = None  # photos whose borrowed features were renewed; None: no borrowing


class NotGrouped(CairnError):
    """The collection was never grouped."""

    _kind = "missing"


def group_photos(
    collection: Collection,
    options: GroupOptions | None = None,
    *,
    workers: int = 1,
    asker: Asker | None = None,
    progress: Progress = silent,
) -> FoundGroups:
    """Find the groups of a collection, and store them in it, with the links of each photo: an interrupted run resumes,
    and a later run only queries with new photos. Photos marked as no match are neither linked nor near duplicates,
    unless their files are identical. Hidden photos are left out.
    """
    options = options or GroupOptions()
    with sealed_afterwards(collection):
        numbers = collection.index.image_numbers.tolist()
        rejected = collection.catalogue.read(rejected_pairs)
        links = link_photos(
            collection,
            min_inliers=min(options.inliers, KEPT_INLIERS),
            keep=True,
            workers=workers,
            asker=asker,
            progress=progress,
        )
        strong = {pair: link for pair, link in links.items() if link.inliers >= options.inliers}
        seen = see_photos(_rows(collection, numbers), collection.folder / CACHE, workers=workers, progress=progress)
        copies = [copy for copy in find_copies(seen) if copy.pair not in rejected]
        joined = {number for pair in (*links, *(copy.pair for copy in copies)) for number in pair}
        joined |= _repeated(collection.catalogue.read(contents_of_photos))
        rows = {row.number: row for row in _rows(collection, sorted(joined.intersection(numbers)))}
        # A small part has few features for links; pixels decide whether it is one.
        registered = register_photos(
            links.values(), rows, collection.folder / CACHE, options.duplicates, workers=workers, progress=progress
        )
        contents = {rows[number].sha256 for number, one in seen.items() if one.is_grey and number in rows}
        grey = {number for number, row in rows.items() if row.sha256 and row.sha256 in contents}
        formed = form_groups(rows, strong, options.duplicates, copies, rejected, registered, grey)
        found = FoundGroups(formed, options.inliers, len(numbers))
        kept = {
            "format": FORMAT,
            "state": _state(np.array(numbers, np.int64), rejected),
            "inliers": found.inliers,
            "photos": found.photos,
            "groups": [
                {
                    "group": group.number,
                    "photos": list(group.photos),
                    "links": group.links,
                    "duplicates": sorted(group.duplicates.items()),
                    "kinds": sorted(group.kinds.items()),
                    "similar": group.similar,
                }
                for group in found.groups
            ],
        }
        save_json(collection.folder / GROUPS, {**kept, "sha256": fingerprint({}, kept)})
        (collection.folder / EARLIER_LINKS).unlink(missing_ok=True)
        found = replace(found, groups=_without(formed, collection.catalogue.read(hidden_photos)))
        if options.augment is False:
            forget_loans(collection)
        elif options.augment or is_augmented(collection.folder):
            return replace(found, augmented=augment_photos(collection, links, progress=progress))
    return found


def read_groups(collection: Collection, *, hidden: bool = False) -> FoundGroups:
    """Read the stored groups, without photos removed or marked as no match since. Raises NotGrouped."""
    path = collection.folder / GROUPS
    if not path.is_file():
        raise NotGrouped(
            "Groups have not been looked for yet in {folder}: run {cairn group}.", folder=collection.folder
        )
    there = collection.catalogue.read(numbers_of)
    known = set(there.tolist())
    rejected = collection.catalogue.read(rejected_pairs)
    unseen = frozenset[int]() if hidden else collection.catalogue.read(hidden_photos)
    try:
        kept = load_json(path)
        check_format(path, kept["format"], FORMAT)
        out_of_date = kept["state"] != _state(there, rejected)
        groups = [_group(entry, known, rejected) for entry in kept["groups"]]
        shown = _without(groups, unseen)
        return FoundGroups(shown, _count(kept["inliers"]), _count(kept["photos"]), out_of_date)
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise CairnError("{path} is damaged: run {cairn group} again.", path=path) from error


def groups_are_whole(path: Path) -> bool | None:
    """Whether every byte of stored groups is undamaged; None if an earlier version wrote no checksum."""
    try:
        contents = read_regular(path)
        stored = json.loads(contents)
        if set(stored) == {"format", "state", "inliers", "photos", "groups"}:
            return None
        as_written = json.dumps(stored, indent=2, ensure_ascii=False) + "\n"
        return contents == as_written.encode() and stored.pop("sha256", None) == fingerprint({}, stored)
    except (IrregularFile, ValueError, TypeError, AttributeError, RecursionError):
        return False


def form_groups(
    rows: Mapping[int, ImageRow],
    links: Mapping[tuple[int, int], Link],
    options: DuplicateOptions,
    copies: Several[Copy] = (),
    rejected: Several[tuple[int, int]] = (),
    registered: Mapping[tuple[int, int], Registered] | None = None,
    grey: Several[int] = (),
) -> tuple[FoundGroup, ...]:
    """Divide photos into groups: clusters of their links that a single wrong link does not join, the largest first.
    `registered`: near duplicates by pixels; by default decided by the map between them.

    `rows`: by number, the photos of `links` and of `copies`, and any others. Photos of the same content are in one
    group, whatever their verification. `copies`: photos of one picture, perhaps rotated or mirrored: in one group, and
    near duplicates. `rejected`: pairs, ascending, that are never near duplicates of each other, unless of the same
    content. `grey`: photos without colours, which are never the original of one with colours.
    """
    first_of = _first_of_content(rows)
    same = {(first, number) for number, first in first_of.items() if number != first}
    same.update(copy.pair for copy in copies)
    near = {
        pair for pair, link in links.items() if is_near_duplicate(link, rows[link.query], rows[link.found], options)
    }
    if registered is None:
        registered = dict.fromkeys(near, Registered(COPY, None))
    relations = {pair: Registered(COPY, None) for pair in same}
    relations |= {copy.pair: Registered(copy.kind, None) for copy in copies} | dict(registered)
    picture = _join(rows, same)
    alike, wholes = _neighbours(registered, picture)
    # Photos of one picture, or nearly, have the same links: they count once when links are compared.
    node = _join(rows, {*same, *near, *registered} - _of_pages(registered, {*links, *same}))
    strength: dict[tuple[int, int], float] = {}
    for (one, other), link in links.items():
        ends = node[one], node[other]
        if ends[0] != ends[1]:
            pair = min(ends), max(ends)
            strength[pair] = max(strength.get(pair, 0.0), float(link.inliers))
    home = {one: min(members) for members in cluster(strength) for one in members}
    group_of = {number: home.get(node[number], node[number]) for number in rows}
    together: defaultdict[int, set[int]] = defaultdict(set)
    for number, name in group_of.items():
        together[name].add(number)
    linked = Counter(group_of[one] for one, other in {*links, *same} if group_of[one] == group_of[other])
    groups = sorted((one for one in together.values() if len(one) > 1), key=lambda one: (-len(one), min(one)))
    apart = {(one, other) for one, other in rejected if first_of.get(one, one) != first_of.get(other, other)}
    derived = {picture[one.derived] for one in registered.values() if one.derived is not None}
    shots: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)  # similar ones, by the group they are in
    for pair in near - relations.keys() - apart:
        if group_of[pair[0]] == group_of[pair[1]]:
            shots[group_of[pair[0]]].append(pair)

    def key(number: int) -> tuple[bool, bool, tuple[object, ...]]:
        return picture[number] in derived, number in grey, original_first(rows[number])

    formed = []
    for number, members in enumerate(groups, start=1):
        duplicates = _kept_apart(_duplicates(sorted(members, key=key), picture, alike, wholes), apart)
        kinds = _kinds(duplicates, relations)
        faded = {copy for copy, original in duplicates.items() if copy in grey and original not in grey}
        kinds = {copy: GREY if kind == COPY and copy in faded else kind for copy, kind in kinds.items()}
        name = group_of[min(members)]
        alone = components(pair for pair in shots[name] if duplicates.keys().isdisjoint(pair))
        similar = tuple(sorted(tuple(sorted(some)) for some in alone))
        formed.append(FoundGroup(number, tuple(sorted(members)), linked[name], duplicates, kinds, similar))
    return tuple(formed)


def is_near_duplicate(link: Link, query: ImageRow, found: ImageRow, options: DuplicateOptions) -> bool:
    """Whether each of two linked photos shows nearly all of the other, neither slanted nor stretched."""
    return min(shown_shares(link, query, found, options)) >= options.overlap


def _rows(collection: Collection, numbers: Sequence[int]) -> Iterator[ImageRow]:
    """Yield the rows of photos in the order of their numbers, read in batches to save memory."""
    for start in range(0, len(numbers), _ROWS):
        try:
            yield from collection.catalogue.read(rows_of, numbers[start : start + _ROWS])
        except KeyError:
            raise CollectionChanged(
                "Photos were removed from {folder} meanwhile: run {cairn group} again, which goes on.",
                folder=collection.folder,
            ) from None


def _repeated(contents: Iterable[tuple[int, str | None]]) -> set[int]:
    """The photos whose content others have too."""
    numbers: defaultdict[str, list[int]] = defaultdict(list)
    for number, sha256 in contents:
        if sha256 is not None:
            numbers[sha256].append(number)
    return {number for same in numbers.values() if len(same) > 1 for number in same}


def _first_of_content(rows: Mapping[int, ImageRow]) -> dict[int, int]:
    """For each photo the original among those of the same content, which may be itself."""
    first: dict[str, int] = {}
    ordered = sorted(rows, key=lambda number: original_first(rows[number]))
    return {number: first.setdefault(rows[number].sha256 or f"none {number}", number) for number in ordered}


def _join(rows: Mapping[int, ImageRow], pairs: Iterable[tuple[int, int]]) -> dict[int, int]:
    """For each photo the smallest number in its connected component."""
    smallest = {number: min(joined) for joined in components(pairs, rows) for number in joined}
    return {number: smallest[number] for number in sorted(rows)}


def _pair(one: int, other: int) -> tuple[int, int]:
    return min(one, other), max(one, other)


def _neighbours(
    registered: Mapping[tuple[int, int], Registered], picture: Mapping[int, int]
) -> tuple[dict[int, set[int]], dict[int, set[int]]]:
    """For each picture the pictures that are like it, and those that it is a part of."""
    alike: defaultdict[int, set[int]] = defaultdict(set)
    wholes: defaultdict[int, set[int]] = defaultdict(set)
    for pair, relation in registered.items():
        for one, other in (pair, pair[::-1]):
            if relation.kind != PART:
                alike[picture[one]].add(picture[other])
            elif relation.derived == one:
                wholes[picture[one]].add(picture[other])
    return alike, wholes


def _of_pages(
    registered: Mapping[tuple[int, int], Registered], linked: Several[tuple[int, int]]
) -> set[tuple[int, int]]:
    """The pairs of a part and a page or wall, which shows several pictures: two parts that are not linked."""
    parts: defaultdict[int, list[int]] = defaultdict(list)
    for (one, other), relation in registered.items():
        if relation.kind == PART and relation.derived is not None:
            parts[one + other - relation.derived].append(relation.derived)
    pages = {
        whole
        for whole, some in parts.items()
        if any(_pair(*two) not in linked for two in itertools.combinations(some, 2))
    }
    return {_pair(page, part) for page in pages for part in parts[page]}


def _duplicates(
    ordered: Sequence[int], picture: Mapping[int, int], alike: Mapping[int, set[int]], wholes: Mapping[int, set[int]]
) -> dict[int, int]:
    """For each near duplicate of a group, the best photos first, its original.

    Originals represent the photos that are like them.

    A photo that is like a near duplicate, but not like its original, is not one itself: in a long row of photos, each
    like the one before, the last need have nothing in common with the first. `wholes`: pictures that each picture is a
    part of. A part with near duplicates of its own is the original of these.
    """
    copies: defaultdict[int, list[int]] = defaultdict(list)
    for photo in ordered:
        copies[picture[photo]].append(photo)
    repeats: dict[int, int] = {}  # from a picture to the original that it repeats
    for one, photos in copies.items():  # by their originals, the best first
        if one not in repeats:
            repeats[one] = photos[0]
            for other in alike.get(one, ()):
                if other in copies:
                    repeats.setdefault(other, photos[0])
    shared = Counter(repeats.values())
    for one, photos in copies.items():
        if len(photos) == shared[photos[0]] == 1:
            whole = next(
                (other for other in copies if other in wholes.get(one, ()) and repeats[other] in copies[other]), one
            )
            repeats[one] = repeats[whole]
    return {photo: repeats[picture[photo]] for photo in sorted(ordered) if repeats[picture[photo]] != photo}


def _kinds(duplicates: Mapping[int, int], relations: Mapping[tuple[int, int], Registered]) -> dict[int, str]:
    """Relation of each near duplicate to its original, through the fewest steps of others compared with both."""
    steps: defaultdict[int, list[tuple[int, str]]] = defaultdict(list)
    for pair, (kind, derived) in sorted(relations.items()):
        for one, other in (pair, pair[::-1]):
            if derived in (None, other) and duplicates.get(one, one) == duplicates.get(other, other):
                steps[one].append((other, kind))
    kinds: dict[int, str] = {}
    waiting = deque((original, COPY) for original in sorted(set(duplicates.values())))
    while waiting:
        one, known = waiting.popleft()
        if one in kinds:
            continue
        kinds[one] = known
        for other, kind in steps[one]:
            if kind == COPY:
                waiting.appendleft((other, known))
            else:
                waiting.append((other, known if known in (PART, FRAMED) else kind))
    return {copy: kinds.get(copy, PART) for copy in sorted(duplicates)}


def _group(entry: dict[str, Any], known: set[int], rejected: Several[tuple[int, int]]) -> FoundGroup:
    """A group of the file, without unknown photos; raises ValueError or TypeError if it is malformed."""
    photos = tuple(_count(number) for number in entry["photos"])
    if any(after <= before for before, after in itertools.pairwise(photos)):
        raise ValueError("the photos of a group are not in order")
    photos = tuple(number for number in photos if number in known)
    pairs = [(_count(copy), _count(original)) for copy, original in entry["duplicates"]]
    duplicates = {copy: original for copy, original in pairs if {copy, original} <= known}
    if not {*duplicates, *duplicates.values()} <= set(photos):
        raise ValueError("a photo repeats one of another group")
    duplicates = _kept_apart(duplicates, rejected)
    kinds = {_count(copy): KINDS[KINDS.index(kind)] for copy, kind in entry.get("kinds", ())}
    similar = [tuple(map(_count, some)) for some in entry.get("similar", ())]
    return FoundGroup(
        _count(entry["group"]),
        photos,
        _count(entry["links"]),
        duplicates,
        {copy: kinds.get(copy, COPY) for copy in duplicates},
        _several(similar, set(photos)),
    )


def _several(sets: Iterable[tuple[int, ...]], shown: Several[int]) -> tuple[tuple[int, ...], ...]:
    """The visible photos of each set, if at least two remain."""
    left = (tuple(number for number in some if number in shown) for some in sets)
    return tuple(some for some in left if len(some) > 1)


def _kept_apart(duplicates: Mapping[int, int], rejected: Several[tuple[int, int]]) -> dict[int, int]:
    """Near duplicates without the pairs that people rejected."""
    return {copy: original for copy, original in duplicates.items() if _pair(copy, original) not in rejected}


def _without(groups: Iterable[FoundGroup], hidden: Several[int]) -> tuple[FoundGroup, ...]:
    """Groups without photos that are hidden, as far as two are left of them."""
    shown = []
    for group in groups:
        photos = tuple(number for number in group.photos if number not in hidden)
        if len(photos) > 1:
            copies = {
                copy: original for copy, original in group.duplicates.items() if not {copy, original} & set(hidden)
            }
            kinds = {copy: group.kinds[copy] for copy in copies}
            similar = _several(group.similar, set(photos))
            shown.append(replace(group, photos=photos, duplicates=copies, kinds=kinds, similar=similar))
    return tuple(shown)


def _count(value: object) -> int:
    """A whole number from a file, at least 0; raises ValueError otherwise."""
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError("a value is not a number")
    return value


def _state(numbers: NDArray[np.int64], rejected: Several[tuple[int, int]]) -> str:
    """Fingerprint of a collection's photos, by their unique numbers, and of the rules of grouping."""
    apart = {"rejected": np.array(sorted(rejected), np.int64)} if rejected else {}
    return fingerprint({"numbers": numbers, **apart}, {"rules": _RULES})
