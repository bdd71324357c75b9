"""An engine of photos that lie in shards: the same to a searcher as one of photos that are here."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.segments.segment import ImageFeatures
from index.similarity import SimilarityMatrix
from index.word_weights import WordWeights
from retrieval.collection.collection import Collection
from retrieval.collection.content import check_similarity
from retrieval.matching.verification import Verification
from retrieval.search.engines.contract import load_engine, settle
from retrieval.search.options import SearchOptions
from retrieval.search.photos import NotHere
from retrieval.search.scoreboard import Scoreboard
from retrieval.search.searcher import Searcher
from retrieval.search.views import View
from retrieval.shards.holder import Call
from retrieval.shards.scoreboard import ShardedScoreboard, pack
from retrieval.shards.shards import Shards


class ShardedFeatures:
    """Features of photos in shards: see `retrieval.search.photos.PhotoFeatures`."""

    def __init__(self, shards: Shards) -> None:
        self._shards = shards
        self._here = shards.epoch.index.images

    def features(self, image_number: int) -> ImageFeatures:
        """The features of a photo, without descriptors."""
        return self.features_of([image_number])[0]

    def features_of(self, image_numbers: Sequence[int]) -> list[ImageFeatures]:
        """The features of some photos, without descriptors."""
        return self._of("features", image_numbers)

    def signatures(self, image_number: int) -> NDArray[np.uint8]:
        """The signatures of the features of a photo."""
        rows: list[NDArray[np.uint8]] = self._of("signatures", [image_number])
        return rows[0]

    def feature_counts(self, image_numbers: Sequence[int]) -> NDArray[np.int64]:
        """How many features some photos have."""
        return self._here.feature_counts(image_numbers)

    def _of(self, method: str, numbers: Sequence[int]) -> list[Any]:
        def ask() -> list[Any]:
            placed, groups = self._shards.placed, _groups(self._shards, numbers)
            calls = {
                member: [Call(method, (placed.keys[member], [numbers[one] for one in some]))]
                for member, some in groups.items()
            }
            found: list[Any] = [None] * len(numbers)
            for member, (several,) in self._shards.ask(calls).items():
                for one, value in zip(groups[member], several, strict=True):
                    found[one] = value
            return found

        return self._shards.steadily(ask) if len(numbers) else []


class ShardedPhotos(WordWeights):
    """Photos in shards: see `retrieval.search.photos.SearchedPhotos`."""

    def __init__(self, engine: "ShardedEngine", similarity: SimilarityMatrix | None) -> None:
        plain = engine.shards.epoch.index
        super().__init__(plain.words, engine.options.scoring, plain.photos, plain.document_frequency)
        self._engine = engine
        self.similarity = similarity
        self.image_numbers = plain.image_numbers
        self.images = ShardedFeatures(engine.shards)

    @property
    def borrows(self) -> bool:
        """Whether photos are scored with borrowed features."""
        return self._engine.borrows

    def norms_of(self, image_numbers: Sequence[int]) -> NDArray[np.float64]:
        """Norms of the tf-idf vectors of some photos."""
        shards, options = self._engine.shards, self._engine.options

        def ask() -> NDArray[np.float64]:
            self._engine.open()
            placed, groups = shards.placed, _groups(shards, image_numbers)
            calls = {
                member: [Call("norms", (placed.keys[member], options, [image_numbers[one] for one in some]))]
                for member, some in groups.items()
            }
            found = np.zeros(len(image_numbers))
            for member, (norms,) in shards.ask(calls).items():
                found[groups[member]] = norms
            return found

        return shards.steadily(ask)


class ShardedEngine:
    """An engine for photos in shards: see `retrieval.search.searcher.SearchEngine`."""

    def __init__(self, collection: Collection, options: SearchOptions, shards: Shards) -> None:
        kind = load_engine(options.engine)
        refusal = kind.refusal(collection)
        if refusal is not None:
            raise CairnError(refusal)
        self.options = options
        self.shards = shards
        self.needs_descriptors = kind.needs_descriptors
        self.adds_totals = kind.adds_totals
        self._similarity: SimilarityMatrix | None = None
        if options.similarity is not None:
            self._similarity = SimilarityMatrix.load(options.similarity)
            check_similarity(options.similarity, self._similarity, collection.content.vocabulary)
        lends = shards.epoch.basics.borrowers is not None and options.similarity is None
        self.borrows = options.augmented and kind.scores_borrowed and lends
        self.index = ShardedPhotos(self, self._similarity)

    def open(self) -> None:
        """Let all holders open the engine; raises `Lost` if one does not answer."""
        self.shards.open_engine(self.options, self._similarity)

    def borrow_nothing(self) -> None:
        """Let all holders score photos only by their own features, as one of them has damaged borrowed features."""
        self.borrows = False
        keys = self.shards.placed.keys
        self.shards.ask({member: [Call("borrow_nothing", (key, self.options))] for member, key in keys.items()})

    def scoreboard(self, views: int, among: NDArray[np.integer] | None = None) -> Scoreboard:
        """Return a scoreboard of a search: see `Engine.scoreboard`."""
        self.shards.refresh()
        return ShardedScoreboard(self, views, among)

    def verify(self, view: View, number: int) -> Verification:
        """Verify one photo: see `Engine.verify`."""
        packed = pack(view, with_descriptors=self.needs_descriptors)

        def ask() -> Verification:
            self.open()
            placed, (member,) = self.shards.placed, _groups(self.shards, [number])
            calls = {member: [Call("verify_one", (placed.keys[member], self.options, packed, number))]}
            found: Verification = self.shards.ask(calls)[member][0]
            return found

        return self.shards.steadily(ask)


def sharded_searcher(collection: Collection, options: SearchOptions, shards: Shards) -> Searcher:
    """Make a searcher of a collection whose photos lie in shards."""
    settled = settle(options, collection)
    return Searcher(collection, settled, ShardedEngine(collection, settled, shards))


def _groups(shards: Shards, numbers: Sequence[int]) -> dict[str, list[int]]:
    """Positions of photos in a list, by holder; raises NotHere if a shard has none, KeyError if a photo is unknown."""
    groups, missing = shards.by_owner(numbers)
    if missing:
        raise NotHere(
            "The photo {number} is in a shard of the collection that no worker holds now: ask again in a moment.",
            number=numbers[missing[0]],
        )
    return groups
