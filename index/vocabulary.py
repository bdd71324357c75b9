"""The vocabulary: cluster centres of descriptors as visual words, and assignment of descriptors to words."""

import dataclasses
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from index.arrays import (
    check_format,
    fingerprint,
    load_array,
    load_json,
    publish_folder,
    save_array,
    save_json,
    temporary_path,
)
from index.attributes import shared_by, some_of
from index.errors import CairnError, Damaged
from index.progress import Step, silent
from index.search_backends import search_backend

if TYPE_CHECKING:
    from index.clustering.kmeans import Reader
    from index.clustering.sources import DescriptorSource
    from index.neighbours import NearestNeighbours, NeighbourOptions

FORMAT = 1
BESIDE = 2  # stored neighbours of a word
CENTRES_FILE = "centres.npy"
BESIDE_FILE = "beside.npy"
META_FILE = "meta.json"
DESCRIPTORS_PER_WORD = 30
MOST_WORDS = 500_000
# Largest value in a centre: squared distances of larger ones could overflow 32 bits, on which searches fail.
LARGEST_VALUE = 1e6
LONGEST_NAME = 40  # of a search back-end
# Philbin et al. 2008 take σ² = 6,250 for SIFT of length 512. Its mean squared distance to the nearest of 20,000 words
# is 40,500, 6.5 times as much, so a sixth of the quantisation error is equivalent for descriptors of any length.
ERROR_PER_SIGMA2 = 6.0


@dataclass(frozen=True)
class VocabularyOptions:
    """Settings of a vocabulary."""

    words: int | None = None  # size; by default one word for 30 descriptors, at most 500,000
    iterations: int = 10  # passes of k-means
    seed: int = 0  # of all random choices
    backend: str = "ivf"  # search back-end: ivf, faiss, flann or pyflann
    search: "NeighbourOptions | None" = None  # its settings; by default those of the back-end
    sample_per_word: int = 50  # descriptors k-means uses at most for each word; 0 uses all
    recall_sample: int = 5_000  # descriptors on which recall@1 and the quantisation error are measured


