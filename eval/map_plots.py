"""Plots of maps over a patch: weights of boosted learners, projections of embeddings."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eval.plots import new_plot, save_plot

_SIGMAS = (0.25, 0.5)  # of a patch's side: circles at half of SIFT's σ, and at σ, which is half the side


def plot_weight_maps(maps: Mapping[str, NDArray[np.floating]], path: Path) -> None:
    """Draw weights (S, S) over patches by label (Trzcinski12 figure 2), and circles at σ / 2 and σ of SIFT's weight."""
    figure = new_plot(path, 4.2 * len(maps), 3.6)
    from matplotlib.patches import Circle

    for axes, (label, weights) in zip(np.ravel(figure.subplots(1, len(maps))), maps.items(), strict=True):
        image = axes.imshow(weights, cmap="turbo", extent=(-0.5, 0.5, 0.5, -0.5), vmin=0)
        for sigma in _SIGMAS:
            axes.add_patch(Circle((0, 0), sigma, fill=False, color="white", linewidth=1))
        axes.set(title=label, xticks=[], yticks=[])
        figure.colorbar(image, ax=axes)
    save_plot(figure, path)


def plot_projections(maps: Mapping[str, NDArray[np.floating]], path: Path) -> None:
    """Draw projections (K, G, G, C), a row a label (Brown11 figures 5, 12); of several channels, the length."""
    most = max(len(weights) for weights in maps.values())
    figure = new_plot(path, 0.9 * most + 1.2, 1.0 * len(maps) + 0.3)
    grid = figure.subplots(len(maps), most, squeeze=False)
    for row, (label, weights) in zip(grid, maps.items(), strict=True):
        row[0].set_ylabel(label, fontsize=7)
        for place, axes in enumerate(row):
            axes.set(xticks=[], yticks=[])
            if place >= len(weights):
                axes.set_visible(False)
                continue
            single = weights.shape[3] == 1
            image = weights[place, :, :, 0] if single else np.linalg.norm(weights[place], axis=2)
            largest = float(np.abs(image).max()) or 1.0
            axes.imshow(image, cmap="gray", vmin=-largest if single else 0, vmax=largest)
    save_plot(figure, path)
