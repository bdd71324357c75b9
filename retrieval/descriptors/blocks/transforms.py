"""G- and T-blocks: patches are smoothed, and each sample becomes a vector of filter responses (Brown11, III.A, III.B).

The steerable filters are those of Freeman and Adelson, *The Design and Use of Steerable Filters*, PAMI 1991, appendix.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from retrieval.descriptors.blocks.parameters import Parameter, length
from retrieval.descriptors.gradients import orientation_channels

_ORIENTATIONS = {"T1a": 4, "T1b": 8, "T1c": 16}
_STEERABLE = {"T3g": (2, 4), "T3h": (4, 4), "T3i": (2, 8), "T3j": (4, 8)}  # order of the derivative, orientations
_CHANNELS = {"T2a": 4, "T2b": 8, "T4": 4, "pixels": 1, "gradients": 2}

TRANSFORMS = (*_ORIENTATIONS, "T2a", "T2b", *_STEERABLE, "T4", "pixels", "gradients")
"""T-blocks, and two plain inputs that Brown11 compares them with (table II). T1c, of 16 directions, is in table I."""

SURROUND = 1.4
"""Width of a difference of Gaussians' surround over that of its centre."""


@dataclass(frozen=True)
class FilterBasis:
    """A steerable filter P(x) exp(-x² - y²), as separable filters whose weighted sums are those of all orientations."""

    across: tuple[NDArray[np.float64], ...]  # taps along x of each separable filter
    down: tuple[NDArray[np.float64], ...]  # and along y
    powers: NDArray[np.int64]  # (B,) int: each counts cos^(order - power) sin^power of the angle
    order: int  # of P

    def weights(self, angle: float) -> NDArray[np.float64]:
        """Weights (B,) float64 of the separable filters in the filter rotated by an angle, radians from x towards y."""
        return np.asarray(np.cos(angle) ** (self.order - self.powers) * np.sin(angle) ** self.powers)


def _polynomial(order: int, odd: bool) -> tuple[float, ...]:
    """P of Freeman and Adelson's filters G2, H2, G4, H4, lowest power first."""
    scale, coefficients = {
        (2, False): (0.9213, (-1, 0, 2)),
        (2, True): (0.9780, (0, -2.254, 0, 1)),
        (4, False): (1.246, (0.75, 0, -3, 0, 1)),
        (4, True): (0.3975, (0, 7.189, 0, -7.501, 0, 1)),
    }[order, odd]
    return tuple(scale * coefficient for coefficient in coefficients)


def _separable_terms(polynomial: Sequence[float]) -> list[tuple[int, NDArray[np.float64], NDArray[np.float64]]]:
    """Write P(x cos + y sin) as a sum of cos^(n - k) sin^k X(x) Y(y): k and the polynomials X, Y of each term.

    All powers of P have the parity of its order n; lower ones are brought to it by cos² + sin² = 1.
    """
    order = len(polynomial) - 1
    coefficients = np.zeros((order + 1, order + 1, order + 1))  # by k, and the powers of x and of y
    for power, coefficient in enumerate(polynomial):
        if coefficient:
            missing = (order - power) // 2
            for of_y in range(power + 1):
                for sines in range(missing + 1):
                    coefficients[of_y + 2 * sines, power - of_y, of_y] += (
                        coefficient * comb(power, of_y) * comb(missing, sines)
                    )
    terms = []
    for k, matrix in enumerate(coefficients):
        # One product each, except two of H4, which are sums of two. (The published table has an approximation.)
        left, values, right = np.linalg.svd(matrix)
        terms += [(k, left[:, row] * value, right[row]) for row, value in enumerate(values) if value > 1e-9]
    return terms


def quadrature_pair(order: int) -> tuple[FilterBasis, FilterBasis]:
    """Return the even and the odd filter (G and H) of a derivative of a Gaussian, of order 2 or 4.

    There are 9 or 13 taps, 0.67 or 0.5 apart, as in Freeman and Adelson's tables. The mean that remains after
    truncating G's tails is subtracted, so that there is no response to a flat patch.

    Taps are samples, whatever the patch's size: of a patch of 32 samples a side the filters cover twice the part that
    they cover of one of 64, which is the paper's, and its error is far larger.
    """
    spacing, number = {2: (0.67, 4), 4: (0.5, 6)}[order]
    points = spacing * np.arange(-number, number + 1)
    gaussian = np.exp(-(points**2))

    def taps(polynomial: NDArray[np.float64], balanced: bool) -> NDArray[np.float64]:
        values = np.polynomial.polynomial.polyval(points, polynomial) * gaussian
        if balanced and np.abs(polynomial[1:]).max() > 1e-9:
            values = values - gaussian * (values.sum() / gaussian.sum())
        return np.asarray(values)

    def basis(odd: bool) -> FilterBasis:
        terms = _separable_terms(_polynomial(order, odd))
        across = tuple(taps(x, not odd) for _, x, _ in terms)
        down = tuple(taps(y, not odd) for *_, y in terms)
        return FilterBasis(across, down, np.array([k for k, *_ in terms]), order + odd)

    return basis(odd=False), basis(odd=True)


def line_operator(
    size: int, sigma: float, taps: NDArray[np.float64] | None = None, margin: int = 0
) -> NDArray[np.float32]:
    """Matrix (S + 2 margin, S) that filters a line of samples by `taps` (2 R + 1,), smoothed first by a Gaussian of
    `sigma` samples (0: none). `size`: samples of the line, S; beyond its ends it is continued by its border samples.
    `margin`: samples beyond each end that results are given for too.
    """
    reach = int(np.ceil(4 * sigma))
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2) if sigma > 0 else np.ones(1)
    kernel /= kernel.sum()
    if taps is not None:
        kernel = np.convolve(kernel, taps)
    reach = len(kernel) // 2
    operator = np.zeros((size + 2 * margin, size))
    rows = np.arange(size + 2 * margin)
    for offset, tap in zip(range(-reach, reach + 1), kernel, strict=True):
        np.add.at(operator, (rows, np.clip(rows - margin + offset, 0, size - 1)), tap)
    return operator.astype(np.float32)


