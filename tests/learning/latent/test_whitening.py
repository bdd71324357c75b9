"""Whitening from mined matches: choice of matches, and learning from photos."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from index.errors import CairnError
from learning.convex.whitening import RowMoments, WhiteningOptions, WhiteningSetting
from learning.latent.alternation import GroupedRows
from learning.latent.described_patches import Described
from learning.latent.descriptor import Unlabelled, UnlabelledOptions, learn_unlabelled
from learning.latent.models import Held
from learning.latent.whitening import LatentSetting, Positives, WhiteningWork, grid, scene_weights
from learning.mining.matches import MinedMatches
from learning.mining.mining import MiningOptions
from retrieval.descriptors.learnt import LearntDescriptor, save_model
from retrieval.descriptors.registry import find_descriptor
from retrieval.descriptors.sift import Sift
from tests.support.learning.mined_files import drawn, in_memory
from tests.support.learning.unlabelled_cases import QUICK, mined_views, recall

WHITE = replace(QUICK, stage="whitening", base="rootsift", dim=32)


@pytest.fixture(scope="module")
def mined(tmp_path_factory: pytest.TempPathFactory) -> MinedMatches:
    return mined_views(tmp_path_factory)


def test_the_grid_has_each_setting_once() -> None:
    settings = grid((0.8, 0.5, 0.8), WhiteningOptions((0.1, 1.0), (1.0, 0.5, 1.0)), 100)
    assert len(settings) == len(set(settings)) == 8
    assert {setting.whitening.dim for setting in settings} == {100, 50}
    assert {setting.whitening.dim for setting in grid((0.8,), WhiteningOptions(kept=(0.1,)), 1)} == {1}


# Choice of matches


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
        GroupedRows(np.cumsum([0, *(len(one) for one in positives)]).astype(np.int64)),
        np.concatenate(positives).astype(np.int64),
        np.ones(len(references)),
    )
    described = Described(np.arange(len(every)), every)
    mined = in_memory(drawn(np.random.default_rng(0)))
    held = Held(mined, np.zeros(0, np.int64), np.arange(4))
    moments = RowMoments.of(every[references].astype(np.float32))
    work = WhiteningWork(held, training, moments, described, Described(np.arange(4), every[:4]), 3)
    monkeypatch.setattr(WhiteningWork, "_validate", lambda work, parameters: 0.0)  # there are no photos
    ((record, parameters),) = work.learn(LatentSetting(0.8, WhiteningSetting(0.001, dim)), "a" * 64)
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


def test_nested_rootsift_is_whitened_and_kept(mined: MinedMatches, tmp_path: Path) -> None:
    model = learn_unlabelled(mined, tmp_path, replace(WHITE, base="nested", shares=(0.8,))).model
    assert model.name == "rootsift-31-19-white" and model.projection is not None and model.projection.shape[1] == 256
    save_model(tmp_path / "nested.npz", model)
    kept, patches = find_descriptor(str(tmp_path / "nested.npz")), np.asarray(mined.patches[:100])
    assert kept.fingerprint == model.fingerprint and kept.extent == mined.extent
    np.testing.assert_array_equal(kept.describe(patches), LearntDescriptor(model).describe(patches))


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
    with pytest.raises(CairnError, match="choose the base rootsift, sift or nested"):
        UnlabelledOptions(stage="whitening")
