"""Sources of labelled patches: training pairs, held-out pairs, and unusable sets."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from index.errors import CairnError
from learning.patches.phototour import PatchPairs, write_bitmaps, write_info, write_pairs
from learning.patches.sources import open_sources

POINTS, VIEWS = 50, 4
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a set with given numbers of matches and non-matches in splits, without duplicates."""

    def folder(name: str, *splits: tuple[int, int] | None) -> Path:
        path = tmp_path / name
        path.mkdir()
        points = np.arange(POINTS * VIEWS) // VIEWS
        write_bitmaps(path, np.zeros((len(points), 64, 64), np.uint8))
        write_info(path, points, np.arange(len(points)) % VIEWS)
        one, two = np.triu_indices(len(points), 1)
        order = np.random.default_rng(0).permutation(len(one))
        one, two = one[order], two[order]
        same = points[one] == points[two]
        taken = [0, 0]
        for split, counts in enumerate(splits):
            if counts is None:
                continue
            rows = []
            for kind, number in enumerate(counts):
                rows.append(np.flatnonzero(same == (kind == 0))[taken[kind] : taken[kind] + number])
                taken[kind] += number
            chosen = np.sort(np.concatenate(rows))
            write_pairs(path, split, one[chosen], two[chosen], points)
        return path

    return folder


def listed(pairs: PatchPairs) -> list[tuple[int, int, bool]]:
    return list(zip(pairs.first.tolist(), pairs.second.tolist(), pairs.match.tolist(), strict=True))


def counts(pairs: PatchPairs) -> tuple[int, int]:
    """Matches and non-matches."""
    return int(pairs.match.sum()), int((~pairs.match).sum())


def test_a_built_set_has_its_own_pairs_for_validation(write: Write) -> None:
    folder = write("set", (40, 60), (20, 10), (5, 5))
    (source,) = open_sources([folder])
    assert counts(source.train) == (40, 60) and counts(source.validation) == (20, 10)
    assert listed(source.train) == listed(source.patches.pairs("train"))
    assert listed(source.validation) == listed(source.patches.pairs("validation"))


def test_of_a_published_set_a_fifth_is_held_out(write: Write) -> None:
    folder = write("set", (100, 105))
    (source,) = open_sources([folder])
    every = listed(source.patches.pairs())
    train, validation = listed(source.train), listed(source.validation)
    assert (len(train), len(validation)) == (164, 41)
    assert not set(train) & set(validation)
    assert sorted(train + validation) == sorted(every)
    # By chance, so that both kinds are in both, and in the order of the file.
    assert min(counts(source.validation)) > 8
    assert [every.index(pair) for pair in train] == sorted(every.index(pair) for pair in train)
    (again,) = open_sources([folder])
    assert listed(again.validation) == validation
    (other,) = open_sources([folder], seed=1)
    assert listed(other.validation) != validation
    (half,) = open_sources([folder], held_out=0.5)
    assert len(half.validation) == 102


def test_the_largest_published_file_is_taken(write: Write) -> None:
    folder = write("set", (100, 100))
    points = np.arange(POINTS * VIEWS) // VIEWS
    write_pairs(folder, 0, np.array([0, 0]), np.array([1, 8]), points)
    (source,) = open_sources([folder])
    assert len(source.train) + len(source.validation) == 200


