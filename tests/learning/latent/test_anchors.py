"""Training features and their candidates, by brute force over the lists of a mined file."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from learning.latent.anchors import Anchors, draw_features
from learning.mining.matches import MinedMatches
from tests.support.learning.mined_files import drawn, in_memory, some_features, some_mined

seeds = st.integers(0, 2**32 - 1)


class TestDraw:
    @given(
        sizes=st.lists(st.integers(0, 12), min_size=1, max_size=6),
        number=st.integers(0, 50),
        seed=seeds,
        data=st.data(),
    )
    def test_photos_and_their_pairs_give_the_same_number_or_all_they_have(
        self, sizes: list[int], number: int, seed: int, data: st.DataObject
    ) -> None:
        # Only the pairs of features in the file matter.
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
