"""Learn which words mean the same, and what each is worth (Yan13)."""

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.inverted import InvertedIndex
from index.parallel import one_thread
from index.progress import Progress
from index.similarity import SimilarityMatrix
from learning.labels.labels import Relevance, hold_out
from learning.measures.precision import average_precision
from learning.similarity.pair_gradients import WordPairs
from learning.similarity.problem import ObjectiveOptions, SimilarityProblem
from learning.similarity.triplets import TripletOptions, collect_triplets, places
from learning.similarity.vectors import unit_vectors

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


_SCORES = 1 << 22  # scores of held-out photos at a time


@dataclass(frozen=True)
class SimilarityOptions:
    """What is learnt, and how long."""

    neighbours: int = 2  # k: nearest words that a word may mean the same as; 0: words' own weights alone
    iterations: int = 100  # of L-BFGS-B, at most
    full_every: int = 10  # iterations between two looks at all triplets, N of section IV.C
    patience: int = 20  # iterations without a better figure on held-out photos before it ends
    memory: int = 10  # steps that L-BFGS-B remembers
    hold_out: int = 4  # photos of each object, at most, that choose the iteration; 0: none, the last one counts
    refit: bool = True  # learn again for as many iterations as were best, from the held-out photos too
    seed: int = 0  # of which photos are held out, and of triplets
    triplets: TripletOptions = field(default_factory=TripletOptions)
    objective: ObjectiveOptions = field(default_factory=ObjectiveOptions)

    def __post_init__(self) -> None:
        if self.neighbours < 0 or self.iterations < 1 or self.full_every < 1:
            raise CairnError("A similarity needs 0 neighbours or more, and an iteration at least.")


@dataclass(frozen=True)
class Iteration:
    """The state after an iteration."""

    number: int  # 0: tf-idf, before the first
    objective: float  # of the active triplets and the ridge, 1 at tf-idf; of all of them where they were looked at
    active: int  # triplets
    held_out: float | None  # mean average precision of held-out photos, where there are any


@dataclass(frozen=True)
class LearntSimilarity:
    """A similarity, and how it came about."""

    matrix: SimilarityMatrix
    history: list[Iteration]  # without the held-out photos
    chosen: int  # iteration that did best on them; 0: tf-idf, nothing being better
    learnt_from: Relevance  # what the matrix was learnt from in the end
    held_out: Relevance
    triplets: int  # that the matrix was learnt from
    hard: int  # of the triplets: those that tf-idf gets wrong
    image_pairs: int  # in the triplets


def learn_similarity(
    index: InvertedIndex,
    vocabulary: str,
    pairs: WordPairs,
    relevance: Relevance,
    options: SimilarityOptions | None = None,
    *,
    workers: int = 1,
    progress: Progress | None = None,
) -> LearntSimilarity:
    """Learn a sparse similarity matrix from what photos are to be found by which.

    Some photos are held out, and decide which iteration is best (section IV.D); then as many iterations are made with
    them. Where objects have too few photos to hold any out, the last iteration counts.

    Parameters
    ----------
    index : InvertedIndex
        Of the photos, without a similarity.
    vocabulary : str
        Fingerprint of its vocabulary.
    pairs : WordPairs
        Which different words may mean the same: see `index.similarity.nearest_pairs`.
    relevance : Relevance
        Queries that are in the database themselves, their positives, and what is ignored.
    options : SimilarityOptions, optional
        What is learnt, and how long.
    workers : int
        Threads; the result does not depend on it.
    progress : callable, optional
        Told how far each step is: "gradients" and "iterations", each twice where photos are held out.

    Raises
    ------
    CairnError
        No photo has a positive, or no photo is left that is no positive.
    """
    options = options or SimilarityOptions()
    tell = progress or (lambda step, done, of: None)
    training, held_out = hold_out(relevance, np.random.default_rng(options.seed), each=options.hold_out)
    with one_thread():
        fit = _Fit(index, pairs, training, options, workers, tell)
        judge = _Judge(index, fit.vectors, held_out, pairs) if len(held_out.queries) else None
        descent = _descend(fit.problem, judge, options, tell)
        values, learnt_from = descent.best, training
        if judge is not None and options.refit and descent.chosen:
            del fit, judge  # gradients take much memory: never those of two problems at once
            learnt_from = relevance
            fit = _Fit(index, pairs, relevance, options, workers, tell)
            values = _descend(fit.problem, None, replace(options, iterations=descent.chosen), tell).best
    matrix = SimilarityMatrix(
        vocabulary,
        values[: pairs.words].astype(np.float32),
        pairs.first,
        pairs.second,
        values[pairs.words :].astype(np.float32),
        {
            "neighbours": options.neighbours,
            "options": asdict(options),
            "photos": len(learnt_from.database),
            "queries": len(learnt_from.queries),
            "objects": len(np.unique(learnt_from.objects)),
            "triplets": len(fit.triplets),
            "hard": fit.triplets.hard,
            "iteration": descent.chosen,
            # Of the photos that chose the iteration, before they were learnt from too.
            "held_out": {
                "photos": len(held_out.queries),
                "tf-idf": descent.history[0].held_out,
                "learnt": descent.history[descent.chosen].held_out,
            },
        },
    )
    return LearntSimilarity(
        matrix,
        descent.history,
        descent.chosen,
        learnt_from,
        held_out,
        len(fit.triplets),
        fit.triplets.hard,
        fit.problem.image_pairs,
    )


