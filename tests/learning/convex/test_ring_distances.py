"""ψ: streamed, it equals the full descriptor's; flips of both patches do not change it; blocks on disk can be
resumed."""

import mmap

import numpy as np
import pytest
from scipy import ndimage

from learning.convex import ring_distances
from learning.convex.candidates import PoolOptions, candidate_pool
from learning.convex.ring_distances import RingDistances, write_ring_distances
from learning.patches.phototour import PatchSet, write_bitmaps, write_info
from learning.patches.rows import BlockRows
from retrieval.descriptors.pooling import ChannelOptions, normalised_channels, pool, region_kernels
from retrieval.regions.patches import resample_patches

SMALL = candidate_pool(PoolOptions(patch_size=9, step=1, angles=8))
SMALL_CHANNELS = ChannelOptions(patch_size=9, smoothing=0.7, quantile=0.8, power=1)
CHANNELS = ChannelOptions(smoothing=0.7, quantile=0.8, power=1)


def textures(number, size, seed=0):
    noise = ndimage.gaussian_filter(np.random.default_rng(seed).normal(size=(number, size, size)), (0, 1.5, 1.5))
    return (128 + 80 * noise / noise.std()).clip(0, 255).astype(np.float32)


def direct(first, second, candidates, rings, options):
    """ψ of some rings by its definition: pool all regions of a ring, and sum the squared differences (equation 5)."""
    channels = [normalised_channels(patches.astype(np.float32), options) for patches in (first, second)]
    columns = []
    for ring in rings:
        kernels = region_kernels(candidates.regions(ring), options.patch_size)
        one, two = (pool(channel, kernels, options.power).astype(np.float64) for channel in channels)
        columns.append(((one - two) ** 2).sum(axis=1))
    return np.column_stack(columns)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize(("orientations", "power"), [(8, 1.0), (5, 1.0), (8, 0.5)])
def test_streamed_it_is_what_the_definition_gives_for_every_ring(symmetric, orientations, power):
    candidates = candidate_pool(PoolOptions(patch_size=9, step=1, angles=8, symmetric=symmetric))
    options = ChannelOptions(patch_size=9, orientations=orientations, smoothing=0.5, quantile=0.7, power=power)
    first, second = textures(70, 9, 1), textures(70, 9, 2)  # more than a chunk, and not a multiple of one
    distances = RingDistances(candidates, options)(first, second)
    expected = direct(first, second, candidates, range(len(candidates)), options)
    assert distances.shape == expected.shape and distances.dtype == np.float32
    # A root magnifies the rounding of what is next to nothing.
    np.testing.assert_allclose(
        distances, expected, rtol=1e-3 if power == 1 else 1e-2, atol=1e-5 if power == 1 else 1e-2
    )


@pytest.fixture(scope="module")
def full():
    return RingDistances(candidate_pool(), CHANNELS)


def test_random_rings_of_the_full_pool_are_what_the_definition_gives(full):
    first, second = textures(10, 31, 3), textures(10, 31, 4)
    distances = full(first, second)
    assert distances.shape == (10, 4650)
    # The narrowest, the widest, the centre, the border, and some drawn.
    corners = [0, 1, 150, 154, 4495, 4496, 4649]
    rings = np.unique(np.concatenate([corners, np.random.default_rng(0).integers(0, 4650, 60)]))
    np.testing.assert_allclose(
        distances[:, rings], direct(first, second, full.pool, rings, full.options), rtol=2e-3, atol=2e-5
    )
    # At the centre the five rings of a set are one.
    centre = distances.reshape(10, 30, 31, 5)[:, :, 0]
    np.testing.assert_array_equal(centre, np.broadcast_to(centre[:, :, :1], centre.shape))


