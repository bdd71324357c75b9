"""Learn a descriptor from mined matches: models for several K and regularisers, and the best on held-out pairs."""

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.arrays import fingerprint
from index.errors import CairnError
from index.parallel import one_thread
from index.progress import Progress, silent
from learning.codes.moments import with_moments
from learning.convex.candidates import CandidatePool, PoolOptions, candidate_pool
from learning.convex.projection import MetricUnits, ProjectionOptions
from learning.convex.records import best
from learning.convex.ring_distances import RingDistances, write_ring_distances
from learning.convex.ring_selection import SelectionOptions, pooling_of
from learning.convex.stages import Learner, check_pooling, check_stages, learn_stages
from learning.convex.whitening import STAGE, RowMoments, WhiteningOptions, whitened
from learning.latent.alternation import LogEntry
from learning.latent.anchors import Anchors, draw_features
from learning.latent.described_patches import Described, describe_mined
from learning.latent.metric_problem import units_of
from learning.latent.models import GridSetting, Held, LatentRecord, PoolingWork, ProjectionWork
from learning.latent.nearest import candidates_of, find_nearest
from learning.latent.whitening import Positives, WhiteningWork, grid
from learning.mining.matches import MinedMatches, MinedPatches
from learning.patches.rows import BlockRows, squared_distances
from retrieval.descriptors.contract import Descriptor
from retrieval.descriptors.learnt import LearntDescriptor, LearntModel, Pooling
from retrieval.descriptors.pooling import ChannelOptions
from retrieval.descriptors.sift import Sift

# μ* and γ to try, in the units of either norm (see `projection.MetricUnits`).
_MUS = {"nuclear": (0.03, 0.01), "frobenius": (1.0, 0.1, 0.01)}
_GAMMAS = {"nuclear": (1.0, 3.0), "frobenius": (0.1,)}

SCRATCH = "scratch"
"""Subfolder of a run's folder for large results that can be recomputed."""

VERSION = 2
"""Version of the learning; raise it with every change of the resulting models."""

_MOMENTS = 20_000  # patches for the stored mean and covariance of descriptors
_SEARCH = 8  # most further μ* to try if all projections have too many dimensions


def metric_options(norm: str, seed: int = 0) -> ProjectionOptions:
    """Options of projections learnt from mined matches, for a norm of `projection.NORMS`."""
    mus, gammas = _MUS.get(norm, ()), _GAMMAS.get(norm, ())
    return ProjectionOptions(mus, gammas, iterations=100, batch=300, norm=norm, seed=seed)


@dataclass(frozen=True)
class UnlabelledOptions:
    """Options of learning from mined matches."""

    stage: str = "both"  # one of stages.STAGES
    base: str = "pooled"  # one of retrieval.descriptors.learnt.BASES
    dim: int = 128  # of the projected descriptor, at most
    max_pooled_dim: int = 640  # of the pooled descriptor, at most
    hours: float = 0.0  # after this time no further model is begun; 0: no limit
    held_out: float = 0.2  # approximate share of the features whose image pairs are for validation
    shares: tuple[float, ...] = (0.8, 0.7, 0.6, 0.5)  # K, as shares of the training features
    pooling_features: int = 12_000  # training features of pooling regions
    projection_features: int = 40_000  # and projections
    validation_features: int = 8_000  # for choosing models
    pooling_negatives: int = 5  # nearest negatives used of each feature
    projection_negatives: int = 10
    random_negatives: int = 1  # in addition
    rounds: int = 2  # rounds of searching the nearest negatives: by rootSIFT or the base, then by the best model
    alternations: int = 3  # of RDA or whitening, y_P and b, at most
    # Less smoothing than for labelled patches, whose photos are noisier: measured on held-out pairs, see
    # docs/explanations/decisions.md.
    channels: ChannelOptions = field(default_factory=lambda: ChannelOptions(smoothing=1.4))
    pool: PoolOptions = field(default_factory=PoolOptions)
    selection: SelectionOptions = field(
        default_factory=lambda: SelectionOptions(mus=(0.3, 0.1), gammas=(0.1,), iterations=600)
    )
    projection: ProjectionOptions = field(default_factory=lambda: metric_options("nuclear"))
    # Fewer dimensions find as many matches, but fewer photos by words: docs/measurements/without-labels.md.
    whitening: WhiteningOptions = field(default_factory=lambda: WhiteningOptions(kept=(1.0,)))
    seed: int = 0  # of random draws

    def __post_init__(self) -> None:
        check_stages(self.stage, self.base, self.dim, self.max_pooled_dim, self.channels.orientations)
        if not self.shares or not all(0 < share <= 1 for share in self.shares):
            raise CairnError("The share of features to learn from must lie above 0 and not above 1.")


