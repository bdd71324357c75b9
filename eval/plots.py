"""Plots of what was learnt and measured, after the figures of Simonyan14; they need the optional matplotlib."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from index.errors import CairnError
from learning.roc import fpr95, roc_curve
from retrieval.pooling import axis_kernels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".png", ".pdf", ".svg")
_DPI = 150
_FALSE_POSITIVES = 0.3  # as far as Fig. 7 goes


def plot_roc(curves: Mapping[str, tuple[np.ndarray, np.ndarray]], path: Path) -> None:
    """Draw ROC curves (Fig. 7), the best at 95% recall first in the legend.

    Parameters
    ----------
    curves : mapping of str to (ndarray (M,), ndarray (M,) bool)
        By label: distances and whether a pair matches; see `learning.roc.roc_curve`.
    path : Path
        PNG, PDF or SVG, by its suffix; replaced where it exists. So in all functions here.
    """
    figure = _figure(path, 6, 5)
    axes = figure.add_subplot()
    ranked = sorted((fpr95(*curve), label) for label, curve in curves.items())
    lowest = 1.0
    for error, label in ranked:
        fpr, tpr, _ = roc_curve(*curves[label])
        axes.plot(fpr, tpr, label=f"{label} ({100 * error:.2f}%)")
        lowest = min(lowest, np.interp(0.01, fpr, tpr))
    axes.axhline(0.95, color="grey", linewidth=0.8, linestyle=":")
    axes.set(xlim=(0, _FALSE_POSITIVES), ylim=(min(0.7, max(0.0, lowest - 0.05)), 1))
    axes.set(xlabel="false positive rate", ylabel="true positive rate")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right", title="FPR at 95% recall", fontsize=8)
    _save(figure, path)


def plot_dimension_error(models: Mapping[str, Sequence[tuple[int, float]]], path: Path) -> None:
    """Draw the error of every model tried against its dimension, and the lower envelope (Fig. 3), a panel a kind.

    Parameters
    ----------
    models : mapping of str to sequence of (int, float)
        By kind, ``pooling`` or ``projection``: the dimension and the error (0 to 1) of each model.
    path : Path
        See `plot_roc`.
    """
    figure = _figure(path, 6, 3.4 * len(models))
    for place, (kind, entries) in enumerate(models.items(), start=1):
        axes = figure.add_subplot(len(models), 1, place)
        dims, errors = np.array(entries, np.float64).reshape(-1, 2).T
        axes.scatter(dims, 100 * errors, s=12, color="tab:blue", alpha=0.5, linewidths=0)
        axes.plot(*_percent(lower_envelope(dims, errors)), color="tab:red", marker=".", drawstyle="steps-post")
        axes.set(title=kind, xlabel="dimension", ylabel="false positive rate at 95% recall, %")
        axes.grid(alpha=0.3)
    _save(figure, path)


def lower_envelope(dims: np.ndarray, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give the models that no other of at most their dimension equals or beats, by rising dimension.

    Parameters
    ----------
    dims, errors : ndarray, shape (M,)
        Of each model.

    Returns
    -------
    dims, errors : ndarray, shape (K,)
        Dimensions strictly rise, errors strictly fall.
    """
    order = np.lexsort((errors, dims))
    ranked = errors[order]
    best = np.minimum.accumulate(np.concatenate([[np.inf], ranked[:-1]]))
    kept = order[ranked < best]
    return dims[kept], errors[kept]