def transform_parameters(name: str) -> list[Parameter]:
    """Parameters of the G-block and of a T-block."""
    parameters = [length("smoothing", 3.0, 0.5, 8.0)]
    if name == "T4":
        parameters.append(Parameter("second_centre", 2.0, 1.1, 4.0, length=False))
    return parameters


def transform_dim(name: str) -> int:
    """Length k of the vector that a T-block makes of a sample."""
    if name in _STEERABLE:
        return 4 * _STEERABLE[name][1]
    return _ORIENTATIONS.get(name) or _CHANNELS[name]


class Transform:
    """A G-block and the T-block that follows."""

    def __init__(self, name: str, size: int, parameters: Mapping[str, float]) -> None:
        self.name = name
        self.dim = transform_dim(name)
        self._size = size
        sigma = parameters["smoothing"]
        if name in _STEERABLE:
            order, orientations = _STEERABLE[name]
            angles = np.pi * np.arange(orientations) / orientations
            self._pairs = [_SteeredFilters(basis, size, sigma, angles) for basis in quadrature_pair(order)]
        elif name == "T4":
            second = parameters["second_centre"]
            widths = [sigma, SURROUND * sigma, second * sigma, SURROUND * second * sigma]
            self._gaussians = [line_operator(size, width) for width in widths]
        else:
            self._smoothing = line_operator(size, sigma, margin=0 if name == "pixels" else 1)

    def __call__(self, patches: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the responses of patches (N, S, S) float32 as (k, N, S²) float32, all 0 without contrast.

        They are zero or positive except for `pixels` and `gradients`.
        """
        # Filters ignore the mean of all samples; without it, a flat patch is exactly zero in spite of rounding.
        patches = patches - patches[:, :1, :1]
        if self.name in _STEERABLE:
            return self._steered(patches)
        if self.name == "T4":
            return self._differences(patches)
        smooth = separable(patches, self._smoothing, self._smoothing)
        if self.name in _ORIENTATIONS:
            return orientation_channels(smooth, self.dim)
        if self.name == "pixels":
            return np.asarray((smooth - smooth.mean(axis=(1, 2), keepdims=True)).reshape(1, len(patches), -1))
        across = (smooth[:, 1:-1, 2:] - smooth[:, 1:-1, :-2]).reshape(len(patches), -1)
        down = (smooth[:, 2:, 1:-1] - smooth[:, :-2, 1:-1]).reshape(len(patches), -1)
        if self.name == "gradients":
            return np.stack([across, down])
        components = [across, down]
        if self.name == "T2b":  # the gradient along the diagonals
            components += [(across + down) * np.float32(0.5**0.5), (down - across) * np.float32(0.5**0.5)]
        return rectified(np.stack(components))

    def _steered(self, patches: NDArray[np.float32]) -> NDArray[np.float32]:
        responses: NDArray[np.float32] = np.empty((self.dim, len(patches), self._size**2), np.float32)
        half = self.dim // 2
        for number, filters in enumerate(self._pairs):
            rectified(filters(patches), out=responses[number * half : (number + 1) * half])
        return responses

    def _differences(self, patches: NDArray[np.float32]) -> NDArray[np.float32]:
        first, second = (
            separable(patches, centre, centre) - separable(patches, surround, surround)
            for centre, surround in (self._gaussians[:2], self._gaussians[2:])
        )
        return rectified(np.stack([first, second]).reshape(2, len(patches), -1))


class _SteeredFilters:
    """Responses to one filter at several orientations, the patches being smoothed first."""

    def __init__(self, basis: FilterBasis, size: int, sigma: float, angles: NDArray[np.float64]) -> None:
        self._size = size
        self._across = np.ascontiguousarray(
            np.concatenate([line_operator(size, sigma, taps) for taps in basis.across]).T
        )
        self._down = [line_operator(size, sigma, taps) for taps in basis.down]
        self._weights = np.stack([basis.weights(angle) for angle in angles]).astype(np.float32)

    def __call__(self, patches: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return responses (orientations, N, S²) float32 of patches (N, S, S)."""
        number, size = len(patches), self._size
        across = (patches.reshape(-1, size) @ self._across).reshape(number, size, len(self._down), size)
        basis = np.empty((len(self._down), number, size, size), np.float32)
        for row, down in enumerate(self._down):
            np.matmul(down, across[:, :, row], out=basis[row])
        steered = self._weights @ basis.reshape(len(basis), -1)
        return steered.reshape(len(steered), number, -1)


def separable(
    patches: NDArray[np.float32], across: NDArray[np.float32], down: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Filter patches (N, S, S) along x and along y by matrices (T, S) of `line_operator`: (N, T, T)."""
    lines = patches.reshape(-1, patches.shape[2]) @ across.T
    return np.asarray(np.matmul(down, lines.reshape(len(patches), -1, len(across))))


def rectified(responses: NDArray[np.float32], out: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
    """Part signed responses (n, N, P) into (|v| + v) / 2 and (|v| - v) / 2, (2 n, N, P), all of one sign together."""
    number = len(responses)
    parts = np.empty((2 * number, *responses.shape[1:]), responses.dtype) if out is None else out
    np.maximum(responses, 0, out=parts[:number])
    np.subtract(parts[:number], responses, out=parts[number:])
    return parts
