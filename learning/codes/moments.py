"""Moments of descriptors, stored in a model for learning codes."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from index.parallel import one_thread
from retrieval.descriptors.learnt import LearntModel


def with_moments(model: LearntModel, rows: NDArray[np.floating]) -> LearntModel:
    """Add the mean and covariance of training patches' descriptors (N, m) for learning codes."""
    values = rows.astype(np.float64)
    with one_thread():
        covariance = np.cov(values, rowvar=False).reshape(values.shape[1], -1)
    return replace(model, mean=values.mean(axis=0).astype(np.float32), covariance=covariance.astype(np.float32))