class _Fit:
    """Photos to learn from, made into a problem."""

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
                "else beside them."
            )
        self.problem = SimilarityProblem(
            self.vectors, pairs, self.triplets, options.objective, workers, lambda done, of: tell("gradients", done, of)
        )


class _Judge:
    """Mean average precision of held-out photos that search the training photos."""

    def __init__(
        self,
        index: InvertedIndex,
        vectors: "csr_matrix",
        held_out: Relevance,
        pairs: WordPairs,
    ) -> None:
        self.vectors = vectors
        self.queries = unit_vectors(index, held_out.queries)
        self.positives = [places(held_out, numbers).tolist() for numbers in held_out.positives]
        self.ignored = [places(held_out, numbers).tolist() for numbers in held_out.ignored]
        self.pairs = pairs

    def measure(self, values: NDArray[np.float64], norms: NDArray[np.float64]) -> float:
        """Give the figure for parameters (K + P,); `norms` are √S_jj of the training photos."""
        from scipy.sparse import coo_matrix, diags

        words, first, second = self.pairs.words, self.pairs.first, self.pairs.second
        apart = coo_matrix((values[words:], (first, second)), shape=(words, words)).tocsr()
        expanded = self.queries @ (diags(values[:words]) + apart + apart.T).tocsr()
        images = self.vectors.shape[0]
        found = []
        for start in range(0, expanded.shape[0], max(1, _SCORES // images)):
            block = slice(start, start + max(1, _SCORES // images))
            scores = np.asarray((expanded[block] @ self.vectors.T).todense())
            # The query's own norm makes no difference to its ranking.
            scores = np.divide(scores, norms, out=np.zeros(scores.shape), where=norms > 0)
            order = np.lexsort((np.broadcast_to(np.arange(images), scores.shape), -scores), axis=1)
            found += [
                average_precision(ranking, positives, ignored)
                for ranking, positives, ignored in zip(
                    order.tolist(), self.positives[block], self.ignored[block], strict=True
                )
            ]
        return float(np.mean(found))


class _Descent:
    """The best point so far, and the way there."""

    def __init__(self, start: NDArray[np.float64]) -> None:
        self.best = start
        self.chosen = 0
        self.history: list[Iteration] = []

    def note(self, point: NDArray[np.float64], objective: float, active: int, held_out: float | None) -> None:
        """Note an iteration; of equally good ones the later counts, as its objective is lower."""
        self.history.append(Iteration(len(self.history), objective, active, held_out))
        if held_out is None or held_out >= (self.history[self.chosen].held_out or 0):
            self.best, self.chosen = point.copy(), len(self.history) - 1

    def settle(self, start: NDArray[np.float64]) -> None:
        """Choose tf-idf, the start, where no iteration found more."""
        before, chosen = self.history[0].held_out, self.history[self.chosen].held_out
        if before is not None and chosen is not None and chosen <= before:
            self.best, self.chosen = start, 0


def _descend(problem: SimilarityProblem, judge: _Judge | None, options: SimilarityOptions, tell: Progress) -> _Descent:
    """Minimise under the bound R ≥ 0 by L-BFGS-B, a few iterations for each set of active triplets."""
    from scipy.optimize import Bounds, OptimizeResult, minimize

    point = problem.start
    descent = _Descent(point)

    def figure(there: NDArray[np.float64]) -> float | None:
        return judge.measure(there, problem.norms(there)) if judge is not None else None

    def after(intermediate_result: OptimizeResult) -> None:
        there, active = np.asarray(intermediate_result.x), problem.active
        descent.note(there, float(intermediate_result.fun), active, figure(there))
        tell("iterations", len(descent.history) - 1, options.iterations)
        if len(descent.history) - 1 - descent.chosen >= options.patience:
            raise StopIteration

    descent.note(point, problem.refresh(point), problem.active, figure(point))
    while len(descent.history) <= options.iterations:
        before = len(descent.history)
        found = minimize(
            problem.evaluate,
            point,
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
        point = np.asarray(found.x)
        problem.refresh(point)
        patient = len(descent.history) - 1 - descent.chosen < options.patience
        if not patient or len(descent.history) == before or not problem.active:
            break
    descent.settle(problem.start)
    tell("iterations", options.iterations, options.iterations)
    return descent
