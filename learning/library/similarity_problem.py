"""Training data of a similarity of words: the photos of a collection, or images as arrays of words."""

import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from index.errors import CairnError
from index.text import shown
from learning.library.paths import as_path, as_paths, is_path
from retrieval.catalogue.photos import all_indexed
from retrieval.library.parts.arguments import as_array, checked_indices

if TYPE_CHECKING:
    from index.inverted import InvertedIndex
    from index.progress import Progress
    from learning.labels.labels import Labels, Relevance
    from learning.similarity.measured import MeasuredQueries
    from learning.similarity.pair_gradients import WordPairs


@dataclass(frozen=True)
class SimilarityProblem:
    """Training data."""

    index: "InvertedIndex"
    vocabulary: str  # fingerprint
    pairs: "WordPairs"
    relevance: "Relevance"
    provenance: dict[str, str]
    test: "MeasuredQueries | None" = None

    @property
    def notes(self) -> list[str]:
        """Notes for readers of the test figures."""
        if self.test is None:
            return []
        to_find = np.intersect1d(np.concatenate(self.test.positives), self.relevance.queries)
        if not len(to_find):
            return []
        return [
            f"{len(to_find)} of the photos that the test queries are to find are learnt from too, as in the paper, so "
            "that their figures are better than on objects that were not seen: cairn evaluate similarity --by objects "
            "measures those."
        ]


@contextmanager
def problem_of_collection(arguments: Mapping[str, Any], workers: int, tell: "Progress") -> Iterator[SimilarityProblem]:
    """Open a collection, and determine the positives of its photos."""
    from index.similarity import nearest_pairs
    from learning.labels.files import read_labels
    from learning.labels.labels import split
    from learning.labels.verified import verified_relevance
    from learning.similarity.asking import ask_ground_truths
    from learning.similarity.pair_gradients import WordPairs
    from retrieval.collection.collection import Collection

    folder, source_of_labels, skip_missing = (
        as_path(arguments["source"], "source"),
        arguments["labels"],
        arguments["skip_missing"],
    )
    rng = np.random.default_rng(arguments["seed"])
    with Collection.open(folder, catalogue=arguments["catalogue"]) as opened:
        if source_of_labels is None:
            relevance = verified_relevance(opened, min_inliers=arguments["inliers"], workers=workers, progress=tell)
        else:
            rows = opened.catalogue.read(all_indexed)
            if is_path(source_of_labels):
                labels = read_labels(as_path(source_of_labels), rows, skip_missing=skip_missing)
            else:
                labels = _labels_of({row.name: row.number for row in rows}, source_of_labels, skip_missing)
            numbers = opened.index.image_numbers.astype(np.int64)
            if arguments["share"] < 1:
                numbers, _ = split(labels, numbers, rng, share=arguments["share"])
            relevance = labels.relevance(numbers, rng)
        test = None
        if arguments["test_gt"]:
            query_folders = as_paths(arguments["test_queries"], "test_queries") if arguments["test_queries"] else ()
            test = ask_ground_truths(
                opened, as_paths(arguments["test_gt"], "test_gt"), query_folders, skip_missing=skip_missing
            )
            relevance = relevance.without(test.asked)
        pairs = WordPairs(opened.vocabulary.words, *nearest_pairs(opened.vocabulary, arguments["neighbours"]))
        called = (
            "verified"
            if source_of_labels is None
            else as_path(source_of_labels).name
            if is_path(source_of_labels)
            else "names"
        )
        provenance = {"labels": called, "collection": folder.resolve().name}
        yield SimilarityProblem(opened.index, opened.vocabulary.fingerprint, pairs, relevance, provenance, test)


