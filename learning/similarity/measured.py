"""Mean average precision of queries during learning."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from index.inverted import InvertedIndex
from learning.labels.labels import Relevance
from learning.measures.precision import average_precision
from learning.similarity.pair_gradients import WordPairs, self_gradients
from learning.similarity.triplets import places
from learning.similarity.vectors import unit_vectors, word_vectors

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_SCORES = 1 << 22  # of photos, computed at a time


@dataclass(frozen=True)
class MeasuredQueries:
    """Test queries measured at each iteration, not used for learning (Fig. 6 of Yan13)."""

    names: tuple[str, ...]
    words: tuple[NDArray[np.int32], ...]  # of each query's features
    database: NDArray[np.int64]  # (N,) int64 ascending, image numbers of the database
    positives: tuple[NDArray[np.int64], ...]  # of each query: image numbers to be found; negative if missing
    ignored: tuple[NDArray[np.int64], ...]  # of each query: image numbers that take no rank
    asked: NDArray[np.int64]  # image numbers of the query photos in the collection


class RankingMeasure:
    """Mean average precision of queries in a database of photos."""

    def __init__(
        self,
        queries: "csr_matrix",
        vectors: "csr_matrix",
        positives: Sequence[list[int]],
        ignored: Sequence[list[int]],
        pairs: WordPairs,
    ) -> None:
        self.queries = queries
        self.vectors = vectors
        self.positives = positives
        self.ignored = ignored
        self.pairs = pairs

    @staticmethod
    def of_photos(
        index: InvertedIndex, vectors: "csr_matrix", held_out: Relevance, pairs: WordPairs
    ) -> "RankingMeasure":
        """Measure of held-out photos as queries in the database of `vectors`."""
        return RankingMeasure(
            unit_vectors(index, held_out.queries),
            vectors,
            [places(held_out, numbers).tolist() for numbers in held_out.positives],
            [places(held_out, numbers).tolist() for numbers in held_out.ignored],
            pairs,
        )

    def measure(self, values: NDArray[np.float64], norms: NDArray[np.float64]) -> float:
        """Return the figure for parameters (K + P,); `norms` (N,): √S_jj of the photos of the database."""
        from scipy.sparse import coo_matrix, diags

        words, first, second = self.pairs.words, self.pairs.first, self.pairs.second
        apart = coo_matrix((values[words:], (first, second)), shape=(words, words)).tocsr()
        expanded = self.queries @ (diags(values[:words]) + apart + apart.T).tocsr()
        images = self.vectors.shape[0]
        precisions = []
        for start in range(0, expanded.shape[0], max(1, _SCORES // images)):
            block = slice(start, start + max(1, _SCORES // images))
            scores = np.asarray((expanded[block] @ self.vectors.T).todense())
            # The query's own norm does not affect its ranking.
            scores = np.divide(scores, norms, out=np.zeros(scores.shape), where=norms > 0)
            order = np.lexsort((np.broadcast_to(np.arange(images), scores.shape), -scores), axis=1)
            precisions += [
                average_precision(ranking, positives, ignored)
                for ranking, positives, ignored in zip(
                    order.tolist(), self.positives[block], self.ignored[block], strict=True
                )
            ]
        return float(np.mean(precisions))


class CollectionMeasure(RankingMeasure):
    """Mean average precision of test queries, whose photos differ from the training photos."""

    def __init__(self, index: InvertedIndex, queries: MeasuredQueries, pairs: WordPairs, workers: int = 1) -> None:
        def found(numbers: NDArray[np.int64]) -> list[int]:
            places = np.where(numbers < 0, numbers, np.searchsorted(queries.database, numbers))
            return [int(place) for place in places]

        super().__init__(
            word_vectors(index, queries.words),
            unit_vectors(index, queries.database),
            [found(numbers) for numbers in queries.positives],
            [found(numbers) for numbers in queries.ignored],
            pairs,
        )
        self._selves = self_gradients(self.vectors, pairs, workers)

    def test(self, values: NDArray[np.float64]) -> float:
        """Return the figure for parameters (K + P,)."""
        return self.measure(values, np.sqrt(self._selves.similarities(values)))
