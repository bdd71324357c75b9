"""Drawing of the alternation: the objective of equation 16 and recall, step by step (Simonyan14 section 9)."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from learning.convex.whitening import STAGE
from learning.latent.alternation import STEPS, LogEntry
from learning.reports.figures import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LOOKS = {  # of each step: marker, colour, label
    "negatives": ("v", "#666666", "negatives looked for: a new round"),
    "rings": ("^", "#9467bd", "rings dropped: a new round"),
    "parameters": ("o", "#d62728", "1. parameters learnt"),
    "positives": ("s", "#2ca02c", "2. nearest positives taken"),
    "selection": ("D", "#1f77b4", "3. K features selected"),
}


def history_figure(history: Sequence[LogEntry]) -> "Figure":
    """Draw objective, with a break at each new round, and recall against the steps, a column for each stage."""
    stages = list(dict.fromkeys(entry.stage for entry in history))
    figure = new_figure(6.5 * len(stages), 7.4)
    axes = figure.subplots(2, len(stages), squeeze=False, sharex="col")
    for column, stage in enumerate(stages):
        entries = [entry for entry in history if entry.stage == stage]
        _objective(axes[0, column], entries)
        _recall(axes[1, column], entries)
        axes[0, column].set_title(stage, fontsize=13)
        axes[1, column].set_xlabel("step of the alternation")
        axes[1, column].xaxis.get_major_locator().set_params(integer=True)
    _legend(figure, [step for step in STEPS if any(entry.step == step for entry in history)])
    return figure


def _objective(axes: "Axes", entries: list[LogEntry]) -> None:
    steps = np.arange(len(entries))
    values = np.array([entry.objective for entry in entries])
    for start, end in pairwise([0, *_begins(entries), len(entries)]):
        axes.plot(steps[start:end], values[start:end], color="#888888", linewidth=1.2, drawstyle="steps-post", zorder=1)
    for step, (marker, colour, _) in _LOOKS.items():
        at = [place for place, entry in enumerate(entries) if entry.step == step]
        axes.scatter(steps[at], values[at], marker=marker, color=colour, s=34, zorder=2, label=step)
    whitens = bool(entries) and entries[0].stage == STAGE
    axes.set_ylabel("squared distance of the K matches" if whitens else "objective (equation 16)")
    _mark_rounds(axes, entries)


def _recall(axes: "Axes", entries: list[LogEntry]) -> None:
    for name, style, label in (("recall", "--", "training features"), ("validation", "-", "validation features")):
        measured = [(at, getattr(entry, name)) for at, entry in enumerate(entries) if getattr(entry, name) is not None]
        if measured:
            steps, values = np.array(measured, np.float64).T
            axes.plot(steps, 100 * values, linestyle=style, color="#222222", marker=".", label=label)
    axes.set_ylabel("recall (equation 15), %")
    if axes.lines:
        axes.legend(fontsize=10, loc="best")
    else:
        axes.text(0.5, 0.5, "not measured", ha="center", va="center", transform=axes.transAxes)
    _mark_rounds(axes, entries)


def _begins(entries: list[LogEntry]) -> list[int]:
    """Starts of rounds, without the first."""
    return [at for at in range(1, len(entries)) if entries[at].round != entries[at - 1].round]


def _mark_rounds(axes: "Axes", entries: list[LogEntry]) -> None:
    for at in _begins(entries):
        axes.axvline(at - 0.5, color="#bbbbbb", linewidth=1, linestyle=":", zorder=0)
    axes.grid(axis="y", alpha=0.3)


def _legend(figure: "Figure", steps: list[str]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], linestyle="none", marker=marker, color=colour, label=text)
        for marker, colour, text in (_LOOKS[step] for step in steps)
    ]
    figure.legend(
        handles=handles, title="after the step", loc="outside lower center", ncols=2, fontsize=11, frameon=False
    )
