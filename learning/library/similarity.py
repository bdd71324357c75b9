"""Learning which words mean the same, as a function of `import cairn`; `cairn learn similarity` calls the same."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from index.docstrings import documented
from index.errors import CairnError
from index.options.arguments import takes_options
from index.options.declaration import chosen
from index.parallel import processes
from learning.library.paragraphs import SAID
from learning.library.paths import AnyPath, as_path
from learning.library.published import YAN13
from learning.library.similarity_options import SimilarityData, SimilarityPaper, similarity_options
from learning.library.similarity_problem import SimilarityProblem, problem_of_arrays, problem_of_collection
from learning.similarity.options import SimilarityOptions
from retrieval.library.progress import Telling, telling

if TYPE_CHECKING:
    from index.similarity import SimilarityMatrix
    from learning.similarity.learning import Iteration, LearntSimilarity
    from retrieval.library.collection import Collection
    from retrieval.library.parts.vocabulary import Vocabulary

TITLES = {"verify": "Verifying", "gradients": "Image pairs", "iterations": "Iterations"}
"""Titles of the steps."""


@documented
@dataclass(frozen=True, eq=False)
class NewSimilarity:
    """A newly learnt similarity of visual words, and a record of its learning.

    Examples
    --------
    >>> import cairn
    >>> words = [[0, 4], [1, 4], [0, 5], [1, 5], [2, 4], [3, 4], [2, 5], [3, 5]]
    >>> learnt = cairn.learn_similarity((words, list("aaaabbbb")), vocabulary=6, related=[(0, 1), (2, 3)], hold_out=0)
    >>> learnt.weights.shape, learnt.pairs.tolist(), bool((learnt.pair_weights > 0).all())
    ((6,), [[0, 1], [2, 3]], True)
    """

    path: Annotated[
        Path | None, "Its file (.npz), which `cairn.Collection.search` takes as `similarity`; None if none was named."
    ]
    matrix: Annotated["SimilarityMatrix", "The learnt matrix as `index.similarity.SimilarityMatrix`."] = field(
        repr=False
    )
    history: Annotated[
        list["Iteration"],
        "After each iteration: ``number``, ``objective``, ``active`` triplets, and mean average precisions "
        "``held_out`` and ``test``; tf-idf is the first.",
    ] = field(repr=False)
    iteration: Annotated[int, "The chosen one; 0: no other was better than tf-idf."]
    verdict: Annotated[str, "The result in a sentence."]
    notes: Annotated[list[str], "Notes for readers of the figures."] = field(repr=False)
    _facts: dict[str, Any] = field(repr=False)

    @property
    def weights(self) -> NDArray[np.float32]:
        """Weight of each word relative to tf-idf, R(u, u): (K,) float32."""
        return self.matrix.diagonal

    @property
    def pairs(self) -> NDArray[np.int32]:
        """Different words that may have the same meaning, u < v: (P, 2) int32."""
        return np.column_stack([self.matrix.first, self.matrix.second])

    @property
    def pair_weights(self) -> NDArray[np.float32]:
        """R(u, v) of each of `pairs`: (P,) float32; 0 if the words differ in meaning."""
        return self.matrix.values

    @property
    def held_out(self) -> tuple[float, float] | None:
        """Mean average precision of held-out photos, by tf-idf and as learnt; None if none could be held out."""
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
        """Return what `cairn learn similarity --json` prints."""
        return deepcopy(self._facts)


@takes_options(SimilarityData, SimilarityOptions, SimilarityPaper, said=SAID)
def learn_similarity(
    source: "AnyPath | Collection | tuple[Sequence[ArrayLike], Sequence[Any]]",
    out: AnyPath | None = None,
    *,
    labels: AnyPath | Mapping[str, str] | None = None,
    vocabulary: "Vocabulary | int | None" = None,
    related: ArrayLike | None = None,
    catalogue: str | None = None,
    progress: Telling = None,
    **options: Any,
) -> NewSimilarity:
    """Learn which visual words mean the same, and what each is worth.

    From photos known to show the same object, a sparse matrix is learnt that ranks them higher than tf-idf does: a
    weight for each word, and one for each pair of neighbouring words. Some photos are held out, and what finds most
    with them is taken.

    Parameters
    ----------
    source : path, Collection, or tuple
        A collection, or its folder. Or plain arrays ``(words, labels)``: the visual words of each image's features, a
        row (n_i,) int each; and the object that each image shows (N,), None if it shows none.
    out : path, optional
        File (.npz) to write, which `cairn.Collection.search` takes as `similarity`.
    labels : path or dict, optional
        Of a collection: a ground truth in the layout of Oxford5K, a folder with a folder of photos an object, a table
        (.csv) of photo and label, or a dict of labels by the photos' names. Photos that are not mentioned are taken to
        show none of the objects.
    vocabulary : Vocabulary or int, optional
        Of arrays: their vocabulary, which gives the nearest words; or its size.
    related : array_like, shape (P, 2), int, optional
        Of arrays: pairs of words that may mean the same, in place of the nearest ones.
    catalogue : str, optional
        Address of the collection's catalogue, where it is on a server.
    {progress}
    {options}

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
    from learning.similarity.curve import check_curve, write_curve
    from learning.similarity.learning import learn_similarity as learn

    began = perf_counter()
    data, published = chosen(SimilarityData, options), chosen(SimilarityPaper, options).as_published
    arguments = {**vars(data), "source": source, "labels": labels, "catalogue": catalogue}
    arguments |= {"vocabulary": vocabulary, "related": related}
    file = None if out is None else as_path(out, "out")
    of_arrays = isinstance(source, tuple | list)
    _check(arguments, data, of_arrays)
    if file is not None:
        check_similarity_path(file)
    if data.curve is not None:
        check_curve(data.curve)
    how = similarity_options(options, neighbours=data.neighbours, seed=data.seed)
    workers = processes(data.workers)
    with telling(progress, TITLES) as tell:
        opened = problem_of_arrays(arguments) if of_arrays else problem_of_collection(arguments, workers, tell)
        with opened as problem:
            training = problem.index, problem.vocabulary, problem.pairs, problem.relevance
            learnt = learn(*training, how, test=problem.test, workers=workers, progress=tell)
    matrix = learnt.matrix
    matrix.provenance.update(problem.provenance)
    if published:
        matrix.provenance["as_published"] = YAN13
    if file is not None:
        matrix.save(file)
    if data.curve is not None:
        write_curve(data.curve, learnt.history)
    facts = {
        "similarity": str(file) if file is not None else None,
        "fingerprint": matrix.fingerprint,
        "words": matrix.words,
        "neighbours": data.neighbours,
        "as_published": published,
        "options": asdict(how),
        **_facts(learnt, problem),
        "seconds": round(perf_counter() - began, 3),
        "test_seconds": round(learnt.test_seconds, 3),
    }
    verdict = _verdict(learnt, len(learnt.held_out.queries))
    return NewSimilarity(file, matrix, learnt.history, learnt.chosen, verdict, problem.notes, facts)


