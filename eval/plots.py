"""Plots of models and measurements, after the figures of Simonyan14; they need the optional matplotlib."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from learning.measures.roc import fpr95, roc_curve
from learning.reports.figures import new_figure, require_matplotlib
from learning.reports.pooling_drawing import pixel_contribution, pooling_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "FORMATS",
    "check_plot",
    "lower_envelope",
    "new_plot",
    "pixel_contribution",
    "plot_bits",
    "plot_dimension_error",
    "plot_metric",
    "plot_pooling_regions",
    "plot_pr",
    "plot_roc",
    "plot_similarities",
    "save_plot",
]

FORMATS = (".png", ".pdf", ".svg")
_DPI = 150
_FALSE_POSITIVES = 0.3  # the range of Fig. 7


def plot_roc(curves: Mapping[str, tuple[NDArray[np.floating], NDArray[np.bool_]]], path: Path) -> None:
    """Draw ROC curves (Fig. 7) of distances and match labels by name, the best at 95% recall first in the legend."""
    figure = new_plot(path, 6, 5)
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
    save_plot(figure, path)


def plot_pr(curves: Mapping[str, tuple[NDArray[np.floating], NDArray[np.floating]]], path: Path) -> None:
    """Draw precision against recall (rising) by label, the curve with the largest area first in the legend."""
    figure = new_plot(path, 6, 5)
    axes = figure.add_subplot()
    ranked = sorted(curves.items(), key=lambda entry: (-float(np.trapezoid(entry[1][1], entry[1][0])), entry[0]))
    for label, (recall, precision) in ranked:
        axes.plot(recall, precision, label=label)
    axes.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="recall", ylabel="precision (interpolated, mean over queries)")
    axes.grid(alpha=0.3)
    axes.legend(loc="best", fontsize=8)
    save_plot(figure, path)


def plot_dimension_error(models: Mapping[str, Sequence[tuple[int, float]]], path: Path) -> None:
    """Draw the error (0 to 1) of all models tried by dimension, and the lower envelope (Fig. 3), a panel a kind."""
    figure = new_plot(path, 6, 3.4 * len(models))
    for place, (kind, entries) in enumerate(models.items(), start=1):
        axes = figure.add_subplot(len(models), 1, place)
        dims, errors = np.array(entries, np.float64).reshape(-1, 2).T
        axes.scatter(dims, 100 * errors, s=12, color="tab:blue", alpha=0.5, linewidths=0)
        axes.plot(*_percent(lower_envelope(dims, errors)), color="tab:red", marker=".", drawstyle="steps-post")
        axes.set(title=kind, xlabel="dimension", ylabel="false positive rate at 95% recall, %")
        axes.grid(alpha=0.3)
    save_plot(figure, path)


def lower_envelope(
    dims: NDArray[np.floating], errors: NDArray[np.floating]
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """The models of smaller error than all others of at most their dimension; dimensions rise, errors fall."""
    order = np.lexsort((errors, dims))
    ranked = errors[order]
    best = np.minimum.accumulate(np.concatenate([[np.inf], ranked[:-1]]))
    rows = order[ranked < best]
    return dims[rows], errors[rows]


def plot_pooling_regions(
    regions: NDArray[np.floating], weights: NDArray[np.floating], radius: float, path: Path
) -> None:
    """Draw pooling regions next to each pixel's contribution (Fig. 4): see `pooling_figure`."""
    check_plot(path)
    save_plot(pooling_figure(regions, weights, radius), path)


def plot_metric(metric: NDArray[np.floating], path: Path) -> None:
    """Draw a learnt Mahalanobis matrix A (n, n) (Fig. 5, left), clipped at its 0.5% and 99.5% quantiles."""
    figure = new_plot(path, 6.2, 5.4)
    axes = figure.add_subplot()
    low, high = np.quantile(metric, [0.005, 0.995])
    image = axes.imshow(metric, cmap="gray", vmin=low, vmax=high if high > low else low + 1, interpolation="nearest")
    axes.set(title=f"A, {len(metric)} x {len(metric)}, of rank {np.linalg.matrix_rank(metric, hermitian=True)}")
    figure.colorbar(image, ax=axes)
    save_plot(figure, path)


def plot_bits(models: Mapping[str, tuple[Sequence[int], Sequence[float], float]], path: Path) -> None:
    """Draw errors of binary codes by length and label (Fig. 6), dashed that of the real-valued descriptor."""
    from matplotlib.ticker import ScalarFormatter

    figure = new_plot(path, 6.5, 5)
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
    save_plot(figure, path)


