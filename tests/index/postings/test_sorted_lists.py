"""Sorted lists survive a round trip, in the expected size."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import index.postings.sorted_lists
from index.postings.sorted_lists import LOW_BITS, SortedLists, blocks_of, concatenated_ranges, encode_lists

LISTS = st.integers(1, 2**40).flatmap(
    lambda universe: st.tuples(
        st.just(universe),
        st.lists(
            st.lists(
                st.integers(0, universe - 1) | st.integers(0, min(3, universe - 1)) | st.just(universe - 1), max_size=20
            ).map(sorted),
            max_size=12,
        ),
    )
)


def joined(lists: list[list[int]]) -> np.ndarray:
    """All values, one list after the other."""
    return np.array(list(itertools.chain.from_iterable(lists)), np.int64)


def encoded(lists: list[list[int]], universe: int) -> SortedLists:
    starts = np.cumsum([0, *map(len, lists)]).astype(np.uint64)
    return SortedLists(encode_lists(joined(lists), starts, universe), starts)


@pytest.mark.slow
@given(data=st.data(), case=LISTS, block=st.sampled_from([1, 7, 40, 1 << 18]), long=st.sampled_from([0, 3, 1000]))
def test_lists_are_read_back_one_by_one_some_and_all(data, case, block, long) -> None:
    universe, lists = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index.postings.sorted_lists, "BLOCK_ENTRIES", block)
        patch.setattr(index.postings.sorted_lists, "LONG", long)
        found = encoded(lists, universe)
        assert len(found) == len(lists) and found.universe == universe
        requested = data.draw(st.lists(st.integers(0, len(lists) - 1), max_size=8)) if lists else []
        lengths, values = found.decode(np.array(requested, np.int64))
        assert lengths.tolist() == [len(lists[k]) for k in requested]
        assert values.tolist() == [value for k in requested for value in lists[k]]
        following, reported = 0, []
        for first, lengths, values in found.blocks():
            assert first == following
            assert lengths.tolist() == [len(some) for some in lists[first : first + len(lengths)]]
            following += len(lengths)
            reported += values.tolist()
        assert following == len(lists) and reported == joined(lists).tolist()


@pytest.mark.slow
@given(data=st.data(), case=LISTS, low_bits=st.sampled_from([None, *LOW_BITS]))
def test_a_value_is_found_in_a_list(data, case, low_bits) -> None:
    from index.postings.list_kernels import FITS, find_values

    universe, lists = case
    universe = universe if low_bits is None else min(universe, 5_000)
    lists = [[value for value in some if value < universe] for some in lists]
    with pytest.MonkeyPatch.context() as patch:
        if low_bits is not None:
            patch.setattr(index.postings.sorted_lists, "LOW_BITS", (low_bits,))
        found = encoded(lists, universe)
    every = st.sampled_from(sorted({0, universe - 1, *joined(lists).tolist()}))
    requested = data.draw(st.lists(st.tuples(st.integers(0, len(lists) - 1), every), max_size=12)) if lists else []
    which, values = (np.array([one[side] for one in requested], np.int64) for side in (0, 1))
    wrong, firsts, counts = find_values(found.coded(which).parts, values)
    assert wrong == FITS
    for (k, value), first, count in zip(requested, firsts.tolist(), counts.tolist(), strict=True):
        assert count == lists[k].count(value)
        if count:
            assert first == int(found.starts[k]) + lists[k].index(value)


@pytest.mark.parametrize("low_bits", LOW_BITS)
def test_every_width_of_low_bits_is_written_and_read(low_bits, monkeypatch) -> None:
    monkeypatch.setattr(index.postings.sorted_lists, "LOW_BITS", (low_bits,))
    rng = np.random.default_rng(low_bits)
    lists = [sorted(rng.integers(0, 5_000, size).tolist()) for size in (0, 3, 40, 0, 1, 7, 200, 2, 0)]
    found = encoded(lists, 5_000)
    monkeypatch.setattr(index.postings.sorted_lists, "LOW_BITS", LOW_BITS)
    for requested in ([4], [6, 2], [0, 1, 2, 3, 4, 5, 6, 7, 8], [8, 1, 1]):
        assert found.decode(np.array(requested))[1].tolist() == [value for k in requested for value in lists[k]]


def test_a_known_list_has_the_documented_bytes(monkeypatch) -> None:
    monkeypatch.setattr(index.postings.sorted_lists, "LOW_BITS", (4,))
    # With four low bits: 3 = 0|3, 16 = 1|0, 16 = 1|0, 35 = 2|3; ones of the entries, zeros of the steps: 1 0 1 1 0 1 0.
    code = encode_lists(np.array([3, 16, 16, 35]), np.array([0, 4]), 40)
    assert code[:16].view("<u8").tolist() == [40, 4]
    assert code[16:].tolist() == [0x03, 0x30, 0b0101101]


@pytest.mark.parametrize(("gap", "most"), [(250, 1.26), (13, 0.74), (1, 0.26), (30_000, 2.2)])
def test_entries_take_two_bits_more_than_the_logarithm_of_their_gaps(gap, most) -> None:
    rng = np.random.default_rng(0)
    lists = [np.sort(rng.integers(0, 2_000 * gap, 2_000)).tolist() for _ in range(20)]
    starts = np.arange(21) * 2_000
    code = encode_lists(np.concatenate(lists), starts, 2_000 * gap)
    assert len(code) / 40_000 < most


@pytest.mark.parametrize(
    ("values", "starts", "universe"),
    [([1, 0], [0, 2], 5), ([5], [0, 1], 5), ([-1], [0, 1], 5), ([1], [0, 2], 5), ([], [0], 0)],
    ids=["descending", "too large", "negative", "lengths differ", "no universe"],
)
def test_what_is_no_sorted_lists_is_refused(values, starts, universe) -> None:
    with pytest.raises(ValueError):
        encode_lists(np.array(values, np.int64), np.array(starts), universe)


def test_damage_is_refused_or_gives_values_of_the_universe() -> None:
    from index.postings.list_kernels import FITS, find_values

    rng = np.random.default_rng(1)
    lists = [sorted(rng.integers(0, 700, size).tolist()) for size in (30, 0, 11, 60)]
    starts = np.cumsum([0, *map(len, lists)]).astype(np.uint64)
    code = encode_lists(joined(lists), starts, 700)
    refused = 0
    for at, bit in itertools.product(range(len(code)), range(8)):
        damaged = code.copy()
        damaged[at] ^= 1 << bit
        try:
            lengths, values = SortedLists(damaged, starts).decode(np.arange(4))
        except ValueError:
            refused += 1
            continue
        assert lengths.tolist() == [30, 0, 11, 60] and len(values) == 101
        assert all((np.diff(some) >= 0).all() for some in np.split(values, np.cumsum(lengths)[:-1]))
        for value in (0, 350, 699):
            found = find_values(SortedLists(damaged, starts).coded(np.arange(4)).parts, np.full(4, value))
            assert found[0] != FITS or ((found[1] + found[2] <= np.cumsum(lengths)).all() and found[1].min() >= 0)
        assert values.min() >= 0 and values.max() < SortedLists(damaged, starts).universe
    assert refused > len(code)
    for cut in (code[:10], code[:-1], np.append(code, 0).astype(np.uint8), code.view(np.int8), code[None]):
        with pytest.raises(ValueError):
            SortedLists(cut, starts)


@given(st.lists(st.integers(0, 9), max_size=20), st.integers(1, 12))
def test_blocks_are_as_long_as_they_may_be(lengths, most) -> None:
    blocks = list(blocks_of(np.array(lengths, np.int64), most))
    assert [k for first, last in blocks for k in range(first, last)] == list(range(len(lengths)))
    for first, last in blocks:
        assert sum(lengths[first:last]) <= most or last == first + 1
        assert last == len(lengths) or sum(lengths[first : last + 1]) > most


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5)), max_size=9))
def test_concatenated_ranges(ranges) -> None:
    starts, lengths = (np.array([one[side] for one in ranges], np.int64) for side in (0, 1))
    assert concatenated_ranges(starts, lengths).tolist() == [k for a, n in ranges for k in range(a, a + n)]
