"""The inverted index: tf-idf scores of all images of a collection for a query's words."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from index.borrowed import Borrowed
from index.errors import CairnError
from index.images import IndexedImages
from index.postings.word_lists import first_of_kind
from index.segments.segment import Segment
from index.similarity import SimilarityMatrix, shared_postings
from index.word_weights import ScoringOptions as ScoringOptions
from index.word_weights import Whole, WordWeights

# Postings gathered at a time: bounds the memory at a few MB, and keeps the buffers in the processor's cache.
BLOCK_POSTINGS = 1 << 16
_SAMPLE = 200  # images that the mean idf is measured on


@dataclass(frozen=True, slots=True)
class Scores:
    """Images (n,) and their scores (n,): all by ascending number from `InvertedIndex.score`, best first from `rank`."""

    image_numbers: NDArray[np.uint32]
    scores: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.image_numbers)


def rank(scores: Scores, top: int | None = None) -> Scores:
    """Order by descending score, equal scores by ascending image number.

    Parameters
    ----------
    scores : Scores
        In any order.
    top : int, optional
        Keep only this many (fewer if there are fewer images).

    Raises
    ------
    ValueError
        `top` is negative.
    """
    numbers, values = scores.image_numbers, scores.scores
    if top is not None and top < 0:
        raise ValueError(f"top is {top}: it must be at least 0")
    if top is not None and 0 < top < len(values):
        # All images that reach the score of the last place, so that a tie there is broken by number too.
        last = np.partition(values, len(values) - top)[len(values) - top]
        reaching = np.flatnonzero(values >= last)
        numbers, values = numbers[reaching], values[reaching]
    order = np.lexsort((numbers, -values))[:top]
    return Scores(numbers[order], values[order])


class InvertedIndex(WordWeights):
    """Similarity of tf-idf vectors over the images of any number of segments: their cosine, or a learnt one.

    The weight of word w in image d is ``tf(n_dw) idf(w)`` with ``idf(w) = ln(N / df(w))`` (0 where df is 0), N the
    number of images in the index and df(w) of those that have w; the vector of an image is divided by its Euclidean
    norm. (Dividing tf by the number of features first, as is usual, makes no difference after that.) An image without
    features is one of the N, and scores 0. The division into segments does not change the last bit of a score: sums
    always run over the words in ascending order.

    With a similarity matrix R, ``S_ij = w_iᵀ R w_j`` takes the place of the inner product, and the score is
    ``S_ij / √(S_ii S_jj)``, which ranks as the Ŝ_ij of Yan and Yu (IJCNN 2013, equation 3) does, being its square
    root: the query is expanded once, to R w_i, and then scored as before. R = I gives tf-idf to the last bit. R need
    not be positive semi-definite, so a score may exceed 1, and an image other than the query itself come first; an
    image, or a query, whose self-similarity is 0 scores 0.

    Parameters
    ----------
    segments : sequence of Segment
        Of one vocabulary and one descriptor. Without segments the index is empty.
    words : int
        Size of the vocabulary.
    removed : collection of int, optional
        Image numbers to leave out, also from N and df. Numbers in no segment are ignored.
    options : ScoringOptions, optional
    similarity : SimilarityMatrix, optional
        Of the same vocabulary; by default tf-idf.
    norms : ndarray, shape (N,), float64, optional
        `norms` of an index of the same segments, words, removed images, options and similarity, which saves a pass
        over all postings.
    document_frequency : ndarray, shape (words,), int64, optional
        That of an index of the same segments, words and removed images, which saves a pass over every word of each.
    borrowed : Borrowed, optional
        Features of other images by which images are also scored; ignored with a similarity. If their files turn out to
        be damaged, they are left out from then on.
    scored_norms : ndarray, shape (N,), float64, optional
        `scored_norms` of an index of the same, which saves a pass over borrowed features.
    whole : Whole, optional
        Statistics of the whole collection, if the segments are only a part: N and df are then those of all its images,
        and scores equal those in an index of all, to the last bit.

    Attributes
    ----------
    images : IndexedImages
        The scored images: features, signatures and numbers.
    image_numbers : ndarray, shape (N,), uint32
        Ascending.
    document_frequency : ndarray, shape (words,), int64
    idf : ndarray, shape (words,), float64
    norms : ndarray, shape (N,), float64
        ``√S_jj``, without a similarity the Euclidean norms of the vectors ``tf(n) idf``; 0 for an image without
        features.
    scored_norms : ndarray, shape (N,), float64
        `norms` with borrowed features included.
    segments, words, options, similarity
        As in the parameters.

    Raises
    ------
    CairnError
        The segments differ in vocabulary or descriptor, have words beyond the vocabulary, or share an image; the
        similarity has another number of words.
    ValueError
        `norms` or `document_frequency` has another shape.
    """

    def __init__(
        self,
        segments: Sequence[Segment],
        words: int,
        removed: Collection[int] = frozenset(),
        *,
        options: ScoringOptions | None = None,
        similarity: SimilarityMatrix | None = None,
        norms: NDArray[np.float64] | None = None,
        document_frequency: NDArray[np.int64] | None = None,
        borrowed: Borrowed | None = None,
        scored_norms: NDArray[np.float64] | None = None,
        whole: Whole | None = None,
    ) -> None:
        self.images = IndexedImages(segments, words, removed)
        self.segments, self.image_numbers = self.images.segments, self.images.numbers
        self.similarity = similarity
        if similarity is not None and similarity.words != words:
            raise CairnError(
                "The similarity relates {similar} words, and the vocabulary has {words}: learn it again for this "
                "vocabulary.",
                similar=similarity.words,
                words=words,
            )

        self._whole = whole
        if whole is not None:
            document_frequency = whole.document_frequency
        if document_frequency is None:
            document_frequency = self.images.document_frequency()
        photos = len(self.image_numbers) if whole is None else whole.photos
        super().__init__(words, options or ScoringOptions(), photos, document_frequency)
        if norms is not None and norms.shape != self.image_numbers.shape:
            raise ValueError(f"norms of shape {norms.shape} for {len(self.image_numbers)} images")
        self.norms = self._norms() if norms is None else np.asarray(norms, dtype=np.float64)
        # Segments of borrowed features, and positions of their images in `image_numbers`; -1 if an image does not
        # count.
        self.lent: list[tuple[Segment, NDArray[np.int64]]] = []
        if borrowed is not None and similarity is None:
            self.lent = list(zip(borrowed.segments, borrowed.places(self.image_numbers), strict=True))
        self.scored_norms = self.norms
        if self.lent:
            self._set_scored_norms(scored_norms)

    def score(self, query_words: NDArray[np.integer], query_weights: NDArray[np.floating] | None = None) -> Scores:
        """Score of the query's tf-idf vector with every image's.

        Parameters
        ----------
        query_words : ndarray, shape (m,), integer
            Repeats allowed: the weights of a word are added up.
        query_weights : ndarray, shape (m,), float, optional
            At least 0. By default 1; soft assignment and query expansion use others. Only their
            proportions matter.

        Returns
        -------
        Scores
            All images by ascending number, scores from 0 to 1, with a similarity from 0 on. All are 0 where the query
            has no words, or no word that is in some images but not in all (in a collection of one
            image, every query).

        Raises
        ------
        ValueError
            The arrays do not fit together, or a word is not in the vocabulary.
        """
        return Scores(self.image_numbers, self.score_many([(query_words, query_weights)])[0])

    def score_many(
        self, queries: Sequence[tuple[NDArray[np.integer], NDArray[np.floating] | None]]
    ) -> NDArray[np.float32]:
        """Scores of several queries, reading postings once; equal to those of `score`.

        Parameters
        ----------
        queries : sequence of Q tuples
            The words and the weights of each: see `score`.

        Returns
        -------
        ndarray, shape (Q, N), float32
            Of all images by ascending number.

        Raises
        ------
        ValueError
            As `score`.
        """
        vectors = [self._query_vector(*query) for query in queries]
        words = np.unique(np.concatenate([np.empty(0, np.int64), *(query_words for query_words, _ in vectors)]))
        table = np.zeros((len(words), len(vectors)))
        for column, (query_words, weights) in zip(table.T, vectors, strict=True):
            column[np.searchsorted(words, query_words)] = weights
        words = words.astype(np.int64)
        sums = np.empty((len(vectors), int(self.images.starts[-1])))
        for segment, start, stop in zip(self.segments, self.images.starts[:-1], self.images.starts[1:], strict=True):
            sums[:, start:stop] = self._sums(segment, words, table)
        lent = np.zeros((len(vectors), len(self.image_numbers) if self.lent else 0))
        try:
            for segment, places in self.lent:
                counting = places >= 0
                lent[:, places[counting]] = self._sums(segment, words, table)[:, counting]
        except CairnError:
            self.borrow_nothing()
        scores = np.empty((len(vectors), len(self.image_numbers)), np.float32)
        norms = self.scored_norms
        for row, every, more in zip(scores, sums, lent, strict=True):
            dots = every[self.images.rows]
            if self.lent:
                dots += more
            cosines = np.divide(dots, norms, out=np.zeros_like(dots), where=norms > 0)
            # In 32 bits the cosine of a vector with itself is exactly 1. With an almost zero diagonal a
            # similarity gives scores too large for them.
            row[:] = np.minimum(cosines, np.finfo(np.float32).max)
        return scores

    def _sums(self, segment: Segment, words: NDArray[np.int64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Inner products (V, images) of vectors, weights (m, V) of words, with the vectors of a segment's images."""
        total = np.zeros((weights.shape[1], segment.images))
        segment.add_products(total, words, weights, self.term_frequency)
        return total

    @property
    def borrows(self) -> bool:
        """Whether images are scored with borrowed features."""
        return bool(self.lent)

    def borrow_nothing(self) -> None:
        """Score images by their own features alone from now on."""
        self.lent = []
        self.scored_norms = self.norms
        self.__dict__.pop("scored_lengths", None)

    @cached_property
    def scored_lengths(self) -> NDArray[np.int64]:
        """Number of features by which each image is scored, (N,), in the order of `image_numbers`."""
        lengths = self.images.lengths.copy()
        for segment, places in self.lent:
            counting = places >= 0
            starts = segment.offsets.astype(np.int64)
            lengths[places[counting]] += (starts[1:] - starts[:-1])[counting]
        return lengths

    @cached_property
    def word_norms(self) -> NDArray[np.float64]:
        """Euclidean norms (N,) of the idf of each image's distinct words; takes a pass over all words."""
        squares = np.square(self.idf)
        parts: list[NDArray[np.float64]] = [np.zeros(0)]
        for segment in self.segments:
            for _, lengths, words in segment.word_blocks(BLOCK_POSTINGS):
                firsts = np.flatnonzero(first_of_kind(words, lengths))
                distinct = words[firsts]
                self.images.refuse_unknown(distinct, segment)
                images = np.searchsorted(np.cumsum(lengths), firsts, side="right")
                parts.append(np.bincount(images, squares[distinct], minlength=len(lengths)).astype(np.float64))
        return np.sqrt(np.concatenate(parts)[self.images.rows])

    @cached_property
    def imbalance(self) -> float:
        """Imbalance factor of the vocabulary on these images: 1 if all words have equally many features.

        ``K Σ p_i²``, p_i the share of word i in the features and K the vocabulary's size: how many times more postings
        a query reads than with equal words (Jégou, Douze, Schmid: Improving bag-of-features for large scale image
        search, IJCV 2010, section 2). 0 for an index without features.
        """
        features = self.images.feature_frequency()
        total = features.sum()
        return float(self.words * np.square(features / total).sum()) if total > 0 else 0.0

    @cached_property
    def common_idf(self) -> float:
        """Mean idf of the features of all images, measured on 200 of them, evenly spread; 0 without features."""
        if self._whole is not None:
            return self._whole.common_idf
        numbers = self.image_numbers
        some = numbers[np.arange(min(len(numbers), _SAMPLE)) * len(numbers) // max(min(len(numbers), _SAMPLE), 1)]
        words = [np.asarray(self.images.features(number).words) for number in some.tolist()]
        return sum(float(self.idf[one].sum()) for one in words) / max(sum(map(len, words)), 1)

    def _norms(self) -> NDArray[np.float64]:
        from scipy.sparse._sparsetools import csr_matvec  # see `index.postings.plain_lists.add_postings`

        squares = np.zeros(int(self.images.starts[-1]))
        # S_jj = Σ R(u, u) w(u)² + Σ 2 R(u, v) w(u) w(v): of each image, first all words, then all pairs, in order.
        diagonal, first, second = np.square(self.idf), np.empty(0, np.int32), np.empty(0, np.int32)
        if self.similarity is not None:
            diagonal *= self.similarity.diagonal
            first, second = self.similarity.first, self.similarity.second
            pairs = 2 * self.similarity.values.astype(np.float64) * self.idf[first] * self.idf[second]
            first, second, pairs = first[pairs > 0], second[pairs > 0], pairs[pairs > 0]
        for segment, start, stop in zip(self.segments, self.images.starts[:-1], self.images.starts[1:], strict=True):
            total = squares[start:stop]
            for some, lengths, words in segment.word_blocks(BLOCK_POSTINGS):
                runs = np.flatnonzero(first_of_kind(words, lengths))
                distinct = words[runs]
                # Otherwise SciPy reads beyond the array. Check before the cast: large words would become negative.
                self.images.refuse_unknown(distinct, segment)
                rows = distinct.astype(np.int32)
                ends = np.searchsorted(runs, np.concatenate([[0], np.cumsum(lengths)])).astype(np.int32)
                values = np.square(self.term_frequency(np.diff(runs, append=len(words))))
                csr_matvec(len(lengths), self.words, ends, rows, values, diagonal, total[some])
            for which, images, counts, others in shared_postings(segment, self.words, first, second):
                np.add.at(total, images, pairs[which] * (self.term_frequency(counts) * self.term_frequency(others)))
        return np.sqrt(squares[self.images.rows])

    def _set_scored_norms(self, known: NDArray[np.float64] | None) -> None:
        """Set the norms √ Σ (tf(n) + tf(m))² idf², n own and m borrowed features; m = 0 if a file is damaged."""
        if known is not None:
            if known.shape != self.norms.shape:
                raise ValueError(f"norms of shape {known.shape} for {len(self.image_numbers)} images")
            self.scored_norms = np.asarray(known, dtype=np.float64)
            return
        squares = np.square(self.norms)
        try:
            for segment, places in self.lent:
                for some, lengths, words in segment.word_blocks(BLOCK_POSTINGS):
                    self.images.refuse_unknown(words, segment)
                    counting = places[some] >= 0
                    squares[places[some][counting]] += self._gains(
                        places[some][counting], lengths[counting], words[np.repeat(counting, lengths)]
                    )
        except CairnError:
            self.borrow_nothing()
            return
        self.scored_norms = np.sqrt(squares)

    def _gains(
        self, places: NDArray[np.int64], lengths: NDArray[np.int64], words: NDArray[np.integer]
    ) -> NDArray[np.float64]:
        """Increase of the squared norms of images at some places by their borrowed words."""
        images = self.images.features_of(self.image_numbers[places].tolist())
        own, counts = self._word_counts([len(image.words) for image in images], [image.words for image in images])
        keys, more = self._word_counts(lengths, [words])
        at = np.minimum(np.searchsorted(own, keys), max(len(own) - 1, 0))
        known = self.term_frequency(np.where(own[at] == keys, counts[at], 0)) if len(own) else np.zeros(len(keys))
        added = self.term_frequency(more)
        gains = (np.square(added) + 2 * known * added) * np.square(self.idf[keys % self.words])
        return np.bincount(keys // self.words, gains, minlength=len(places)).astype(np.float64)

    def _word_counts(
        self, lengths: Sequence[int] | NDArray[np.int64], words: Sequence[NDArray[np.integer]]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Distinct pairs of image and word, as numbers image * vocabulary + word, and their numbers of features."""
        image = np.repeat(np.arange(len(lengths)), lengths)
        return np.unique(image * self.words + np.concatenate([np.zeros(0, np.int64), *words]), return_counts=True)

    def norms_of(self, image_numbers: Sequence[int]) -> NDArray[np.float64]:
        """`norms` of some of the images, in the order of `image_numbers`."""
        return self.norms[np.searchsorted(self.image_numbers, image_numbers)]

    def _query_vector(
        self, words: NDArray[np.integer], weights: NDArray[np.floating] | None
    ) -> tuple[NDArray[np.integer], NDArray[np.float64]]:
        """The words to look up, distinct and ascending, and ``R w idf / √(wᵀ R w)`` of each, w the query's tf-idf."""
        words = np.asarray(words) if len(words) else np.empty(0, dtype=np.int32)
        if words.ndim != 1 or words.dtype.kind not in "iu":
            raise ValueError(f"query words must be a row of integers, not {words.dtype} of shape {words.shape}")
        if len(words) and (words.min() < 0 or words.max() >= self.words):
            raise ValueError(f"a query word is not one of the vocabulary's {self.words}")
        distinct, which = np.unique(words, return_inverse=True)
        if weights is not None:
            weights = np.asarray(weights, dtype=np.float64)
            if weights.shape != words.shape or not np.isfinite(weights).all() or (weights < 0).any():
                raise ValueError("query weights must be finite, at least 0, and as many as the query words")
        vector = self.term_frequency(np.bincount(which, weights=weights, minlength=len(distinct))) * self.idf[distinct]
        expanded, own = vector, vector
        if self.similarity is not None:
            own_words = distinct
            distinct, expanded = self.similarity.apply(own_words, vector)
            own = expanded[np.searchsorted(distinct, own_words)]
        norm = float(np.sqrt(vector @ own))
        idf = self.idf[distinct]
        # A word of all images, or of no image, adds nothing to a score: its postings are not read.
        useful = (expanded > 0) & (idf > 0) & (norm > 0)
        return distinct[useful], expanded[useful] / norm * idf[useful]