def test_cropping_takes_part(full):
    """Equation 7: where a few edges are far stronger than the rest, most of what they give is cut."""
    first, second = (
        np.where(texture > 250, 255, texture / 8) for texture in (textures(10, 31, 3), textures(10, 31, 4))
    )
    narrow = range(5, 155)  # rings of the narrowest regions
    channels = [normalised_channels(patches.astype(np.float32), full.options) for patches in (first, second)]
    uncropped = []
    for ring in narrow:
        kernels = region_kernels(full.pool.regions(ring), 31)
        one, two = (np.einsum("cnp,pr->nrc", channel, kernels) for channel in channels)
        uncropped.append(((one - two) ** 2).sum(axis=(1, 2)))
    distances = full(first, second)[:, narrow]
    np.testing.assert_allclose(distances, direct(first, second, full.pool, narrow, full.options), rtol=2e-3, atol=2e-5)
    assert distances.max() <= 64 + 1e-3  # of a ring of 8 regions with 8 channels
    assert distances.mean() < 0.5 * np.mean(uncropped)


@pytest.mark.parametrize(
    "turn",
    [
        lambda p: p[:, :, ::-1],
        lambda p: p[:, ::-1],
        lambda p: p.transpose(0, 2, 1),
        lambda p: p[:, ::-1, ::-1].transpose(0, 2, 1),
        lambda p: np.rot90(p, 1, (1, 2)),
        lambda p: np.rot90(p, 2, (1, 2)),
    ],
    ids=["left and right", "up and down", "diagonal", "other diagonal", "quarter turn", "half turn"],
)
def test_flips_and_quarter_turns_of_both_patches_leave_it_as_it_is(full, turn):
    first, second = textures(6, 31, 5), textures(6, 31, 6)
    turned = full(np.ascontiguousarray(turn(first)), np.ascontiguousarray(turn(second)))
    # The orientation of a gradient is computed to a third of a degree.
    np.testing.assert_allclose(turned, full(first, second), rtol=0.02, atol=0.01)
    # A flip of one of them alone does not.
    assert np.abs(full(np.ascontiguousarray(turn(first)), second) - full(first, second)).max() > 0.5


def test_without_symmetric_rings_a_flip_changes_it():
    distances = RingDistances(candidate_pool(PoolOptions(patch_size=9, step=1, symmetric=False)), SMALL_CHANNELS)
    first, second = textures(6, 9, 5), textures(6, 9, 6)
    flipped = distances(first[:, :, ::-1], second[:, :, ::-1])
    assert np.abs(flipped - distances(first, second)).max() > 0.5


def test_like_patches_are_at_no_distance_and_order_does_not_count():
    distances = RingDistances(SMALL, SMALL_CHANNELS)
    first, second = textures(40, 9, 1), textures(40, 9, 2)
    np.testing.assert_allclose(distances(first, first), 0, atol=1e-10)
    np.testing.assert_allclose(distances(first, second), distances(second, first), rtol=1e-5)
    # The same patches darker and with less contrast are like themselves.
    assert distances(first, 0.5 * first + 20).max() < 1e-4 * distances(first, second).mean()
    flat = np.full_like(first, 77)
    assert np.isfinite(distances(first, flat)).all()
    assert distances(first[:0], second[:0]).shape == (0, len(SMALL))


def test_bytes_are_taken_as_floats():
    distances = RingDistances(SMALL, SMALL_CHANNELS)
    first, second = np.rint(textures(5, 9, 1)), np.rint(textures(5, 9, 2))
    taken = distances(first.astype(np.uint8), second.astype(np.uint8))
    np.testing.assert_array_equal(taken, distances(first, second))


def test_a_pool_of_another_size_is_refused():
    with pytest.raises(ValueError, match="one size"):
        RingDistances(SMALL, CHANNELS)


