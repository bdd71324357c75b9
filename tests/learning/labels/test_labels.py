"""Labels: photos issued as queries, their positives, and splits."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from learning.labels.labels import ISSUED, Labels, ObjectLabels, Relevance, hold_out, split

PHOTOS = 60


@st.composite
def labelled(draw: st.DrawFn) -> Labels:
    """Objects with disjoint positives; junk and query photos are arbitrary, even positives of other objects."""
    order = draw(st.permutations(range(PHOTOS)))
    sizes = draw(st.lists(st.integers(0, 12), max_size=5))
    some = st.frozensets(st.integers(0, PHOTOS - 1), max_size=8)
    ends = np.cumsum([0, *sizes]).tolist()
    objects = [
        ObjectLabels(f"object {i}", frozenset(order[start:end]), draw(some))
        for i, (start, end) in enumerate(itertools.pairwise(ends))
    ]
    return Labels(tuple(objects), draw(some))


def sets(arrays: tuple[np.ndarray, ...]) -> list[set[int]]:
    return [set(array.tolist()) for array in arrays]


def check(relevance: Relevance) -> None:
    """The invariants of `Relevance`."""
    assert relevance.queries.dtype == relevance.database.dtype == np.int64 and relevance.objects.dtype == np.int32
    assert len(relevance.queries) == len(relevance.positives) == len(relevance.ignored) == len(relevance.objects)
    assert (np.diff(relevance.database) > 0).all()
    database = set(relevance.database.tolist())
    order = list(zip(relevance.objects.tolist(), relevance.queries.tolist(), strict=True))
    assert order == sorted(set(order))
    assert all(0 <= number < len(relevance.names) for number in relevance.objects)
    rows = zip(relevance.queries.tolist(), relevance.positives, relevance.ignored, strict=True)
    for query, positives, ignored in rows:
        for array in (positives, ignored):
            assert array.dtype == np.int64 and (np.diff(array) > 0).all()
        found, passed = set(positives.tolist()), set(ignored.tolist())
        assert found and found | passed <= database
        assert query not in found and not found & passed
        assert (query in passed) == (query in database)


LANDMARKS = Labels(
    (
        ObjectLabels("abbey", frozenset({1, 2, 3, 20}), frozenset({4, 11})),
        ObjectLabels("bridge", frozenset({11, 12, 13, 14, 15, 16, 20}), frozenset({1})),
        ObjectLabels("castle", frozenset({5})),
    ),
    asked=frozenset({2, 4}),
)


def test_each_photo_asks_for_the_others_of_its_object() -> None:
    relevance = LANDMARKS.relevance(np.arange(30)[::-1], np.random.default_rng(0))
    check(relevance)
    # 2 and 4 are the ground truth's own; 20 shows two objects, so it is found for both and asks for neither; the
    # castle has one photo alone.
    assert relevance.database.tolist() == [number for number in range(30) if number not in (2, 4)]
    assert relevance.queries.tolist() == [1, 3, 11, 12, 13, 14, 15, 16]
    assert relevance.objects.tolist() == [0, 0, 1, 1, 1, 1, 1, 1]
    assert relevance.names == ("abbey", "bridge", "castle")
    assert sets(relevance.positives)[:3] == [{3, 20}, {1, 20}, {12, 13, 14, 15, 16, 20}]
    assert sets(relevance.ignored)[:4] == [{1, 11}, {3, 11}, {1, 11}, {1, 12}]
    assert relevance.weights.tolist() == [3, 3, 1, 1, 1, 1, 1, 1]


def test_photos_outside_the_database_are_neither_asked_with_nor_found() -> None:
    relevance = LANDMARKS.relevance(np.array([1, 3, 11, 12]), np.random.default_rng(0))
    assert relevance.queries.tolist() == [1, 3, 11, 12]
    assert sets(relevance.positives) == [{3}, {1}, {12}, {11}]
    nothing = LANDMARKS.relevance(np.array([1, 11, 25]), np.random.default_rng(0))
    assert len(nothing.queries) == len(nothing.weights) == 0 and nothing.database.tolist() == [1, 11, 25]


def test_of_a_large_object_eighty_photos_are_issued_and_all_are_found() -> None:
    labels = Labels((ObjectLabels("large", frozenset(range(200))), ObjectLabels("small", frozenset({300, 301}))))
    one, other, same = (labels.relevance(np.arange(400), np.random.default_rng(seed)) for seed in (0, 1, 0))
    for relevance in (one, other):
        check(relevance)
        assert np.bincount(relevance.objects).tolist() == [ISSUED, 2]
        assert {len(positives) for positives in relevance.positives[:ISSUED]} == {199}
        assert relevance.weights[0] == 1 and relevance.weights[-1] == ISSUED / 2
    assert one.queries.tolist() == same.queries.tolist() != other.queries.tolist()


@settings(deadline=None)
@given(labelled(), st.integers(0, 99))
def test_relevance_is_symmetric_and_knows_nothing_of_the_ground_truths_photos(labels: Labels, seed: int) -> None:
    relevance = labels.relevance(np.arange(PHOTOS), np.random.default_rng(seed), most=5)
    check(relevance)
    assert not set(relevance.database.tolist()) & labels.asked
    assert (np.bincount(relevance.objects, minlength=1) <= 5).all()
    whole = labels.relevance(np.arange(PHOTOS), np.random.default_rng(seed))
    found = dict(zip(whole.queries.tolist(), sets(whole.positives), strict=True))
    assert all(query in found[other] for query, positives in found.items() for other in positives)


@settings(deadline=None)
@given(labelled(), st.integers(0, 99), st.sampled_from([0.5, 0.8]))
def test_a_split_keeps_its_ratio_within_every_object(labels: Labels, seed: int, share: float) -> None:
    numbers = np.arange(PHOTOS)
    training, test = split(labels, numbers, np.random.default_rng(seed), share=share)
    assert sorted([*training.tolist(), *test.tolist()]) == numbers.tolist()
    assert not set(training.tolist()) & labels.asked
    free = set(numbers.tolist()) - labels.asked
    groups = [labelled_object.positives & free for labelled_object in labels.objects]
    shown = frozenset().union(*groups)
    junk = frozenset().union(*(labelled_object.junk for labelled_object in labels.objects)) & free - shown
    for group in (*groups, junk, free - shown - junk, free):
        assert abs(len(group & set(training.tolist())) - share * len(group)) < 1 + 1e-9
    again = split(labels, numbers, np.random.default_rng(seed), share=share)
    assert again[0].tolist() == training.tolist()


def test_splits_of_other_seeds_differ_and_give_every_photo_its_turn() -> None:
    labels = Labels((ObjectLabels("pair", frozenset({0, 1})), ObjectLabels("other pair", frozenset({2, 3}))))
    chosen = np.zeros(10)
    for seed in range(400):
        chosen[split(labels, np.arange(10), np.random.default_rng(seed))[0]] += 1
    # 0.8 each: four standard deviations of a binomial of 400 are 0.08.
    assert np.abs(chosen / 400 - 0.8).max() < 0.08


@settings(deadline=None)
@given(labelled(), st.integers(0, 99), st.integers(0, 5))
def test_held_out_photos_are_nowhere_in_the_training_part(labels: Labels, seed: int, each: int) -> None:
    rng = np.random.default_rng(seed)
    relevance = labels.relevance(np.arange(PHOTOS), rng)
    training, held = hold_out(relevance, rng, each=each)
    check(training)
    check(held)
    out = set(held.queries.tolist())
    assert training.database.tolist() == held.database.tolist()
    assert set(training.database.tolist()) == set(relevance.database.tolist()) - out
    assert set(training.queries.tolist()) == set(relevance.queries.tolist()) - out
    found = dict(zip(relevance.queries.tolist(), sets(relevance.positives), strict=True))
    for part in (training, held):
        assert part.names == relevance.names
        for query, positives in zip(part.queries.tolist(), sets(part.positives), strict=True):
            assert positives == found[query] - out
    before = np.bincount(relevance.objects, minlength=len(relevance.names))
    taken = np.bincount(held.objects, minlength=len(relevance.names))
    assert taken.tolist() == np.minimum(each, before // 3).tolist()


def related(pairs: list[tuple[int, int]], photos: int) -> Relevance:
    """One object whose photos are positives of each other where a pair says so."""
    near = [sorted({*(b for a, b in pairs if a == i), *(a for a, b in pairs if b == i)}) for i in range(photos)]
    return Relevance(
        np.arange(photos),
        np.arange(photos + 3),
        tuple(np.array(positives, np.int64) for positives in near),
        tuple(np.array([i]) for i in range(photos)),
        np.zeros(photos, np.int32),
        ("chain",),
    )


@settings(deadline=None)
@given(st.integers(3, 14), st.integers(0, 99))
def test_holding_out_of_a_chain_leaves_every_photo_something_to_find(photos: int, seed: int) -> None:
    relevance = related([(i, i + 1) for i in range(photos - 1)], photos)
    training, held = hold_out(relevance, np.random.default_rng(seed))
    check(training)
    check(held)
    assert 1 <= len(held.queries) <= min(4, photos // 3)
