"""Photos of a retrieval benchmark: database, queries, and their names in a ground truth."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from eval.protocols.truth import Truth
from index.errors import CairnError
from index.text import shown
from learning.labels.ground_truth import GroundTruthQuery
from retrieval.catalogue.photo_lookup import PhotoLookup
from retrieval.catalogue.schema import ImageRow
from retrieval.metadata.pages import stem_of
from retrieval.photos.listing import list_photos
from retrieval.search.searcher import RankedAnswer

T = TypeVar("T")
Listed = list[tuple[Path, Path]]
"""Photos from `list_photos`: root and path."""

_FEWEST = 2  # queries of a share


@dataclass(frozen=True)
class BenchmarkPhotos:
    """The photos of a benchmark."""

    folders: tuple[str, ...]  # folder of the images, for people to read
    # files and folders to index: those that a ground truth may name, and distractors
    images: tuple[Path, ...]
    distractors: tuple[Path, ...]
    # the photos in them, by their paths in a collection
    image_files: tuple[Path, ...]
    distractor_files: tuple[Path, ...]
    queries: Mapping[str, Path]  # the photo of each query's stem, from the images or the query folder
    truth: Truth  # with the stems of files as the names of photos


def choose_photos(
    images: Sequence[Path],
    truth: Truth,
    *,
    queries: Path | None = None,
    distractors: Sequence[Path] = (),
    share: float = 1.0,
    seed: int = 0,
) -> tuple[BenchmarkPhotos, Truth]:
    """List the photos of a benchmark, and refuse names that are ambiguous in its ground truth; see `as_called`, too. A
    photo among the images is no distractor. `share`: share of the queries, at least two, and of the photos that they do
    not name. The returned truth has only these queries.
    """
    everything, others = list_photos(images), list_photos([queries]) if queries is not None else []
    known = {os.path.realpath(path) for _, path in everything}
    whole = truth = as_called(truth, [*everything, *(one for one in others if os.path.realpath(one[1]) not in known)])
    if not 0 < share <= 1:
        raise CairnError(f"A share is more than 0 and at most 1, not {share:g}.")
    rng = np.random.default_rng(seed)
    if share < 1:
        wanted = max(_FEWEST, round(share * len(truth.queries)))
        truth = truth.of(tuple(_sample(truth.queries, wanted, rng)))
    named, searched = truth.named, everything
    if truth.database is not None:
        searched = [(root, path) for root, path in everything if truth.name_of(path) in truth.database]
    _check_stems((truth.name_of(path) for _, path in searched), named | (truth.database or frozenset()))
    distractor_photos = _others(list_photos(distractors), everything) if distractors else []
    indexed, also = tuple(map(Path, images)), tuple(map(Path, distractors))
    if share < 1 or truth.database is not None:
        searched = _share_of(searched, truth, share, rng)
        if share < 1 and truth.database is not None:
            truth = replace(truth, database=truth.database & named | {truth.name_of(path) for _, path in searched})
        indexed = tuple(path for _, path in searched)
    if share < 1:
        distractor_photos = _share_of(distractor_photos, Truth(()), share, rng)
        also = tuple(path for _, path in distractor_photos)
    query_photos = _query_photos(truth, everything, others)
    return BenchmarkPhotos(
        folders_of(images), indexed, also, _known_as(searched), _known_as(distractor_photos), query_photos, whole
    ), truth


def as_called(truth: Truth, photos: Iterable[tuple[Path, Path]]) -> Truth:
    """The ground truth by the stems of files, even if it writes names with an extension, in another case or composition
    of letters, see `PhotoLookup`. Raises CairnError if a name is ambiguous.
    """
    listed = list(photos)
    places = [(number, path.relative_to(root).as_posix(), str(path)) for number, (root, path) in enumerate(listed)]
    stems = {truth.name_of(path) for _, path in listed}
    lookup = PhotoLookup(places)
    names = {}
    for name in (truth.named | (truth.database or frozenset())) - stems:
        candidates = sorted({truth.name_of(listed[number][1]) for number in lookup.find_all(name)})
        if len(candidates) > 1:
            raise CairnError(
                f"The ground truth's {shown(name)} may be {shown(candidates[0])} or {shown(candidates[1])}."
            )
        if candidates:
            names[name] = candidates[0]
    return truth.called(names)


def folders_of(paths: Iterable[Path]) -> tuple[str, ...]:
    """Folders, and the parents of files, each once."""
    return tuple(dict.fromkeys(str(path if path.is_dir() else path.parent) for path in map(Path, paths)))


def _query_photos(truth: Truth, listed: Listed, query_folder: Listed) -> dict[str, Path]:
    """The photo of each query's stem, which must be unique."""
    query_stems = {query.stem for query in truth.queries}
    photos: dict[str, Path] = {}
    for places in (listed, query_folder):
        found = [(truth.name_of(path), path) for _, path in places]
        found = [(name, path) for name, path in found if name in query_stems - photos.keys()]
        _check_stems(name for name, _ in found)
        photos |= dict(found)
    return photos


