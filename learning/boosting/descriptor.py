"""Learn boosted descriptors from labelled patches (Trzcinski12): weak learners, then an embedding or code of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.progress import Progress, silent
from learning.boosting.metric import (
    COMPARISONS,
    FORMS,
    KEPT,
    BoostedMetric,
    MetricOptions,
    PairResponses,
    embed,
    learn_metric,
    principal_axes,
)
from learning.boosting.search import Boosting, LearnerSearchOptions, Round
from learning.boosting.weak_learners import CandidateOptions, PairList, draw_candidates, pair_levels
from learning.codes.moments import with_moments
from learning.patches.sources import PatchFolder, patches_used
from retrieval.descriptors.boosted import KINDS, Boosted, WeakLearners, out_of_range
from retrieval.descriptors.boxes import ResponseOptions
from retrieval.descriptors.learnt import LearntModel
from retrieval.regions.patches import resample_patches

SIGNED = ("lbgm", "lbgm-diag")
"""Kinds with a learnt similarity, which may have negative eigenvalues."""

PLAIN = ("bgm", "ssc")
"""Kinds whose rows are the answers of the weak learners, 1 or -1."""

_MOMENTS = 20_000  # training patches for the stored mean and covariance of descriptors
_BATCH = 1_024  # patches evaluated at a time


@dataclass(frozen=True)
class BoostingOptions:
    """Options of learning."""

    kind: str = "lbgm"  # one of retrieval.descriptors.boosted.KINDS
    learners: int = 512  # weak learners, P
    dim: int = 64  # d of an embedding; unused by kinds without
    draws: int = 4  # draws of candidates, each for an equal share of the learners
    responses: ResponseOptions = field(default_factory=ResponseOptions)
    candidates: CandidateOptions = field(default_factory=CandidateOptions)
    search: LearnerSearchOptions = field(default_factory=LearnerSearchOptions)
    metric: MetricOptions = field(default_factory=MetricOptions)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise CairnError(
                f"There is no kind {self.kind!r} of boosted descriptors; choose one of {', '.join(KINDS)}."
            )
        if not 1 <= self.learners <= 4_096:
            raise CairnError(f"There can be 1 to 4096 weak learners, and not {self.learners}.")
        if self.kind not in PLAIN and not 1 <= self.dim <= self.learners:
            raise CairnError(f"{self.learners} weak learners can be embedded into 1 to {self.learners} dimensions.")
        if (self.kind == "ssc") != (self.responses.family == "intensity"):
            raise CairnError("The kind ssc is of grey values, and all others of gradients.")
        problem = out_of_range(self.responses)
        if problem:
            raise CairnError(problem)
        if min(self.draws, self.candidates.number, self.search.sample, self.search.finalists) < 1:
            raise CairnError("Draws, candidates, sampled pairs and finalists must be 1 at least.")
        for name, known in (("form", FORMS), ("kept", KEPT), ("comparison", COMPARISONS)):
            if getattr(self.metric, name) not in known:
                raise CairnError(
                    f"The similarity cannot be learnt with {getattr(self.metric, name)!r}: choose one of "
                    f"{', '.join(known)}."
                )
        if self.metric.comparison == "inner" and (
            (self.metric.form, self.metric.kept) != ("inner", "eigenvalues") or self.kind not in SIGNED
        ):
            raise CairnError(
                "Signed inner products compare what is learnt from inner products and keeps eigenvalues: of the kinds "
                f"{' and '.join(SIGNED)}, with the form inner."
            )
        if not 0 < self.metric.start <= 100:
            raise CairnError("The scale of the weights to begin with lies above 0, and at 100 at most.")
        if not self.metric.step > 0 or min(self.metric.batch, self.metric.patience) < 1 or self.metric.epochs < 0:
            raise CairnError("The step, batch and patience of the descent must be positive.")


@dataclass(frozen=True)
class LearntBoosted:
    """A boosted descriptor, and a record of its learning."""

    model: LearntModel
    learners: int  # weak learners that it has
    rounds: list[Round]  # of AdaBoost; empty if the weak learners were passed in
    metric: BoostedMetric | None  # for kinds that learn one
    error: float  # FPR95 of the validation pairs


def learn_boosted(
    sources: Sequence[PatchFolder],
    options: BoostingOptions,
    *,
    learners: WeakLearners | None = None,
    workers: int = 1,
    progress: Progress = silent,
) -> LearntBoosted:
    """Learn a boosted descriptor, from a search or from the first of existing weak learners."""
    rng = np.random.default_rng(options.seed)
    rounds: list[Round] = []
    if learners is None:
        learners, rounds = find_learners(sources, options, rng, workers=workers, tell=progress)
    elif len(learners) < options.learners:
        raise CairnError(
            "There are {learners} weak learners to go on from: ask for no more ({--learners}).", learners=len(learners)
        )
    learners = learners.first(options.learners)
    progress("answers", 0, 2)
    train = _answers(sources, "train", learners)
    progress("answers", 1, 2)
    validation = _answers(sources, "validation", learners)
    progress("answers", 2, 2)
    metric: BoostedMetric | None = None
    embedding: NDArray[np.float32] | None = None
    signs: NDArray[np.float32] | None = None
    if options.kind == "bgm-pca":
        embedding = principal_axes(train.answers, options.dim)
    elif options.kind not in PLAIN:
        metric = learn_metric(
            train, validation, learners.weights, options.dim, options.metric, rng, partial(progress, "metric")
        )
        embedding, signs = metric.embedding(options.dim), metric.signs(options.dim)
    if embedding is not None and not len(embedding):
        raise CairnError("No dimension of the learnt similarity distinguishes patches: take a smaller step ({--step}).")
    boosted = Boosted(options.kind, learners, embedding, signs)
    error = validation.error(boosted.linear_map(), signs)
    some = np.sort(rng.permutation(len(train.answers))[:_MOMENTS])
    model = with_moments(LearntModel("boosted", base_model=boosted), embed(train.answers[some], boosted.linear_map()))
    return LearntBoosted(model, len(learners), rounds, metric, error)


def find_learners(
    sources: Sequence[PatchFolder],
    options: BoostingOptions,
    rng: np.random.Generator,
    *,
    workers: int = 1,
    tell: Progress = silent,
) -> tuple[WeakLearners, list[Round]]:
    """Find weak learners by AdaBoost; fewer than requested if no other is better than chance."""
    pairs = pair_list(sources, "train")
    boosting = Boosting(pairs.match, options.search, rng, workers)
    rounds: list[Round] = []
    boxes, channels, thresholds = [], [], []
    each = -(-options.learners // options.draws)
    draws = -(-options.learners // each)
    for draw in range(draws):
        candidates = draw_candidates(pairs, options.responses, options.candidates, rng)
        before, of = draw * len(pairs), draws * len(pairs)
        report = partial(_tell_further, tell, "candidates", before, of)
        levels = pair_levels(pairs, candidates, options.responses, workers=workers, progress=report)
        for _ in range(min(each, options.learners - len(rounds))):
            learner = boosting.add(levels)
            if learner is None:
                break
            rounds.append(learner)
            boxes.append(candidates.boxes[learner.candidate])
            channels.append(candidates.channels[learner.candidate])
            thresholds.append(candidates.threshold(learner.candidate, learner.level))
            tell("boost", len(rounds), options.learners)
        del levels  # free memory before the next draw
    if not rounds:
        raise CairnError("No weak learner distinguishes matches better than chance: are the labels right?")
    weights = np.array([one.weight for one in rounds], np.float32)
    found_all = WeakLearners(
        np.stack(boxes), np.array(channels, np.int32), np.array(thresholds, np.float32), weights, options.responses
    )
    return found_all, rounds


def pair_list(sources: Sequence[PatchFolder], split: str) -> PairList:
    """Concatenate the pairs of a split, "train" or "validation", of all sources."""
    pairs = [getattr(source, split) for source in sources]
    return PairList(
        [source.patches for source in sources],
        np.repeat(np.arange(len(pairs), dtype=np.int32), [len(part) for part in pairs]),
        *(np.concatenate([getattr(part, name) for part in pairs]) for name in ("first", "second", "match")),
    )


def _answers(sources: Sequence[PatchFolder], split: str, learners: WeakLearners) -> PairResponses:
    """Answers (1 or -1) of weak learners on all patches in the pairs of a split."""
    used, first, second, match = patches_used([getattr(source, split) for source in sources])
    answers = []
    for source, numbers in zip(sources, used, strict=True):
        for start in range(0, len(numbers), _BATCH):
            part = source.patches.read(numbers[start : start + _BATCH])
            answers.append(learners.answers(resample_patches(part, learners.options.patch_size)))
    return PairResponses(np.concatenate(answers), first, second, match)


def _tell_further(tell: Progress, step: str, before: int, of: int, done: int, _: int) -> None:
    tell(step, before + done, of)