@dataclass(frozen=True)
class Unlabelled:
    """A descriptor learnt from mined matches, and the records of all models tried."""

    model: LearntModel
    pooling: LatentRecord | None  # the chosen model of each stage
    projection: LatentRecord | None  # or of the whitening
    tried: list[LatentRecord]
    history: list[LogEntry]  # of the chosen models, round by round
    training: int  # image pairs
    held: Held  # features of the others


def learn_unlabelled(
    matches: MinedMatches,
    work: Path,
    options: UnlabelledOptions,
    *,
    pooling: Pooling | None = None,
    workers: int = 1,
    progress: Progress = silent,
) -> Unlabelled:
    """Learn a descriptor from mined matches (Simonyan14 sections 9 and 10.2.3)."""
    check_pooling(options.stage, options.base, pooling)
    learner = _WithoutLabels(matches, work, options, workers, progress)
    model, chosen, projected = learn_stages(learner, options.stage, options.base, pooling)
    return Unlabelled(
        learner.with_moments(replace(model, extent=matches.extent)),
        chosen,
        projected,
        learner.study.tried,
        learner.history,
        len(learner.training),
        learner.held,
    )


class _WithoutLabels(Learner[LatentRecord]):
    def __init__(
        self, matches: MinedMatches, work: Path, options: UnlabelledOptions, workers: int, tell: Progress
    ) -> None:
        self.matches = matches
        self.options = options
        self.history: list[LogEntry] = []
        self.training, held_out = matches.pair_split(options.held_out, options.seed)
        if not all(np.isin(matches.pair, pairs).any() for pairs in (self.training, held_out)):
            raise CairnError(
                "Validation is by image pair, and fewer than two have a mined feature: mine a source with more photos "
                "that overlap."
            )
        features = draw_features(matches, held_out, options.validation_features, self._rng("validation"))
        self.held = Held(matches, features, candidates_of(matches, features))
        super().__init__(work, LatentRecord, options.stage, options.hours, workers, tell)
        self.scratch = work / SCRATCH
        self.scratch.mkdir(exist_ok=True)

    def learn_pooling(self) -> tuple[Pooling, LatentRecord]:
        options, matches = self.options, self.matches
        pool = candidate_pool(options.pool)
        features = self._draw("pooling", options.pooling_features)
        sift = Sift(root=True)
        described = self._describe(sift, candidates_of(matches, features))
        anchors = self._look(features, described, options.pooling_negatives)
        distances = _distances(anchors, described)
        settings = _grid(options.shares, options.selection)
        chosen: LatentRecord | None = None
        means: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
        weights: NDArray[np.float64] | None = None
        for number in range(options.rounds):
            positive, negative = self._ring_distances(anchors, pool)
            means = means or (positive.mean(), negative.mean())
            work = PoolingWork(
                self.held,
                anchors,
                positive,
                negative,
                means,
                pool,
                options.channels,
                options.selection,
                options.max_pooled_dim,
                options.alternations,
                distances,
                weights,
            )
            shape = [options.pool, options.channels, options.selection, options.max_pooled_dim, sift.fingerprint]
            record = best(self._learn("pooling", number, anchors, shape, settings, work), options.max_pooled_dim)
            if record is None or (chosen is not None and record.validation < chosen.validation):
                break
            chosen, weights = record, self.records.parameters(record)
            self._remember(record)
            settings = [GridSetting(record.share, record.mu, record.gamma)]
            if number + 1 < options.rounds:
                model = LearntModel("pooled", pooling_of(pool, weights, options.channels))
                nearer = self._describe(LearntDescriptor(model), candidates_of(matches, anchors.features))
                anchors = self._look_again(anchors, nearer, None, options.pooling_negatives)
        if chosen is None or weights is None:
            raise CairnError(
                "No selection of pooling regions has {max_pooled_dim} dimensions or fewer: allow more "
                "({--max-pooled-dim}), or mine more image pairs.",
                max_pooled_dim=options.max_pooled_dim,
            )
        return pooling_of(pool, weights, options.channels), chosen

    def learn_projection(self, model: LearntModel) -> tuple[LearntModel, LatentRecord]:
        options, matches = self.options, self.matches
        features = self._draw("projection", options.projection_features)
        descriptor = LearntDescriptor(model)
        described = self._describe(descriptor, candidates_of(matches, features))
        validation = describe_mined(matches, self.held.candidates, descriptor.describe, workers=self.workers)
        anchors = self._look(features, described, options.projection_negatives)
        distances = _distances(anchors, described)
        settings = _grid(options.shares, options.projection)
        units: MetricUnits | None = None
        chosen: LatentRecord | None = None
        projection: NDArray[np.float64] | None = None
        rings = 0 if model.pooling is None else int(model.pooling.rings.max()) + 1
        for number in range(options.rounds):
            with one_thread():
                units = units or units_of(anchors, described, options.projection.norm)
            work = ProjectionWork(
                self.held,
                anchors,
                described,
                validation,
                units,
                rings,
                options.projection,
                options.alternations,
                distances,
                projection,
            )
            shape = [model.fingerprint, options.projection]
            records = self._learn("projection", number, anchors, shape, settings, work)
            if not number:
                records = self._with_fewer_dimensions(records, anchors, shape, work)
            record = best(records, options.dim)
            if record is None or (chosen is not None and record.validation < chosen.validation):
                break
            chosen, projection = record, self.records.parameters(record)
            self._remember(record)
            settings = [GridSetting(record.share, record.mu, record.gamma)]
            if number + 1 < options.rounds:
                anchors = self._look_again(anchors, described, projection, options.projection_negatives)
        if chosen is None or projection is None:
            larger_ones = [one.dim for one in self.study.tried if one.stage == "projection" and one.dim > options.dim]
            least = f", the smallest {min(larger_ones)}" if larger_ones else ""
            raise CairnError(
                "No projection has {dim} dimensions or fewer{least}: allow more ({--dim}).",
                dim=options.dim,
                least=least,
            )
        return replace(model, projection=projection.astype(np.float32)), chosen

    def _with_fewer_dimensions(
        self, records: list[LatentRecord], anchors: Anchors, shape: list[Any], work: ProjectionWork
    ) -> list[LatentRecord]:
        """Try larger μ* if all projections have too many dimensions, but keep the rank above 0."""
        options = self.options
        too_large = np.inf  # the least μ* with rank 0
        too_many = [record for record in records if record.dim > options.dim]
        for _ in range(_SEARCH):
            if not records or any(0 < record.dim <= options.dim for record in records) or not too_many:
                break
            fewest = min(too_many, key=lambda record: (record.dim, -record.validation))
            mu = min(4 * fewest.mu, float(np.sqrt(fewest.mu * too_large)))
            larger = [GridSetting(share, mu, fewest.gamma) for share in dict.fromkeys(options.shares)]
            records = self._learn("projection", 0, anchors, shape, larger, work)
            too_many += [record for record in records if record.dim > options.dim]
            if records and not any(record.dim for record in records):
                too_large = mu
        return records

    def learn_whitening(self, model: LearntModel) -> tuple[LearntModel, LatentRecord]:
        options, matches = self.options, self.matches
        features = self._draw(STAGE, options.projection_features)
        descriptor = LearntDescriptor(model)
        described = self._describe(descriptor, Positives.patches_of(matches, features))
        validation = describe_mined(matches, self.held.candidates, descriptor.describe, workers=self.workers)
        training = Positives.of(matches, features, described)
        moments = RowMoments.of(described.rows[training.references].astype(np.float32))
        work = WhiteningWork(self.held, training, moments, described, validation, options.alternations)
        settings = grid(options.shares, options.whitening, min(options.dim, described.dim))
        common = {
            "stage": STAGE,
            "matches": matches.fingerprint,
            "features": fingerprint({"training": features, "validation": self.held.features}, {}),
            "of": model.fingerprint,
            "alternations": options.alternations,
            "version": VERSION,
        }
        keys = [fingerprint({}, {**common, "setting": setting}) for setting in settings]
        trials = [(key, partial(work.learn, setting, key)) for key, setting in zip(keys, settings, strict=True)]
        chosen = best(self.study.learn(STAGE, trials, bool), options.dim)
        assert chosen is not None
        self._remember(chosen)
        return whitened(model, self.records.parameters(chosen)), chosen

    def with_moments(self, model: LearntModel) -> LearntModel:
        """Add the mean and covariance of training patches' descriptors, for learning codes."""
        features = self._draw("moments", _MOMENTS)
        patches = np.unique(self.matches.reference[features])
        rows = describe_mined(self.matches, patches, LearntDescriptor(model).describe, workers=self.workers).rows
        return with_moments(model, rows)

    def _rng(self, what: str) -> np.random.Generator:
        """Return a separate generator for each purpose, so that the stages do not depend on each other."""
        return np.random.default_rng([self.options.seed, *what.encode()])

    def _draw(self, what: str, number: int) -> NDArray[np.int64]:
        return draw_features(self.matches, self.training, number, self._rng(what))

    def _describe(self, descriptor: Descriptor, patches: NDArray[np.int32]) -> Described:
        key = fingerprint({"patches": patches}, {"of": self.matches.fingerprint, "by": descriptor.fingerprint})
        return describe_mined(
            self.matches,
            patches,
            descriptor.describe,
            self.scratch / f"rows-{key[:16]}.npy",
            workers=self.workers,
            progress=lambda done, of: self.tell("describe", done, of),
        )

    def _look(self, features: NDArray[np.int64], described: Described, count: int) -> Anchors:
        """Find the nearest negatives of features, and draw some more at random."""
        rng = self._rng("negatives")
        nearest = find_nearest(self.matches, features, described, count=count, workers=self.workers)
        drawn = np.full((len(features), self.options.random_negatives), -1, np.int32)
        for place, x in enumerate(features.tolist()):
            others = rng.permutation(self.matches.negatives(x))[: drawn.shape[1]]
            drawn[place, : len(others)] = others
        anchors = Anchors.of(self.matches, features, np.concatenate([nearest.hardest, drawn], axis=1))
        if not len(anchors):
            raise CairnError("No mined feature has a negative: mine photos with more than one thing in them.")
        return anchors

    def _look_again(
        self, anchors: Anchors, described: Described, projection: NDArray[np.float64] | None, count: int
    ) -> Anchors:
        nearest = find_nearest(self.matches, anchors.features, described, projection, count=count, workers=self.workers)
        return anchors.with_negatives(self.matches, nearest.hardest)

    def _ring_distances(self, anchors: Anchors, pool: CandidatePool) -> tuple[BlockRows, BlockRows]:
        """ψ of all positives, and of all negatives in use."""
        total = len(anchors.positive_patches) + len(anchors.negative_patches)
        distances = RingDistances(pool, self.options.channels, total)
        rows = []
        before = 0
        source = MinedPatches(self.matches)
        for first, patches in anchors.candidates:
            key = distances.fingerprint_of(source, first, patches)

            def tell(done: int, _: int, before: int = before) -> None:
                self.tell("psi", before + done, total)

            blocks = write_ring_distances(
                source,
                first,
                patches,
                self.scratch / f"psi-{key[:16]}",
                distances,
                workers=self.workers,
                progress=tell,
            )
            rows.append(BlockRows(blocks))
            before += len(patches)
        return rows[0], rows[1]

    def _learn(
        self,
        stage: str,
        number: int,
        anchors: Anchors,
        shape: list[Any],
        settings: list[GridSetting],
        work: PoolingWork | ProjectionWork,
    ) -> list[LatentRecord]:
        """Learn the models of some settings."""
        options = self.options
        common = {
            "stage": stage,
            "round": number,
            "matches": self.matches.fingerprint,
            "anchors": anchors.fingerprint,
            "validation": fingerprint({"features": self.held.features}, {}),
            "before": "" if work.before is None else fingerprint({"parameters": work.before}, {}),
            "shape": shape,
            "alternations": options.alternations,
            "version": VERSION,
        }
        keys = [fingerprint({}, {**common, "setting": setting}) for setting in settings]
        grid = [(key, partial(work.learn, setting, key, number)) for key, setting in zip(keys, settings, strict=True)]
        most = options.max_pooled_dim if stage == "pooling" else options.dim
        # A model that is too large does not count: continue until one is small enough.
        return self.study.learn(stage, grid, lambda models: best(models, most) is not None)

    def _remember(self, record: LatentRecord) -> None:
        """Append a model's history, continuing the count of rounds."""
        rounds = [entry.round + 1 for entry in self.history if entry.stage == record.stage]
        entries = [LogEntry(**entry) for entry in record.history]
        entries = [replace(entry, round=entry.round + max(rounds, default=0)) for entry in entries]
        self.history += [*entries[:-1], replace(entries[-1], validation=record.validation)]


def _grid(shares: tuple[float, ...], options: SelectionOptions | ProjectionOptions) -> list[GridSetting]:
    return [
        GridSetting(share, mu, gamma)
        for mu in options.mus
        for gamma in options.gammas
        for share in dict.fromkeys(shares)
    ]


def _distances(anchors: Anchors, described: Described) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Squared distances of all positives and of all negatives in use, by a descriptor."""
    positive, negative = (squared_distances(described.take, first, patches) for first, patches in anchors.candidates)
    return positive, negative
