"""Features to learn from and their candidates: by brute force over the lists of a mined file."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learning.latent import anchors as comparing
from learning.latent import described as module
from learning.latent.anchors import Anchors, candidates_of, draw_features, find_nearest
from learning.latent.described import Described, describe_mined
from learning.mining.matches import MinedMatches
from tests.support.mined_files import Arrays, drawn, in_memory, write

seeds = st.integers(0, 2**32 - 1)


def some_mined(seed: int, least: int = 1) -> tuple[MinedMatches, np.random.Generator]:
    """Drawn matches with so many features at least."""
    rng = np.random.default_rng(seed)
    while len((arrays := drawn(rng))["reference"]) < least:
        pass
    return in_memory(arrays), rng


def some_features(matches: MinedMatches, rng: np.random.Generator) -> np.ndarray:
    """At least one, rising."""
    return np.sort(rng.permutation(matches.features)[: rng.integers(1, matches.features + 1)])


def without_negatives() -> Arrays:
    """Drawn matches whose N(x) are all empty: what is not a positive is ambiguous."""
    arrays = drawn(np.random.default_rng(1))
    targets = np.split(arrays["targets"], arrays["target_starts"][1:-1])
    positives = np.split(arrays["positives"], arrays["positive_starts"][1:-1])
    rows = [np.setdiff1d(targets[pair], mine) for pair, mine in zip(arrays["pair"], positives, strict=True)]
    return arrays | {
        "ambiguous": np.concatenate(rows),
        "ambiguous_starts": np.cumsum([0, *map(len, rows)], dtype=np.int64),
    }


def blocks_of(patches: np.ndarray) -> np.ndarray:
    """Rows of a descriptor that is plain to see: four samples of each patch, in units that float16 has."""
    return patches[:, ::12, 5].reshape(len(patches), -1) / np.float64(4)


class TestDraw:
    @settings(max_examples=200, deadline=None)
    @given(
        sizes=st.lists(st.integers(0, 12), min_size=1, max_size=6),
        number=st.integers(0, 50),
        seed=seeds,
        data=st.data(),
    )
    def test_photos_and_their_pairs_give_the_same_number_or_all_they_have(
        self, sizes: list[int], number: int, seed: int, data: st.DataObject
    ) -> None:
        # Of the file only which feature is of which pair is looked at.
        arrays = drawn(np.random.default_rng(0), pairs=len(sizes))
        total = sum(sizes)
        arrays |= {
            "pair": np.repeat(np.arange(len(sizes), dtype=np.int32), sizes),
            "reference": np.zeros(total, np.int32),
            "positives": np.zeros(total, np.int32),
            "positive_starts": np.arange(total + 1),
            "ambiguous": np.zeros(0, np.int32),
            "ambiguous_starts": np.zeros(total + 1, np.int64),
        }
        matches = in_memory(arrays)
        pairs = np.array(data.draw(st.permutations(range(len(sizes)))))[: data.draw(st.integers(0, len(sizes)))]
        found = draw_features(matches, pairs, number, np.random.default_rng(seed))
        allowed = sum(sizes[pair] for pair in pairs)
        assert found.dtype == np.int64 and len(found) == (min(number, allowed) if number else allowed)
        assert (np.diff(found) > 0).all()
        counts = np.bincount(matches.pair[found], minlength=len(sizes))
        assert not np.delete(counts, pairs).any()
        of_photo = matches.pairs[:, 0]
        given = np.bincount(of_photo, counts, 4)
        there = np.bincount(of_photo[pairs], np.array(sizes)[pairs], 4)
        assert ((given == there) | (given >= given.max() - 1)).all()
        for pair in pairs:
            assert counts[pair] == sizes[pair] or counts[pair] >= counts[of_photo == of_photo[pair]].max() - 1
        again = draw_features(matches, pairs, number, np.random.default_rng(seed))
        np.testing.assert_array_equal(found, again)

    def test_the_seed_decides_and_every_feature_has_its_chance(self) -> None:
        matches, _ = some_mined(3, 9)
        pairs = np.arange(3)
        draws = [tuple(draw_features(matches, pairs, 4, np.random.default_rng(seed))) for seed in range(60)]
        assert len(set(draws)) > 20
        assert {x for found in draws for x in found} == set(range(matches.features))


class TestNearest:
    @pytest.mark.parametrize("projected", [False, True])
    @settings(max_examples=60, deadline=None)
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
            # Of equal ones any may be named.
            assert sorted(negatives[patch] for patch in named) == sorted(negatives.values())[:count]
        assert found.recall == held / len(features)

    @settings(max_examples=10, deadline=None)
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
        # Whole numbers, of which all products are exact; of 40 entries, so that no two distances are equal.
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

    @settings(max_examples=40, deadline=None)
    @given(seed=seeds)
    def test_candidates_are_the_features_and_all_of_their_second_photos(self, seed: int) -> None:
        matches, rng = some_mined(seed)
        features = some_features(matches, rng)
        wanted = set()
        for x in features.tolist():
            wanted |= {int(matches.reference[x]), *matches.positives(x), *matches.ambiguous(x), *matches.negatives(x)}
        assert candidates_of(matches, features).tolist() == sorted(wanted)


def lists_of(anchors: Anchors) -> dict[int, tuple[int, list[int], list[int]]]:
    """By feature: its patch, its positives and its negatives."""

    def of(starts: np.ndarray, patches: np.ndarray) -> list[list[int]]:
        return [patches[first:last].tolist() for first, last in pairwise(starts)]

    parts = (
        of(anchors.positives.starts, anchors.positive_patches),
        of(anchors.negatives.starts, anchors.negative_patches),
    )
    features = zip(anchors.features.tolist(), anchors.references.tolist(), *parts, strict=True)
    return {x: (patch, positives, negatives) for x, patch, positives, negatives in features}


class TestAnchors:
    @staticmethod
    def some_hardest(matches: MinedMatches, features: np.ndarray, rng: np.random.Generator, count: int) -> np.ndarray:
        """Negatives (F, count) in any order, some of them twice, and -1 between."""
        table = np.full((len(features), count), -1, np.int32)
        for row, x in zip(table, features.tolist(), strict=True):
            if len(negatives := matches.negatives(x)):
                there = rng.random(count) < 0.7
                row[there] = rng.choice(negatives, there.sum())
        return table

    @settings(max_examples=60, deadline=None)
    @given(seed=seeds)
    def test_they_hold_all_positives_and_each_named_negative_once(self, seed: int) -> None:
        matches, rng = some_mined(seed)
        features = some_features(matches, rng)
        first, more = (self.some_hardest(matches, features, rng, count) for count in (3, 5))
        first[0, 0] = matches.target_patches[0]  # so that one feature has one
        anchors = Anchors.of(matches, features, first)
        kept = (first >= 0).any(axis=1)
        wanted = {
            x: (int(matches.reference[x]), matches.positives(x).tolist(), sorted(set(row.tolist()) - {-1}))
            for x, row in zip(features[kept].tolist(), first[kept], strict=True)
        }
        assert lists_of(anchors) == wanted and len(anchors) == kept.sum()
        named = {patch for own, positives, negatives in wanted.values() for patch in (own, *positives, *negatives)}
        assert anchors.patches().tolist() == sorted(named)

        grown = anchors.with_negatives(matches, more[kept])
        wanted = {
            x: (own, positives, sorted({*negatives, *row.tolist()} - {-1}))
            for (x, (own, positives, negatives)), row in zip(wanted.items(), more[kept], strict=True)
        }
        assert lists_of(grown) == wanted
        assert lists_of(grown.with_negatives(matches, more[kept])) == wanted
        assert lists_of(grown.with_negatives(matches, first[kept])) == wanted

    @settings(max_examples=30, deadline=None)
    @given(seed=seeds)
    def test_the_order_of_negatives_changes_nothing(self, seed: int) -> None:
        matches, rng = some_mined(seed)
        features = some_features(matches, rng)
        hardest = self.some_hardest(matches, features, rng, 6)
        one, other = (Anchors.of(matches, features, table) for table in (hardest, rng.permuted(hardest, axis=1)))
        assert lists_of(one) == lists_of(other) and one.fingerprint == other.fingerprint

    def test_other_candidates_have_another_fingerprint(self) -> None:
        matches, _ = some_mined(2, 3)
        one, two, three = 1, 2, 3
        # The same patches in all, divided differently; fewer of them; of other features.
        tables = [[one, two], [three, -1]], [[one, -1], [two, three]], [[one, -1], [three, -1]]
        anchors = [Anchors.of(matches, np.arange(2), np.array(table, np.int32)) for table in tables]
        anchors.append(Anchors.of(matches, np.arange(1, 3), np.array(tables[0], np.int32)))
        assert len({each.fingerprint for each in anchors}) == 4


class TestDescribed:
    @pytest.fixture
    def matches(self, tmp_path: Path) -> MinedMatches:
        return MinedMatches.open(write(tmp_path / "mined.npz", drawn(np.random.default_rng(5))))

    @pytest.fixture
    def numbers(self, matches: MinedMatches) -> np.ndarray:
        return np.arange(0, len(matches.patches), 2)

    @pytest.mark.parametrize("batch", [1, 3, 100])
    @pytest.mark.parametrize("kept", [False, True])
    def test_rows_are_those_of_the_patches_that_are_asked_for(
        self,
        matches: MinedMatches,
        numbers: np.ndarray,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        batch: int,
        kept: bool,
    ) -> None:
        monkeypatch.setattr(module, "_BATCH", batch)
        path = tmp_path / "rows.npy" if kept else None
        told: list[tuple[int, int]] = []
        found = describe_mined(matches, numbers, blocks_of, path, progress=lambda *now: told.append(now))
        wanted = blocks_of(matches.patches[numbers])
        assert found.rows.dtype == np.float16 and found.dim == wanted.shape[1]
        np.testing.assert_array_equal(found.rows, wanted)
        assert [done for done, _ in told] == sorted({done for done, _ in told})
        assert told[-1] == (len(numbers), len(numbers)) and len(told) == -(-len(numbers) // batch)
        backwards = numbers[::-1]
        taken = found.take(backwards)
        assert taken.dtype == np.float32
        np.testing.assert_array_equal(taken, wanted[::-1])
        np.testing.assert_array_equal(found.numbers[found.places(backwards)], backwards)
        assert {each.name for each in tmp_path.iterdir()} == {"mined.npz"} | ({"rows.npy"} if kept else set())

    def test_workers_change_nothing(
        self, matches: MinedMatches, numbers: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "_BATCH", 3)
        one = describe_mined(matches, numbers, blocks_of, tmp_path / "one.npy")
        two = describe_mined(matches, numbers, blocks_of, tmp_path / "two.npy", workers=2)
        np.testing.assert_array_equal(one.rows, two.rows)
        assert (tmp_path / "one.npy").read_bytes() == (tmp_path / "two.npy").read_bytes()

    def test_what_is_there_is_not_described_again_and_what_is_unfinished_is_not_there(
        self, matches: MinedMatches, numbers: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "_BATCH", 3)
        path = tmp_path / "rows.npy"
        calls = []

        def failing(patches: np.ndarray) -> np.ndarray:
            calls.append(len(patches))
            if len(calls) == 2:
                raise OSError("no space")
            return blocks_of(patches)

        with pytest.raises(OSError, match="no space"):
            describe_mined(matches, numbers, failing, path)
        assert not path.exists()
        found = describe_mined(matches, numbers, failing, path)
        before = len(calls)
        again = describe_mined(matches, numbers, failing, path)
        assert len(calls) == before and isinstance(again.rows, np.memmap)
        np.testing.assert_array_equal(again.rows, found.rows)
        np.testing.assert_array_equal(again.rows, blocks_of(matches.patches[numbers]))
