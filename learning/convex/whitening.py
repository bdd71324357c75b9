"""Whitening: a projection in closed form, after which rows are centred and of unit length.

The metric A = S⁻¹, S the covariance of the differences between matches, minimises tr(AS) - log det A: changes between
two photos of the same object then count equally in all directions. After whitening, the directions of most variance are
kept (Mikolajczyk, Matas, ICCV 2007).
"""

from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from index.parallel import one_thread
from learning.convex.projection import DifferencePairs
from learning.convex.records import Record
from learning.convex.ring_selection import fpr95_of
from learning.patches.rows import squared_distances
from retrieval.descriptors.learnt import LearntModel, centred

STAGE = "whitening"


@dataclass(frozen=True)
class WhiteningOptions:
    """Grid of whitenings."""

    shrinkages: tuple[float, ...] = (0.1, 0.3, 1.0)  # of S to a multiple of the identity; see `fit_whitening`
    kept: tuple[float, ...] = (1.0, 0.75, 0.5)  # shares of the wanted dimensions to keep

    def settings(self, dim: int) -> list["WhiteningSetting"]:
        """All settings to try, for at most this many dimensions."""
        dims = dict.fromkeys(max(1, int(dim * share)) for share in self.kept)
        return [WhiteningSetting(shrinkage, most) for shrinkage in self.shrinkages for most in dims]


@dataclass(frozen=True)
class WhiteningSetting:
    """Setting of a whitening."""

    shrinkage: float
    dim: int  # most dimensions kept


@dataclass(frozen=True)
class RowMoments:
    """Mean of features' rows, and their variance, which orders the directions."""

    mean: NDArray[np.float64]  # (n,) float64
    covariance: NDArray[np.float64]  # (n, n) float64

    @classmethod
    def of(cls, rows: NDArray[np.float32]) -> "RowMoments":
        """Compute them from rows (N, n)."""
        with one_thread():
            return cls(rows.mean(axis=0, dtype=np.float64), np.cov(rows, rowvar=False, dtype=np.float64))


def fit_whitening(moments: RowMoments, spread: NDArray[np.float64], shrinkage: float) -> NDArray[np.float64]:
    """Fit a whitening to S (n, n), the mean of θθᵀ over the differences θ between matches: W of `whiten`, the direction
    of most variance first, and the centre W μ, (n, n + 1). The first m rows are the whitening to m dimensions.

    `shrinkage`: S + shrinkage · tr(S)/n · I replaces S, so that no direction is magnified without limit.
    """
    n = len(spread)
    with one_thread():
        values, vectors = np.linalg.eigh(spread + shrinkage * np.trace(spread) / n * np.eye(n))
        whitening = (vectors / np.sqrt(values)) @ vectors.T
        _, directions = np.linalg.eigh(whitening @ moments.covariance @ whitening)
        projection = directions[:, ::-1].T @ whitening
    # Fix the sign, so that the same photos give the same file.
    projection *= np.sign(projection[np.arange(n), np.abs(projection).argmax(axis=1)])[:, None]
    return np.column_stack([projection, projection @ moments.mean])


def whiten(rows: NDArray[np.floating], parameters: NDArray[np.float64]) -> NDArray[np.float32]:
    """Whiten rows (N, n) by parameters (m, n + 1): (N, m) float32 of unit length."""
    projection, centre = parameters[:, :-1].astype(np.float32), parameters[:, -1].astype(np.float32)
    with one_thread():
        return centred(rows.astype(np.float32) @ projection.T, centre)


def whitened(model: LearntModel, parameters: NDArray[np.float64]) -> LearntModel:
    """Add a whitening from `fit_whitening` to a descriptor."""
    single = parameters.astype(np.float32)
    return replace(model, projection=single[:, :-1], centre=single[:, -1])


def learn_whitening(
    train: DifferencePairs,
    validation: DifferencePairs,
    moments: RowMoments,
    spread: NDArray[np.float64],
    key: str,
    setting: WhiteningSetting,
) -> list[tuple[Record, NDArray[np.float64]]]:
    """Learn a whitening from labelled pairs: `moments` of rows of all training pairs, `spread` of positive pairs."""
    began = perf_counter()
    parameters = fit_whitening(moments, spread, setting.shrinkage)[: setting.dim]
    whitened_rows = whiten(train.positive.descriptors, parameters)
    objective = squared_distances(whitened_rows.__getitem__, train.positive.first, train.positive.second).mean(
        dtype=np.float64
    )
    distances = (
        squared_distances(whitened_rows.__getitem__, pairs.first, pairs.second)
        for pairs in (validation.positive, validation.negative)
    )
    record = Record(
        stage=STAGE,
        key=key,
        mu=setting.shrinkage,
        gamma=0.0,
        dim=len(parameters),
        rings=0,
        fpr95=fpr95_of(*distances),
        objective=float(objective),
        refits=0,
        seconds=perf_counter() - began,
    )
    return [(record, parameters)]