@pytest.mark.parametrize(
    ("train", "wanted", "expected"),
    [
        ((100, 100), 60, (30, 30)),
        ((100, 100), 61, (30, 31)),
        ((10, 100), 60, (10, 50)),  # with few matches, others make up for them
        ((100, 10), 60, (30, 10)),  # with few others, matches do not
        ((20, 20), 60, (20, 20)),
        ((100, 100), 2, (1, 1)),
    ],
)
def test_a_limit_keeps_both_kinds(write: Write, train: tuple[int, int], wanted: int, expected: tuple[int, int]) -> None:
    folder = write("set", train, (60, 60))
    (source,) = open_sources([folder], pairs=wanted)
    assert counts(source.train) == expected
    assert counts(source.validation) == (max(wanted // 2, 2) // 2, max(wanted // 2, 2) - max(wanted // 2, 2) // 2)
    every = listed(source.patches.pairs("train"))
    assert set(listed(source.train)) <= set(every) and len(set(listed(source.train))) == len(source.train)
    assert len(source.patches) == POINTS * VIEWS


def test_all_of_a_pair_file_is_learnt_from_and_others_validate(write: Write) -> None:
    folder = write("set", (100, 100))
    largest = open_sources([folder])[0].patches.pairs()
    rows = np.r_[5:25, 120:140]  # matches come first or not: both kinds are among them
    first, second = largest.second[rows], largest.first[rows]  # the other way round, as lists may have them
    points = np.arange(POINTS * VIEWS) // VIEWS
    name = write_pairs(folder, 0, first, second, points)
    (source,) = open_sources([folder], pair_file=name)
    assert listed(source.train) == list(zip(first.tolist(), second.tolist(), largest.match[rows].tolist(), strict=True))
    validated = {frozenset(pair[:2]) for pair in listed(source.validation)}
    assert len(validated) == 10  # of 40 to learn from, as 100,000 of 400,000
    assert validated < {frozenset(pair[:2]) for pair in listed(largest)}
    assert not validated & {frozenset(pair[:2]) for pair in listed(source.train)}
    assert source.describe()["pair_file"] == name
    assert "pair_file" not in open_sources([folder])[0].describe()
    # Where the largest is the one that is learnt from, a fifth of it is held out.
    (whole,) = open_sources([folder], pair_file="m50_100_100_0.txt")
    assert (len(whole.train), len(whole.validation)) == (160, 40)
    with pytest.raises(CairnError, match=r"no pair file m50_7_7_0\.txt; it has"):
        open_sources([folder], pair_file="m50_7_7_0.txt")


def test_what_a_limit_draws_is_of_the_seed(write: Write) -> None:
    folder = write("set", (100, 100), (40, 40))
    drawn = [listed(open_sources([folder], pairs=20, seed=seed)[0].train) for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_set_without_pairs_for_validation_borrows_no_other_s(write: Write) -> None:
    """One built with --validation 0: its training pairs are split; next to it, one of each."""
    divided, built = open_sources([write("one", (50, 50), None, (5, 5)), write("two", (50, 50), (10, 10))])
    assert (len(divided.train), len(divided.validation)) == (80, 20)
    assert (len(built.train), len(built.validation)) == (100, 20)


def test_one_source_may_hold_out_what_another_lacks(write: Write) -> None:
    sources = open_sources([write("one", (5, 5), (4, 0)), write("two", (5, 5), (0, 4))])
    assert [counts(source.validation) for source in sources] == [(4, 0), (0, 4)]


@pytest.mark.parametrize(
    ("splits", "reason"),
    [
        ([None, (5, 5), (5, 5)], "has no training pairs (m50_…_0.txt): it was built for testing alone"),
        ([None, None, (5, 5)], "has no training pairs"),
        ([(5, 0), (5, 5)], "needs both matches and non-matches among its training pairs"),
        ([(0, 5), (5, 5)], "needs both matches and non-matches"),
        ([(0, 0), (5, 5)], "needs both matches and non-matches"),
        ([(5, 5), (5, 0)], "hold out no matches or no non-matches"),
        ([(5, 5), (0, 0)], "hold out no matches or no non-matches"),
        ([(1, 1)], "hold out no matches or no non-matches"),
    ],
)
def test_sets_that_cannot_be_learnt_from_are_refused(
    write: Write, splits: list[tuple[int, int] | None], reason: str
) -> None:
    with pytest.raises(CairnError) as error:
        open_sources([write("set", *splits)])
    assert reason in str(error.value)


def test_no_set_at_all_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CairnError, match="There is nothing to learn from"):
        open_sources([])
    with pytest.raises(CairnError, match=r"has no info\.txt"):
        open_sources([tmp_path])
