"""Learn pairs of words with the same meaning, and weights of words (Yan13)."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.inverted import InvertedIndex
from index.parallel import one_thread
from index.progress import Progress, silent
from index.similarity import SimilarityMatrix
from learning.labels.labels import Relevance, hold_out
from learning.similarity.measured import CollectionMeasure, MeasuredQueries, RankingMeasure
from learning.similarity.options import SimilarityOptions
from learning.similarity.pair_gradients import WordPairs
from learning.similarity.problem import TripletProblem
from learning.similarity.triplets import collect_triplets
from learning.similarity.vectors import unit_vectors


@dataclass(frozen=True)
class Iteration:
    """The state after an iteration."""

    number: int  # 0: tf-idf, before the first
    objective: float  # of the active triplets and the ridge, 1 at tf-idf; of all triplets at a refresh
    active: int  # triplets
    held_out: float | None  # mean average precision of held-out photos, if any
    test: float | None = None  # the same of test queries in the whole collection, if any


@dataclass(frozen=True)
class LearntSimilarity:
    """A similarity, and a record of its learning."""

    matrix: SimilarityMatrix
    history: list[Iteration]  # without the held-out photos
    chosen: int  # best iteration on them; 0: tf-idf, if no other is better
    learnt_from: Relevance  # final training data of the matrix
    held_out: Relevance
    triplets: int  # in the final training data
    hard: int  # of the triplets: those wrong with tf-idf
    image_pairs: int  # in the triplets
    test: float | None = None  # mean average precision of test queries by the matrix, if any
    test_seconds: float = 0.0  # time of measuring test queries, not part of learning


def learn_similarity(
    index: InvertedIndex,
    vocabulary: str,
    pairs: WordPairs,
    relevance: Relevance,
    options: SimilarityOptions | None = None,
    *,
    test: MeasuredQueries | None = None,
    workers: int = 1,
    progress: Progress = silent,
) -> LearntSimilarity:
    """Learn a sparse similarity matrix from queries and their positives.

    Some photos are held out to choose the best iteration (section IV.D); if objects have too few photos, the last is
    taken. `test` queries, measured at each iteration, as in Fig. 6, do not affect the result; their photos must not be
    in `relevance`: see `Relevance.without`.
    """
    options = options or SimilarityOptions()
    training, held_out = hold_out(
        relevance, np.random.default_rng(options.seed), each=options.hold_out, thirds=options.thirds
    )
    with one_thread():
        fit = _Fit(index, pairs, training, options, workers, progress)
        judge = RankingMeasure.of_photos(index, fit.vectors, held_out, pairs) if len(held_out.queries) else None
        tested = _Tested(index, test, pairs, workers) if test is not None else None
        descent = _descend(fit, judge, tested, options, progress)
        values, learnt_from = descent.best, training
        if judge is not None and options.refit and descent.chosen:
            del fit, judge  # gradients take much memory: free those of one problem before the next
            learnt_from = relevance
            fit = _Fit(index, pairs, relevance, options, workers, progress)
            values = _descend(fit, None, None, replace(options, iterations=descent.chosen), progress).best
        figure = tested(values) if tested is not None else None
    weights, notes = values.astype(np.float32), _provenance(options, learnt_from, held_out, fit, descent)
    return LearntSimilarity(
        SimilarityMatrix(vocabulary, weights[: pairs.words], pairs.first, pairs.second, weights[pairs.words :], notes),
        descent.history,
        descent.chosen,
        learnt_from,
        held_out,
        len(fit.triplets),
        fit.triplets.hard,
        fit.problem.image_pairs,
        figure,
        tested.seconds if tested is not None else 0.0,
    )


def _provenance(
    options: SimilarityOptions, learnt_from: Relevance, held_out: Relevance, fit: "_Fit", descent: "_Descent"
) -> dict[str, Any]:
    return {
        "neighbours": options.neighbours,
        "options": asdict(options),
        "photos": len(learnt_from.database),
        "queries": len(learnt_from.queries),
        "objects": len(np.unique(learnt_from.objects)),
        "triplets": len(fit.triplets),
        "hard": fit.triplets.hard,
        "iteration": descent.chosen,
        # Of the photos that chose the iteration, before they were added to the training data.
        "held_out": {
            "photos": len(held_out.queries),
            "tf-idf": descent.history[0].held_out,
            "learnt": descent.history[descent.chosen].held_out,
        },
    }


class _Tested:
    def __init__(self, index: InvertedIndex, test: MeasuredQueries, pairs: WordPairs, workers: int) -> None:
        began = perf_counter()
        self._measure = CollectionMeasure(index, test, pairs, workers)
        self.seconds = perf_counter() - began

    def __call__(self, values: NDArray[np.float64]) -> float:
        """Mean average precision for parameters (K + P,)."""
        began = perf_counter()
        figure = self._measure.test(values)
        self.seconds += perf_counter() - began
        return figure


class _Fit:
    """Training photos as a problem."""

    def __init__(
        self,
        index: InvertedIndex,
        pairs: WordPairs,
        relevance: Relevance,
        options: SimilarityOptions,
        workers: int,
        tell: Progress,
    ) -> None:
        self.vectors = unit_vectors(index, relevance.database)
        self.triplets = collect_triplets(self.vectors, relevance, replace(options.triplets, seed=options.seed))
        if not len(self.triplets):
            raise CairnError(
                "There is nothing to learn from: it takes two photos of one object at least, and photos of something "
                "else in addition."
            )
        self.problem = TripletProblem(
            self.vectors, pairs, self.triplets, options.objective, workers, lambda done, of: tell("gradients", done, of)
        )
        self.scale = np.ones(pairs.parameters)  # factor from R to the parameters of the descent
        if not options.relative:
            scale = np.concatenate([np.square(index.idf), index.idf[pairs.first] * index.idf[pairs.second]])
            self.scale = np.where(scale > 0, scale, 1)


class _Descent:
    """The best point so far, and the history."""

    def __init__(self, start: NDArray[np.float64]) -> None:
        self.best = start
        self.chosen = 0
        self.history: list[Iteration] = []

    def note(self, point: NDArray[np.float64], entry: Iteration) -> None:
        """Record an iteration; of equally good ones the later wins, as its objective is lower."""
        self.history.append(entry)
        if entry.held_out is None or entry.held_out >= (self.history[self.chosen].held_out or 0):
            self.best, self.chosen = point.copy(), len(self.history) - 1

    def settle(self, start: NDArray[np.float64]) -> None:
        """Choose tf-idf, the start, if no iteration found more."""
        before, chosen = self.history[0].held_out, self.history[self.chosen].held_out
        if before is not None and chosen is not None and chosen <= before:
            self.best, self.chosen = start, 0


def _descend(
    fit: _Fit,
    judge: RankingMeasure | None,
    tested: Callable[[NDArray[np.float64]], float] | None,
    options: SimilarityOptions,
    tell: Progress,
) -> _Descent:
    """Minimise under the bound R ≥ 0 by L-BFGS-B, a few iterations for each set of active triplets."""
    from scipy.optimize import Bounds, OptimizeResult, minimize

    problem, scale = fit.problem, fit.scale
    point = problem.start
    descent = _Descent(point)

    def note(there: NDArray[np.float64], objective: float, active: int) -> None:
        held_out = judge.measure(there, problem.norms(there)) if judge is not None else None
        test = tested(there) if tested is not None else None
        descent.note(there, Iteration(len(descent.history), objective, active, held_out, test))

    def evaluate(scaled: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        value, gradient = problem.evaluate(scaled / scale)
        return value, gradient / scale

    def after(intermediate_result: OptimizeResult) -> None:
        active = problem.active
        note(np.asarray(intermediate_result.x) / scale, float(intermediate_result.fun), active)
        tell("iterations", len(descent.history) - 1, options.iterations)
        if len(descent.history) - 1 - descent.chosen >= options.patience:
            raise StopIteration

    note(point, problem.refresh(point), problem.active)
    while len(descent.history) <= options.iterations:
        before = len(descent.history)
        result = minimize(
            evaluate,
            point * scale,
            jac=True,
            method="L-BFGS-B",
            bounds=Bounds(0, np.inf),
            callback=after,
            options={
                "maxiter": min(options.full_every, options.iterations + 1 - before),
                "maxcor": options.memory,
                "ftol": 0,
                "gtol": 0,
            },
        )
        point = np.asarray(result.x) / scale
        problem.refresh(point)
        patient = len(descent.history) - 1 - descent.chosen < options.patience
        if not patient or len(descent.history) == before or not problem.active:
            break
    descent.settle(problem.start)
    tell("iterations", options.iterations, options.iterations)
    return descent
