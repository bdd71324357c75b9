"""Learning which words mean the same, as a function of `import cairn`; `cairn learn similarity` calls the same."""

import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from index.errors import CairnError
from index.parallel import cores
from index.text import shown
from learning.library.paths import AnyPath, Paths, as_path, as_paths, is_path
from learning.library.published import YAN13
from retrieval.library.parts.arguments import as_array, checked_count, checked_indices
from retrieval.library.progress import Telling, telling

if TYPE_CHECKING:
    from index.inverted import InvertedIndex
    from index.progress import Progress
    from index.similarity import SimilarityMatrix
    from learning.labels.labels import Labels, Relevance
    from learning.similarity.learning import Iteration, LearntSimilarity
    from learning.similarity.measured import MeasuredQueries
    from learning.similarity.pair_gradients import WordPairs
    from retrieval.library.collection import Collection
    from retrieval.library.parts.vocabulary import Vocabulary

TITLES = {"verify": "Verifying", "gradients": "Image pairs", "iterations": "Iterations"}
"""Titles of the steps."""


@dataclass(frozen=True, eq=False)
class NewSimilarity:
    """A similarity of visual words that was learnt just now, and how it came about.

    Attributes
    ----------
    path : Path or None
        Its file (.npz), which `cairn.Collection.search` takes as `similarity`; None where none was named.
    matrix : SimilarityMatrix
        All that was learnt, in the form of `index.similarity.SimilarityMatrix`.
    weights : ndarray, shape (K,), float32
        What each word is worth, relative to tf-idf: R(u, u).
    pairs : ndarray, shape (P, 2), int32
        Different words that may mean the same, u < v.
    pair_weights : ndarray, shape (P,), float32
        R(u, v) of each: 0 where they do not.
    history : list of Iteration
        After each iteration: ``number``, ``objective``, ``active`` triplets, and mean average precisions ``held_out``
        and ``test``; tf-idf is the first.
    iteration : int
        The one that was taken; 0: nothing was better than tf-idf.
    held_out : tuple of float, or None
        Mean average precision of photos held out, by tf-idf and as learnt; None where none could be held out.
    verdict : str
        What came of it, in a sentence.
    notes : list of str
        What a reader of the figures should know.

    Examples
    --------
    >>> import cairn
    >>> words = [[0, 4], [1, 4], [0, 5], [1, 5], [2, 4], [3, 4], [2, 5], [3, 5]]
    >>> learnt = cairn.learn_similarity((words, list("aaaabbbb")), vocabulary=6, related=[(0, 1), (2, 3)], hold_out=0)
    >>> learnt.weights.shape, learnt.pairs.tolist(), bool((learnt.pair_weights > 0).all())
    ((6,), [[0, 1], [2, 3]], True)
    """

    path: Path | None
    matrix: "SimilarityMatrix" = field(repr=False)
    history: "list[Iteration]" = field(repr=False)
    iteration: int
    verdict: str
    notes: list[str] = field(repr=False)
    _facts: dict[str, Any] = field(repr=False)

    @property
    def weights(self) -> NDArray[np.float32]:
        """What each word is worth (K,)."""
        return self.matrix.diagonal

    @property
    def pairs(self) -> NDArray[np.int32]:
        """Different words that may mean the same (P, 2)."""
        return np.column_stack([self.matrix.first, self.matrix.second])

    @property
    def pair_weights(self) -> NDArray[np.float32]:
        """What each of the pairs is worth (P,)."""
        return self.matrix.values

    @property
    def held_out(self) -> tuple[float, float] | None:
        """Mean average precision of photos held out, by tf-idf and as learnt."""
        before, after = self.history[0].held_out, self.history[self.iteration].held_out
        return None if before is None or after is None else (before, after)

    def save(self, path: AnyPath) -> Path:
        """Write it to a file (.npz), which `cairn.Collection.search` takes as `similarity`.

        Parameters
        ----------
        path : path-like
            Ends with .npz; replaced where it exists.

        Returns
        -------
        Path
            The same.

        Raises
        ------
        CairnError
            The file cannot be written there.
        """
        file = as_path(path, "path")
        self.matrix.save(file)
        return file

    def to_dict(self) -> dict[str, Any]:
        """Give what `cairn learn similarity --json` prints."""
        return deepcopy(self._facts)


