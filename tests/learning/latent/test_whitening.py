"""Whitening from mined matches: what it does to differences, which matches it is of, and what comes of photos."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import sqrtm

from index.errors import CairnError
from learning.latent.alternation import Rows
from learning.latent.described_patches import Described
from learning.latent.descriptor import Unlabelled, UnlabelledOptions, learn_unlabelled
from learning.latent.models import Held
from learning.latent.whitening import (
    Positives,
    WhiteningOptions,
    WhiteningSetting,
    WhiteningWork,
    fit_whitening,
    grid,
    scene_weights,
    whiten,
)
from learning.mining.matches import MinedMatches
from learning.mining.mining import MiningOptions
from retrieval.descriptors.learnt import LearntDescriptor
from retrieval.descriptors.sift import Sift
from tests.support.learning.mined_files import drawn, in_memory
from tests.support.learning.unlabelled_cases import QUICK, mine_views, recall

WHITE = replace(QUICK, stage="whitening", base="rootsift", dim=32)


@pytest.fixture(scope="module")
def mined(tmp_path_factory: pytest.TempPathFactory) -> MinedMatches:
    return mine_views(tmp_path_factory.mktemp("mined"))


def cloud(seed: int, number: int, dim: int) -> np.ndarray:
    """Points (N, n) float32 of a Gaussian that is no ball, off the origin."""
    rng = np.random.default_rng(seed)
    return np.asarray(rng.normal(size=(number, dim)) @ rng.normal(size=(dim, dim)) + rng.normal(size=dim), np.float32)


# The whitening itself


@given(st.integers(0, 10_000), st.integers(2, 12))
@settings(max_examples=40, deadline=None)
def test_differences_become_alike_in_all_directions_and_rows_uncorrelated(seed: int, dim: int) -> None:
    rows, differences = cloud(seed, 300, dim), cloud(seed + 1, 200, dim)
    weights = np.random.default_rng(seed).uniform(0.5, 2, 200)
    found = fit_whitening(rows, differences, weights, 0.0)
    projection, centre = found[:, :-1], found[:, -1]
    after = differences @ projection.T
    spread = (after * weights[:, None]).T @ after / weights.sum()
    np.testing.assert_allclose(spread, np.eye(dim), atol=2e-2)
    variance = np.cov(rows @ projection.T, rowvar=False)
    np.testing.assert_allclose(variance / variance.max(), np.diag(np.diag(variance)) / variance.max(), atol=2e-2)
    assert (np.diff(np.diag(variance)) <= 1e-2 * variance.max()).all()  # the direction of most variance first
    np.testing.assert_allclose(centre, projection @ rows.mean(axis=0), rtol=1e-3, atol=1e-3)


def test_it_is_the_inverse_root_of_the_shrunk_covariance() -> None:
    rows, differences = cloud(2, 500, 6), cloud(3, 400, 6)
    found = fit_whitening(rows, differences, np.ones(400), 0.3)[:, :-1]
    spread = differences.astype(np.float64).T @ differences / 400
    metric = np.linalg.inv(spread + 0.3 * np.trace(spread) / 6 * np.eye(6))
    np.testing.assert_allclose(found.T @ found, metric, rtol=1e-3, atol=1e-4 * np.abs(metric).max())
    # Its directions are those of the rows, once whitened.
    root = np.real(sqrtm(metric))
    values = np.linalg.eigvalsh(np.cov((rows @ root).T))[::-1]
    np.testing.assert_allclose(np.diag(np.cov((rows @ found.T).T)), values, rtol=1e-3)


def test_without_limit_nothing_but_the_directions_of_rows_is_left() -> None:
    # S is drowned by the identity: principal components, of one length.
    found = fit_whitening(cloud(4, 500, 5), cloud(5, 300, 5), np.ones(300), 1e6)[:, :-1]
    lengths = np.linalg.norm(found, axis=1)
    np.testing.assert_allclose(found @ found.T, lengths.mean() ** 2 * np.eye(5), atol=1e-4 * lengths.mean() ** 2)


def test_whitened_rows_are_of_unit_length_and_a_row_at_the_centre_stays_finite() -> None:
    rows = cloud(6, 100, 8)
    parameters = fit_whitening(rows, cloud(7, 100, 8), np.ones(100), 0.1)[:5]
    np.testing.assert_allclose(np.linalg.norm(whiten(rows, parameters), axis=1), 1, atol=1e-5)
    assert np.isfinite(whiten(rows.mean(axis=0, keepdims=True), parameters)).all()


def test_the_grid_has_each_setting_once() -> None:
    settings = grid((0.8, 0.5, 0.8), WhiteningOptions((0.1, 1.0), (1.0, 0.5, 1.0)), 100)
    assert len(settings) == len(set(settings)) == 8
    assert {setting.dim for setting in settings} == {100, 50}
    assert {setting.dim for setting in grid((0.8,), WhiteningOptions(kept=(0.1,)), 1)} == {1}


# Which matches


def test_scenes_count_by_the_root_of_their_features() -> None:
    matches = in_memory(drawn(np.random.default_rng(3)))
    features = np.arange(matches.features, dtype=np.int64)
    # Photos that pairs join, one at a time.
    scene = {photo: photo for photo in range(len(matches.names))}
    for _ in scene:
        for one, two in matches.pairs.tolist():
            scene[one] = scene[two] = min(scene[one], scene[two])
    of = np.array([scene[int(matches.pairs[pair, 0])] for pair in matches.pair[features]])
    counts = {number: int((of == number).sum()) for number in set(of.tolist())}
    expected = np.array([counts[number] ** -0.5 for number in of.tolist()])
    np.testing.assert_allclose(scene_weights(matches, features), expected / expected.mean())


def test_the_nearest_positive_is_the_match_and_features_without_one_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    true, dim = 400, 6
    rows = rng.normal(size=(true, dim))
    noise = np.array([3.0, 1, 1, 0.1, 0.1, 0.1]) * 0.05
    matches = rows + rng.normal(size=rows.shape) * noise
    decoys = rng.normal(size=rows.shape)
    wrong = rng.normal(size=(100, dim))  # features whose positives are all something else
    every = np.concatenate([rows, matches, decoys, wrong, rng.normal(size=(100, dim))]).astype(np.float16)
    references = np.concatenate([np.arange(true), 3 * true + np.arange(100)])
    positives = [[true + x, 2 * true + x] for x in range(true)] + [[3 * true + 100 + x] for x in range(100)]
    training = Positives(
        references,
        Rows(np.cumsum([0, *(len(one) for one in positives)]).astype(np.int64)),
        np.concatenate(positives).astype(np.int64),
        np.ones(len(references)),
    )
    described = Described(np.arange(len(every)), every)
    mined = in_memory(drawn(np.random.default_rng(0)))
    held = Held(mined, np.zeros(0, np.int64), np.arange(4))
    work = WhiteningWork(held, training, described, Described(np.arange(4), every[:4]), 3)
    monkeypatch.setattr(WhiteningWork, "_validate", lambda work, parameters: 0.0)  # there are no photos
    ((record, parameters),) = work.learn(WhiteningSetting(0.8, 0.001, dim), "a" * 64)
    metric = parameters[:, :-1].T @ parameters[:, :-1]
    # As strong in each direction as the noise is weak there: its inverse variance.
    wanted = noise**-2 / (noise**-2).max()
    np.testing.assert_allclose(np.diag(metric) / np.diag(metric).max(), wanted, atol=0.25)
    assert np.diag(metric)[3:].min() > 20 * np.diag(metric)[0]
    assert record.dim == dim and record.share == 0.8 and len(record.history) == 3


# From photos to a descriptor


@pytest.fixture(scope="module")
def learnt(mined: MinedMatches, tmp_path_factory: pytest.TempPathFactory) -> tuple[Unlabelled, Path]:
    folder = tmp_path_factory.mktemp("learnt")
    return learn_unlabelled(mined, folder, WHITE), folder


def test_a_whitening_is_chosen_by_image_pairs_held_out(mined: MinedMatches, learnt: tuple[Unlabelled, Path]) -> None:
    found = learnt[0]
    record, model = found.projection, found.model
    assert record is not None and found.pooling is None
    assert model.name == "rootsift-white" and model.extent == mined.extent == MiningOptions().extent
    assert model.projection is not None and model.centre is not None and model.projection.shape == (record.dim, 128)
    assert record.dim <= WHITE.dim
    assert record.validation == max(one.validation for one in found.tried)
    assert len(found.tried) == len(grid(WHITE.shares, WHITE.whitening, WHITE.dim))
    rows = LearntDescriptor(model).describe(np.asarray(mined.patches)).astype(np.float16).astype(np.float64)
    features = found.held.features
    assert recall(mined, features, rows) == pytest.approx(record.validation, abs=1.5 / len(features))
    # With all dimensions it brings features no farther from their matches than rootSIFT does.
    whole = learn_unlabelled(mined, learnt[1], replace(WHITE, dim=128)).projection
    plain = Sift(root=True).describe(np.asarray(mined.patches)).astype(np.float64)
    assert whole is not None and whole.validation >= recall(mined, features, plain) - 0.01


def test_it_is_the_same_again_and_with_two_processes(
    mined: MinedMatches, learnt: tuple[Unlabelled, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = learn_unlabelled(mined, tmp_path, WHITE, workers=2)
    assert other.model.fingerprint == learnt[0].model.fingerprint

    def never(*_: object) -> None:
        raise AssertionError("it is there already")

    monkeypatch.setattr(WhiteningWork, "learn", never)
    again = learn_unlabelled(mined, learnt[1], WHITE)
    assert again.model.fingerprint == learnt[0].model.fingerprint
    assert [entry.stage for entry in again.history] == ["whitening"] * WHITE.alternations


def test_pooled_gradients_are_not_whitened() -> None:
    with pytest.raises(CairnError, match="choose the base rootsift or sift"):
        UnlabelledOptions(stage="whitening")
