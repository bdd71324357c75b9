"""Nearest candidates of features, by brute force over the lists of a mined file."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learning.latent import nearest as comparing
from learning.latent.anchors import Anchors
from learning.latent.described_patches import Described
from learning.latent.nearest import candidates_of, find_nearest
from tests.support.learning.mined_files import Arrays, drawn, in_memory, some_features, some_mined

seeds = st.integers(0, 2**32 - 1)


def without_negatives() -> Arrays:
    """Random matches with empty N(x): everything except positives is ambiguous."""
    arrays = drawn(np.random.default_rng(1))
    targets = np.split(arrays["targets"], arrays["target_starts"][1:-1])
    positives = np.split(arrays["positives"], arrays["positive_starts"][1:-1])
    rows = [np.setdiff1d(targets[pair], mine) for pair, mine in zip(arrays["pair"], positives, strict=True)]
    return arrays | {
        "ambiguous": np.concatenate(rows),
        "ambiguous_starts": np.cumsum([0, *map(len, rows)], dtype=np.int64),
    }


class TestNearest:
    @pytest.mark.parametrize("projected", [False, True])
    @given(seed=seeds, count=st.integers(0, 12))
    def test_it_is_what_comparing_each_with_each_finds(self, projected: bool, seed: int, count: int) -> None:
        matches, rng = some_mined(seed)
        features = some_features(matches, rng)
        # Small whole numbers, so that nothing is rounded and ties are common.
        table = rng.integers(-3, 4, (len(matches.patches), 5)).astype(np.float64)
        projection = rng.integers(-2, 3, (3, 5)) / 2 if projected else None
        numbers = candidates_of(matches, features)
        described = Described(numbers, table[numbers].astype(np.float16))
        found = find_nearest(matches, features, described, projection, count=count)
        assert found.hardest.shape == (len(features), count) and found.hardest.dtype == np.int32
        held = 0
        for place, x in enumerate(features.tolist()):

            def distance(patch: int, own: int = int(matches.reference[x])) -> float:
                theta = table[own] - table[patch]
                return float(np.square(theta if projection is None else projection @ theta).sum())

            positive = min(distance(patch) for patch in matches.positives(x))
            negatives = {patch: distance(patch) for patch in matches.negatives(x).tolist()}
            negative = min(negatives.values(), default=np.inf)
            assert found.positive[place] == positive and found.negative[place] == negative
            held += positive < negative
            named = [patch for patch in found.hardest[place].tolist() if patch >= 0]
            assert len(set(named)) == len(named) == min(count, len(negatives))
            # On ties any may be returned.
            assert sorted(negatives[patch] for patch in named) == sorted(negatives.values())[:count]
        assert found.recall == held / len(features)

    @settings(max_examples=10)
    @given(seed=seeds)
    def test_workers_change_nothing(self, seed: int) -> None:
        matches, rng = some_mined(seed)
        features = np.arange(matches.features)
        described = Described(np.arange(len(matches.patches)), rng.normal(size=(len(matches.patches), 7)))
        projection = rng.normal(size=(4, 7))
        one, three = (find_nearest(matches, features, described, projection, workers=n, count=3) for n in (1, 3))
        for name in ("positive", "negative", "hardest"):
            np.testing.assert_array_equal(getattr(one, name), getattr(three, name))

    @pytest.mark.parametrize("block", [1, 2])
    def test_features_compared_a_few_at_a_time_change_nothing(
        self, monkeypatch: pytest.MonkeyPatch, block: int
    ) -> None:
        matches, rng = some_mined(3, 5)
        features = np.arange(matches.features)
        assert np.bincount(matches.pair).max() > block
        # Integers, whose products are exact; of 40 entries, so that no two distances are equal.
        described = Described(np.arange(len(matches.patches)), rng.integers(-40, 40, (len(matches.patches), 40)))
        whole = find_nearest(matches, features, described, count=3)
        monkeypatch.setattr(comparing, "_BLOCK", block)
        parts = find_nearest(matches, features, described, count=3)
        np.testing.assert_array_equal(parts.positive, whole.positive)
        np.testing.assert_array_equal(parts.negative, whole.negative)
        np.testing.assert_array_equal(np.sort(parts.hardest), np.sort(whole.hardest))

    def test_rows_that_are_close_together_keep_their_order(self) -> None:
        """Distances come from products of rows, which must not drown those of neighbours on the unit sphere."""
        matches, rng = some_mined(11, 6)
        rows = rng.normal(size=(len(matches.patches), 128))
        rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)
        described = Described(np.arange(len(rows)), rows)
        found = find_nearest(matches, np.arange(matches.features), described)
        exact = rows.astype(np.float64)
        for x in range(matches.features):
            own = exact[matches.reference[x]]
            for least, patches in ((found.positive, matches.positives(x)), (found.negative, matches.negatives(x))):
                wanted = np.square(own - exact[patches]).sum(axis=1).min(initial=np.inf)
                assert least[x] == pytest.approx(wanted, abs=2e-6)

    def test_features_without_negatives_are_matched(self) -> None:
        matches = in_memory(without_negatives())
        numbers = np.arange(len(matches.patches))
        described = Described(numbers, numbers[:, None].astype(np.float16))
        found = find_nearest(matches, np.arange(matches.features), described, count=4)
        assert np.isfinite(found.positive).all() and np.isposinf(found.negative).all()
        assert (found.hardest == -1).all() and found.recall == 1
        assert len(Anchors.of(matches, np.arange(matches.features), found.hardest)) == 0

    @given(seed=seeds)
    def test_candidates_are_the_features_and_all_of_their_second_photos(self, seed: int) -> None:
        matches, rng = some_mined(seed)
        features = some_features(matches, rng)
        wanted = set()
        for x in features.tolist():
            wanted |= {int(matches.reference[x]), *matches.positives(x), *matches.ambiguous(x), *matches.negatives(x)}
        assert candidates_of(matches, features).tolist() == sorted(wanted)
