"""Binarisation (Simonyan14 section 8): frames whose signs make a binary code of a real-valued descriptor."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from index.errors import CairnError
from index.hamming.sources import parseval_frame
from retrieval.descriptors.codes import BinaryCode

METHODS = ("spread", "frame", "lsh")
"""Methods: a Parseval tight frame with spread thresholds (ours), such a frame with all thresholds at zero (the
paper's), or random projections (its baseline)."""

MOST_BITS = 8_192
"""Largest number of bits: eight times the paper's longest."""


def tight_frame(bits: int, dim: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Vectors (q, m) float32 of a random Parseval tight frame; raises CairnError if q is less than m, or too large."""
    _check_bits(bits)
    if bits < dim:
        raise CairnError(
            "A frame needs at least as many bits as the descriptor has dimensions: choose {dim} or more rather than "
            "{bits}, learn a descriptor of at most {bits} dimensions, or take {--product}, which goes lower.",
            dim=dim,
            bits=bits,
        )
    return parseval_frame(bits, dim, rng)


def random_projections(bits: int, dim: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Normals (q, m) float32 of random hyperplanes (Charikar, STOC 2002); raises CairnError if q is out of range."""
    _check_bits(bits)
    return rng.standard_normal((bits, dim)).astype(np.float32)


def learn_binary(rows: NDArray[np.float32], bits: int, *, method: str = "frame", seed: int = 0) -> BinaryCode:
    """Learn a binary code of training rows (N, m): their mean, and a random frame."""
    if rows.ndim != 2 or not len(rows):
        raise CairnError("A binary code needs rows to learn their mean from: there are none.")
    if method == "spread":
        centred = rows - rows.mean(axis=0, dtype=np.float64)
        return spread_code(rows.mean(axis=0, dtype=np.float64), centred.T @ centred / len(rows), bits, seed=seed)
    return centred_code(rows.mean(axis=0, dtype=np.float64), bits, method=method, seed=seed)


def centred_code(mean: NDArray[np.floating], bits: int, *, method: str = "frame", seed: int = 0) -> BinaryCode:
    """Make a binary code, "frame" or "lsh", from the mean (m,) of training rows; otherwise as `learn_binary`."""
    if not np.isfinite(mean).all():
        raise CairnError("A binary code needs finite rows: some of these are not.")
    draw = {"frame": tight_frame, "lsh": random_projections}[method]
    return BinaryCode(mean.astype(np.float32), draw(bits, len(mean), np.random.default_rng(seed)))


def spread_code(
    mean: NDArray[np.floating], covariance: NDArray[np.floating], bits: int, *, seed: int = 0
) -> BinaryCode:
    """Binary code by a Parseval tight frame, with the thresholds of its bits spread out.

    Signs alone encode directions from the mean, not lengths. So beyond two bits a dimension a bit's threshold is a
    quantile of its projection of training rows, taken for Gaussian, different for each bit, times 1 - 2m / q; up to q =
    2m all are zero, as in the paper.
    """
    if not np.isfinite(covariance).all():
        raise CairnError("A binary code needs finite rows: some of these are not.")
    code = centred_code(mean, bits, seed=seed)
    frame = code.frame.astype(np.float64)
    deviations = np.sqrt(np.maximum(np.einsum("qi,ij,qj->q", frame, covariance, frame, optimize=True), 0))
    quantiles = (np.random.default_rng([seed, 1]).permutation(bits) + 0.5) / bits
    thresholds = max(1 - 2 * len(mean) / bits, 0) * deviations * ndtri(quantiles)
    return replace(code, thresholds=thresholds.astype(np.float32))


def _check_bits(bits: int) -> None:
    if not 1 <= bits <= MOST_BITS:
        raise CairnError(f"A binary code has from 1 to {MOST_BITS:,} bits, not {bits}.")
