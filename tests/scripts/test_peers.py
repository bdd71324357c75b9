"""OpenCV's released descriptors, as the tables take them: every patch gets its row, bits are bits."""

import cv2
import numpy as np
import pytest

from index.errors import CairnError
from learning.patches.phototour import PatchPairs
from scripts.peers import PEERS, Peer, describe, some_pairs

DIMS = {
    "daisy": 200,
    "opencv-sift": 128,
    "opencv-rootsift": 128,
    "vgg-120": 120,
    "vgg-80": 80,
    "vgg-64": 64,
    "vgg-48": 48,
}
BITS = {"bgm": 256, "binboost-256": 256}


@pytest.fixture(scope="module")
def patches() -> np.ndarray:
    """Smooth textures, one without contrast, one with all of it in a corner."""
    rng = np.random.default_rng(2)
    textures = np.array([cv2.GaussianBlur(one, (0, 0), 3) for one in rng.normal(size=(6, 64, 64))])
    textures = (128 + 300 * textures).clip(0, 255).astype(np.uint8)
    textures[4] = 90
    textures[5] = 90
    textures[5, :4, :4] = 255
    return textures


@pytest.mark.parametrize("name", PEERS)
def test_every_patch_gets_its_row(name: str, patches: np.ndarray) -> None:
    peer = Peer(name)
    rows = peer.describe(patches)
    assert (rows.shape, rows.dtype) == ((len(patches), peer.dim), np.float32)
    assert np.isfinite(rows).all()
    np.testing.assert_array_equal(rows, np.concatenate([describe(name, patch[None]) for patch in patches]))
    assert peer.describe(patches[:0]).shape == (0, peer.dim)
    assert len(np.unique(rows[:4], axis=0)) == 4
    if name in BITS:
        assert (peer.dim, peer.bytes) == (BITS[name], BITS[name] // 8)
        assert set(np.unique(rows)) == {0, 1}
    else:
        assert (peer.dim, peer.bytes) == (DIMS.get(name, 64), 4 * DIMS.get(name, 64))
    if name == "opencv-rootsift":
        np.testing.assert_allclose(np.linalg.norm(rows[:4], axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("name", PEERS)
def test_the_whole_patch_is_described(name: str, patches: np.ndarray) -> None:
    # A change in any of the four quarters, four fifths of the way to the border, changes the row.
    for row, column in ((6, 32), (57, 32), (32, 6), (32, 57)):
        changed = patches[:1].copy()
        changed[0, row - 5 : row + 6, column - 5 : column + 6] = np.where(changed[0, row, column] > 128, 0, 255)
        assert np.abs(describe(name, changed) - describe(name, patches[:1])).max() > 0, (row, column)


def test_a_name_that_is_no_peer_is_refused() -> None:
    with pytest.raises(CairnError, match="vgg-80"):
        Peer("vgg")


def test_pairs_are_drawn_of_both_kinds_and_keep_their_order() -> None:
    match = np.arange(100) % 5 == 0
    pairs = PatchPairs(np.arange(100), np.arange(100) + 1000, match)
    drawn = some_pairs(pairs, 30, seed=3)
    assert (drawn.match.sum(), (~drawn.match).sum()) == (20, 30)
    assert (np.diff(drawn.first) > 0).all()
    np.testing.assert_array_equal(drawn.second, drawn.first + 1000)
    np.testing.assert_array_equal(drawn.match, match[drawn.first])
    np.testing.assert_array_equal(some_pairs(pairs, 30, seed=3).first, drawn.first)
    assert len(some_pairs(pairs, 0)) == 100
