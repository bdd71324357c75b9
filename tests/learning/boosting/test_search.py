"""AdaBoost over pairs: its bounds, its choice compared with exhaustive search, and levels compared with responses."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index.errors import CairnError
from learning.boosting import weak_learners
from learning.boosting.descriptor import pair_list
from learning.boosting.search import Boosting, LearnerSearchOptions
from learning.boosting.weak_learners import (
    LEVELS,
    CandidateOptions,
    PairLevels,
    PairList,
    draw_boxes,
    draw_candidates,
    most_candidates,
    pair_levels,
)
from learning.patches.sources import open_sources
from retrieval.descriptors.boosted import WeakLearners
from retrieval.descriptors.boxes import ResponseOptions, integral_images, responses
from tests.support.learning.boosting_cases import write_views

RESPONSES = ResponseOptions(orientations=8)
CANDIDATES = CandidateOptions(number=60)


def some_levels(seed: int, candidates: int = 12, pairs: int = 150) -> tuple[PairLevels, np.ndarray]:
    """Levels that are closer for matches, especially for some candidates; and the labels."""
    rng = np.random.default_rng(seed)
    match = rng.permutation(np.arange(pairs) < pairs // 2)
    centre = rng.uniform(0, LEVELS, (candidates, pairs))
    spread = np.where(match, rng.uniform(20, 120, (candidates, 1)), 120)
    both = (centre + spread * rng.uniform(-1, 1, (2, candidates, pairs))).clip(0, LEVELS - 1).astype(np.uint8)
    return PairLevels(both.min(axis=0), both.max(axis=0)), match


def products(levels: PairLevels, candidate: int, level: int) -> np.ndarray:
    """h(x) h(y) of all pairs, from h itself."""
    first = np.where(levels.lower[candidate] <= level, 1, -1)
    return first * np.where(levels.upper[candidate] <= level, 1, -1)


class TestBoosting:
    @pytest.mark.parametrize("offset", [True, False])
    @given(seed=st.integers(0, 1000))
    @settings(max_examples=15)
    def test_the_loss_is_the_product_of_normalisers_and_falls(self, offset, seed):
        levels, match = some_levels(seed)
        boosting = Boosting(
            match, LearnerSearchOptions(sample=64, finalists=4, offset=offset), np.random.default_rng(seed)
        )
        labels, bound, before = np.where(match, 1, -1), 1.0, 1.0
        for _ in range(25):
            weights = boosting.weights()
            found = boosting.add(levels)
            if found is None:
                break
            assert 0 < found.correlation < 1 and found.weight > 0
            if offset:
                # Balancing is a weak learner that always says match: r is the difference of weights.
                chance = (weights * labels).sum()
                bound *= np.sqrt(1 - chance**2)
                weights = weights * np.where(match, 1 / (1 + chance), 1 / (1 - chance))
            answers = products(levels, found.candidate, found.level)
            correlation = (weights * labels * answers).sum()
            assert found.correlation == pytest.approx(correlation, abs=1e-9)
            bound *= np.sqrt(1 - correlation**2)
            assert found.loss == pytest.approx(bound, rel=1e-6)
            assert found.loss < before
            before = found.loss
            # The share of pairs on the wrong side is bounded by the loss.
            assert ((labels * boosting.similarity) <= 0).mean() <= found.loss + 1e-12

    def test_the_similarity_is_that_of_equation_2(self):
        levels, match = some_levels(3)
        boosting = Boosting(match, LearnerSearchOptions(sample=64, finalists=6), np.random.default_rng(0))
        rounds = [boosting.add(levels) for _ in range(15)]
        expected = boosting.offset + sum(one.weight * products(levels, one.candidate, one.level) for one in rounds)
        np.testing.assert_allclose(boosting.similarity, expected)
        labels = np.where(match, 1, -1)
        assert boosting.loss == pytest.approx(np.exp(-labels * expected).mean())

    def test_with_all_as_finalists_the_best_of_all_thresholds_is_taken(self):
        levels, match = some_levels(5)
        boosting = Boosting(match, LearnerSearchOptions(finalists=12), np.random.default_rng(0))
        labels = np.where(match, 1, -1)
        for _ in range(5):
            # Both kinds weigh the same as the round begins.
            weights = boosting.weights() / (2 * np.where(match, *_totals(boosting.weights(), match)))
            best = max(
                (weights * labels * products(levels, candidate, level)).sum()
                for candidate in range(12)
                for level in range(LEVELS - 1)
            )
            found = boosting.add(levels)
            assert found.correlation == pytest.approx(best, abs=1e-9)

    def test_a_sample_finds_what_is_nearly_as_good(self):
        levels, match = some_levels(7, candidates=200, pairs=4000)
        every = Boosting(match, LearnerSearchOptions(finalists=200), np.random.default_rng(0))
        some = Boosting(match, LearnerSearchOptions(sample=1000, finalists=10), np.random.default_rng(0))
        for _ in range(10):
            assert some.add(levels).correlation > 0.9 * every.add(levels).correlation

    def test_threads_change_nothing_and_the_seed_does(self):
        levels, match = some_levels(9, candidates=150)
        options = LearnerSearchOptions(sample=50, finalists=3)

        def run(seed, workers):
            boosting = Boosting(match, options, np.random.default_rng(seed), workers)
            return [boosting.add(levels) for _ in range(6)]

        assert run(0, 1) == run(0, 3)
        assert run(0, 1) != run(1, 1)

    def test_where_nothing_is_better_than_chance_it_says_so(self):
        match = np.arange(40) % 2 == 0
        same = np.full((5, 40), 9, np.uint8)
        assert Boosting(match, LearnerSearchOptions(), np.random.default_rng(0)).add(PairLevels(same, same)) is None
        with pytest.raises(ValueError, match="matches and others"):
            Boosting(np.ones(4, bool), LearnerSearchOptions(), np.random.default_rng(0))

    def test_a_perfect_weak_learner_gets_a_finite_weight(self):
        match = np.arange(40) % 2 == 0
        lower, upper = np.full((1, 40), 3, np.uint8), np.where(match, 3, 90).astype(np.uint8)[None]
        boosting = Boosting(match, LearnerSearchOptions(), np.random.default_rng(0))
        for _ in range(3):
            found = boosting.add(PairLevels(lower, upper))
            assert np.isfinite([found.weight, found.loss, boosting.similarity.max()]).all()


def _totals(weights: np.ndarray, match: np.ndarray) -> tuple[float, float]:
    return float(weights[match].sum()), float(weights[~match].sum())


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> PairList:
    """Two sets, so that pairs have different owners."""
    folder = write_views(tmp_path_factory.mktemp("boosting") / "set")
    return pair_list(open_sources([folder, folder], pairs=80), "train")


class TestCandidates:
    def test_levels_are_those_of_the_responses_of_each_pair(self, pairs):
        candidates = draw_candidates(pairs, RESPONSES, CANDIDATES, np.random.default_rng(0))
        levels = pair_levels(pairs, candidates, RESPONSES)
        first, second = pairs.patches(np.arange(len(pairs)), 31)
        found = [
            responses(integral_images(side, RESPONSES), candidates.boxes, candidates.channels).T
            for side in (first, second)
        ]
        assert levels.lower.shape == (60, len(pairs)) and levels.lower.dtype == np.uint8
        agreed = 0
        for level in (1, 40, 128, 200, 253):
            thresholds = np.array([candidates.threshold(number, level) for number in range(60)])[:, None]
            both = [side <= thresholds for side in found]
            differ = (levels.lower <= level) & (level < levels.upper)
            agreed += (differ == (both[0] != both[1])).mean()
        assert agreed / 5 > 0.9999  # but for rounding

    def test_what_boosting_counts_is_what_the_descriptor_answers(self, pairs):
        rng = np.random.default_rng(0)
        candidates = draw_candidates(pairs, RESPONSES, CANDIDATES, rng)
        levels = pair_levels(pairs, candidates, RESPONSES)
        boosting = Boosting(pairs.match, LearnerSearchOptions(finalists=10), rng)
        rounds = [boosting.add(levels) for _ in range(12)]
        chosen = [one.candidate for one in rounds]
        learners = WeakLearners(
            candidates.boxes[chosen],
            candidates.channels[chosen],
            np.array([candidates.threshold(one.candidate, one.level) for one in rounds]),
            np.array([one.weight for one in rounds], np.float32),
            RESPONSES,
        )
        one, two = (learners.answers(side) for side in pairs.patches(np.arange(len(pairs)), 31))
        similarity = (one * two) @ learners.weights + boosting.offset
        np.testing.assert_allclose(similarity, boosting.similarity, atol=1e-5)

    def test_neither_threads_nor_parts_change_them(self, pairs, monkeypatch):
        candidates = draw_candidates(pairs, RESPONSES, CANDIDATES, np.random.default_rng(0))
        whole = pair_levels(pairs, candidates, RESPONSES)
        monkeypatch.setattr(weak_learners, "_PAIRS", 17)
        monkeypatch.setattr(weak_learners, "_PATCHES", 5)
        reported: list[int] = []
        parts = pair_levels(pairs, candidates, RESPONSES, workers=3, progress=lambda done, of: reported.append(done))
        np.testing.assert_array_equal(parts.lower, whole.lower)
        np.testing.assert_array_equal(parts.upper, whole.upper)
        assert reported == sorted(reported) and reported[-1] == len(pairs)

    def test_boxes_lie_within_the_patch_and_reach_its_border(self):
        boxes, channels = draw_boxes(RESPONSES, CandidateOptions(5000, 3, 20), np.random.default_rng(0))
        sides = boxes[:, 2:] - boxes[:, :2]
        assert boxes.min() == 0 and boxes.max() == 31 and (sides.min(), sides.max()) == (3, 20)
        assert set(channels) == set(range(8))
        boxes, channels = draw_boxes(replace(RESPONSES, family="intensity"), CANDIDATES, np.random.default_rng(0))
        assert (boxes[:, 2:] - boxes[:, :2] == 1).all() and not channels.any()

    @pytest.mark.parametrize("sides", [(0, 5), (9, 8), (3, 32)])
    def test_sides_that_do_not_fit_are_refused(self, sides):
        with pytest.raises(CairnError, match="do not fit into patches of 31"):
            draw_boxes(RESPONSES, CandidateOptions(10, *sides), np.random.default_rng(0))

    def test_more_than_memory_holds_is_refused_before_any_work(self, pairs, monkeypatch):
        candidates = draw_candidates(pairs, RESPONSES, CANDIDATES, np.random.default_rng(0))
        monkeypatch.setattr(weak_learners, "MOST_BYTES", 2 * 59 * len(pairs))
        with pytest.raises(CairnError, match="draw 59 or fewer"):
            pair_levels(pairs, candidates, RESPONSES)

    def test_a_machine_with_little_memory_holds_fewer(self, monkeypatch):
        assert 1 <= most_candidates(400_000) <= weak_learners.MOST_BYTES // 800_000
        monkeypatch.setattr(weak_learners, "_memory", lambda: 1 << 30)
        assert most_candidates(400_000) == (1 << 29) // 800_000
