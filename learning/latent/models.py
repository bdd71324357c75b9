"""Models of the latent learner: pooling regions or a metric for one K and one regulariser, and their validation."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.parallel import one_thread
from learning.convex.candidates import CandidatePool
from learning.convex.dual_averaging import AveragingOptions
from learning.convex.projection import MetricUnits, ProjectionOptions
from learning.convex.ring_selection import SelectionOptions, dim_of, largest_contributions, pooling_of
from learning.latent.alternation import Alternation, LogEntry, alternate
from learning.latent.anchors import Anchors
from learning.latent.described_patches import Described, describe_mined
from learning.latent.metric_problem import MetricProblem
from learning.latent.nearest import find_nearest
from learning.latent.pooling_problem import PoolingProblem
from learning.mining.matches import MinedMatches
from learning.patches.rows import BlockRows
from retrieval.descriptors.learnt import LearntDescriptor, LearntModel
from retrieval.descriptors.pooling import ChannelOptions


@dataclass(frozen=True)
class GridSetting:
    """Setting of a model in a grid."""

    share: float  # K over the number of training features
    mu: float  # in the units of the stage
    gamma: float

    def count(self, anchors: Anchors) -> int:
        """K for these features."""
        return max(1, round(self.share * len(anchors)))


@dataclass(frozen=True)
class LatentRecord:
    """Stored record of one model."""

    stage: str  # pooling or projection
    key: str  # fingerprint of everything it depends on
    share: float  # K over the number of training features
    mu: float  # μ₁ or μ*, in the units of the stage
    gamma: float
    round: int  # of searching negatives
    dim: int  # dimensions of the descriptor
    rings: int  # pooling rings of the descriptor; 0: none
    recall: float  # of equation 15 on the training features, against the negatives in use
    validation: float  # the same on validation features, against all their candidates
    objective: float  # of equation 16
    refits: int  # number of times that rings were dropped
    history: list[dict[str, Any]]  # entries of LogEntry, as tables
    seconds: float  # of learning

    @property
    def merit(self) -> tuple[float, int, int]:
        """Larger is better: more recall on validation features, then fewer dimensions, then a fixed order."""
        return self.validation, -self.dim, int(self.key, 16)


@dataclass(frozen=True)
class Held:
    """Features held out for validation."""

    matches: MinedMatches
    features: NDArray[np.int64]  # (V,) int64
    candidates: NDArray[np.integer]  # (W,) int: patches of all their candidates, ascending


@dataclass(frozen=True)
class PoolingWork:
    """Common data of the pooling models of one round."""

    held: Held
    anchors: Anchors
    positive: BlockRows  # ψ of the positives
    negative: BlockRows  # and of the negatives in use
    means: tuple[NDArray[np.float64], NDArray[np.float64]]  # of ψ, in the first round, so that all rounds have one unit
    pool: CandidatePool
    channels: ChannelOptions
    options: SelectionOptions
    limit: int  # dimensions, at most
    alternations: int
    distances: tuple[NDArray[np.float32], NDArray[np.float32]]  # of another descriptor, for starting the first round
    before: NDArray[np.float64] | None  # weights of the last round's model, for starting the others

    def learn(self, setting: GridSetting, key: str, round: int) -> list[tuple[LatentRecord, NDArray[np.float64]]]:
        """Learn weights of all rings, then of successively fewer until the descriptor is small enough."""
        began = perf_counter()
        orientations = self.channels.orientations
        averaging = AveragingOptions(self.options.iterations, self.options.batch, setting.gamma, self.options.seed)
        make = partial(
            PoolingProblem.of, (self.anchors.positives, self.positive), (self.anchors.negatives, self.negative),
            self.means, setting.mu, averaging, balanced=self.options.balanced,
        )  # fmt: skip
        count = setting.count(self.anchors)
        with one_thread():  # so that the result does not depend on the number of processes
            problem = make()
            result = alternate(
                problem,
                count,
                distances=self.distances if self.before is None else None,
                initial=None if self.before is None else ("negatives", self.before / problem.scale),
                alternations=self.alternations,
                stage="pooling",
            )
            weights, history, refits = result.parameters * problem.scale, result.history, 0
            dim = dim_of(self.pool, weights, orientations)
            while self.options.keep and dim > self.limit:
                wanted = max(self.limit, int(dim * self.options.keep))
                strongest = largest_contributions(self.pool, weights * self.means[1], orientations, wanted)
                if not len(strongest):
                    break
                refits += 1
                few = make(kept=strongest)
                result = alternate(
                    few,
                    count,
                    initial=("rings", weights[strongest] / few.scale),
                    alternations=self.alternations,
                    stage="pooling",
                    round=refits,
                )
                history = history + result.history
                weights = np.zeros(len(self.pool))
                weights[strongest] = result.parameters * few.scale
                dim = dim_of(self.pool, weights, orientations)
            validation = 0.0
            if 0 < dim <= self.limit:
                model = LearntModel("pooled", pooling_of(self.pool, weights, self.channels))
                rows = describe_mined(self.held.matches, self.held.candidates, LearntDescriptor(model).describe)
                validation = find_nearest(self.held.matches, self.held.features, rows).recall
        rings = len(np.unique(self.pool.select(weights)[2]))  # coinciding rings count once
        common = _common(setting, result, history, began)
        record = LatentRecord(
            "pooling", key, round=round, dim=dim, rings=rings, validation=validation, refits=refits, **common
        )
        return [(record, weights)]


@dataclass(frozen=True)
class ProjectionWork:
    """Common data of the projections of one round."""

    held: Held
    anchors: Anchors
    described: Described  # rows of the patches in use, before projection
    validation: Described  # and of the validation features' candidates
    units: MetricUnits  # of the first round, so that all rounds have one
    rings: int  # of the projected descriptor
    options: ProjectionOptions
    alternations: int
    distances: tuple[NDArray[np.float32], NDArray[np.float32]]  # of the rows themselves, for starting the first round
    before: NDArray[np.float64] | None  # projection of the last round's model, for starting the others

    def learn(self, setting: GridSetting, key: str, round: int) -> list[tuple[LatentRecord, NDArray[np.float64]]]:
        """Learn a metric."""
        began = perf_counter()
        options = self.options
        averaging = AveragingOptions(options.iterations, options.batch, setting.gamma * self.units.gamma, options.seed)
        problem = MetricProblem.of(self.anchors, self.described, setting.mu * self.units.mu, options.norm, averaging)
        with one_thread():
            result = alternate(
                problem,
                setting.count(self.anchors),
                distances=self.distances if self.before is None else None,
                initial=None if self.before is None else ("negatives", self.before),
                alternations=self.alternations,
                stage="projection",
            )
            projection = result.parameters
            validation = 0.0
            if len(projection):
                validation = find_nearest(self.held.matches, self.held.features, self.validation, projection).recall
        common = _common(setting, result, result.history, began)
        common |= {"dim": len(projection), "rings": self.rings}
        record = LatentRecord("projection", key, round=round, validation=validation, refits=0, **common)
        return [(record, projection)]


def _common(
    setting: GridSetting, result: Alternation[NDArray[np.float64]], history: Sequence[LogEntry], began: float
) -> dict[str, Any]:
    """Common fields of the records of both stages."""
    return {
        **asdict(setting),
        "recall": float(history[-1].recall or 0),
        "objective": result.objective,
        "history": [asdict(entry) for entry in history],
        "seconds": perf_counter() - began,
    }