def _check(arguments: Mapping[str, Any], data: SimilarityData, of_arrays: bool) -> None:
    """Raise CairnError if the training data are inconsistent."""
    if of_arrays:
        _refuse(
            arguments, ("labels", "verified", "test_gt", "test_queries", "skip_missing", "catalogue"), "of a collection"
        )
        if data.share != 1:
            raise CairnError("share is of a collection: leave it out.")
    else:
        _refuse(arguments, ("vocabulary", "related"), "of arrays")
        if (arguments["labels"] is None) == (not data.verified):
            raise CairnError(
                "Say what to learn from: labels ({--gt|labels}), or photos that geometry verifies ({--verified})."
            )
    if not 0 < data.share <= 1 or (data.verified and data.share < 1):
        raise CairnError("{--share} is more than 0 and at most 1, and goes with {--gt|labels} alone.")
    if data.test_queries and not data.test_gt:
        raise CairnError("{--test-queries} goes with {--test-gt}, whose photos they are.")


def _facts(learnt: "LearntSimilarity", problem: SimilarityProblem) -> dict[str, Any]:
    """Report of the similarity and its training data for `--json`."""
    first, best = learnt.history[0], learnt.history[learnt.chosen]
    matrix, learnt_from = learnt.matrix, learnt.learnt_from
    return {
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
        "held_out": {"photos": len(learnt.held_out.queries), "tf-idf": first.held_out, "learnt": best.held_out},
        "test": _test_report(learnt, problem.test.names) if problem.test is not None else None,
        "history": [vars(entry) for entry in learnt.history],
    }


def _refuse(arguments: Mapping[str, Any], names: Sequence[str], of: str) -> None:
    """Raise CairnError if arguments are set that the source does not use."""
    unused = [
        name for name in names if arguments[name] is not None and arguments[name] is not False and arguments[name] != ()
    ]
    if unused:
        raise CairnError(f"{unused[0]} is {of}: leave it out.")


def _test_report(learnt: "LearntSimilarity", names: tuple[str, ...]) -> dict[str, Any]:
    figures = [entry.test or 0.0 for entry in learnt.history]
    best = max(range(len(figures)), key=lambda number: figures[number])
    return {
        "queries": len(names),
        "tf-idf": figures[0],
        "learnt": learnt.test or 0.0,
        "best": {"iteration": best, "mAP": figures[best]},
    }


def _verdict(learnt: "LearntSimilarity", held_out: int) -> str:
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
