"""Conclusions on a learnt descriptor: searches decide if measured."""

from pathlib import Path

import numpy as np
import pytest

from learning.judge.conclusion import Conclusion, judge_searches, paths_of
from learning.judge.judging import JudgeOptions
from learning.judge.verdict import RetrievalVerdict
from learning.latent.verdict import Figures, Verdict
from learning.mining.photo_source import PhotoSource
from retrieval.descriptors.learnt import LearntModel
from tests.support.learning.mined_files import drawn, in_memory

GAINS = {"better": [0.1, 0.11, 0.12], "worse": [-0.1, -0.11, -0.12], "same": [0.1, -0.1, 0.0], "cannot say": []}


def nearest(gain: float) -> Verdict:
    """Of nearest neighbours, better or worse by so much."""
    half = np.full(4, 0.5)
    return Verdict("rootsift", 100, 10, Figures(*[half + gain] * 4), Figures(*[half] * 4))


@pytest.mark.parametrize("outcome", GAINS)
@pytest.mark.parametrize("gain", [0.1, -0.1])
def test_searches_decide_whatever_nearest_neighbours_say(outcome: str, gain: float) -> None:
    gains = np.column_stack([GAINS[outcome]] * 2).reshape(-1, 2)
    found = RetrievalVerdict("rootsift", 9, 5, 20, 0.5 + gains, np.full(gains.shape, 0.5))
    reported = Conclusion(nearest(gain), found)
    assert reported.outcome == outcome and reported.sentence == found.sentence
    assert ("index with it" in reported.sentence) == (outcome == "better")
    assert reported.details == [*reported.nearest.details, *found.details]
    verdict = reported.as_json()
    assert verdict["outcome"] == outcome and verdict["told_by"] == "retrieval"
    assert verdict["nearest_neighbours"] == ("better" if gain > 0 else "worse")
    assert verdict.keys() >= nearest(gain).as_json().keys()
    assert reported.retrieval_json() == {"measured": True, **found.as_json()}


def test_without_searches_nearest_neighbours_are_told_and_that_they_are_no_searches(tmp_path: Path) -> None:
    matches = in_memory(drawn(np.random.default_rng(0)))
    found = judge_searches(None, matches, LearntModel("rootsift"), tmp_path / "work", JudgeOptions(), held_out=0.2)
    reported = Conclusion(nearest(0.1), *found)
    assert reported.outcome == "better" and reported.as_json()["told_by"] == "nearest neighbours"
    assert reported.sentence.startswith(nearest(0.1).sentence)
    assert reported.sentence.endswith(
        "was not measured: a file of matches has no photos to search, so learn from the collection."
    )
    assert reported.retrieval_json()["measured"] is False and not (tmp_path / "work").exists()
    assert Conclusion(nearest(0.1), None).sentence.endswith("was not measured.")


def test_photos_of_one_name_are_all_taken_to_be_meant() -> None:
    matches = in_memory(drawn(np.random.default_rng(1), pairs=3))
    paths = [Path(f"/{folder}/photo{number}.jpg") for folder in "ab" for number in range(6)]
    source = PhotoSource("photos", paths)
    for pair, photos in enumerate(matches.pairs.tolist()):
        expected = {f"/{folder}/photo{photo}.jpg" for folder in "ab" for photo in photos}
        assert paths_of(source, matches, np.array([pair])) == expected
    assert paths_of(source, matches, np.zeros(0, np.int64)) == set()