def plot_pooling_regions(regions: np.ndarray, weights: np.ndarray, radius: float, path: Path) -> None:
    """Draw pooling regions as circles of radius σ, coloured by weight, beside each pixel's contribution (Fig. 4).

    Parameters
    ----------
    regions : ndarray, shape (R, 3)
        x, y and σ, in pixels from the patch's centre.
    weights : ndarray, shape (R,)
        Learnt weights, not negative.
    radius : float
        Half the patch's side, in pixels.
    path : Path
        See `plot_roc`.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.patches import Circle

    figure = _figure(path, 10.5, 4.6)
    left, right = figure.subplots(1, 2)
    scale = Normalize(0, float(np.max(weights, initial=0)) or 1.0)
    colours = ScalarMappable(scale, "turbo")
    for row in np.argsort(weights, kind="stable"):  # the heaviest on top
        x, y, sigma = map(float, regions[row])
        colour = colours.cmap(scale(float(weights[row])))
        left.add_patch(Circle((x, y), sigma, fill=False, color=colour, linewidth=1.2))
    left.set(title=f"{len(regions)} pooling regions and their weights")
    figure.colorbar(colours, ax=left)

    shown = right.imshow(
        pixel_contribution(regions, weights, radius), cmap="turbo", extent=(-radius, radius, radius, -radius)
    )
    right.set(title="relative contribution of pixels")
    figure.colorbar(shown, ax=right)
    for axes in (left, right):
        axes.set(xlim=(-radius, radius), ylim=(radius, -radius), aspect="equal", xlabel="pixels")
    _save(figure, path)


def pixel_contribution(regions: np.ndarray, weights: np.ndarray, radius: float) -> np.ndarray:
    """Give the share of each pixel in a descriptor: the weighted mean of the regions' Gaussians (Fig. 4, right).

    Each Gaussian has unit mass on the patch, as in pooling: a small region gives much to few pixels.

    Parameters
    ----------
    regions, weights, radius
        See `plot_pooling_regions`.

    Returns
    -------
    ndarray, shape (S, S), float64
        S the whole number next to twice the radius; the centre of pixel 0 lies at (1 - S) / 2. The sum is 1, or 0
        where all the weights are.
    """
    size = max(1, round(2 * radius))
    total = np.sum(weights, dtype=np.float64)
    if total == 0:
        return np.zeros((size, size))
    across, down = (axis_kernels(regions[:, axis], regions[:, 2], size) for axis in (0, 1))
    return np.asarray((down * (np.asarray(weights, np.float64) / total)[:, None]).T @ across)


def plot_metric(metric: np.ndarray, path: Path) -> None:
    """Draw a learnt Mahalanobis matrix A (n, n) (Fig. 5, left): the brighter, the larger.

    The few entries beyond the 0.5% and 99.5% quantiles are shown as those, or they would hide all others.
    """
    figure = _figure(path, 6.2, 5.4)
    axes = figure.add_subplot()
    low, high = np.quantile(metric, [0.005, 0.995])
    shown = axes.imshow(metric, cmap="gray", vmin=low, vmax=high if high > low else low + 1, interpolation="nearest")
    axes.set(title=f"A, {len(metric)} x {len(metric)}, of rank {np.linalg.matrix_rank(metric, hermitian=True)}")
    figure.colorbar(shown, ax=axes)
    _save(figure, path)


def plot_bits(models: Mapping[str, tuple[Sequence[int], Sequence[float], float]], path: Path) -> None:
    """Draw the error of binary codes against their length, beside that of what they were made of (Fig. 6).

    Parameters
    ----------
    models : mapping of str to (sequence of int, sequence of float, float)
        By label: lengths in bits, their errors (0 to 1), and the error of the real-valued descriptor, which is drawn
        as a dashed line of the same colour.
    path : Path
        See `plot_roc`.
    """
    from matplotlib.ticker import ScalarFormatter

    figure = _figure(path, 6.5, 5)
    axes = figure.add_subplot()
    lengths = sorted({bits for row, _, _ in models.values() for bits in row})
    for number, (label, (bits, errors, parent)) in enumerate(models.items()):
        axes.plot(*_percent((np.asarray(bits), np.asarray(errors))), color=f"C{number}", marker="o", label=label)
        axes.axhline(100 * parent, color=f"C{number}", linestyle="--", linewidth=1)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.set_xticks(lengths)
    axes.set(xlabel="length of the code, bits", ylabel="false positive rate at 95% recall, %")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(title="codes (dashed: real-valued)", fontsize=8)
    _save(figure, path)


def check_plot(path: Path) -> None:
    """Raise a CairnError if no plot can be written there: before the work whose result it is to show."""
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise CairnError(f"{path.name} is no name for a plot: let it end with {', '.join(FORMATS)}.")
    if not path.parent.is_dir():
        raise CairnError(f"The folder {path.parent} does not exist: make it first, or choose another.")
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise CairnError("Plots need matplotlib: install cairn-search[plots].") from error


def _figure(path: Path, width: float, height: float) -> "Figure":
    """An empty figure, in inches; by itself, so that no window system and no state of pyplot is touched."""
    check_plot(path)
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _save(figure: "Figure", path: Path) -> None:
    from matplotlib import rc_context

    # Without the date and with fixed identifiers: the same data give the same file.
    stamp: dict[str, Any] = {".png": {}, ".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
    with rc_context({"svg.hashsalt": "cairn"}):
        figure.savefig(path, dpi=_DPI, metadata=stamp[Path(path).suffix.lower()])


def _percent(curve: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    return curve[0], 100 * curve[1]
