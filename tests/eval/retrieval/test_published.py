"""Settings stated in papers are set, and cannot be overridden."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eval.retrieval.published import PUBLISHED, set_as_published
from index.errors import CairnError
from tests.conftest import Indexed, Ran

DEFAULTS: dict[str, Any] = {
    **{"words": 0, "vocabulary_photos": "5000", "turns": 8, "soft": 1, "tf": "linear", "max_features": 0},
    **{"signature": "hamming-64", "descriptor": "rootsift", "detector": "dog-affine", "measurement_scale": None},
    **{"upright": True, "similarity": None, "engine": "best", "expand": "none", "seed": 0},
}


def test_each_paper_has_its_detector_its_words_and_one_turn() -> None:
    found = {name: set_as_published(name, DEFAULTS, set()) for name in PUBLISHED}
    assert {(one["words"], one["turns"], one["soft"], one["vocabulary_photos"]) for one in found.values()} == {
        (500_000, 1, 1, "all")
    }
    reported = ("detector", "measurement_scale", "upright", "descriptor", "engine", "expand")
    assert {name: tuple(one[option] for option in reported) for name, one in found.items()} == {
        "simonyan14": ("dog-affine", 12.5, True, "rootsift", "tf-idf-sp", "none"),
        "simonyan14/table5": ("hessian-affine", 3**0.5, False, "sift", "tf-idf-sp", "none"),
        "yan13": ("hessian-affine", None, False, "rootsift", "tf-idf", "none"),
    }
    assert all(one["seed"] == 0 for one in found.values())


def test_what_is_left_open_may_be_chosen_and_what_goes_together_comes_together() -> None:
    requested = {**DEFAULTS, "engine": "tf-idf-sp", "descriptor": "sift", "seed": 3}
    found = set_as_published("yan13", requested, {"engine", "descriptor", "seed"})
    assert (found["expand"], found["descriptor"], found["seed"]) == ("average", "sift", 3)
    requested = {**DEFAULTS, "engine": "raw", "descriptor": "own.npz", "vocabulary_photos": "100"}
    found = set_as_published("simonyan14", requested, {"engine", "descriptor", "vocabulary_photos"})
    assert (found["engine"], found["descriptor"], found["vocabulary_photos"]) == ("raw", "own.npz", "100")
    assert set_as_published("simonyan14", {**DEFAULTS, "words": 50}, {"words"}, {"words"})["words"] == 50


@pytest.mark.parametrize(
    ("name", "option", "value", "sentence"),
    [
        ("simonyan14", "turns", 8, "--turns is 1: leave --turns or"),
        ("simonyan14", "words", 50, "--words is 500000"),
        ("simonyan14", "upright", False, "patches are --upright: leave --upright/--rotated"),
        ("simonyan14", "engine", "asmk", "--engine is tf-idf-sp"),
        ("simonyan14", "similarity", Path("a.npz"), "there is no --similarity"),
        ("simonyan14/table5", "measurement_scale", 12.5, "--measurement-scale is 1.73205"),
        ("yan13", "descriptor", "cairn", "--descriptor is rootsift"),
        ("yan13", "expand", "discriminative", "--expand is"),
    ],
)
def test_what_is_published_otherwise_is_refused(name: str, option: str, value: Any, sentence: str) -> None:
    with pytest.raises(CairnError, match="As published in") as refused:
        set_as_published(name, {**DEFAULTS, option: value}, {option})
    assert sentence in str(refused.value) and str(refused.value).endswith(".")


def test_the_command_knows_which_options_were_given(cairn: Callable[..., Ran], tmp_path: Path) -> None:
    command = ("evaluate", "retrieval", "--images", tmp_path, "--gt", tmp_path, "--as-published")
    assert "simonyan14, simonyan14/table5 or yan13" in cairn(*command, "lowe04").refused()
    assert "--turns is 1" in cairn(*command, "yan13", "--turns", 8).refused()  # the default, but explicit
    assert "--words is 500000" in cairn(*command, "yan13", "--words", 10).refused()
    for more in ((), ("--turns", 1), ("--words", 10, "--share", 0.5)):  # it goes on, and finds no ground truth
        assert "ground truth" in cairn(*command, "yan13", *more).refused()


def test_what_was_made_otherwise_is_refused(cairn: Callable[..., Ran], indexed: Indexed) -> None:
    command = ("evaluate", "retrieval", "--images", indexed.photos, "--gt", indexed.gt, "--as-published", "yan13")
    assert "there are 500000 words" in cairn(*command, "--vocabulary", indexed.folder).refused()
    assert "made with other options than yan13" in cairn(*command, "--collection", indexed.folder).refused()
