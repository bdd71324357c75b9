"""Learn a descriptor from labelled patches: train grids of models, and choose the best on validation pairs."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.arrays import fingerprint
from index.errors import CairnError
from index.parallel import one_thread
from index.progress import Progress, silent
from learning.codes.moments import with_moments
from learning.convex.candidates import CandidatePool, PoolOptions, candidate_pool
from learning.convex.projection import DifferencePairs, Metric, MetricUnits, ProjectionOptions, learn_projection
from learning.convex.records import Record, best
from learning.convex.ring_distances import RingDistances, write_ring_distances
from learning.convex.ring_selection import (
    RankedPairs,
    Selection,
    SelectionOptions,
    dim_of,
    learn_weights,
    pooling_of,
    refine,
)
from learning.convex.stages import Learner, check_pooling, check_stages, learn_stages
from learning.convex.study import Trial
from learning.convex.tried import Tested, measure_tried
from learning.convex.whitening import STAGE, RowMoments, WhiteningOptions, WhiteningSetting, learn_whitening, whitened
from learning.patches.augmentation import AugmentationOptions, augment
from learning.patches.rows import BlockRows
from learning.patches.sources import PatchFolder, describe_patches
from retrieval.descriptors.learnt import LearntDescriptor, LearntModel, Pooling
from retrieval.descriptors.pooling import ChannelOptions

RING_DISTANCES = "ring-distances"
"""Subfolder of a run's folder for the largest and most expensive intermediate results."""

VERSION = 1
"""Version of the learning; raise it with every change of the resulting models."""

_MOMENTS = 20_000  # training patches for the stored mean and covariance of descriptors
_SEARCH = 5  # most models tried between those of the grid to reach the wanted dimension
_CLOSE = 0.9  # a model with this share of the wanted dimension is near enough


@dataclass(frozen=True)
class LearningOptions:
    """Options of learning."""

    stage: str = "both"  # one of stages.STAGES
    base: str = "pooled"  # one of retrieval.descriptors.learnt.BASES
    dim: int = 80  # of the projected descriptor, at most
    max_pooled_dim: int = 640  # of the pooled descriptor, at most
    hours: float = 0.0  # after this time no further model is begun; 0: no limit
    channels: ChannelOptions = field(default_factory=ChannelOptions)
    pool: PoolOptions = field(default_factory=PoolOptions)
    selection: SelectionOptions = field(default_factory=SelectionOptions)
    projection: ProjectionOptions = field(default_factory=ProjectionOptions)
    whitening: WhiteningOptions = field(default_factory=WhiteningOptions)
    # Of the training pairs of projections and whitenings. It made pooling regions worse, favouring wide ones.
    augmentation: AugmentationOptions = field(default_factory=AugmentationOptions)

    def __post_init__(self) -> None:
        check_stages(self.stage, self.base, self.dim, self.max_pooled_dim, self.channels.orientations)


@dataclass(frozen=True)
class Learnt:
    """A learnt descriptor, and the records of all models tried."""

    model: LearntModel
    pooling: Record | None  # the chosen model of each stage
    projection: Record | None
    tried: list[Record]
    tested: list[Tested]  # their test errors, if there are test patches


def learn_descriptor(
    sources: Sequence[PatchFolder],
    work: Path,
    options: LearningOptions,
    *,
    pooling: Pooling | None = None,
    tests: Sequence[Path] = (),
    workers: int = 1,
    progress: Progress = silent,
) -> Learnt:
    """Learn a descriptor (Simonyan14 sections 4, 5 and 10.1.2).

    `pooling` are the regions whose descriptor the stage "projection" projects. All models tried are measured on the
    folders of `tests` in the end, which do not affect the choice.
    """
    check_pooling(options.stage, options.base, pooling)
    learner = _WithLabels(sources, work, options, workers, progress)
    model, chosen, projected = learn_stages(learner, options.stage, options.base, pooling)
    tested = learner.test(replace(model, projection=None, centre=None), tests) if tests else []
    return Learnt(learner.with_moments(model), chosen, projected, learner.study.tried, tested)


