"""Maps of boosted learners and embeddings, compared with loops over boxes and samples."""

import numpy as np
import pytest

from eval.learnt_maps import projection_maps, weight_map
from index.errors import CairnError
from retrieval.descriptors.blocks.descriptor import named_blocks
from retrieval.descriptors.boosted import Boosted, WeakLearners
from retrieval.descriptors.boxes import ResponseOptions
from retrieval.descriptors.learnt import LearntModel


def test_weights_are_summed_over_boxes():
    rng = np.random.default_rng(0)
    low, high = rng.integers(0, 15, (9, 2)), rng.integers(16, 32, (9, 2))
    boxes = np.concatenate([low, high], axis=1).astype(np.int32)
    weights = rng.random(9).astype(np.float32)
    learners = WeakLearners(boxes, np.zeros(9, np.int32), np.zeros(9, np.float32), weights, ResponseOptions())
    expected = np.zeros((31, 31))
    for (x0, y0, x1, y1), weight in zip(boxes, weights, strict=True):
        expected[y0:y1, x0:x1] += weight
    found = weight_map(LearntModel("boosted", base_model=Boosted("bgm", learners)))
    np.testing.assert_allclose(found, expected, atol=1e-6)
    with pytest.raises(CairnError, match="no weak learners"):
        weight_map(LearntModel("sift"))


def test_projections_are_laid_out_as_patches():
    """The response of a projection is the sum of its map times the samples."""
    from dataclasses import replace

    rng = np.random.default_rng(1)
    for name, channels in (("pixels-grid-4", 1), ("T1a-grid-4", 4)):
        plain = named_blocks(name, 16)
        projection = rng.normal(size=(3, plain.pooled_dim)).astype(np.float32)
        model = LearntModel("blocks", base_model=replace(plain, embedding="pca", projection=projection))
        maps = projection_maps(model, 2)
        assert maps.shape == (2, 4, 4, channels)
        patch = rng.random((1, 16, 16)).astype(np.float32)
        patch[:, :, :6] *= 20
        samples = plain.pooled(patch)[0].reshape(4, 4, channels)  # region by region, rows of them first
        np.testing.assert_allclose(
            (maps * samples).sum(axis=(1, 2, 3)), projection[:2] @ plain.pooled(patch)[0], rtol=1e-4
        )
        assert samples[:, 0].sum() > samples[:, 3].sum()  # the left side is the bright one
    with pytest.raises(CairnError, match="grid"):
        projection_maps(LearntModel("blocks", base_model=named_blocks("T1a-S4-17", 16)), 2)