def learn_similarity(
    source: "AnyPath | Collection | tuple[Sequence[ArrayLike], Sequence[Any]]",
    out: AnyPath | None = None,
    *,
    labels: AnyPath | Mapping[str, str] | None = None,
    verified: bool = False,
    inliers: int = 20,
    neighbours: int = 2,
    vocabulary: "Vocabulary | int | None" = None,
    related: ArrayLike | None = None,
    share: float = 1.0,
    test_gt: Paths | None = None,
    test_queries: Paths | None = None,
    curve: AnyPath | None = None,
    skip_missing: bool = False,
    iterations: int | None = None,
    margin: float | None = None,
    margin_on: str | None = None,
    smooth: float | None = None,
    ridge_words: float | None = None,
    ridge_pairs: float | None = None,
    relative: bool | None = None,
    full_every: int | None = None,
    patience: int | None = None,
    memory: int | None = None,
    triplets: int | str | None = None,
    hard: int | str | None = None,
    lower: int | str | None = None,
    random: int | None = None,
    hold_out: int | None = None,
    thirds: bool | None = None,
    refit: bool | None = None,
    as_published: bool = False,
    seed: int = 0,
    workers: int = 0,
    catalogue: str | None = None,
    progress: Telling = None,
) -> NewSimilarity:
    """Learn which visual words mean the same, and what each is worth.

    From photos known to show the same object, a sparse matrix is learnt that ranks them higher than tf-idf does: a
    weight for each word, and one for each pair of neighbouring words. Some photos are held out, and what finds most
    with them is taken.

    Parameters
    ----------
    source : path, Collection, or tuple
        A collection, or its folder. Or plain arrays ``(words, labels)``: the visual words of each image's features, a
        row (n_i,) int each; and the object that each image shows (N,), None where it shows none.
    out : path, optional
        File (.npz) to write, which `cairn.Collection.search` takes as `similarity`.
    labels : path or dict, optional
        Of a collection: a ground truth in the layout of Oxford5K, a folder with a folder of photos an object, a table
        (.csv) of photo and label, or a dict of labels by the photos' names. Photos that are not mentioned are taken to
        show none of the objects.
    verified : bool
        Of a collection: take no labels; photos that geometry verifies with each other show the same object.
    inliers : int
        Fewest inliers of two photos, with `verified`.
    neighbours : int
        Nearest words that a word may mean the same as; 0: learn the words' weights alone.
    vocabulary : Vocabulary or int, optional
        Of arrays: their vocabulary, which tells the nearest words; or its size.
    related : array_like, shape (P, 2), int, optional
        Of arrays: pairs of words that may mean the same, in place of the nearest ones.
    share : float
        Share of a collection's photos that is learnt from, with `labels`.
    test_gt, test_queries : path or list of paths, optional
        Ground truths that are searched for after each iteration, and decide nothing; and folders of their query photos
        that the collection does not have.
    curve : path, optional
        Table (.csv) of the objective and the mAPs after each iteration to write.
    skip_missing : bool
        Pass over labels of photos that are not in the collection.
    iterations, full_every, patience, memory : int, optional
        Of L-BFGS-B: iterations at most (100), between two looks at all triplets (10), without a better figure (20), and
        steps that are remembered (10).
    margin, smooth, ridge_words, ridge_pairs : float, optional
        Of the objective: margin (0.1), width of the hinge's parabola in margins (0.5), and pulls to tf-idf (1e-5) and
        to 0 (1e-3).
    margin_on : str, optional
        What the margin parts: ``cosine``, or the paper's ``similarity``, their square.
    relative : bool, optional
        Descend in weights relative to tf-idf, or in the similarity matrix itself.
    triplets, hard, lower : int or str, optional
        At most so many triplets of all queries, hard ones of a query, and photos below a wrong one; or ``all``.
    random : int, optional
        Random triplets of a query (400).
    hold_out : int, optional
        Photos of each object, at most, that decide which iteration is taken (4); 0: the last one is.
    thirds, refit : bool, optional
        Hold out a third of an object's photos at most; learn again from the held-out photos too.
    as_published : bool
        Take all of the paper's choices for what is not given.
    seed : int
        Of what is drawn.
    workers : int
        Threads; 0: as many as there are cores. The result does not depend on it.
    catalogue : str, optional
        Address of the collection's catalogue, where it is on a server.
    progress : None, bool or callable
        Who is told how far it is: nobody, bars, or a function of (step, done, of).

    Returns
    -------
    NewSimilarity

    Raises
    ------
    CairnError
        There are no labels, or none of two photos; arrays are of other shapes; or options do not go together.

    Notes
    -----
    Source: Yan, Yu, Sparse Similarity Matrix Learning for Visual Object Retrieval, IJCNN 2013, sections III and IV.

    Examples
    --------
    Words 0 and 1 are one thing, 2 and 3 another; 4 and 5 are noise:

    >>> import cairn
    >>> words = [[0, 4], [1, 4], [0, 5], [1, 5], [2, 4], [3, 4], [2, 5], [3, 5]]
    >>> learnt = cairn.learn_similarity((words, list("aaaabbbb")), vocabulary=6, related=[(0, 1), (2, 3)], hold_out=0)
    >>> bool(learnt.weights[:4].min() > learnt.weights[4:].max()), bool(learnt.pair_weights.min() > 0)
    (True, True)
    """
    from index.similarity import check_similarity_path
    from learning.library.similarity_options import similarity_options
    from learning.similarity.curve import check_curve, write_curve
    from learning.similarity.learning import learn_similarity as learn

    asked, began = locals(), perf_counter()
    file, table = (None if one is None else as_path(one, name) for one, name in ((out, "out"), (curve, "curve")))
    of_arrays = isinstance(source, tuple | list)
    if of_arrays:
        _refuse(
            asked, ("labels", "verified", "test_gt", "test_queries", "skip_missing", "catalogue"), "of a collection"
        )
        if share != 1:
            raise CairnError("share is of a collection: leave it out.")
    else:
        _refuse(asked, ("vocabulary", "related"), "of arrays")
        if (labels is None) == (not verified):
            raise CairnError(
                "Say what to learn from: either labels (--gt), or photos that geometry verifies (--verified)."
            )
    if file is not None:
        check_similarity_path(file)
    if not 0 < share <= 1 or (verified and share < 1):
        raise CairnError("--share is more than 0 and at most 1, and goes with --gt alone.")
    if test_queries and not test_gt:
        raise CairnError("--test-queries goes with --test-gt, whose photos they are.")
    if table is not None:
        check_curve(table)
    neighbours, seed = checked_count(neighbours, "neighbours", 0), checked_count(seed, "seed", 0)
    options = similarity_options(asked, neighbours=neighbours, seed=seed, as_published=as_published)
    workers = checked_count(workers, "workers", 0) or cores()
    with telling(progress, TITLES) as tell:
        opened = _of_arrays(asked) if of_arrays else _of_collection(asked, workers, tell)
        with opened as problem:
            learnt = learn(
                problem.index,
                problem.vocabulary,
                problem.pairs,
                problem.relevance,
                options,
                test=problem.test,
                workers=workers,
                progress=tell,
            )
    matrix = learnt.matrix
    matrix.provenance.update(problem.provenance)
    if as_published:
        matrix.provenance["as_published"] = YAN13
    if file is not None:
        matrix.save(file)
    if table is not None:
        write_curve(table, learnt.history)
    first, chosen = learnt.history[0], learnt.history[learnt.chosen]
    learnt_from, held, test = learnt.learnt_from, learnt.held_out, problem.test
    facts = {
        "similarity": str(file) if file is not None else None,
        "fingerprint": matrix.fingerprint,
        "words": matrix.words,
        "neighbours": neighbours,
        "as_published": as_published,
        "options": asdict(options),
        "parameters": matrix.words + len(matrix.values),
        "pairs": len(matrix.values),
        "photos": len(learnt_from.database),
        "objects": len(set(learnt_from.objects.tolist())),
        "queries": len(learnt_from.queries),
        "triplets": learnt.triplets,
        "hard": learnt.hard,
        "image_pairs": learnt.image_pairs,
        "objective": [entry.objective for entry in learnt.history],
        "iteration": learnt.chosen,
        "held_out": {"photos": len(held.queries), "tf-idf": first.held_out, "learnt": chosen.held_out},
        "test": _tested(learnt, test.names) if test is not None else None,
        "history": [vars(entry) for entry in learnt.history],
        "seconds": round(perf_counter() - began, 3),
    }
    return NewSimilarity(
        file, matrix, learnt.history, learnt.chosen, _verdict(learnt, len(held.queries)), problem.notes, facts
    )


