"""A part of a collection: the shards of one holder, searched together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.borrowed import Borrowed
from index.hamming.kinds import SignatureKind
from index.inverted import InvertedIndex, ScoringOptions
from index.segments.segment import Segment
from index.similarity import SimilarityMatrix
from retrieval.collection.options import CollectionOptions
from retrieval.search.engines.contract import Engine, load_engine
from retrieval.search.options import SearchOptions
from retrieval.shards.epoch import Basics, Shard

OpenSegment = Callable[[str, Basics], Segment]
"""Opens a segment of a collection by its name in the storage."""


class Gone(Exception):
    """A part, an engine or a search that a message refers to no longer exists here."""


@dataclass(frozen=True, eq=False)
class Part:
    """Some shards of an epoch, as a collection for engines: see `retrieval.search.engines.contract.Searchable`."""

    basics: Basics
    segments: list[Segment]
    borrowed: Borrowed | None
    norms: NDArray[np.float64]  # (n,), of all photos by ascending number
    scored_norms: NDArray[np.float64]  # (n,)
    _similarities: dict[Path, SimilarityMatrix] = field(default_factory=dict)
    _indexes: dict[tuple[ScoringOptions, Path | None, bool], InvertedIndex] = field(default_factory=dict)
    _engines: dict[SearchOptions, Engine] = field(default_factory=dict)

    @staticmethod
    def open(basics: Basics, shards: Sequence[Shard], open_segment: OpenSegment) -> "Part":
        """Open the segments of some shards; raises CairnError if one is missing or damaged."""
        segments = [open_segment(name, basics) for shard in shards for name in shard.segments]
        borrowed = None
        if basics.borrowers is not None:
            lent = tuple(open_segment(name, basics) for name, _ in basics.borrowers)
            borrowed = Borrowed(lent, tuple(counting for _, counting in basics.borrowers))
        order = np.argsort(np.concatenate([np.zeros(0, np.uint32), *(shard.image_numbers for shard in shards)]))
        norms = np.concatenate([np.zeros(0), *(shard.norms for shard in shards)])[order]
        scored = np.concatenate([np.zeros(0), *(shard.scored_norms for shard in shards)])[order]
        return Part(basics, segments, borrowed, norms, scored)

    @property
    def folder(self) -> Path:
        """Name of the collection in messages."""
        return Path(self.basics.place)

    @property
    def options(self) -> CollectionOptions:
        """Options of the collection."""
        return self.basics.options

    @property
    def signature(self) -> SignatureKind | None:
        """The kind of signature that features have."""
        return self.basics.signature

    @property
    def index(self) -> InvertedIndex:
        """The photos, by their own features."""
        return self.scored_index()

    def scored_index(
        self, scoring: ScoringOptions | None = None, similarity: Path | None = None, *, augmented: bool = False
    ) -> InvertedIndex:
        """Postings of the part, scored as in an index of all: see `Collection.scored_index`."""
        augmented = augmented and similarity is None and self.borrowed is not None
        key = scoring or ScoringOptions(), similarity, augmented
        if key not in self._indexes:
            is_plain = similarity is None and key[0] == ScoringOptions()
            self._indexes[key] = InvertedIndex(
                self.segments,
                self.basics.words,
                frozenset(self.basics.removed.tolist()),
                options=key[0],
                similarity=self._similarities[similarity] if similarity is not None else None,
                norms=self.norms if is_plain else None,
                borrowed=self.borrowed if augmented else None,
                scored_norms=self.scored_norms if is_plain and augmented else None,
                whole=self.basics.whole,
            )
        return self._indexes[key]

    def open_engine(self, options: SearchOptions, similarity: SimilarityMatrix | None) -> None:
        """Open an engine, with the learnt similarity that its options name."""
        if options.similarity is not None and similarity is not None:
            self._similarities[options.similarity] = similarity
        if options not in self._engines:
            self._engines[options] = load_engine(options.engine)(self, options)

    def engine(self, options: SearchOptions) -> Engine:
        """Return the open engine of these options; raises Gone if it is not open."""
        if options not in self._engines:
            raise Gone
        return self._engines[options]
