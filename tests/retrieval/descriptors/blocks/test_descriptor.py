"""Building-block descriptors: every combination, the N-block at its limit, bits, and files that are damaged."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from index.errors import CairnError
from retrieval.descriptors.blocks.descriptor import (
    BEST,
    block_parameters,
    clipped_to_unit,
    in_levels,
    is_blocks,
    load_blocks,
    named_blocks,
    to_unit,
)
from retrieval.descriptors.blocks.regions import ARRANGEMENTS, spatial_regions
from retrieval.descriptors.blocks.transforms import TRANSFORMS, transform_dim
from retrieval.descriptors.learnt import LearntDescriptor, LearntModel, load_model, save_model
from retrieval.descriptors.registry import find_descriptor
from tests.support.learning.learnt_models import blocks, orthogonal_rows, textures

COMBINATIONS = [f"{transform}-{spatial}" for transform in TRANSFORMS for spatial in ARRANGEMENTS]


class TestNames:
    @pytest.mark.parametrize("name", [*COMBINATIONS, *TRANSFORMS, "T3h-grid-6"])
    def test_every_combination_describes(self, name):
        found = named_blocks(name, 16)
        patches = textures(12, 16)
        rows = found.describe(patches)
        assert rows.shape == (12, found.dim) and rows.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-4)
        assert np.linalg.norm(rows[1:] - rows[:-1], axis=1).min() > 0.1
        np.testing.assert_allclose(found.describe(patches[5:6]), rows[5:6], atol=1e-6)
        np.testing.assert_allclose(found.describe(0.5 * patches + 60), rows, atol=1e-5)

    @pytest.mark.parametrize(("name", "dim"), list(zip(BEST, (272, 400, 272, 544), strict=True)))
    def test_the_paper_s_best_have_its_dimensions_and_go_by_name(self, name, dim):
        descriptor = find_descriptor(name)
        assert (descriptor.name, descriptor.dim, descriptor.bytes, descriptor.patch_size) == (name, dim, 4 * dim, 64)
        assert descriptor.fingerprint == find_descriptor(name).fingerprint != find_descriptor("T3h-S4-17").fingerprint
        assert descriptor.describe(textures(2, 64)).shape == (2, dim)

    @pytest.mark.parametrize(
        "name",
        [
            "",
            "T3",
            "T3h-",
            "T3h-S4",
            "T3h-S4-26",
            "S4-25",
            "T3h-S4-25-pca",
            "T3h-grid-1",
            "t3h-s4-25",
            "T3h S4-25",
            "T3h-grid-02",
        ],
    )
    def test_what_is_none_is_refused(self, name):
        assert not is_blocks(name)
        with pytest.raises(CairnError, match="no blocks"):
            named_blocks(name)

    @pytest.mark.parametrize(("name", "size"), [("T1a-grid-9", 8), ("T1a-S4-17", 7), ("T1a-S4-17", 300)])
    def test_patches_too_small_or_too_large_are_refused(self, name, size):
        with pytest.raises(CairnError, match=name):
            named_blocks(name, size)

    @pytest.mark.parametrize("name", [*TRANSFORMS, "T2a-S3-9"])
    def test_patches_of_bytes_are_described_as_the_numbers_they_are(self, name):
        found, patches = named_blocks(name, 16), textures(5, 16).round()
        np.testing.assert_array_equal(found.describe(patches.astype(np.uint8)), found.describe(patches))

    def test_the_row_has_region_by_region_the_channels_of_one_together(self):
        found, patches = named_blocks("T2b-S3-9", 32), textures(3, 32)
        transform, kernels = found.applied
        expected = np.einsum("cnp,pr->nrc", transform(patches).astype(np.float64), kernels)
        np.testing.assert_allclose(found.pooled(patches).reshape(3, 9, 8), expected, rtol=1e-4, atol=1e-3)

    def test_the_number_of_parameters_is_the_paper_s(self):
        """Smoothing and clipping; and three distances, or three radii, four widths and a phase (section IV)."""
        for name in BEST:
            transform, _, spatial = name.partition("-")
            assert len(block_parameters(transform, spatial)) == {"S2-17": 2 + 3, "S4-25": 2 + 3 + 4 + 1}[spatial]

    def test_parameters_scale_with_the_patch(self):
        small, large = (named_blocks("T4-S4-25", size).parameters for size in (32, 64))
        for name, value in large.items():
            assert small[name] == (value if name in ("clip", "phase", "second_centre") else value / 2)


def limit(row, threshold):
    """What clipping and normalising come to: min(s v, κ) of length one (s by bisection)."""
    length = lambda scale: np.linalg.norm(np.minimum(scale * row, threshold)) - 1  # noqa: E731
    scale = brentq(length, 0, 1e6, xtol=1e-14)
    return np.minimum(scale * row, threshold)


class TestNormalisation:
    @given(st.integers(0, 10_000), st.integers(16, 200), st.floats(1.1, 4), st.floats(0.2, 1.5))
    def test_it_converges_to_the_clipped_row_of_unit_length(self, seed, dim, ratio, sigma):
        rows = np.random.default_rng(seed).lognormal(sigma=sigma, size=(3, dim)).astype(np.float32)
        threshold = ratio / dim**0.5
        found = clipped_to_unit(100 * rows, threshold, rounds=3000)
        for row, original in zip(found, rows, strict=True):
            np.testing.assert_allclose(row, limit(original.astype(np.float64), threshold), atol=2e-4)

    def test_each_row_is_by_itself(self):
        rows = np.random.default_rng(0).lognormal(size=(50, 80)).astype(np.float32)
        found = clipped_to_unit(rows, 1.6 / 80**0.5)
        for number in (0, 17, 49):
            np.testing.assert_array_equal(clipped_to_unit(rows[number : number + 1], 1.6 / 80**0.5)[0], found[number])

    def test_rows_of_few_entries_end_with_unit_length_too(self):
        rows = np.zeros((2, 100), np.float32)
        rows[0, :5], rows[1, 7] = [5, 4, 3, 2, 1], 9
        found = clipped_to_unit(rows, 0.16)
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
        assert not found[0, 5:].any() and found[1, 7] == pytest.approx(1)

    def test_nothing_stays_nothing(self):
        zero = np.zeros((2, 30), np.float32)
        with np.errstate(all="raise"):
            assert not clipped_to_unit(zero, 0.1).any() and not to_unit(zero).any()

    def test_faint_rows_stay_shorter_than_one_however_often_they_are_clipped(self):
        """What little they have is noise: it must not weigh as much as what others have."""
        rows = np.random.default_rng(2).lognormal(size=(4, 80)).astype(np.float32)
        rows /= np.linalg.norm(rows, axis=1)[:, None]
        faint = rows * np.float32([[1e-6], [1e-4], [9e-4], [2e-3]])
        found = clipped_to_unit(faint, 1.6 / 80**0.5)
        lengths = np.linalg.norm(found, axis=1)
        np.testing.assert_allclose(lengths[:2], [1e-3, 0.1], rtol=1e-4)
        assert 0.5 < lengths[2] <= 0.9 and lengths[3] == pytest.approx(1, abs=1e-5)
        assert found[:3].max() <= np.float32(1.6 / 80**0.5)
        np.testing.assert_array_equal(found[3:], clipped_to_unit(faint[3:], 1.6 / 80**0.5))

    def test_no_threshold_is_reached_where_none_is_set(self):
        rows = np.random.default_rng(1).normal(size=(20, 9)).astype(np.float32)
        np.testing.assert_allclose(
            clipped_to_unit(rows, np.inf), rows / np.linalg.norm(rows, axis=1)[:, None], rtol=1e-5
        )


class TestBits:
    @pytest.mark.parametrize("bits", [1, 2, 3, 8])
    def test_entries_are_the_middles_of_their_steps(self, bits):
        rows = np.random.default_rng(0).uniform(0, 0.1, (4, 50)).astype(np.float32)
        found = in_levels(rows, 0.1, bits)
        assert len(np.unique(found)) <= 2**bits
        assert np.abs(found - rows).max() <= 0.1 / 2 ** (bits + 1) + 1e-7

    def test_a_descriptor_of_few_bits_takes_so_many(self):
        patches = textures(200, 31)
        whole = LearntDescriptor(blocks("T3h-S4-25"))
        near = [LearntDescriptor(blocks("T3h-S4-25", bits=bits)) for bits in (1, 2, 4)]
        assert [one.bytes for one in (whole, *near)] == [1600, 50, 100, 200]
        errors = [np.abs(one.describe(patches) - whole.describe(patches)).mean() for one in near]
        assert errors == sorted(errors, reverse=True) and errors[-1] < 0.2 * errors[0]


class TestEmbedding:
    def test_pooled_rows_are_normalised_before_and_samples_after_it(self):
        patches = textures(20, 31)
        pooled = blocks("T3h-S2-17", "pca").base_model
        rows = replace(pooled, projection=None, embedding="none").describe(patches)
        np.testing.assert_allclose(pooled.describe(patches), rows @ pooled.projection.T, atol=1e-5)
        sampled = blocks("T2a", "lpp").base_model
        rows = replace(sampled, projection=None, embedding="none").describe(patches) @ sampled.projection.T
        expected = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        np.testing.assert_allclose(sampled.describe(patches), expected, atol=1e-5)

    def test_the_mean_of_samples_is_taken_off_first(self):
        patches = textures(20, 31)
        sampled = blocks("T2a", "lpp").base_model
        rows = replace(sampled, projection=None, embedding="none").describe(patches).astype(np.float64)
        mean = rows.mean(axis=0)
        centred = (rows - mean) @ sampled.projection.T
        found = replace(sampled, mean=mean.astype(np.float32))
        expected = centred / np.linalg.norm(centred, axis=1, keepdims=True)
        np.testing.assert_allclose(found.describe(patches), expected, atol=1e-5)
        assert found.describe(patches[:0]).shape == (0, found.dim)
        # It is part of what the file keeps, next to the mean of the descriptor's own rows.
        model = LearntModel("blocks", base_model=found)
        assert model.fingerprint != LearntModel("blocks", base_model=sampled).fingerprint
        np.testing.assert_array_equal(load_blocks(found.meta(), found.arrays()).mean, found.mean)
        assert found.with_parameters({}).mean is None

    def test_a_file_keeps_both_means(self, tmp_path):
        sampled = blocks("T2a", "lpp").base_model
        found = replace(sampled, mean=np.linspace(0, 0.1, sampled.pooled_dim, dtype=np.float32))
        own, covariance = np.full(found.dim, 0.5, np.float32), np.eye(found.dim, dtype=np.float32)
        save_model(tmp_path / "one.npz", LearntModel("blocks", None, None, own, covariance, base_model=found))
        model = load_model(tmp_path / "one.npz")
        np.testing.assert_array_equal(model.mean, own)
        np.testing.assert_array_equal(model.base_model.mean, found.mean)


def test_all_combinations_have_fingerprints_of_their_own():
    found = [named_blocks(name, 16) for name in COMBINATIONS]
    found += [replace(found[0], parameters={**found[0].parameters, "smoothing": 0.7501})]
    found += [named_blocks(COMBINATIONS[0], 17), named_blocks("T1a-S3-9", 16).with_parameters({"clip": 2.0})]
    assert len({LearntModel("blocks", base_model=one).fingerprint for one in found}) == len(found)


def sound():
    found = replace(named_blocks("T3g-S4-17", 24), embedding="lde", projection=orthogonal_rows(12, 8 * 2 * 17))
    return found.meta(), found.arrays()


def with_parameters(**changes):
    return lambda meta, arrays: ({**meta, "parameters": {**meta["parameters"], **changes}}, arrays)


def with_meta(**changes):
    return lambda meta, arrays: ({**meta, **changes}, arrays)


def with_embedding(change):
    return lambda meta, arrays: (meta, {"embedding": change(arrays["embedding"])})


def with_mean(transform, spatial, change):
    """A sound grid, or blocks that pool, with a mean made of nought."""

    def changed(*_):
        found = named_blocks(f"{transform}-{spatial}", 24)
        found = replace(found, embedding="lpp", projection=orthogonal_rows(12, found.pooled_dim))
        return found.meta(), found.arrays() | {"embedding_mean": change(np.zeros(found.pooled_dim, np.float32))}

    return changed


def with_blocks(transform, **changes):
    """Sound blocks but for some parameters."""

    def changed(*_):
        meta = named_blocks(f"{transform}-S2-9", 24).meta()
        return {**meta, "parameters": {**meta["parameters"], **changes}}, {}

    return changed


def without(name):
    return lambda meta, arrays: ({key: value for key, value in meta.items() if key != name}, arrays)


CHANGES = {
    "another version": with_meta(version=999),
    "an unknown transform": with_meta(transform="T9"),
    "a transform of a list": with_meta(transform=["T3g"]),
    "an unknown arrangement": with_meta(spatial="S9-17"),
    "an arrangement of a number": with_meta(spatial=17),
    "other parameters": with_meta(spatial="S4-25"),
    "a huge grid": with_meta(spatial="grid-99"),
    "parameters of a list": with_meta(parameters=[1.0]),
    "a parameter too many": with_parameters(more=1.0),
    "a parameter of text": with_parameters(clip="1.6"),
    "a parameter of truth": with_parameters(clip=True),
    "a parameter of NaN": with_parameters(smoothing=float("nan")),
    "a parameter of infinity": with_parameters(width_1=float("inf")),
    "a width of nothing": with_parameters(width_1=0.0),
    "a negative width": with_parameters(width_1=-2.0),
    "smoothing wider than the patch": with_parameters(smoothing=90.0),
    "patches of a real number": with_meta(patch_size=24.0),
    "huge patches": with_meta(patch_size=10_000),
    "tiny patches": with_meta(patch_size=2),
    "an unknown embedding": with_meta(embedding="lda"),
    "an embedding that is not named": with_meta(embedding="none"),
    "bits beside an embedding": with_meta(bits=2),
    "bits of truth": with_meta(bits=True),
    "an embedding that is missing": lambda meta, arrays: (meta, {}),
    "an embedding of other columns": with_embedding(lambda array: array[:, 1:]),
    "an embedding of no rows": with_embedding(lambda array: array[:0]),
    "an embedding of one axis": with_embedding(lambda array: array[0]),
    "an embedding of more rows than columns": with_embedding(lambda array: np.repeat(array, 23, axis=0)),
    "a mean of what is pooled": with_mean("T2a", "S3-9", lambda mean: mean),
    "a mean of another length": with_mean("T2a", "grid-4", lambda mean: mean[1:]),
    "a mean of two axes": with_mean("T2a", "grid-4", lambda mean: mean[None]),
    "a mean of doubles": with_mean("T2a", "grid-4", lambda mean: mean.astype(np.float64)),
    "a mean of no embedding": lambda *_: (
        named_blocks("T2a-grid-4", 24).meta(),
        {"embedding_mean": np.zeros(64, np.float32)},
    ),
    "a second centre far wider than the patch": with_blocks("T4", second_centre=2000.0),
    "differences wider than four patches": with_blocks("T4", smoothing=20.0, second_centre=3.9),
    "a threshold that clips a hundred times": with_parameters(clip=0.002),
    "a radius far beyond the patch": with_parameters(radius_1=9000.0),
    "a width of next to nothing": with_parameters(width_1=0.0011),
    "a parameter of a huge integer": with_parameters(width_1=10**400),
    "an embedding of doubles": with_embedding(lambda array: array.astype(np.float64)),
    **{f"no {name}": without(name) for name in sound()[0]},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_does_not_fit_together_is_refused(change):
    load_blocks(*sound())
    with pytest.raises((ValueError, KeyError, TypeError)):
        load_blocks(*change(*sound()))


def test_a_damaged_file_is_refused_in_one_sentence(tmp_path):
    model = blocks("T2a", "lpp")
    broken = replace(model, base_model=replace(model.base_model, patch_size=30, projection=orthogonal_rows(9, 300)))
    save_model(tmp_path / "blocks.npz", broken)
    with pytest.raises(CairnError, match=r"blocks\.npz"):
        load_model(tmp_path / "blocks.npz")


def test_dimensions_are_those_of_the_blocks():
    for name in COMBINATIONS:
        transform, _, spatial = name.partition("-")
        assert named_blocks(name, 16).dim == transform_dim(transform) * spatial_regions(spatial)