class TestBlocks:
    @pytest.fixture
    def source(self, tmp_path):
        folder = tmp_path / "set"
        folder.mkdir()
        write_bitmaps(folder, textures(60, 64, 7).astype(np.uint8))
        write_info(folder, np.arange(60) // 2, np.zeros(60, np.int64))
        return PatchSet.open(folder)

    @pytest.fixture
    def pairs(self, monkeypatch):
        monkeypatch.setattr(ring_distances, "BLOCK", 12)
        return np.random.default_rng(1).integers(0, 60, (2, 40))

    @pytest.fixture
    def distances(self):
        return RingDistances(SMALL, SMALL_CHANNELS)

    def test_blocks_hold_every_pair_in_order(self, source, pairs, distances, tmp_path):
        reported = []
        blocks = write_ring_distances(
            source, *pairs, tmp_path / "blocks", distances, progress=lambda *done: reported.append(done)
        )
        assert [len(block) for block in blocks] == [12, 12, 12, 4]
        assert reported == [(12, 40), (24, 40), (36, 40), (40, 40)]
        assert all(isinstance(block.base, mmap.mmap) and block.dtype == np.float16 for block in blocks)
        first, second = (resample_patches(source.read(numbers), 9) for numbers in pairs)
        np.testing.assert_array_equal(np.concatenate(blocks), distances(first, second).astype(np.float16))

    def test_a_stopped_run_goes_on_and_ends_the_same(self, source, pairs, distances, tmp_path):
        folder = tmp_path / "blocks"
        write_ring_distances(source, *pairs, folder, distances)
        names = sorted(path.name for path in folder.iterdir())
        before = {name: (folder / name).read_bytes() for name in names}
        assert len(names) == 4
        (folder / names[1]).unlink()
        (folder / names[3]).unlink()
        kept = (folder / names[0]).stat().st_mtime_ns
        reported = []
        write_ring_distances(source, *pairs, folder, distances, progress=lambda *done: reported.append(done))
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
        # Existing blocks are not recomputed, and count as done.
        assert (folder / names[0]).stat().st_mtime_ns == kept
        assert reported == [(36, 40), (40, 40)]

    def test_the_number_of_workers_makes_no_difference(self, source, pairs, distances, tmp_path):
        for workers in (1, 2):
            write_ring_distances(source, *pairs, tmp_path / str(workers), distances, workers=workers)
        one, two = ({path.name: path.read_bytes() for path in (tmp_path / n).iterdir()} for n in "12")
        assert one == two and len(one) == 4

    def test_no_pairs_make_no_blocks(self, source, pairs, distances, tmp_path):
        nothing = np.zeros(0, np.int64)
        assert write_ring_distances(source, nothing, nothing, tmp_path / "blocks", distances) == []


def test_of_very_many_pairs_each_entry_is_kept_in_a_byte(tmp_path):
    few, many = (RingDistances(SMALL, SMALL_CHANNELS, pairs) for pairs in (100, 8_000_000_000 // (2 * len(SMALL)) + 1))
    assert (few.dtype, many.dtype) == (np.float16, np.uint8)
    # Default learning does not depend on it, for any number of pairs.
    assert RingDistances(candidate_pool(), ChannelOptions(), 10_000_000).dtype == np.float16
    write_bitmaps(tmp_path, textures(20, 64).astype(np.uint8))
    write_info(tmp_path, np.arange(20), np.zeros(20, np.int64))
    patches = PatchSet.open(tmp_path)
    first, second = np.arange(10), np.arange(10, 20)
    halves, in_bytes = (
        BlockRows(write_ring_distances(patches, first, second, tmp_path / one.dtype.name, one)) for one in (few, many)
    )
    assert {block.dtype for block in in_bytes.blocks} == {np.dtype(np.uint8)}
    weights = np.random.default_rng(0).random(len(SMALL))
    np.testing.assert_allclose(in_bytes.dot(weights), halves.dot(weights), rtol=0.01)
    np.testing.assert_allclose(in_bytes.take(first), halves.take(first), rtol=0.035, atol=2**-16)
    assert len({one.fingerprint_of(patches, first, second) for one in (few, many)}) == 2
