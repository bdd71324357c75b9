"""Strict links: photos that certainly show the same object, by far more raw matches than verification needs."""

import uuid
from collections import Counter, defaultdict
from collections.abc import Collection as Several
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.archive import open_archive
from index.arrays import reading, save_arrays
from index.errors import CairnError
from index.inverted import InvertedIndex
from index.parallel import one_thread, run
from index.progress import Progress, silent
from retrieval.catalogue.photos import all_indexed
from retrieval.collection.collection import Collection
from retrieval.features.encoding import decode_geometry
from retrieval.matching.nearest import match_descriptors
from retrieval.matching.verification import VerificationOptions, verify

STEP = "judge-pairs"
"""Title of the only step in the progress of `link_strictly`."""

Pair = tuple[int, int]
"""Two image numbers, ascending."""

_BATCH = 8  # pairs matched by a process at a time
_AT_ONCE = 256  # pairs after which results are written
_VERIFICATION = VerificationOptions()


@dataclass(frozen=True)
class LinkOptions:
    """Options of strict links."""

    inliers: int = 40  # of a strict link, at least; ten times what verification needs
    agreed: int = 20  # the same if a third photo is linked with both by `inliers`
    candidates: int = 30  # most pairs checked for each photo

    def __post_init__(self) -> None:
        if not 1 <= self.agreed <= self.inliers:
            raise CairnError(f"A strict link has {self.inliers} inliers: it may be no fewer than the {self.agreed}.")


@dataclass(frozen=True)
class StrictLinks:
    """The strict links of a collection, and the doubtful pairs."""

    # (K, 2, 2) float32 by pair: centres of the inlier matches, [:, 0] in the photo of the smaller number and [:, 1] in
    # the other, in units of the photos' longer sides
    inliers: dict[Pair, NDArray[np.float32]]
    doubtful: frozenset[Pair]  # pairs that may show the same object, or are copies of one file: ignored

    def without(self, pairs: Several[Pair]) -> "StrictLinks":
        """Remove some pairs from the links."""
        inliers = {pair: centres for pair, centres in self.inliers.items() if pair not in pairs}
        return StrictLinks(inliers, self.doubtful.difference(pairs))


def link_strictly(
    collection: Collection,
    found: Mapping[Pair, int],
    options: LinkOptions,
    *,
    known: Path | None = None,
    workers: int = 1,
    progress: Progress = silent,
) -> StrictLinks:
    """Verify candidates (pairs and inliers of searches) again by mutual nearest descriptors; keep those beyond doubt.

    Pairs with a common neighbour are checked too. `known` is a file (.npz) of matched pairs, to which new ones are
    added.
    """
    if not collection.options.keep_descriptors:
        raise CairnError("{folder} keeps no descriptors: index with {--keep-descriptors}.", folder=collection.folder)
    copies = _copies(collection, found)
    pairs = candidate_pairs({pair: count for pair, count in found.items() if pair not in copies}, options.candidates)
    pairs = [pair for pair in pairs if pair not in copies]
    matched = _read(known) if known is not None and known.is_file() else {}
    new = [pair for pair in pairs if pair not in matched]
    place = (collection.folder, collection.catalogue.address.render_as_string(hide_password=False), uuid.uuid4().hex)
    tasks = (partial(_match, *place, *pair) for pair in new)
    for done, (pair, centres) in enumerate(zip(new, run(tasks, workers, batch=_BATCH), strict=True), start=1):
        matched[pair] = centres
        if known is not None and (done % _AT_ONCE == 0 or done == len(new)):
            _write(known, matched)
        progress(STEP, len(pairs) - len(new) + done, len(pairs))
    counts = {pair: len(matched[pair]) for pair in pairs}
    strict = strict_pairs(counts, options)
    doubtful = (set(found) | {pair for pair, count in counts.items() if count}) - strict
    return StrictLinks({pair: matched[pair] for pair in sorted(strict)}, frozenset(doubtful))


