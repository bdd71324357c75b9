"""Drawing of pooling regions, and of each pixel's contribution."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from learning.reports.figures import new_figure
from retrieval.descriptors.pooling import axis_kernels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def pooling_figure(regions: NDArray[np.float32], weights: NDArray[np.float32], radius: float) -> "Figure":
    """Draw pooling regions x, y, σ (R, 3) as circles, coloured by weight, next to each pixel's contribution (Fig. 4).

    `radius` is half the patch's side; regions are in pixels from its centre.
    """
    figure = new_figure(10.5, 4.6)
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.patches import Circle

    left, right = figure.subplots(1, 2)
    scale = Normalize(0, float(np.max(weights, initial=0)) or 1.0)
    colours = ScalarMappable(scale, "turbo")
    for row in np.argsort(weights, kind="stable"):  # largest weights on top
        x, y, sigma = map(float, regions[row])
        colour = colours.cmap(scale(float(weights[row])))
        left.add_patch(Circle((x, y), sigma, fill=False, color=colour, linewidth=1.2))
    left.set(title=f"{len(regions)} pooling regions and their weights")
    figure.colorbar(colours, ax=left)

    image = right.imshow(
        pixel_contribution(regions, weights, radius), cmap="turbo", extent=(-radius, radius, radius, -radius)
    )
    right.set(title="relative contribution of pixels")
    figure.colorbar(image, ax=right)
    for axes in (left, right):
        axes.set(xlim=(-radius, radius), ylim=(radius, -radius), aspect="equal", xlabel="pixels")
    return figure


def pixel_contribution(
    regions: NDArray[np.floating], weights: NDArray[np.floating], radius: float
) -> NDArray[np.float64]:
    """Share (S, S) of each pixel in a descriptor: the weighted mean of the regions' Gaussians (Fig. 4, right), each of
    unit mass on the patch; the sum is 1, or 0 if all weights are. S is twice the radius, rounded; the centre of pixel 0
    lies at (1 - S) / 2.
    """
    size = max(1, round(2 * radius))
    total = np.sum(weights, dtype=np.float64)
    if total == 0:
        return np.zeros((size, size))
    across, down = (axis_kernels(regions[:, axis], regions[:, 2], size) for axis in (0, 1))
    return np.asarray((down * (np.asarray(weights, np.float64) / total)[:, None]).T @ across)