class _WithLabels(Learner[Record]):
    def __init__(
        self, sources: Sequence[PatchFolder], work: Path, options: LearningOptions, workers: int, tell: Progress
    ) -> None:
        self.sources = sources
        self.work = work
        self.options = options
        super().__init__(work, Record, options.stage, options.hours, workers, tell)
        self._data = fingerprint(
            {
                f"{number}-{split}-{name}": getattr(pairs, name)
                for number, source in enumerate(sources)
                for split, pairs in (("train", source.train), ("validation", source.validation))
                for name in ("first", "second", "match")
            },
            {"patches": [source.patches.fingerprint for source in sources]},
        )

    def learn_pooling(self) -> tuple[Pooling, Record]:
        options = self.options
        pool = candidate_pool(options.pool)
        train, validation = self._ranked("train", pool), self._ranked("validation", pool)
        means = train.positive.mean(), train.negative.mean()

        def trial(mu: float, gamma: float) -> Trial[Record]:
            steps = replace(options.selection, mus=(mu,), gammas=(gamma,))
            key = self._key("pooling", [options.pool, options.channels, steps, options.max_pooled_dim])
            return key, partial(_pooling_models, key, train, validation, means, pool, options, mu, gamma)

        grid = [trial(mu, gamma) for mu in options.selection.mus for gamma in options.selection.gammas]
        record = best(self.study.learn("pooling", grid, bool), options.max_pooled_dim)
        if record is None:
            raise CairnError(
                "No selection of pooling regions has {max_pooled_dim} dimensions or fewer: allow more "
                "({--max-pooled-dim}), or learn from more pairs.",
                max_pooled_dim=options.max_pooled_dim,
            )
        return pooling_of(pool, self.records.parameters(record), options.channels), record

    def learn_projection(self, model: LearntModel) -> tuple[LearntModel, Record]:
        options = self.options.projection
        train, validation = self._differences(model)
        with one_thread():
            units = MetricUnits.of(train, options.norm)

        def trial(mu: float, gamma: float) -> Trial[Record]:
            steps = replace(options, mus=(mu,), gammas=(gamma,))
            key = self._key("projection", [model.fingerprint, steps, self.options.augmentation])
            return key, partial(_projection_models, key, train, validation, units, options, model, mu, gamma)

        grid = [trial(mu, gamma) for mu in options.mus for gamma in options.gammas]
        records = self.study.learn("projection", grid, bool)
        enough = _CLOSE * min(self.options.dim, train.positive.descriptors.shape[1])
        for _ in range(_SEARCH if options.norm == "nuclear" else 0):
            # Dimensions follow from μ*: bisect between two that bracket the wanted one.
            nearest = max((record.dim for record in records if record.dim <= self.options.dim), default=0)
            if nearest >= enough:
                break
            reference = best(records, self.options.dim) or min(records, key=lambda record: record.dim)
            of_one_gamma = [record for record in records if record.gamma == reference.gamma]
            mu = _between(of_one_gamma, self.options.dim)
            if any(record.mu == mu for record in of_one_gamma):
                break  # ranks do not always fall as μ* grows
            more = self.study.learn("projection", [trial(mu, reference.gamma)], bool)
            if not more:
                break  # out of time
            records += more
        record = best(records, self.options.dim)
        if record is None:
            raise CairnError("No projection has {dim} dimensions or fewer: allow more ({--dim}).", dim=self.options.dim)
        projection = self.records.parameters(record).astype(np.float32)
        return replace(model, projection=projection), record

    def learn_whitening(self, model: LearntModel) -> tuple[LearntModel, Record]:
        train, validation = self._differences(model)
        moments = RowMoments.of(train.positive.descriptors)
        with one_thread():
            spread = train.positive.moment()

        def trial(setting: WhiteningSetting) -> Trial[Record]:
            key = self._key(STAGE, [model.fingerprint, setting, self.options.augmentation])
            return key, partial(learn_whitening, train, validation, moments, spread, key, setting)

        dim = min(self.options.dim, len(spread))
        grid = [trial(setting) for setting in self.options.whitening.settings(dim)]
        record = best(self.study.learn(STAGE, grid, bool), dim)
        assert record is not None
        return whitened(model, self.records.parameters(record)), record

    def test(self, base: LearntModel, folders: Sequence[Path]) -> list[Tested]:
        """Measure all models tried; projections and whitenings have this base."""
        pool = candidate_pool(self.options.pool)

        def model_of(record: Record) -> LearntModel | None:
            parameters = self.records.parameters(record)
            if not parameters.any():
                return None
            if record.stage == "pooling":
                return LearntModel("pooled", pooling_of(pool, parameters, self.options.channels))
            if record.stage == STAGE:
                return whitened(base, parameters)
            return replace(base, projection=parameters.astype(np.float32))

        return measure_tried(self.study.tried, model_of, folders, self.work, workers=self.workers, progress=self.tell)

    def with_moments(self, model: LearntModel) -> LearntModel:
        """Add the mean and covariance of the training patches' descriptors, for learning codes."""
        descriptor = LearntDescriptor(model)
        rng = np.random.default_rng(0)
        share = max(1, _MOMENTS // len(self.sources))
        rows = []
        for source in self.sources:
            numbers = np.unique(np.concatenate([source.train.first, source.train.second]))
            numbers = np.sort(rng.permutation(numbers)[:share])
            rows.append(describe_patches(source.patches, numbers, descriptor.describe_uncoded, descriptor.patch_size))
        return with_moments(model, np.concatenate(rows))

    def _key(self, stage: str, model: list[Any]) -> str:
        return fingerprint({}, {"stage": stage, "data": self._data, "model": model, "version": VERSION})

    def _ranked(self, split: str, pool: CandidatePool) -> RankedPairs:
        total = sum(len(getattr(source, split)) for source in self.sources)
        every = sum(len(source.train) + len(source.validation) for source in self.sources)
        distances = RingDistances(pool, self.options.channels, every)
        kinds: dict[bool, list[NDArray[np.float16 | np.uint8]]] = {True: [], False: []}
        before = 0
        for source in self.sources:
            pairs = getattr(source, split)
            for match in (True, False):
                first, second = pairs.first[pairs.match == match], pairs.second[pairs.match == match]
                key = distances.fingerprint_of(source.patches, first, second)
                kinds[match] += write_ring_distances(
                    source.patches,
                    first,
                    second,
                    self.work / RING_DISTANCES / key[:16],
                    distances,
                    workers=self.workers,
                    progress=partial(self._tell_further, f"psi-{split}", before, total),
                )
                before += len(first)
        return RankedPairs(BlockRows(kinds[True]), BlockRows(kinds[False]))

    def _tell_further(self, step: str, before: int, total: int, done: int, _: int) -> None:
        self.tell(step, before + done, total)

    def _differences(self, model: LearntModel) -> tuple[DifferencePairs, DifferencePairs]:
        """φ of all patches in pairs, and the pairs as rows of it, for training and validation."""
        descriptor = LearntDescriptor(model)
        rows, pairs = [], {"train": [], "validation": []}  # type: ignore[var-annotated]
        before = 0
        for number, source in enumerate(augment(source, self.options.augmentation) for source in self.sources):
            self.tell("describe", number, len(self.sources))
            used = [source.train.first, source.train.second, source.validation.first, source.validation.second]
            numbers = np.unique(np.concatenate(used))
            rows.append(describe_patches(source.patches, numbers, descriptor.base_rows, descriptor.patch_size))
            for split, chosen in (("train", source.train), ("validation", source.validation)):
                places = [before + np.searchsorted(numbers, part) for part in (chosen.first, chosen.second)]
                pairs[split].append((*places, chosen.match))
            before += len(numbers)
        self.tell("describe", len(self.sources), len(self.sources))
        every = np.concatenate(rows)
        train, validation = (
            DifferencePairs.of(every, *(np.concatenate(part) for part in zip(*pairs[split], strict=True)))
            for split in ("train", "validation")
        )
        return train, validation


def _between(records: list[Record], dim: int) -> float:
    """A μ* whose model may have the wanted dimension: the geometric mean of those that bracket it."""
    above = [record.mu for record in records if record.dim > dim]
    below = [record.mu for record in records if record.dim <= dim]
    if not above:
        return min(below) / 2
    if not below:
        return float(np.sqrt(max(above)))  # 1 leaves rank 0
    return float(np.sqrt(max(above) * min(below)))


def _pooling_models(
    key: str,
    train: RankedPairs,
    validation: RankedPairs,
    means: tuple[NDArray[np.float64], NDArray[np.float64]],
    pool: CandidatePool,
    options: LearningOptions,
    mu: float,
    gamma: float,
) -> list[tuple[Record, NDArray[np.float64]]]:
    """One model of the pooling grid, and the successively smaller ones derived from it."""
    orientations = options.channels.orientations
    models: list[tuple[Record, NDArray[np.float64]]] = []
    began = perf_counter()

    def add(selection: Selection) -> None:
        weights = selection.weights
        record = Record(
            "pooling",
            key,
            mu,
            gamma,
            dim_of(pool, weights, orientations),
            len(np.unique(pool.select(weights)[2])),  # coinciding rings count once
            validation.error(weights) if weights.any() else 1.0,
            selection.objective,
            selection.refits,
            perf_counter() - began,
        )
        models.append((record, weights))

    with one_thread():  # so that the result does not depend on how many processes share the cores
        first = learn_weights(train, means, mu, gamma, options.selection)
        add(first)
        for selection in refine(train, means, first, pool, orientations, options.max_pooled_dim, options.selection):
            add(selection)
    return models


def _projection_models(
    key: str,
    train: DifferencePairs,
    validation: DifferencePairs,
    units: MetricUnits,
    options: ProjectionOptions,
    model: LearntModel,
    mu: float,
    gamma: float,
) -> list[tuple[Record, NDArray[np.float64]]]:
    """One model of the projection grid."""
    began = perf_counter()
    with one_thread():  # so that the result does not depend on how many processes share the cores
        metric: Metric = learn_projection(train, units, mu, gamma, options)
        error = validation.error(metric.projection) if len(metric.projection) else 1.0
    rings = 0 if model.pooling is None else int(model.pooling.rings.max()) + 1
    record = Record(
        "projection", key, mu, gamma, len(metric.projection), rings, error, metric.objective, 0, perf_counter() - began
    )
    return [(record, metric.projection)]