def listing_of(paths: Sequence[Path], share: float = 1.0, seed: int = 0) -> tuple[Path, ...]:
    """Photos in files and folders, or a seeded share of them, at least one."""
    listed = list_photos(paths)
    if share < 1 and listed:
        listed = _sample(listed, max(1, round(share * len(listed))), np.random.default_rng(seed))
    return _known_as(listed)


def states_of(files: Iterable[Path]) -> list[tuple[str, int, int]]:
    """Path, size and time of photos, for detecting changes."""
    states = []
    for path in files:
        try:
            state = path.stat()
            states.append((str(path), state.st_size, state.st_mtime_ns))
        except OSError:
            states.append((str(path), -1, -1))
    return states


def _sample(every: Sequence[T], number: int, rng: np.random.Generator) -> list[T]:
    """Draw a sample, keeping the order."""
    return [every[place] for place in np.sort(rng.permutation(len(every))[:number])]


def _share_of(listed: Listed, truth: Truth, share: float, rng: np.random.Generator) -> Listed:
    """All photos that a ground truth names, and a share of the others."""
    named = truth.named
    others = [place for place, (_, path) in enumerate(listed) if truth.name_of(path) not in named]
    left_out = set(others) - set(_sample(others, round(share * len(others)), rng))
    return [one for place, one in enumerate(listed) if place not in left_out]


def _others(listed: Listed, known: Listed) -> Listed:
    """Photos not among known ones, by resolved folders."""
    real = {folder: folder.resolve() for folder in {path.parent for _, path in (*listed, *known)}}
    there = {(real[path.parent], path.name) for _, path in known}
    return [(root, path) for root, path in listed if (real[path.parent], path.name) not in there]


def _known_as(listed: Listed) -> tuple[Path, ...]:
    """Paths as in a collection, with resolved folders."""
    real = {root: root.resolve() for root in {root for root, _ in listed}}
    return tuple(real[root] / path.relative_to(root) for root, path in listed)


def named_photos(queries: Iterable[GroundTruthQuery]) -> set[str]:
    """Return the stems of all photos named by queries: their own, good, ok and junk."""
    return {stem for query in queries for stem in (query.stem, *query.positives, *query.junk)}


def stems_of(
    rows: Sequence[ImageRow],
    named: Set[str] | None = None,
    distractors: Set[str] = frozenset(),
    name_of: Callable[[str], str] = stem_of,
) -> dict[int, str]:
    """Names of a collection's photos for a ground truth, by image number: stems, or paths for photos that it does not
    name (`named`; None: all) and for distractors. Raises CairnError if a named stem occurs twice.
    """
    known = {row.number: name_of(row.path) for row in rows if row.path not in distractors}
    _check_stems(known.values(), named)
    return {
        row.number: row.path
        if row.number not in known or (named is not None and known[row.number] not in named)
        else known[row.number]
        for row in rows
    }


def ranking_of(answer: RankedAnswer, names: Mapping[int, str]) -> list[str]:
    """Return the names of photos for a ground truth, best first."""
    return [names[number] for number in answer.hits.ordered.tolist()]


def _check_stems(stems: Iterable[str], named: Set[str] | None = None) -> None:
    twice = [stem for stem, count in Counter(stems).items() if count > 1 and (named is None or stem in named)]
    if twice:
        raise CairnError(
            f"{len(twice)} names of photos, such as {twice[0]!r}, come twice but for folder or ending, so the ground "
            "truth cannot tell them apart: keep one photo of each."
        )
