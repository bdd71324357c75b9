"""Maps of the weights of boosted learners and embeddings over the samples of a patch."""

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from retrieval.descriptors.blocks.descriptor import Blocks
from retrieval.descriptors.blocks.regions import is_grid
from retrieval.descriptors.boosted import Boosted
from retrieval.descriptors.learnt import LearntModel


def weight_map(model: LearntModel) -> NDArray[np.float64]:
    """Sum of the weights α of the weak learners whose boxes cover each sample, (S, S) (Trzcinski12 figure 2)."""
    if not isinstance(model.base_model, Boosted):
        raise CairnError(
            "{model} has no weak learners: name a descriptor file of {cairn learn} boosted.", model=model.name
        )
    learners = model.base_model.learners
    size = learners.options.patch_size
    corners = np.zeros((size + 1, size + 1))
    x0, y0, x1, y1 = learners.boxes.T
    weights = learners.weights.astype(np.float64)
    # Differences at the corners of boxes: their cumulative sums are the boxes.
    for rows, columns, sign in ((y0, x0, 1), (y1, x0, -1), (y0, x1, -1), (y1, x1, 1)):
        np.add.at(corners, (rows, columns), sign * weights)
    return np.asarray(corners.cumsum(axis=0).cumsum(axis=1)[:size, :size])


def projection_maps(model: LearntModel, number: int) -> NDArray[np.float32]:
    """First projections of an E-block, (K, G, G, C): weights of channels at each sample (Brown11 figures 5, 12)."""
    blocks = model.base_model
    if not isinstance(blocks, Blocks) or blocks.projection is None or not is_grid(blocks.spatial):
        raise CairnError(
            "{model} does not project samples on a grid: learn one with {cairn learn} blocks {--blocks} pixels-grid-32 "
            "{--embedding} lde.",
            model=model.name,
        )
    rows = blocks.projection[:number]
    side = int(blocks.spatial.rpartition("-")[2])
    return rows.reshape(len(rows), side, side, -1)
