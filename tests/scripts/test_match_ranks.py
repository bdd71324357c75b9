"""Ranks of mined matches: counted as one would by hand."""

import numpy as np
import pytest

from learning.latent.described_patches import describe_mined
from retrieval.descriptors.sift import Sift
from scripts.match_ranks import draw, nearer, shares
from tests.support.learning.mined_files import drawn, in_memory


@pytest.mark.parametrize("seed", range(3))
def test_what_is_nearer_than_the_match_is_counted(seed: int) -> None:
    matches = in_memory(drawn(np.random.default_rng(seed), pairs=6, largest=20))
    features, patches = draw(matches, 20, 30, seed)
    assert set(matches.pair[features].tolist()) <= set(matches.pair_split(seed=seed)[1].tolist())
    describe = Sift(root=True).describe
    own = describe_mined(matches, np.unique(matches.reference[features]), describe)
    counts = nearer(matches, features, own, describe_mined(matches, patches, describe))
    rows = describe(np.asarray(matches.patches)).astype(np.float16).astype(np.float64)
    for x, count in zip(features.tolist(), counts.tolist(), strict=True):
        distance = {y: np.square(rows[y] - rows[matches.reference[x]]).sum() for y in patches.tolist()}
        positives = set(matches.positives(x).tolist())
        least = min(distance[y] for y in positives)
        others = set(distance) - positives - set(matches.ambiguous(x).tolist()) - {int(matches.reference[x])}
        close = [distance[y] - least for y in others]
        assert sum(gap < -1e-4 for gap in close) <= count <= sum(gap < 1e-4 for gap in close)


def test_shares_are_means_over_image_pairs() -> None:
    matches = in_memory(drawn(np.random.default_rng(1), pairs=6, largest=20))
    features = np.arange(matches.features, dtype=np.int64)
    counts = np.arange(matches.features) * 7
    of = matches.pair[features]
    expected = [100 * np.mean([(counts[of == pair] < rank).mean() for pair in set(of.tolist())]) for rank in (1, 5)]
    assert shares(matches, features, counts)[:2] == [f"{share:.1f}" for share in expected]
