"""Principal components: right, and the same whatever the last digits of a decomposition."""

import numpy as np
import pytest

from index.scanning.components import principal_components

ARGUMENTS = {"kept": 0.8, "multiple": 4, "largest": 127, "within": 0.999}


@pytest.fixture
def points():
    """Points (5000, 24) whose variance falls by a fifth from one direction to the next, away from the origin."""
    rng = np.random.default_rng(0)
    directions = np.linalg.qr(rng.normal(size=(24, 24)))[0]
    spread = rng.normal(size=(5_000, 24)) * 0.8 ** (np.arange(24) / 2)
    return (spread @ directions.T + rng.normal(size=24)).astype(np.float32)


def test_they_span_what_singular_vectors_span(points):
    basis, offset = principal_components(points, **ARGUMENTS)
    middle = points - points.mean(axis=0)
    _, values, rows = np.linalg.svd(middle.astype(np.float64), full_matrices=False)
    enough = int(np.searchsorted(np.cumsum(values**2) / (values**2).sum(), 0.8)) + 1
    assert basis.shape == (24, 4 * -(-enough // 4))
    directions = basis / np.linalg.norm(basis, axis=0)
    np.testing.assert_allclose(np.abs((rows[: basis.shape[1]] @ directions).diagonal()), 1, atol=0.001)
    projected = points @ basis - offset
    assert np.abs(projected.mean(axis=0)).max() < 0.5
    assert np.quantile(np.abs(projected), 0.999) == pytest.approx(127, rel=0.01)


def test_the_last_digits_and_the_signs_of_a_decomposition_change_nothing(points, monkeypatch):
    before = principal_components(points, **ARGUMENTS)
    decompose = np.linalg.eigh

    def otherwise(matrix):
        variances, directions = decompose(matrix)
        rng = np.random.default_rng(1)
        return variances * (1 + 1e-13), -directions + rng.uniform(-1e-12, 1e-12, directions.shape)

    monkeypatch.setattr(np.linalg, "eigh", otherwise)
    for one, other in zip(before, principal_components(points, **ARGUMENTS), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_order_of_sums_changes_nothing(points):
    rows = np.random.default_rng(2).permutation(len(points))
    for one, other in zip(
        principal_components(points, **ARGUMENTS), principal_components(points[rows], **ARGUMENTS), strict=True
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_equal_points_have_no_components(value):
    basis, offset = principal_components(np.full((10, 8), value, np.float32), **ARGUMENTS)
    assert not basis.any() and not offset.any()