def default_words(descriptors: int) -> int:
    """Size of a vocabulary for a number of descriptors: one for 30, at least 1, at most 500,000."""
    return min(max(1, descriptors // DESCRIPTORS_PER_WORD), MOST_WORDS)


@dataclass(frozen=True)
class VocabularyFacts:
    """Recorded facts of a vocabulary, without its arrays; see `Vocabulary`."""

    words: int
    dim: int
    backend: str
    descriptor: str
    trained_on: str
    recall_at_1: float
    quantisation_error: float
    training: dict[str, Any]
    fingerprint: str

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the facts written by `Vocabulary.save`, not the arrays."""
        if not folder.is_dir():
            raise CairnError(
                "There is no vocabulary at {folder}: name a collection or its vocabulary folder.", folder=folder
            )
        meta = load_json(folder / META_FILE)
        damaged = _damaged(folder)
        try:
            check_format(folder, meta["format"], FORMAT)
            facts = cls(
                words=meta["words"],
                dim=meta["dim"],
                backend=meta["search"]["backend"],
                descriptor=meta["descriptor"],
                trained_on=meta["trained_on"],
                recall_at_1=float(meta["recall_at_1"]),
                quantisation_error=float(meta["quantisation_error"]),
                training=dict(meta["training"]),
                fingerprint=str(meta["fingerprint"]),
            )
        except (KeyError, TypeError, ValueError, OverflowError) as cause:
            raise damaged from cause
        texts = (facts.backend, facts.descriptor, facts.trained_on)
        fits = (
            all(isinstance(text, str) for text in texts)
            and len(facts.backend) <= LONGEST_NAME
            and all(type(number) is int and number > 0 for number in (facts.words, facts.dim))
            and 0 <= facts.recall_at_1 <= 1
            and 0 <= facts.quantisation_error < np.inf
        )
        if not fits:
            raise damaged
        return facts


def recorded_fingerprint(folder: Path) -> str | None:
    """Fingerprint recorded in a vocabulary's folder; None if it cannot be read."""
    try:
        meta = load_json(folder / META_FILE)
    except CairnError:
        return None
    return meta.get("fingerprint") if isinstance(meta, dict) else None


def _beside_shape(words: int) -> tuple[int, int]:
    return words, min(BESIDE, words - 1)


def _beside_fingerprint(neighbours: NDArray[np.int32]) -> str:
    return fingerprint({"beside": neighbours}, {})


def _load_neighbours(folder: Path, words: int, *, known: bool) -> NDArray[np.int32] | None:
    """Read the neighbouring words of each word; None if they are missing or damaged and must be recomputed."""
    try:
        neighbours = load_array(folder / BESIDE_FILE, mmap=True).view(np.ndarray)
        if neighbours.shape != _beside_shape(words) or neighbours.dtype != np.int32:
            return None
        if neighbours.size and not 0 <= neighbours.min() <= neighbours.max() < words:
            return None
        if not known and load_json(folder / META_FILE).get("beside") != _beside_fingerprint(neighbours):
            return None
    except CairnError:
        return None
    return neighbours


def _damaged(folder: Path) -> CairnError:
    return Damaged("The vocabulary in {folder} is damaged: make it again.", folder=folder)


@dataclass(frozen=True)
class Vocabulary:
    """Visual words, made by `train` or `load`."""

    search: "NearestNeighbours"  # over the centres
    descriptor: str  # fingerprint of its descriptor; it fits no other
    trained_on: str  # source of its training descriptors, for people to read
    recall_at_1: float  # share of sampled training descriptors that get their true nearest word
    quantisation_error: float  # mean squared distance of that sample to its words
    training: dict[str, Any]  # settings and statistics of k-means; JSON types only

    @classmethod
    def train(
        cls,
        source: "DescriptorSource",
        options: VocabularyOptions,
        *,
        descriptor: str = "",
        trained_on: str = "",
        reader: "Reader | None" = None,
        progress: Step = silent,
    ) -> Self:
        """Train a vocabulary by approximate k-means, with at most one word for each distinct descriptor."""
        from index.clustering.kmeans import KMeansOptions, approximate_kmeans, sample_descriptors
        from index.neighbours import recall_at_1

        backend = search_backend(options.backend)
        kmeans = KMeansOptions(
            words=default_words(len(source)) if options.words is None else options.words,
            iterations=options.iterations,
            seed=options.seed,
            backend=options.backend,
            sample_per_word=options.sample_per_word,
        )
        last = 1

        def passes(done: int, of: int) -> None:
            nonlocal last
            last = of + of // 50  # the remainder is for building and measuring the search
            progress(done, last)

        result = approximate_kmeans(source, kmeans, reader=reader, progress=passes)
        search = backend.build(result.centres, options.search, options.seed)
        sample = sample_descriptors(source, options.recall_sample, options.seed, reader)
        _, distances = search.search(sample, 1)
        recall = recall_at_1(search, search.points, sample)
        vocabulary = cls(
            search=search,
            descriptor=descriptor,
            trained_on=trained_on,
            recall_at_1=recall,
            quantisation_error=float(distances.mean(dtype=np.float64)),
            training={
                **dataclasses.asdict(kmeans),
                "descriptors": len(source),
                "descriptors_used": result.points,
                "descriptors_distinct": result.distinct,
                "errors": list(result.errors),
                "reseeded": result.reseeded,
                "most_in_a_word": int(result.counts.max()),
                "fewest_in_a_word": int(result.counts.min()),
            },
        )
        vocabulary.words_beside(np.arange(vocabulary.words))
        progress(last, last)
        return vocabulary

    @property
    def centres(self) -> NDArray[np.float32]:
        """The words' centres, (K, D) float32, read-only."""
        return self.search.points

    @property
    def words(self) -> int:
        """Number of words, K."""
        return len(self.search.points)

    @property
    def dim(self) -> int:
        """Length of a descriptor, D."""
        return int(self.search.points.shape[1])

    @property
    def backend(self) -> str:
        """Name of the search back-end."""
        return self.search.name

    @property
    def sigma(self) -> float:
        """Default σ of soft assignment, in the descriptor's own unit: σ² is a sixth of the quantisation error."""
        return float(np.sqrt(self.quantisation_error / ERROR_PER_SIGMA2))

    @property
    def facts(self) -> VocabularyFacts:
        """Its recorded facts, without its arrays."""
        return VocabularyFacts(**shared_by(VocabularyFacts, self))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of centres, search and descriptor, which determine the word of a descriptor."""
        return fingerprint({"centres": self.centres}, {"descriptor": self.descriptor, **self._search_settings()})

    def assign(self, descriptors: NDArray[np.float32], *, quick: bool = False) -> NDArray[np.int32]:
        """The word (N,) of each descriptor. Raises ValueError if their dimension is not the vocabulary's. `quick`:
        faster with large vocabularies, but more descriptors miss their nearest word: with 60,000 words 3% instead of
        1%, and with 500,000 words 10% instead of 6%, in two thirds of the time.
        """
        return self.search.search(descriptors, 1, quick=quick)[0][:, 0]

    def words_beside(self, words: NDArray[np.integer]) -> NDArray[np.int32]:
        """The two words nearest to some words, nearest first, without the word itself; fewer if the vocabulary is
        smaller. They are found by a quick search when the vocabulary is made, or on first use of one of an earlier
        version.
        """
        known = self._beside
        missing = np.unique(words[known[words, 0] < 0]) if known.shape[1] else words[:0]
        if len(missing):
            neighbours = self.search.search(self.centres[missing], known.shape[1] + 1, quick=True)[0]
            # The word itself goes last and is cut off; if the search misses it, the farthest is cut off.
            order = np.argsort(neighbours == missing[:, None], axis=1, kind="stable")
            known[missing] = np.take_along_axis(neighbours, order, axis=1)[:, :-1]
        return np.asarray(known[words])

    @cached_property
    def _beside(self) -> NDArray[np.int32]:
        return np.full(_beside_shape(self.words), -1, np.int32)

    def error_of(self, descriptors: NDArray[np.float32], words: NDArray[np.integer]) -> float:
        """Mean squared distance of descriptors to their words, 0.0 without descriptors. Compared with
        `quantisation_error`, it measures how well the vocabulary fits descriptors outside its training set.
        """
        if not len(words):
            return 0.0
        differences = descriptors - self.centres[words]
        return float(np.einsum("nd,nd->", differences, differences, dtype=np.float64) / len(words))

    def assign_soft(
        self, descriptors: NDArray[np.float32], k: int = 3, sigma: float | None = None
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """The nearest words of each descriptor, nearest first, weighted by exp(-d²/2σ²) to add up to 1 (Philbin et al.,
        CVPR 2008). `sigma`: in the descriptor's unit; by default the vocabulary's. Raises ValueError if the dimension
        is not the vocabulary's, or k or sigma is not positive.
        """
        if sigma is not None and not sigma > 0:
            raise ValueError(f"sigma must be positive, not {sigma}")
        words, squared = self.search.search(descriptors, k)
        variance = max((self.sigma if sigma is None else sigma) ** 2, float(np.finfo(np.float32).tiny))
        # Distances relative to the nearest: a common factor cancels in the normalisation, and exp would underflow.
        with np.errstate(over="ignore"):
            weights = np.exp((squared[:, :1] - squared).astype(np.float64) / (2 * variance))
        weights /= weights.sum(axis=1, keepdims=True)
        return words, weights.astype(np.float32)

    def describe(self) -> dict[str, Any]:
        """Its recorded facts, as in `meta.json`."""
        return {
            "format": FORMAT,
            **some_of(self, "fingerprint", "words", "dim", "descriptor", "trained_on", "recall_at_1"),
            "quantisation_error": self.quantisation_error,
            "search": self._search_settings(),
            "training": self.training,
        }

    def save(self, folder: Path) -> None:
        """Write it to a new folder, atomically."""
        folder = Path(folder)
        self.words_beside(np.arange(self.words))  # in one of an earlier version, not all are known
        temporary = temporary_path(folder)
        temporary.mkdir()
        try:
            save_array(temporary / CENTRES_FILE, self.centres)
            save_array(temporary / BESIDE_FILE, self._beside)
            self.search.save(temporary)
            save_json(temporary / META_FILE, {**self.describe(), "beside": _beside_fingerprint(self._beside)})
            publish_folder(temporary, folder)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise

    @classmethod
    def load(cls, folder: Path, *, known: bool = False) -> Self:
        """Read a vocabulary, memory-mapping its centres, and check its fingerprint, unless `known` to be intact."""
        folder = Path(folder)
        facts = VocabularyFacts.read(folder)
        damaged = _damaged(folder)
        try:
            backend = search_backend(facts.backend)
            points = load_array(folder / CENTRES_FILE, mmap=True).view(np.ndarray)
            if points.shape != (facts.words, facts.dim) or points.dtype != np.float32:
                raise damaged
            # NaN fails the comparison too.
            if not known and not -LARGEST_VALUE < points.min() <= points.max() < LARGEST_VALUE:
                raise damaged
            search = backend.load(folder, points, known=known)
        except (KeyError, TypeError, ValueError, OverflowError) as cause:
            raise damaged from cause
        vocabulary = cls(
            search, facts.descriptor, facts.trained_on, facts.recall_at_1, facts.quantisation_error, facts.training
        )
        if known:
            vars(vocabulary)["fingerprint"] = facts.fingerprint  # what the property would compute
        elif vocabulary.fingerprint != facts.fingerprint:
            raise damaged
        neighbours = _load_neighbours(folder, facts.words, known=known)
        if neighbours is not None:
            vars(vocabulary)["_beside"] = neighbours
        return vocabulary

    def _search_settings(self) -> dict[str, Any]:
        return {
            "backend": self.search.name,
            "options": dataclasses.asdict(self.search.options),
            "seed": self.search.seed,
        }