def _refuse(asked: Mapping[str, Any], names: Sequence[str], of: str) -> None:
    """Raise CairnError where something is given that the source has no use for."""
    given = [name for name in names if asked[name] is not None and asked[name] is not False]
    if given:
        raise CairnError(f"{given[0]} is {of}: leave it out.")


@dataclass(frozen=True)
class _Problem:
    """What is learnt from."""

    index: "InvertedIndex"
    vocabulary: str  # fingerprint
    pairs: "WordPairs"
    relevance: "Relevance"
    provenance: dict[str, str]
    test: "MeasuredQueries | None" = None

    @property
    def notes(self) -> list[str]:
        """What a reader of test figures should know."""
        if self.test is None:
            return []
        to_find = np.intersect1d(np.concatenate(self.test.positives), self.relevance.queries)
        if not len(to_find):
            return []
        return [
            f"{len(to_find)} of the photos that the test queries are to find are learnt from too, as in the paper, so "
            "that their figures are better than on objects that were not seen: cairn evaluate similarity --by objects "
            "tells those."
        ]


@contextmanager
def _of_collection(asked: Mapping[str, Any], workers: int, tell: "Progress") -> Iterator[_Problem]:
    """Open a collection, and find out which of its photos are to be found by which."""
    from index.similarity import nearest_pairs
    from learning.labels.files import read_labels
    from learning.labels.labels import split
    from learning.labels.verified import verified_relevance
    from learning.similarity.asking import ask_ground_truths
    from learning.similarity.pair_gradients import WordPairs
    from retrieval.collection.collection import Collection

    folder, given, skip_missing = as_path(asked["source"], "source"), asked["labels"], asked["skip_missing"]
    rng = np.random.default_rng(asked["seed"])
    with Collection.open(folder, catalogue=asked["catalogue"]) as opened:
        if given is None:
            relevance = verified_relevance(opened, min_inliers=asked["inliers"], workers=workers, progress=tell)
        else:
            rows = opened.catalogue.images()
            if is_path(given):
                labels = read_labels(as_path(given), rows, skip_missing=skip_missing)
            else:
                labels = _labels_of({row.name: row.number for row in rows}, given, skip_missing)
            numbers = opened.index.image_numbers.astype(np.int64)
            if asked["share"] < 1:
                numbers, _ = split(labels, numbers, rng, share=asked["share"])
            relevance = labels.relevance(numbers, rng)
        test = None
        if asked["test_gt"]:
            beside = as_paths(asked["test_queries"], "test_queries") if asked["test_queries"] else ()
            test = ask_ground_truths(opened, as_paths(asked["test_gt"], "test_gt"), beside, skip_missing=skip_missing)
            relevance = relevance.without(test.asked)
        pairs = WordPairs(opened.vocabulary.words, *nearest_pairs(opened.vocabulary, asked["neighbours"]))
        called = "verified" if given is None else as_path(given).name if is_path(given) else "names"
        provenance = {"labels": called, "collection": folder.resolve().name}
        yield _Problem(opened.index, opened.vocabulary.fingerprint, pairs, relevance, provenance, test)


