"""An inverted index in memory: tf-idf scores of images whose words are in arrays."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from index.errors import CairnError
from index.inverted import Scores, rank
from index.word_weights import ScoringOptions, WordWeights
from retrieval.library.parts.arguments import as_array, checked_count, checked_indices


class Index:
    """Images by their visual words, scored by the cosine of tf-idf vectors (Sivic & Zisserman, ICCV 2003).

    The weight of word w in image d is ``tf(n_dw) ln(N / df(w))``. Scores are those of a collection's engine ``tf-idf``,
    in memory: about twenty bytes for each distinct word of an image. The first `score` after images were added rebuilds
    the index: add many before scoring.

    Parameters
    ----------
    words : int
        Size of the vocabulary.
    tf : str
        Term frequency of a count n: ``linear`` (n) or ``sqrt``, which discounts repetition in one image.

    Raises
    ------
    CairnError
        An option is out of range.

    Examples
    --------
    >>> import cairn
    >>> index = cairn.Index(words=5)
    >>> index.add([0, 0, 1]), index.add([1, 2]), index.add([3, 4])
    (0, 1, 2)
    >>> index.score([0, 1]).round(3)
    array([0.985, 0.12 , 0.   ], dtype=float32)
    >>> [(number, round(score, 3)) for number, score in index.top([0, 1])]
    [(0, 0.985), (1, 0.12)]
    """

    def __init__(self, words: int, *, tf: str = "linear") -> None:
        self.words = checked_count(words, "words", 1)
        self._options = ScoringOptions(tf)
        self._images: list[tuple[NDArray[np.int32], NDArray[np.int32]]] = []
        self._built: _Built | None = None

    def add(self, words: ArrayLike) -> int:
        """Add an image by the words of its features.

        Parameters
        ----------
        words : array_like, shape (n,), int
            With repeats, in any order; n may be 0.

        Returns
        -------
        int
            Its number: images count from 0.

        Raises
        ------
        CairnError
            A word is not in the vocabulary.
        """
        distinct, counts = np.unique(checked_indices(words, "words", self.words), return_counts=True)
        self._images.append((distinct.astype(np.int32), counts.astype(np.int32)))
        self._built = None
        return len(self._images) - 1

    def score(self, words: ArrayLike, weights: ArrayLike | None = None) -> NDArray[np.float32]:
        """Score all images for the words of a query.

        Parameters
        ----------
        words : array_like, shape (m,), int
            With repeats.
        weights : array_like, shape (m,), optional
            Weight of each, at least 0, such as shares of soft assignment; by default 1.

        Returns
        -------
        ndarray, shape (images,), float32
            Cosines, 0 to 1, by number. All are 0 if the query has no word that is in some images but not in all.

        Raises
        ------
        CairnError
            A word is not in the vocabulary, or the weights do not fit the words.
        """
        query = checked_indices(words, "words", self.words)
        shares = None if weights is None else _checked_weights(weights, len(query))
        return self._ready().score(query, shares)

    def top(self, words: ArrayLike, number: int = 20, weights: ArrayLike | None = None) -> list[tuple[int, float]]:
        """The images that score best for the words of a query.

        Parameters
        ----------
        words, weights
            See `score`.
        number : int
            How many, at most; images that have nothing in common with the query are left out.

        Returns
        -------
        list of (int, float)
            Number and score, the best first; of equal scores the lower number first.
        """
        scores = self.score(words, weights)
        best = rank(Scores(np.arange(len(scores), dtype=np.uint32), scores), checked_count(number, "number", 0))
        pairs = zip(best.image_numbers.tolist(), best.scores.tolist(), strict=True)
        return [(image, score) for image, score in pairs if score > 0]

    @property
    def idf(self) -> NDArray[np.float64]:
        """Inverse document frequency of each word, (words,): ``ln(N / df)``, 0 for a word that no image has."""
        return self._ready().weights.idf

    def _ready(self) -> "_Built":
        """Postings of the current images."""
        if self._built is None:
            self._built = _Built(self.words, self._options, self._images)
        return self._built

    def __len__(self) -> int:
        return len(self._images)

    def __repr__(self) -> str:
        return f"Index(words={self.words}, images={len(self)})"


class _Built:
    """Postings and norms of some images.

    Sums run over words in ascending order, as in `index.inverted.InvertedIndex`: scores are equal to the last bit.
    """

    def __init__(
        self, words: int, options: ScoringOptions, images: list[tuple[NDArray[np.int32], NDArray[np.int32]]]
    ) -> None:
        ends = np.cumsum([0, *(len(distinct) for distinct, _ in images)])
        distinct, counts = (
            np.concatenate([np.zeros(0, np.int32), *(image[side] for image in images)]) for side in (0, 1)
        )
        frequency = np.bincount(distinct, minlength=words)
        self.weights = WordWeights(words, options, len(images), frequency)
        values = self.weights.term_frequency(counts)
        shape = len(images), words
        squares = sparse.csr_array((np.square(values), distinct, ends), shape)
        self.norms = np.sqrt(squares @ np.square(self.weights.idf))
        self.postings = sparse.csr_array((values, distinct, ends), shape).T.tocsr()  # words x images

    def score(self, query: NDArray[np.int64], shares: NDArray[np.float64] | None) -> NDArray[np.float32]:
        """Cosines (images,) float32: see `Index.score`."""
        query_words, which = np.unique(query, return_inverse=True)
        idf = self.weights.idf[query_words]
        vector = self.weights.term_frequency(np.bincount(which, shares, len(query_words))) * idf
        norm = float(np.sqrt(vector @ vector))
        useful = (vector > 0) & (norm > 0)
        dots = self.postings[query_words[useful]].T @ (vector[useful] / norm * idf[useful])
        cosines = np.divide(dots, self.norms, out=np.zeros_like(dots), where=self.norms > 0)
        return np.asarray(cosines, np.float32)


def _checked_weights(weights: ArrayLike, number: int) -> NDArray[np.float64]:
    array = as_array(weights, "weights")
    if array.shape != (number,) or array.dtype.kind not in "fiu" or not np.isfinite(array).all() or (array < 0).any():
        raise CairnError(f"weights must be {number} finite numbers of at least 0, one a word of the query.")
    return array.astype(np.float64)
