"""Photos in shards are found as in one piece: the same hits, scores, inliers and probabilities, to the last bit."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from retrieval.matching.verification import VerificationOptions
from retrieval.search.engines.registry import ENGINES
from retrieval.search.expansion import ExpansionOptions
from retrieval.search.options import SearchOptions
from retrieval.search.ranking import Hit, combine
from retrieval.search.searcher import Searcher
from retrieval.shards.engine import sharded_searcher
from tests.support.sharded import SharedAlbum, query_at_turns

FEW = VerificationOptions(depth=5, batch=2)
EXPANSION = ExpansionOptions(photos=2, min_inliers=5, candidates=2, negatives=6, reach=0.2)


@st.composite
def ways(draw: st.DrawFn) -> dict[str, Any]:
    """How a query may be answered."""
    engine = draw(st.sampled_from(sorted(ENGINES)))
    expand = draw(st.sampled_from(["none", "average", "discriminative"])) if ENGINES[engine].expands else "none"
    return {
        "engine": engine,
        "expand": expand,
        "tf": draw(st.sampled_from(["linear", "sqrt"])),
        "augmented": draw(st.booleans()),
        "every_turn": draw(st.booleans()),
        "few_features": draw(st.sampled_from([0, 300])),
        "sure_turn": draw(st.sampled_from([5, 30])),
        "verification": draw(st.sampled_from([FEW, VerificationOptions()])),
        "expansion": EXPANSION,
    }


def told(hit: Hit) -> tuple[Any, ...]:
    """All that a hit says, to the last bit."""
    found = hit.verification
    transform = found.transform.tobytes() if found.transform is not None else None
    return (
        hit.number,
        np.float32(hit.score).tobytes(),
        hit.view,
        hit.probability,
        hit.found,
        found.matches.tolist(),
        transform,
        found.log_odds,
        found.unsure,
    )


def combined(
    searcher: Searcher, queries: Sequence[Any], among: Any, top: int, match_all: bool
) -> tuple[list[Any], list[tuple[float, bool, bool]]]:
    """The best photos for several queries, and what is told of each answer; what has nothing in common is left out."""
    answers = [searcher.search(query.views, among, region=query.region, top=top) for query in queries]
    ranked = combine(searcher.aligned(answers, match_all=match_all, top=top), match_all, top)
    facts = [(one.hits.ground, one.turned, one.sure) for one in answers]
    return [(which, *told(hit)) for which, hit in ranked if hit.score > 0 or hit.verification.inliers], facts


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(
    way=ways(),
    queries=st.lists(st.lists(st.integers(0, 40), min_size=2, max_size=2), min_size=1, max_size=3),
    some=st.none() | st.sets(st.integers(1, 40)),
    share=st.sampled_from([(1, 1), (2, 1), (3, 2), (8, 3), (8, 8)]),
    top=st.sampled_from([1, 3, 20, 100]),
    match_all=st.booleans(),
    similar=st.booleans(),
)
def test_shards_answer_as_one_machine(
    shared_album: SharedAlbum,
    way: dict[str, Any],
    queries: list[list[int]],
    some: set[int] | None,
    share: tuple[int, int],
    top: int,
    match_all: bool,
    similar: bool,
) -> None:
    collection, among = shared_album.collection, np.array(sorted(some)) if some is not None else None
    path = shared_album.album.folder / "similarity.npz" if similar and way["engine"].startswith("tf") else None
    options = SearchOptions(**way, similarity=path)
    requested = [query_at_turns(collection, *numbers) for numbers in queries]
    expected = combined(Searcher(collection, options), requested, among, top, match_all)
    sharded = sharded_searcher(collection, options, shared_album.sharded(*share))
    assert combined(sharded, requested, among, top, match_all) == expected
    # Without a limit one machine ranks all, the first so.
    assert expected == combined(Searcher(collection, options), requested, among, 1000, match_all) or top < 100
    whole = Searcher(collection, options).search(requested[0].views, among, region=requested[0].region)
    if len(requested) == 1:
        first = [told(hit) for hit in whole.hits[:top] if hit.score > 0 or hit.verification.inliers]
        assert [one[1:] for one in expected[0]] == first
    assert sharded.index.borrows == Searcher(collection, options).index.borrows


def test_one_photo_is_verified_as_on_one_machine(shared_album: SharedAlbum) -> None:
    collection = shared_album.collection
    options = SearchOptions(engine="signatures-sp", turns=1)
    here, there = Searcher(collection, options), sharded_searcher(collection, options, shared_album.sharded(8, 3))
    query = query_at_turns(collection, 3, 4)
    for number in collection.index.image_numbers[:6].tolist():
        answers = [one.search(query.views, np.array([number])).hits for one in (here, there)]
        (first, second) = (answer[0] for answer in answers)
        assert told(first) == told(second)
        turned = [
            told(one.verified_at(query.views, ranking, replace(first, view=1)))
            for one, ranking in zip((here, there), answers, strict=True)
        ]
        assert turned[0] == turned[1]


def test_features_are_those_of_the_collection(shared_album: SharedAlbum) -> None:
    collection = shared_album.collection
    there = sharded_searcher(collection, SearchOptions(), shared_album.sharded(3, 2)).index
    numbers = collection.index.image_numbers.tolist()[::-2]
    expected = collection.index.images
    for ours, theirs in zip(there.images.features_of(numbers), expected.features_of(numbers), strict=True):
        np.testing.assert_array_equal(ours.words, theirs.words)
        assert ours.columns.keys() == theirs.columns.keys() - {"descriptor"}
        np.testing.assert_array_equal(ours.columns["geometry"], theirs.columns["geometry"])
    np.testing.assert_array_equal(there.images.signatures(numbers[0]), expected.signatures(numbers[0]))
    np.testing.assert_array_equal(there.images.feature_counts(numbers), expected.feature_counts(numbers))
    np.testing.assert_array_equal(there.norms_of(numbers), collection.index.norms_of(numbers))
