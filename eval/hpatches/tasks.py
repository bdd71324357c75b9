"""The three tasks of HPatches (Balntas et al., CVPR 2017, section 5), computed as the benchmark's own program does.

Source: hpatches-benchmark, ``python/utils/tasks.py``, ``metrics.py`` and ``results.py``.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eval.hpatches.lists import ListedPatches, Lists, Pairs
from eval.hpatches.release import KINDS, NOISE, TARGETS
from eval.hpatches.rows import PatchRows
from index.progress import Progress, silent

TASKS = ("verification", "matching", "retrieval")

POOLS = (100, 500, 1000, 5000, 10_000, 15_000, 20_000)
"""Sizes of the retrieval pools, including the five right patches."""

_IMBALANCE = 0.2  # positives to negatives in the imbalanced variant
_BLOCK = 64  # queries whose distances are computed at a time


def ranked_precision(distances: NDArray[np.floating], match: NDArray[np.bool_], positives: int | None = None) -> float:
    """Area under the precision-recall curve, by trapezoids from precision 1 at recall 0 (`metrics.pr`); ties of
    `distances` (M,) rank in their order here. `positives`: total number, found or not; by default all that match.
    """
    hits = match[np.argsort(distances, kind="stable")]
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    before = np.concatenate([[1.0], precision[:-1]])
    return float(((before + precision) / 2)[hits].sum() / (positives or hits.sum()))


def ranked_auc(distances: NDArray[np.floating], match: NDArray[np.bool_]) -> float:
    """Return the area under the ROC curve, with ties in their order (`metrics.roc`)."""
    hits = match[np.argsort(distances, kind="stable")]
    return float(np.cumsum(hits)[~hits].sum() / (hits.sum() * (~hits).sum()))


@dataclass(frozen=True)
class PatchVerification:
    """Verification of patches: areas by balance, negatives and noise."""

    areas: dict[str, dict[str, dict[str, float]]]  # balanced: AUC, imbalanced: AP; of intra and inter; of each noise
    pairs: int  # of each kind

    def mean(self, balance: str) -> float:
        """Mean over negatives and noise: AUC of ``balanced`` pairs, mAP of ``imbalanced`` pairs."""
        return float(np.mean([area for of in self.areas[balance].values() for area in of.values()]))

    def as_json(self) -> dict[str, Any]:
        """Return all figures."""
        means = {"auc": self.mean("balanced"), "mAP": self.mean("imbalanced")}
        return {**means, **self.areas, "pairs": self.pairs}


@dataclass(frozen=True)
class Matching:
    """Matching of patches by nearest neighbours in another image, by sequence and noise."""

    ap: dict[str, dict[str, float]]  # by sequence and noise, the mean over its five images
    found: dict[str, dict[str, float]]  # share of patches whose nearest neighbour is right

    def mean_of(self, kind: str, noise: str) -> float | None:
        """Mean over the sequences of a kind, such as illumination; None without such sequences."""
        letter = next(letter for letter, name in KINDS.items() if name == kind)
        values = [by_noise[noise] for name, by_noise in self.ap.items() if name.startswith(letter)]
        return float(np.mean(values)) if values else None

    @property
    def mean(self) -> float:
        """Mean over noise, then over the kinds of sequences present."""
        means = [[self.mean_of(kind, noise) for noise in NOISE] for kind in KINDS.values()]
        return float(np.mean([np.mean(of) for of in means if None not in of]))  # type: ignore[arg-type]

    def as_json(self) -> dict[str, Any]:
        """Return all figures."""
        kinds = {kind: {noise: self.mean_of(kind, noise) for noise in NOISE} for kind in KINDS.values()}
        return {"mAP": self.mean, **kinds, "sequences": {"ap": self.ap, "found": self.found}}


@dataclass(frozen=True)
class Retrieval:
    """Retrieval of the five other images of a patch among distractors: AP by noise and size of the pool."""

    ap: dict[str, dict[int, float]]  # by noise and size, the mean over queries
    queries: int
    distractors: int

    def mean_of(self, noise: str) -> float:
        """Mean over the sizes."""
        return float(np.mean(list(self.ap[noise].values())))

    @property
    def mean(self) -> float:
        """Mean over sizes and noise."""
        return float(np.mean([self.mean_of(noise) for noise in self.ap]))

    def as_json(self) -> dict[str, Any]:
        """Return all figures."""
        pools = {noise: {str(size): ap for size, ap in by_size.items()} for noise, by_size in self.ap.items()}
        means = {noise: self.mean_of(noise) for noise in self.ap}
        return {"mAP": self.mean, **means, "pools": pools, "queries": self.queries, "distractors": self.distractors}


def verify(rows: PatchRows, lists: Lists, progress: Progress = silent) -> PatchVerification:
    """Separate matching pairs from others by a threshold on their distance.

    Balanced: the area under the ROC curve of equal numbers of each. Imbalanced: the average precision of all
    negatives and of the first positives, a fifth of them. Equal distances: negatives come first.
    """
    areas: dict[str, dict[str, dict[str, float]]] = {
        balance: {negatives: {} for negatives in ("intra", "inter")} for balance in ("balanced", "imbalanced")
    }
    for done, noise in enumerate(NOISE, start=1):
        matching = _distances(rows, lists, lists.positives, noise)
        few = matching[: int(len(matching) * _IMBALANCE) or 1]
        for name, pairs in (("intra", lists.intra), ("inter", lists.inter)):
            other = _distances(rows, lists, pairs, noise)
            for balance, taken, area in (("balanced", matching, ranked_auc), ("imbalanced", few, ranked_precision)):
                match = np.repeat([False, True], [len(other), len(taken)])
                areas[balance][name][noise] = area(np.concatenate([other, taken]), match)
        progress("verification", done, len(NOISE))
    return PatchVerification(areas, len(lists.positives[0]))


def match_images(rows: PatchRows, lists: Lists, progress: Progress = silent) -> Matching:
    """Match each patch of a reference to its nearest neighbour in each other image; the nearest matches rank first.

    Recall ends below 1, as a patch with a wrong nearest neighbour is never found.
    """
    ap: dict[str, dict[str, float]] = {}
    shares: dict[str, dict[str, float]] = {}
    for done, name in enumerate(lists.sequences, start=1):
        reference = rows.of(name, "ref")
        numbers = np.arange(len(reference))
        ap[name], shares[name] = {}, {}
        for noise, letter in NOISE.items():
            figures = []
            for image in range(1, TARGETS + 1):
                distances = rows.matrix(reference, rows.of(name, f"{letter}{image}"))
                nearest = distances.argmin(axis=1)
                right = nearest == numbers
                area = ranked_precision(distances[numbers, nearest], right, len(numbers))
                figures.append((area, float(right.mean())))
            ap[name][noise], shares[name][noise] = np.mean(figures, axis=0).tolist()
        progress("matching", done, len(lists.sequences))
    return Matching(ap, shares)


def retrieve(rows: PatchRows, lists: Lists, progress: Progress = silent) -> Retrieval:
    """Find the five other images of a patch in pools of `POOLS`, with other sequences; right ones win ties."""
    queries = lists.queries
    places = _places(rows, lists, queries, "ref")
    others = _places(rows, lists, lists.distractors, "ref")
    right = {noise: _right_distances(rows, lists, queries, places, noise) for noise in NOISE}
    sums = dict.fromkeys(NOISE, np.zeros(len(POOLS)))
    for start in range(0, len(queries), _BLOCK):
        block = slice(start, start + _BLOCK)
        distances = rows.matrix(rows.at(places[block]), rows.at(others))
        for query, of_query in enumerate(distances, start=start):
            pool = of_query[lists.distractors.sequences != queries.sequences[query]]
            for noise in NOISE:
                sums[noise] = sums[noise] + pool_precision(right[noise][query], pool)
        progress("retrieval", min(block.stop, len(queries)), len(queries))
    ap = {noise: dict(zip(POOLS, (total / len(queries)).tolist(), strict=True)) for noise, total in sums.items()}
    return Retrieval(ap, len(queries), len(lists.distractors))


def pool_precision(right: NDArray[np.float64], pool: NDArray[np.float64]) -> NDArray[np.float64]:
    """Average precision (7,) in pools of each size, of the `right` (5,) distances and the first of `pool` (M,)."""
    ranked = np.sort(right)
    hits = np.arange(1, len(right) + 1)
    sizes = np.minimum(np.array(POOLS) - len(right), len(pool))
    nearer = np.cumsum(pool < ranked[:, None], axis=1, dtype=np.int32)  # (5, M)
    nearer = np.concatenate([np.zeros((len(right), 1), np.int32), nearer], axis=1)[:, sizes].T  # (7, 5)
    after = hits / (hits + nearer)
    earlier = hits - 1 + nearer
    before = np.where(earlier > 0, (hits - 1) / np.maximum(earlier, 1), 1.0)
    area: NDArray[np.float64] = ((before + after) / 2).mean(axis=1)
    return area


def _right_distances(
    rows: PatchRows, lists: Lists, queries: ListedPatches, places: NDArray[np.int64], noise: str
) -> NDArray[np.float64]:
    """Distances (Q, 5) of patches to the same patch in the other images."""
    columns = []
    for image in range(1, TARGETS + 1):
        target = ListedPatches(queries.sequences, np.full(len(queries), image), queries.numbers)
        columns.append(rows.pairwise(places, _places(rows, lists, target, noise)))
    return np.stack(columns, axis=1)


def _distances(rows: PatchRows, lists: Lists, pairs: Pairs, noise: str) -> NDArray[np.float64]:
    first, second = pairs
    return rows.pairwise(_places(rows, lists, first, noise), _places(rows, lists, second, noise))


def _places(rows: PatchRows, lists: Lists, patches: ListedPatches, noise: str) -> NDArray[np.int64]:
    """Indices of patches; those of images 1 to 5 with some noise."""
    shift = 0 if noise == "ref" else TARGETS * list(NOISE).index(noise)
    images = np.where(patches.images == 0, 0, patches.images + shift)
    return rows.places(lists.sequences, patches.sequences, images, patches.numbers)
