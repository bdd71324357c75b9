"""Synthetic jitter: sizes of errors, and sets built with it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from index.arrays import load_json
from index.errors import CairnError
from learning.building.correspondence import Detections, disagreement, is_match
from learning.building.detections import keypoint_frames
from learning.building.jitter import JitterOptions, jitter
from learning.building.options import DetectionOptions, MatchRule, SplitOptions
from learning.building.patchset import build_from_sequences
from learning.patches.phototour import PatchSet
from tests.conftest import Ran
from tests.learning.building.test_patchset import write_sequence

NUMBER = 2_000


@pytest.fixture(scope="module")
def exact() -> Detections:
    rng = np.random.default_rng(0)
    frames = keypoint_frames(rng.uniform(2, 30, NUMBER), rng.uniform(0, 360, NUMBER))
    return Detections(rng.uniform(0, 500, (NUMBER, 2)), frames)


def test_detections_miss_by_what_was_asked_for_and_still_match(exact: Detections) -> None:
    rule = MatchRule()
    found = jitter(exact, rule, JitterOptions(0.3), 1)
    assert is_match(exact, found, rule).all() and (disagreement(exact, found, rule) > 0).all()
    turns = (found.angles - exact.angles + np.pi) % (2 * np.pi) - np.pi
    assert turns.std() == pytest.approx(0.3 * rule.radians, rel=0.05)
    assert (found.octaves - exact.octaves).std() == pytest.approx(0.3 * rule.octaves, rel=0.05)
    large = 0.2 * exact.sides > rule.pixels * 1.1
    offsets = (found.centres - exact.centres)[large]
    assert offsets.std() == pytest.approx(0.3 * rule.pixels / 2**0.5, rel=0.06)


def test_without_spread_nothing_misses(exact: Detections) -> None:
    found = jitter(exact, MatchRule(), JitterOptions(0.0), 1)
    np.testing.assert_allclose(found.centres, exact.centres)
    np.testing.assert_allclose(found.frames, exact.frames, atol=1e-9)


def test_it_is_the_same_each_time_and_another_in_another_image(exact: Detections) -> None:
    rule = MatchRule()
    one, again, other, seeded = (
        jitter(exact, rule, options, number).centres
        for options, number in (
            (JitterOptions(), 1),
            (JitterOptions(), 1),
            (JitterOptions(), 2),
            (JitterOptions(seed=1), 1),
        )
    )
    np.testing.assert_array_equal(one, again)
    # Truncated errors may be equal.
    assert (one != other).mean() > 0.98 and (one != seeded).mean() > 0.98


def test_slanted_and_missing_ones_are_nowhere(exact: Detections) -> None:
    frames = exact.frames[:3] @ np.stack([np.eye(2), np.diag([2.0, 1.0]), np.eye(2)])
    centres = exact.centres[:3].copy()
    centres[2] = np.nan
    frames[2] = np.nan
    found = jitter(Detections(centres, frames), MatchRule(), JitterOptions(), 1)
    np.testing.assert_array_equal(np.isnan(found.centres).any(axis=1), [False, True, True])


@pytest.mark.slow
def test_a_set_is_made_of_the_first_image_s_points(tmp_path: Path) -> None:
    folder, out = write_sequence(tmp_path / "first", 0), tmp_path / "set"
    splits = SplitOptions(train=200, validation=100, test=100)
    build_from_sequences(out, [folder], splits=splits, noise=JitterOptions(0.2))
    patches = PatchSet.open(out)
    points = [set(patches.points[patches.photos == photo]) for photo in range(3)]
    assert points[1] | points[2] <= points[0] and min(map(len, points)) > 20
    assert len(np.unique(patches.points)) == len(points[0])
    assert load_json(out / "provenance.json")["jitter"] == {"spread": 0.2, "slant": 1.6, "seed": 0}
    again = tmp_path / "again"
    build_from_sequences(again, [folder], splits=splits, noise=JitterOptions(0.2))
    assert PatchSet.open(again).fingerprint == patches.fingerprint


@pytest.mark.parametrize("wrong", [{"spread": -0.1}, {"spread": float("nan")}, {"slant": 0.5}])
def test_what_cannot_be_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(CairnError):
        JitterOptions(**wrong)  # type: ignore[arg-type]


def test_regions_have_no_jitter(tmp_path: Path) -> None:
    with pytest.raises(CairnError, match="detector sift or harris"):
        build_from_sequences(tmp_path / "set", [tmp_path], DetectionOptions("dog-affine"), noise=JitterOptions())


@pytest.mark.slow
def test_the_command_builds_both_and_refuses_what_makes_no_sense(cairn: Callable[..., Ran], tmp_path: Path) -> None:
    folder = write_sequence(tmp_path / "first", 0)
    sizes = ("--train", 60, "--validation", 40, "--test", 40, "--json")
    reported = cairn("patches", "build", tmp_path / "h", folder, "--detector", "harris", "--jitter", 0.3, *sizes).json
    assert reported["patches"] > 100 and reported["unused"] == 0
    assert "--jitter" in cairn("patches", "build", tmp_path / "p", tmp_path / "x.npz", "--jitter", 0.3).refused()