@contextmanager
def _of_arrays(asked: Mapping[str, Any]) -> Iterator[_Problem]:
    """Index images whose words are in arrays, for as long as is learnt from them."""
    from index.inverted import InvertedIndex
    from index.segments.writing import write_segment

    if len(asked["source"]) != 2:
        raise CairnError("Arrays to learn from are (words, labels): the words of each image, and the object it shows.")
    if any(isinstance(part, str) or not isinstance(part, Iterable) for part in asked["source"]):
        raise CairnError("(words, labels) are a row of words and a label for each image.")
    images, objects = (list(part) for part in asked["source"])
    if not images or len(images) != len(objects):
        raise CairnError(f"There must be one label for each image, not {len(objects)} for {len(images)}.")
    words = [checked_indices(row, "words") for row in images]
    size, fingerprint, pairs = _words_of(asked, 1 + max((int(row.max()) for row in words if len(row)), default=0))
    numbers = {str(number): number for number in range(len(images))}
    labelled = {str(number): str(label) for number, label in enumerate(objects) if label is not None}
    labels = _labels_of(numbers, labelled, False)
    relevance = labels.relevance(np.arange(len(images)), np.random.default_rng(asked["seed"]))
    with tempfile.TemporaryDirectory(prefix="cairn-words-") as folder:
        segment = write_segment(
            Path(folder) / "segment",
            image_numbers=np.arange(len(images), dtype=np.uint32),
            words=[row.astype(np.int32) for row in words],
            columns={},
            vocabulary_fingerprint=fingerprint,
            descriptor_fingerprint="",
        )
        yield _Problem(InvertedIndex([segment], size), fingerprint, pairs, relevance, {"labels": "arrays"})


