"""Product quantisation of a real-valued descriptor: subspaces, and the codewords of each.

In the paper (Simonyan14 section 10.1) a part consists of neighbouring dimensions. A learnt descriptor's dimensions
differ widely in variance, so parts of small variance waste their bits. The default here is ours, not the paper's: rows
are rotated to their principal axes, which are assigned to parts so that the products of their variances are similar
(the parametric solution of Ge, He, Ke, Sun, *Optimized Product Quantization*, PAMI 2014, section 3.3). The codes stay
of the same length.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from index.clustering.kmeans import KMeansOptions, approximate_kmeans
from index.clustering.sources import ArraySource
from index.errors import CairnError
from index.parallel import one_thread
from retrieval.descriptors.codes import WORDS, ProductCode

METHODS = ("balanced", "plain")
"""Assignment of dimensions to parts: principal axes by variance (ours), or in order (the paper's)."""

# Axes of less variance than this fraction of the largest are raised to it: their logarithm is noise.
_FLAT = 1e-9

# Bins of the histogram of values for the density of codewords.
_CELLS = 64


@dataclass(frozen=True)
class ProductOptions:
    """Settings of product quantisation."""

    bits: int = 64  # of a code at most, a multiple of 8; one byte a part, and no more parts than dimensions
    method: str = "balanced"  # one of METHODS
    iterations: int = 25  # of k-means, for the codewords of each part
    seed: int = 0  # of k-means

    def __post_init__(self) -> None:
        if self.bits < 8 or self.bits % 8:
            raise CairnError(f"A product code takes whole bytes: choose a multiple of 8 bits, not {self.bits}.")
        if self.method not in METHODS:
            raise CairnError(f"There is no method {self.method!r}: choose one of {', '.join(METHODS)}.")


def learn_product(rows: NDArray[np.float32], options: ProductOptions = ProductOptions()) -> ProductCode:
    """Learn a product quantiser of at most `options.bits` bits from rows (N, m): some 50 or more for each of the 256
    codewords.

    A part of one dimension is a scalar quantiser.
    """
    rows = np.ascontiguousarray(rows, np.float32)
    if rows.ndim != 2 or len(rows) < WORDS or not rows.shape[1]:
        raise CairnError(f"A product code is learnt from at least {WORDS} rows: there are {len(rows)}.")
    if not np.isfinite(rows).all():
        raise CairnError("A product code is learnt from finite rows: some of these are not.")
    dim = rows.shape[1]
    parts = min(options.bits // 8, dim)
    rotation = None
    # With one dimension a part there is nothing to assign.
    if options.method == "balanced" and parts < dim:
        rotation, sizes = balanced_rotation(rows, parts)
        with one_thread():
            rows = rows @ rotation
    else:
        sizes = np.array([len(part) for part in np.array_split(np.arange(dim), parts)], np.int32)
    centroids = np.empty((WORDS, dim), np.float32)
    for end, size in zip(np.cumsum(sizes), sizes, strict=True):
        columns = slice(end - size, end)
        centroids[:, columns] = _codewords(np.ascontiguousarray(rows[:, columns]), options)
    return ProductCode(centroids, sizes, rotation)


def balanced_rotation(rows: NDArray[np.float32], parts: int) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Rotation (m, m) to principal axes, assigned to parts so that the products of variances are similar; lengths of
    parts.

    The error of an ideal quantiser of d dimensions is d (Π σ²)^(1/d) 2^(-2 bits / d); the sum is least if the products
    are equal. So axes are assigned in order of falling variance, each to the part with the least product that is not
    full.
    """
    with one_thread():
        covariance = np.cov(rows.T, dtype=np.float64).reshape(rows.shape[1], -1)
        variances, axes = np.linalg.eigh(covariance)
    variances = np.maximum(variances, max(variances[-1], np.finfo(float).tiny) * _FLAT)
    # Relative to the least, so that each axis raises a product and an empty part is chosen first.
    logarithms = np.log(variances / variances[0])
    most = -(-len(variances) // parts)
    dealt: list[list[int]] = [[] for _ in range(parts)]
    products = np.zeros(parts)
    for axis in range(len(variances) - 1, -1, -1):  # eigh returns them in rising order
        part = min(
            (part for part in range(parts) if len(dealt[part]) < most), key=lambda p: (products[p], len(dealt[p]))
        )
        dealt[part].append(axis)
        products[part] += logarithms[axis]
    rotation = axes[:, np.concatenate(dealt)].astype(np.float32)
    return np.ascontiguousarray(rotation), np.array([len(part) for part in dealt], np.int32)


def rows_of_moments(
    mean: NDArray[np.floating], covariance: NDArray[np.floating], number: int, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Draw Gaussian rows (number, m) float32 in place of training rows, from their mean and covariance."""
    with one_thread():
        variances, axes = np.linalg.eigh(np.asarray(covariance, np.float64))
        # Rounding can leave a variance of zero a little below it.
        drawn = rng.standard_normal((number, len(mean))) * np.sqrt(np.maximum(variances, 0))
        return np.asarray((drawn @ axes.T + mean).astype(np.float32))


def _codewords(part: NDArray[np.float32], options: ProductOptions) -> NDArray[np.float32]:
    """Codewords (256, d) float32 of a part (N, d) of all rows."""
    if part.shape[1] == 1:
        return _scalar_codewords(part[:, 0], options.iterations)[:, None]
    k_means = KMeansOptions(WORDS, options.iterations, options.seed, sample_per_word=0)
    centres = approximate_kmeans(ArraySource(part), k_means).centres
    # With fewer distinct rows than codewords the first is repeated.
    return np.concatenate([centres, np.repeat(centres[:1], WORDS - len(centres), axis=0)])


def _scalar_codewords(values: NDArray[np.float32], iterations: int) -> NDArray[np.float32]:
    """Codewords (256,) float32 on a line, by Lloyd's algorithm from the spacing that is best for many codewords.

    The density of codewords is proportional to the cube root of that of the values (Panter, Dite, 1951). From an even
    grid, or from random values, Lloyd's algorithm ends with about twice the error, as codewords move only a little.
    """
    values = np.sort(values.astype(np.float64))
    sums = np.concatenate([[0], np.cumsum(values)])
    counts, edges = np.histogram(values, bins=_CELLS)
    share = np.concatenate([[0], np.cumsum(np.cbrt(counts))])
    words = np.interp((np.arange(WORDS) + 0.5) / WORDS, share / share[-1], edges)
    for _ in range(iterations):
        ends = np.concatenate([[0], np.searchsorted(values, (words[1:] + words[:-1]) / 2), [len(values)]])
        counts = np.diff(ends)
        words = np.where(counts > 0, np.diff(sums[ends]) / np.maximum(counts, 1), words)
    return np.asarray(words.astype(np.float32))
