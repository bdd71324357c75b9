"""Sources of photos to mine: a folder, or a collection, which can also propose overlapping photos."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from learning.mining.proposals import LocalRanker, Ranker, ShardedRanker, random_pairs, ranked_pairs, together
from retrieval.catalogue.curation.rejections import rejected_pairs
from retrieval.catalogue.photos import all_indexed
from retrieval.collection.collection import Collection
from retrieval.collection.layout import OPTIONS
from retrieval.photos.listing import list_photos
from retrieval.shards.shards import Shards

PROPOSALS = ("random", "ranking")
PAIRS = {"random": 10_000, "ranking": 2_000}
"""Default number of proposed image pairs. Few random pairs overlap."""

VIEWS = 100
"""Default number of photos with a rendered view: more do not help, see docs/measurements/without-labels.md."""

_FEW = 10  # least number, even if it is more than half of the photos; otherwise the other half is left for judging


@dataclass(frozen=True)
class PhotoSource:
    """Photos, with proposals of pairs."""

    name: str
    paths: list[Path]
    collection: Collection | None = None  # their collection
    numbers: NDArray[np.int64] | None = None  # (P,) int64: their numbers in it
    shards: Shards | None = None  # its shards, queried in place of its index

    @property
    def _ranker(self) -> Ranker:
        assert self.collection is not None and self.numbers is not None
        if self.shards is not None:
            return ShardedRanker(self.collection, self.numbers, self.shards)
        return LocalRanker(self.collection, self.numbers)

    @staticmethod
    def open(path: Path, *, catalogue: str | None = None) -> "PhotoSource":
        """List the photos of a collection, or of a folder."""
        if not (path / OPTIONS).is_file():
            return PhotoSource(path.resolve().name, [photo for _, photo in list_photos([path])])
        collection = Collection.open(path, catalogue=catalogue)
        rows = collection.catalogue.read(all_indexed)
        numbers = np.array([row.number for row in rows], np.int64)
        return PhotoSource(path.resolve().name, [Path(row.path) for row in rows], collection, numbers)

    def propose(self, how: str | None, number: int, seed: int) -> tuple[str, NDArray[np.int64]]:
        """Propose image pairs (T, 2), sorted indices into `paths` (`number` 0: `PAIRS`), and return how they were
        found.

        `how` is one of `PROPOSALS`: at random, or, by default for a collection with a vocabulary, by tf-idf; at random,
        too, if the ranking has no pairs. Photos marked as no match are left out.
        """
        ranks = self.collection is not None and self.collection.has_vocabulary
        how = how or ("ranking" if ranks else "random")
        if how not in PROPOSALS:
            raise CairnError(f"There are no proposals {how!r}; choose one of {', '.join(PROPOSALS)}.")
        if how == "ranking" and not ranks:
            raise CairnError(
                "{value} has no vocabulary to rank its photos by: make a collection of them with {cairn index}, or use "
                "{--propose} random.",
                value=self.name,
            )
        if len(self.paths) < 2:
            count = "one photo" if self.paths else "no photos"
            raise CairnError(
                f"{self.name} has {count}, and matches are mined from pairs: add photos that show the same things."
            )
        rng = np.random.default_rng(seed)
        if how == "random":
            return how, self._allowed(random_pairs(len(self.paths), number or PAIRS[how], rng))
        ranked = ranked_pairs(self._ranker, len(self.paths), number or PAIRS[how], rng)
        if not len(ranked):  # with two photos words have no weight
            return "random", self._allowed(random_pairs(len(self.paths), number or PAIRS["random"], rng))
        return how, self._allowed(ranked)

    def _allowed(self, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Remove pairs (T, 2) marked as no match."""
        rejected = self.collection.catalogue.read(rejected_pairs) if self.collection is not None else frozenset()
        if not rejected or self.numbers is None:
            return pairs
        numbers = np.sort(self.numbers[pairs], axis=1).tolist()
        return pairs[[(one, other) not in rejected for one, other in numbers]]

    def choose(self, number: int, seed: int) -> NDArray[np.int64]:
        """Choose photos for rendered views: indices into `paths`, ascending; `number` 0: see `VIEWS`.

        Those that a ranking of the collection relates are chosen together, so that the scenes of other photos stay
        unseen.
        """
        if not self.paths:
            raise CairnError(f"{self.name} has no photos: add some.")
        rng = np.random.default_rng(seed)
        wanted = min(number or max(min(VIEWS, len(self.paths) // 2), _FEW), len(self.paths))
        if self.collection is not None and self.collection.has_vocabulary:
            return together(self._ranker, len(self.paths), wanted, rng)
        return np.sort(rng.permutation(len(self.paths))[:wanted])