def candidate_pairs(found: Mapping[Pair, int], most: int) -> list[Pair]:
    """Choose at most `most` pairs of each photo to check: those found, and those with a common neighbour."""
    neighbours: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for (one, other), count in found.items():
        neighbours[one][other] = neighbours[other][one] = count
    through: Counter[Pair] = Counter()
    for around in neighbours.values():
        # The strongest neighbours of a photo are most likely to show the same object.
        best = sorted(sorted(around), key=lambda photo: -around[photo])[:most]
        for place, one in enumerate(best):
            for other in best[place + 1 :]:
                pair = min(one, other), max(one, other)
                if pair not in found:
                    through[pair] = max(through[pair], min(around[one], around[other]))
    chosen = []
    counts: Counter[int] = Counter()
    for pairs in (found, through):
        for pair in sorted(pairs, key=lambda pair: (-pairs[pair], pair)):
            if max(counts[pair[0]], counts[pair[1]]) < most:
                counts.update(pair)
                chosen.append(pair)
    return sorted(chosen)


def strict_pairs(inliers: Mapping[Pair, int], options: LinkOptions) -> set[Pair]:
    """Return the strict links: pairs with many inliers, or with some if a third photo has many with both."""
    strong = {pair for pair, count in inliers.items() if count >= options.inliers}
    neighbours: defaultdict[int, set[int]] = defaultdict(set)
    for one, other in strong:
        neighbours[one].add(other)
        neighbours[other].add(one)
    agreed = {
        (one, other)
        for (one, other), count in inliers.items()
        if count >= options.agreed and neighbours[one] & neighbours[other]
    }
    return strong | agreed


def _copies(collection: Collection, pairs: Iterable[Pair]) -> set[Pair]:
    """Pairs of copies of one file, which any descriptor finds."""
    content = {row.number: row.sha256 for row in collection.catalogue.read(all_indexed)}
    return {pair for pair in pairs if content[pair[0]] is not None and content[pair[0]] == content[pair[1]]}


def _match(folder: Path, catalogue: str, once: str, one: int, other: int) -> NDArray[np.float32]:
    """Centres (K, 2, 2) of the inliers of two photos."""
    images = _open_index(folder, catalogue, once).images
    first, second = images.features(one), images.features(other)
    with one_thread():
        pairs = match_descriptors(first.columns["descriptor"], second.columns["descriptor"])
        frames = decode_geometry(first.columns, pairs[:, 0]), decode_geometry(second.columns, pairs[:, 1])
        enlarged = frames[0].enlarged(first.elongation), frames[1].enlarged(second.elongation)
        inliers = verify(*enlarged, pairs, _VERIFICATION).matches
    # Each feature is in at most one match, so features of the first photo identify matches.
    rows = np.flatnonzero(np.isin(pairs[:, 0], inliers[:, 0]))
    return np.stack([side.centres[rows] for side in frames], axis=1).astype(np.float32)


@lru_cache(maxsize=1)
def _open_index(folder: Path, catalogue: str, once: str) -> InvertedIndex:
    """Open a collection in a worker process; the catalogue is closed once the index is open."""
    with Collection.open(folder, catalogue=catalogue) as collection:
        return collection.index


def _read(path: Path) -> dict[Pair, NDArray[np.float32]]:
    with reading(path, "file of matched pairs", "learning again"), open_archive(path) as archive:
        rows = np.split(archive.array("centres"), np.cumsum(archive.array("counts"))[:-1])
        pairs = [(one, other) for one, other in archive.array("pairs").tolist()]
        return dict(zip(pairs, rows, strict=True))


def _write(path: Path, matched: Mapping[Pair, NDArray[np.float32]]) -> None:
    arrays = {
        "pairs": np.array(list(matched), np.int64),
        "counts": np.array([len(centres) for centres in matched.values()], np.int64),
        "centres": np.concatenate(list(matched.values())),
    }
    save_arrays(path, arrays)