def _words_of(asked: Mapping[str, Any], used: int) -> tuple[int, str, "WordPairs"]:
    """Size and fingerprint of the vocabulary of arrays, and which of its words may mean the same."""
    from index.similarity import nearest_pairs
    from learning.similarity.pair_gradients import WordPairs
    from retrieval.library.parts.vocabulary import Vocabulary

    vocabulary, related = asked["vocabulary"], asked["related"]
    known = isinstance(vocabulary, Vocabulary)
    size = vocabulary.words if known else used if vocabulary is None else vocabulary
    if not isinstance(size, int | np.integer) or size < used:
        raise CairnError(f"vocabulary must be a Vocabulary, or the number of its words, {used} at least: not {size!r}.")
    size = int(size)
    if related is not None:
        first, second = _pairs(related, size)
    elif known:
        first, second = nearest_pairs(vocabulary.contract, asked["neighbours"])
    elif asked["neighbours"]:
        raise CairnError(
            "Which words may mean the same? Give their vocabulary, or pairs of them as related; or neighbours=0, to "
            "learn the words' weights alone."
        )
    else:
        first = second = np.zeros(0, np.int32)
    return size, vocabulary.fingerprint if known else "", WordPairs(size, first, second)


def _pairs(related: ArrayLike, size: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Pairs of words in ascending order, none twice."""
    pairs = as_array(related, "related")
    if not pairs.size:
        pairs = np.zeros((0, 2), np.int32)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise CairnError(f"related must be pairs of words, of the shape (P, 2), not {pairs.dtype} {pairs.shape}.")
    if pairs.size and not 0 <= pairs.min() <= pairs.max() < size:
        raise CairnError(f"related has a word that is none of the {size}.")
    if (pairs[:, 0] == pairs[:, 1]).any():
        raise CairnError("related has a pair of one word and itself: give different ones.")
    distinct = np.unique(np.sort(pairs, axis=1), axis=0).astype(np.int32)
    return distinct[:, 0], distinct[:, 1]


def _labels_of(numbers: Mapping[Any, int], given: Mapping[str, str], skip_missing: bool) -> "Labels":
    """Labels by the names of photos; objects by their names."""
    from learning.labels.labels import Labels, ObjectLabels

    if not isinstance(given, Mapping):
        raise CairnError("labels is a path, or a dict of labels by the photos' names.")
    missing = [name for name in given if name not in numbers]
    if missing and not skip_missing:
        raise CairnError(
            f"{len(missing)} photos of the labels, such as {shown(str(missing[0]))}, are not in the collection: index "
            "them, or pass skip_missing=True."
        )
    photos: defaultdict[str, set[int]] = defaultdict(set)
    for name, label in given.items():
        if name in numbers:
            photos[str(label)].add(numbers[name])
    if all(len(found) < 2 for found in photos.values()):
        raise CairnError(
            "No object of the labels has two photos, and pairs are what is learnt from: label more photos."
        )
    return Labels(tuple(ObjectLabels(label, frozenset(photos[label])) for label in sorted(photos)))


def _tested(learnt: "LearntSimilarity", names: tuple[str, ...]) -> dict[str, Any]:
    """What `--json` reports of test queries."""
    figures = [entry.test or 0.0 for entry in learnt.history]
    best = max(range(len(figures)), key=lambda number: figures[number])
    return {
        "queries": len(names),
        "tf-idf": figures[0],
        "learnt": learnt.test or 0.0,
        "best": {"iteration": best, "mAP": figures[best]},
    }


def _verdict(learnt: "LearntSimilarity", held_out: int) -> str:
    """Say in plain words what came of it."""
    first, chosen = learnt.history[0].held_out, learnt.history[learnt.chosen].held_out
    if first is None or chosen is None:
        return (
            "No photo was held out, or objects have too few for that: nothing says whether this is better than tf-idf. "
            "Measure it on queries of your own before you use it."
        )
    if not learnt.chosen:
        return f"Nothing was better than tf-idf on {held_out} photos held out (mAP {first:.3f}): the file is tf-idf."
    return (
        f"On {held_out} photos held out mAP goes from {first:.3f} to {chosen:.3f} (iteration {learnt.chosen}). "
        "They chose the iteration, so that is a little optimistic. Use it with cairn query --similarity."
    )