def plot_similarities(
    groups: Mapping[str, tuple[NDArray[np.floating], NDArray[np.floating]]],
    path: Path,
    *,
    trim: float = 0.0,
    linear: bool = False,
) -> dict[str, dict[str, object]]:
    """Draw the similarities of matching and of other image pairs by measure (Fig. 3 of Yan13), a panel each, and return
    the data as JSON types: ``overlap`` (the area under both), ``bins``, and the share of each group in each bin.
    `trim`: share of the largest and smallest scores left out (the paper: 0.08). `linear`: a linear axis for each panel;
    else one logarithmic axis.

    `groups`: by the measure's name, scores of image pairs of the same object, and of others.
    """
    figure = new_plot(path, 5.2 * len(groups), 3.8)
    left = {name: tuple(_trimmed(scores, trim) for scores in both) for name, both in groups.items()}
    bins = _logarithmic(np.concatenate([scores for both in left.values() for scores in both]))
    drawn: dict[str, dict[str, object]] = {}
    for place, (name, both) in enumerate(groups.items(), start=1):
        axes = figure.add_subplot(1, len(groups), place)
        parts = left[name]
        if linear:
            bins = _linear(np.concatenate(parts))
        shares = []
        for scores, part, label, colour in zip(
            both, parts, ("matching", "not matching"), ("tab:green", "tab:blue"), strict=True
        ):
            binned = part if linear else part[part > 0]
            counts, _ = np.histogram(np.clip(binned, bins[0], bins[-1]), bins)
            shares.append(counts / max(len(scores), 1))
            none = f", {100 * np.mean(part == 0):.0f}% at 0" if len(part) and not linear else ""
            axes.stairs(100 * shares[-1], bins, fill=True, alpha=0.5, color=colour, label=f"{label}{none}")
        if not linear:
            axes.set_xscale("log")
        at_zero = _at_zero(both, parts) if not linear else 0.0
        overlap = 100 * (np.minimum(*shares).sum() + at_zero)
        axes.set(title=f"{name}: overlap {overlap:.1f}%", xlabel="similarity", ylabel="image pairs, %")
        axes.legend(fontsize=8)
        of = dict(zip(("matching", "not matching"), (share.tolist() for share in shares), strict=True))
        drawn[name] = {"overlap": float(overlap / 100), "bins": bins.tolist(), **of}
    save_plot(figure, path)
    return drawn


def _trimmed(scores: NDArray[np.floating], share: float) -> NDArray[np.floating]:
    """Scores (M,) ascending, without a share of the smallest and of the largest."""
    cut = int(share * len(scores))
    return np.sort(scores)[cut : len(scores) - cut]


def _logarithmic(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """Borders of bins that positive scores (M,) lie in, except the outermost ones."""
    positive = scores[scores > 0]
    low, high = np.quantile(positive, [0.001, 0.999]) if len(positive) else (0.1, 1.0)
    return np.geomspace(low, max(high, low * 1.01), 60)


def _linear(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """Borders of bins of scores (M,)."""
    low, high = (float(scores.min()), float(scores.max())) if len(scores) else (0.0, 1.0)
    return np.linspace(low, max(high, low + 1e-6), 60)


def _at_zero(both: Sequence[NDArray[np.floating]], parts: Sequence[NDArray[np.floating]]) -> float:
    """Share of pairs of score 0, the smaller one of two groups."""
    shares = [
        np.count_nonzero(part == 0) / len(scores) if len(scores) else 0.0
        for scores, part in zip(both, parts, strict=True)
    ]
    return float(min(shares))


def check_plot(path: Path) -> None:
    """Raise a CairnError if no plot can be written to a path; called before the work."""
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise CairnError(f"{path.name} is no name for a plot: let it end with {', '.join(FORMATS)}.")
    if not path.parent.is_dir():
        raise CairnError(f"The folder {path.parent} does not exist: make it first, or choose another.")
    require_matplotlib()


def new_plot(path: Path, width: float, height: float) -> "Figure":
    """Return an empty figure, its size in inches; raises a CairnError if no plot can be written to the path."""
    check_plot(path)
    return new_figure(width, height)


def save_plot(figure: "Figure", path: Path) -> None:
    """Write a figure as a plot; the same data give the same file."""
    from matplotlib import rc_context

    # Without the date and with fixed identifiers: the same data give the same file.
    stamp: dict[str, Any] = {".png": {}, ".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
    with rc_context({"svg.hashsalt": "cairn"}):
        figure.savefig(path, dpi=_DPI, metadata=stamp[Path(path).suffix.lower()])


def _percent(
    curve: tuple[NDArray[np.number], NDArray[np.floating]],
) -> tuple[NDArray[np.number], NDArray[np.floating]]:
    return curve[0], 100 * curve[1]
