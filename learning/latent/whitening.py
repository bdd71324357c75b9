"""Whitening learnt from mined matches (see `learning.convex.whitening`).

Latent, as in Simonyan14 section 9, are the match of a feature, its nearest positive, and the K features with a match.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from index.parallel import one_thread
from learning.convex.whitening import STAGE, RowMoments, WhiteningOptions, WhiteningSetting, fit_whitening, whiten
from learning.latent.alternation import GroupedRows, LogEntry
from learning.latent.described_patches import Described
from learning.latent.models import Held, LatentRecord
from learning.latent.nearest import find_nearest
from learning.mining.matches import MinedMatches
from learning.patches.rows import squared_distances
from retrieval.groups.links import components


@dataclass(frozen=True)
class LatentSetting:
    """Setting of a whitening in a grid."""

    share: float  # K over the number of training features
    whitening: WhiteningSetting


@dataclass(frozen=True)
class Positives:
    """Training features, their positives and weights, as rows of the described patches."""

    references: NDArray[np.int64]  # (F,) row of each feature
    positives: GroupedRows
    positive_rows: NDArray[np.int64]  # (M,)
    weights: NDArray[np.float64]  # (F,) float64, with mean 1

    @staticmethod
    def patches_of(matches: MinedMatches, features: NDArray[np.int64]) -> NDArray[np.int32]:
        """All patches of features and their positives, ascending."""
        lists = [matches.positives(x) for x in features.tolist()]
        return np.unique(np.concatenate([matches.reference[features], *lists]))

    @classmethod
    def of(cls, matches: MinedMatches, features: NDArray[np.int64], described: Described) -> "Positives":
        """Look up features among the described patches."""
        lists = [matches.positives(x) for x in features.tolist()]
        starts = np.cumsum([0, *(len(one) for one in lists)]).astype(np.int64)
        return cls(
            described.places(matches.reference[features]),
            GroupedRows(starts),
            described.places(np.concatenate(lists)),
            scene_weights(matches, features),
        )

    def nearest(self, rows: NDArray[np.float32], share: float) -> "Closest":
        """Find the nearest positive of each feature, and the `share` of features nearest to theirs."""
        owners = np.repeat(self.references, np.diff(self.positives.starts))
        distances = squared_distances(rows.__getitem__, owners, self.positive_rows)
        place = self.positives.nearest(distances)
        count = max(1, round(share * len(self.references)))
        chosen = np.sort(np.argsort(distances[place], kind="stable")[:count])
        return Closest(chosen, self.positive_rows[place][chosen], distances[place][chosen])

    def spread(self, rows: NDArray[np.float32], closest: "Closest") -> NDArray[np.float64]:
        """Weighted mean of θθᵀ (n, n) over the differences of matches."""
        differences = rows[self.references[closest.chosen]] - rows[closest.matches]
        weights = self.weights[closest.chosen]
        with one_thread():
            moments = (differences * weights[:, None].astype(np.float32)).T @ differences
        return np.asarray(moments.astype(np.float64) / weights.sum())


@dataclass(frozen=True)
class Closest:
    """The K features nearest to their matches."""

    chosen: NDArray[np.int64]  # (K,) indices of training features, ascending
    matches: NDArray[np.int64]  # (K,) row of the match of each
    distances: NDArray[np.float32]  # (K,) squared distance to it


def scene_weights(matches: MinedMatches, features: NDArray[np.int64]) -> NDArray[np.float64]:
    """Weights (F,) of features, with mean 1: a scene, a component of image pairs, counts by the root of its features.

    Otherwise a castle of forty photos would outweigh all others.
    """
    of_photo = np.full(len(matches.names), -1, np.int64)
    for number, members in enumerate(components((int(one), int(two)) for one, two in matches.pairs)):
        of_photo[list(members)] = number
    scenes = of_photo[matches.pairs[matches.pair[features], 0]]
    weights = 1 / np.sqrt(np.bincount(scenes)[scenes])
    return np.asarray(weights / weights.mean())


@dataclass(frozen=True)
class WhiteningWork:
    """Common data of whitenings."""

    held: Held
    training: Positives
    moments: RowMoments  # of the training features' rows
    described: Described  # rows of the training features and their positives
    validation: Described  # and of the validation features' candidates
    alternations: int  # most alternations of fitting and choosing matches

    def learn(self, setting: LatentSetting, key: str) -> list[tuple[LatentRecord, NDArray[np.float64]]]:
        """Learn a whitening."""
        began = perf_counter()
        training, rows = self.training, self.described.rows.astype(np.float32)
        nearest = training.nearest(rows, setting.share)
        parameters = np.empty((0, 0))
        history: list[LogEntry] = []
        for _ in range(self.alternations):
            spread = training.spread(rows, nearest)
            parameters = fit_whitening(self.moments, spread, setting.whitening.shrinkage)[: setting.whitening.dim]
            nearest = training.nearest(whiten(rows, parameters), setting.share)
            objective = float(np.average(nearest.distances, weights=training.weights[nearest.chosen]))
            history.append(LogEntry(STAGE, 0, "positives", objective, None, None))
        record = LatentRecord(
            stage=STAGE,
            key=key,
            share=setting.share,
            mu=setting.whitening.shrinkage,
            gamma=0.0,
            round=0,
            dim=len(parameters),
            rings=0,
            recall=0.0,
            validation=self._validate(parameters),
            objective=history[-1].objective,
            refits=0,
            history=[asdict(entry) for entry in history],
            seconds=perf_counter() - began,
        )
        return [(record, parameters)]

    def _validate(self, parameters: NDArray[np.float64]) -> float:
        """Recall of equation 15 on the validation features, against all their candidates."""
        rows = whiten(self.validation.rows, parameters).astype(np.float16)  # in the precision of stored descriptors
        return find_nearest(self.held.matches, self.held.features, Described(self.validation.numbers, rows)).recall


def grid(shares: Sequence[float], options: WhiteningOptions, dim: int) -> list[LatentSetting]:
    """All settings to try, for at most this many dimensions."""
    return [LatentSetting(share, one) for share in dict.fromkeys(shares) for one in options.settings(dim)]