@contextmanager
def problem_of_arrays(arguments: Mapping[str, Any]) -> Iterator[SimilarityProblem]:
    """Index images given as arrays of words, in a temporary folder."""
    from index.inverted import InvertedIndex
    from index.segments.writing import write_segment

    if len(arguments["source"]) != 2:
        raise CairnError("Arrays to learn from are (words, labels): the words of each image, and the object it shows.")
    if any(isinstance(part, str) or not isinstance(part, Iterable) for part in arguments["source"]):
        raise CairnError("(words, labels) are a row of words and a label for each image.")
    images, objects = (list(part) for part in arguments["source"])
    if not images or len(images) != len(objects):
        raise CairnError(f"There must be one label for each image, not {len(objects)} for {len(images)}.")
    words = [checked_indices(row, "words") for row in images]
    size, fingerprint, pairs = _words_of(arguments, 1 + max((int(row.max()) for row in words if len(row)), default=0))
    numbers = {str(number): number for number in range(len(images))}
    labelled = {str(number): str(label) for number, label in enumerate(objects) if label is not None}
    labels = _labels_of(numbers, labelled, False)
    relevance = labels.relevance(np.arange(len(images)), np.random.default_rng(arguments["seed"]))
    with tempfile.TemporaryDirectory(prefix="cairn-words-") as folder:
        segment = write_segment(
            Path(folder) / "segment",
            image_numbers=np.arange(len(images), dtype=np.uint32),
            words=[row.astype(np.int32) for row in words],
            columns={},
            vocabulary_fingerprint=fingerprint,
            descriptor_fingerprint="",
        )
        yield SimilarityProblem(InvertedIndex([segment], size), fingerprint, pairs, relevance, {"labels": "arrays"})


def _words_of(arguments: Mapping[str, Any], used: int) -> tuple[int, str, "WordPairs"]:
    """Size and fingerprint of the vocabulary of arrays, and the pairs of words that may have the same meaning."""
    from index.similarity import nearest_pairs
    from learning.similarity.pair_gradients import WordPairs
    from retrieval.library.parts.vocabulary import Vocabulary

    vocabulary, related = arguments["vocabulary"], arguments["related"]
    known = isinstance(vocabulary, Vocabulary)
    size = vocabulary.words if known else used if vocabulary is None else vocabulary
    if not isinstance(size, int | np.integer) or size < used:
        raise CairnError(f"vocabulary must be a Vocabulary, or the number of its words, {used} at least: not {size!r}.")
    size = int(size)
    if related is not None:
        first, second = _pairs(related, size)
    elif known:
        first, second = nearest_pairs(vocabulary.contract, arguments["neighbours"])
    elif arguments["neighbours"]:
        raise CairnError(
            "Which words may mean the same? Give their vocabulary, or pairs of them as related; or neighbours=0, to "
            "learn the words' weights alone."
        )
    else:
        first = second = np.zeros(0, np.int32)
    return size, vocabulary.fingerprint if known else "", WordPairs(size, first, second)


def _pairs(related: ArrayLike, size: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Distinct pairs of words in ascending order."""
    pairs = as_array(related, "related")
    if not pairs.size:
        pairs = np.zeros((0, 2), np.int32)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise CairnError(f"related must be pairs of words, of the shape (P, 2), not {pairs.dtype} {pairs.shape}.")
    if pairs.size and not 0 <= pairs.min() <= pairs.max() < size:
        raise CairnError(f"related has a word that is not one of the {size}.")
    if (pairs[:, 0] == pairs[:, 1]).any():
        raise CairnError("related has a pair of one word and itself: give different ones.")
    distinct = np.unique(np.sort(pairs, axis=1), axis=0).astype(np.int32)
    return distinct[:, 0], distinct[:, 1]


def _labels_of(numbers: Mapping[Any, int], labels: Mapping[str, str], skip_missing: bool) -> "Labels":
    """Labels by the names of photos, with objects in order of their names."""
    from learning.labels.labels import Labels, ObjectLabels

    if not isinstance(labels, Mapping):
        raise CairnError("labels is a path, or a dict of labels by the photos' names.")
    missing = [name for name in labels if name not in numbers]
    if missing and not skip_missing:
        raise CairnError(
            f"{len(missing)} photos of the labels, such as {shown(str(missing[0]))}, are not in the collection: index "
            "them, or pass skip_missing=True."
        )
    photos: defaultdict[str, set[int]] = defaultdict(set)
    for name, label in labels.items():
        if name in numbers:
            photos[str(label)].add(numbers[name])
    if all(len(numbers_of_object) < 2 for numbers_of_object in photos.values()):
        raise CairnError(
            "No object of the labels has two photos, and pairs are what is learnt from: label more photos."
        )
    return Labels(tuple(ObjectLabels(label, frozenset(photos[label])) for label in sorted(photos)))
