"""The content of a collection at one moment: segments and tombstones, and indexes of their postings."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from index.errors import CairnError
from index.hamming.kinds import SignatureKind
from index.inverted import InvertedIndex, ScoringOptions
from index.segments.segment import Segment
from index.similarity import SimilarityMatrix
from index.vocabulary import Vocabulary, VocabularyFacts
from retrieval.collection.augmentation import Augmentation
from retrieval.collection.layout import STATISTICS
from retrieval.collection.statistics import Statistics, read_statistics, write_statistics


@dataclass(frozen=True)
class Content:
    """Segments and tombstones of one moment. Indexes of them are made at first use, and cached."""

    folder: Path  # of the collection
    vocabulary: VocabularyFacts
    segments: list[Segment]
    removed: frozenset[int]
    signature: SignatureKind | None  # of their features
    key: str | None  # key of valid statistics; None: there can be no statistics
    augmentation: Augmentation | None  # None also if damaged, as that must not stop a search
    _indexes: dict[tuple[ScoringOptions, Path | None, bool], InvertedIndex] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def scored_index(
        self, scoring: ScoringOptions | None = None, similarity: Path | None = None, *, augmented: bool = False
    ) -> InvertedIndex:
        """Index of the postings of all segments: see `Collection.scored_index`."""
        augmented = augmented and similarity is None and self.augmentation is not None
        key = scoring or ScoringOptions(), similarity, augmented
        if key not in self._indexes and augmented:
            known = self._statistics() if key[0] == ScoringOptions() else None
            self._indexes[key] = self._augmented(self.scored_index(scoring), known)
        if key not in self._indexes:
            learnt = None
            if similarity is not None:
                learnt = SimilarityMatrix.load(similarity)
                check_similarity(similarity, learnt, self.vocabulary)
            known = self._statistics()
            is_plain = learnt is None and key[0] == ScoringOptions()
            self._indexes[key] = InvertedIndex(
                self.segments,
                self.vocabulary.words,
                self.removed,
                options=key[0],
                similarity=learnt,
                norms=known.norms if known is not None and is_plain else None,
                document_frequency=known.document_frequency if known is not None else None,
            )
        return self._indexes[key]

    def keep_statistics(self) -> None:
        """Write the statistics of all postings, with borrowed features, if there can be any. Raises OSError."""
        index = self.scored_index(augmented=True)
        if self.key is not None:
            lent = self.augmentation.key if index.lent and self.augmentation is not None else None
            write_statistics(self.folder / STATISTICS, self.key, index, lent)

    def has_right_statistics(self) -> bool | None:
        """Compare the stored statistics of this content with those of all postings; None if none are stored."""
        stored = self._statistics()
        if stored is None:
            return None
        plain = InvertedIndex(self.segments, self.vocabulary.words, self.removed)
        lent = self.augmentation is not None and self.augmentation.key == stored.augmentation
        return stored.are_of(self._augmented(plain, None) if lent else plain)

    def _statistics(self) -> Statistics | None:
        """The stored statistics of all postings; None if postings must be read."""
        known = read_statistics(self.folder / STATISTICS, self.key) if self.key is not None else None
        if known is None:
            return None
        numbers = np.concatenate([np.empty(0, np.int64), *(segment.image_numbers for segment in self.segments)])
        gone = np.isin(numbers, np.fromiter(self.removed, np.int64, len(self.removed))).sum()
        fits = len(known.document_frequency) == self.vocabulary.words and len(known.norms) == len(numbers) - gone
        return known if fits else None

    def _augmented(self, plain: InvertedIndex, known: Statistics | None) -> InvertedIndex:
        """The same index with borrowed features; `known`: statistics with its norms, if stored."""
        assert self.augmentation is not None
        is_known = known is not None and known.augmentation == self.augmentation.key
        return InvertedIndex(
            self.segments,
            plain.words,
            self.removed,
            options=plain.options,
            norms=plain.norms,
            document_frequency=plain.document_frequency,
            borrowed=self.augmentation.borrowed(plain.image_numbers),
            scored_norms=known.scored_norms if known is not None and is_known else None,
        )


def check_similarity(path: Path, similarity: SimilarityMatrix, vocabulary: Vocabulary | VocabularyFacts) -> None:
    """Raise CairnError if a similarity, read from a path, was learnt for another vocabulary."""
    if similarity.vocabulary != vocabulary.fingerprint:
        raise CairnError(
            "{path} was learnt for another vocabulary: learn it again for this one, or take the vocabulary of the "
            "collection that it was learnt on with {cairn index --vocabulary}.",
            path=path,
        )
