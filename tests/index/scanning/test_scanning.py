"""Layout and scan of codes, compared with NumPy on the same integers."""

import os
import subprocess
import sys

import numpy as np
import pytest

from index.files.names import CACHE_VARIABLE
from index.scanning.codes import Codes, asked_as
from index.scanning.scan_kernels import NONE, nearest_lists, scan_lists
from tests.support.paths import ROOT

SIZES = np.array([40, 0, 1, 32, 33, 5, 64])  # of groups: none, one, whole blocks, and one more


def drawn(number, dim, seed=0):
    """Codes (number, dim) int8, the smallest and largest numbers among them."""
    return np.random.default_rng(seed).integers(-128, 128, (number, dim)).astype(np.int8)


def scores_of(queries, codes):
    """What the scan compares: the nearer a code, the larger (n, m)."""
    queries, codes = queries.astype(np.int64), codes.astype(np.int64)
    return queries @ codes.T - (codes**2).sum(axis=1) // 2 - (codes**2).sum(axis=1) % 2


def scan(laid_out, queries, lists, *, sure, wanted):
    found = np.empty((len(queries), wanted), np.int32)
    chosen = np.full(len(queries), lists.shape[1])
    scan_lists(*laid_out, asked_as(queries), np.array(lists, np.int32, order="C"), chosen, sure, wanted, found)
    return found


@pytest.mark.parametrize("dim", [1, 5, 31, 32, 33, 64, 128])
def test_codes_are_what_they_were_laid_out_from(dim):
    codes, names = drawn(SIZES.sum(), dim), np.random.default_rng(1).permutation(SIZES.sum()).astype(np.int32)
    laid_out = Codes.of(codes, names, SIZES)
    for before, after in zip((codes, names, SIZES), laid_out.parts(dim), strict=True):
        np.testing.assert_array_equal(before, after)
    assert (laid_out.biases[laid_out.names < 0] == NONE).all()


@pytest.mark.parametrize("dim", [1, 31, 32, 33, 128])
def test_the_points_of_the_largest_scores_are_found(dim):
    codes, queries = drawn(SIZES.sum(), dim), drawn(50, dim, seed=2)
    laid_out = Codes.of(codes, np.arange(len(codes), dtype=np.int32), SIZES)
    everything = np.broadcast_to(np.arange(len(SIZES)), (50, len(SIZES)))
    found = scan(laid_out, queries, everything, sure=20, wanted=20)
    scores = scores_of(queries, codes)
    taken = np.sort(np.take_along_axis(scores, found.astype(np.int64), axis=1), axis=1)
    np.testing.assert_array_equal(taken, np.sort(scores, axis=1)[:, -20:])
    assert all(len(set(row)) == 20 for row in found.tolist())


def test_only_what_surpasses_the_nearest_list_is_looked_at_in_the_others():
    codes, queries = drawn(SIZES.sum(), 32), drawn(50, 32, seed=2)
    laid_out = Codes.of(codes, np.arange(len(codes), dtype=np.int32), SIZES)
    found = scan(laid_out, queries, np.broadcast_to([6, 0, 4], (50, 3)), sure=2, wanted=80)
    ends = np.cumsum(SIZES)
    for query, row in enumerate(found.tolist()):
        scores = scores_of(queries[query : query + 1], codes)[0]
        nearest = np.arange(ends[5], ends[6])
        best = nearest[np.argsort(-scores[nearest], kind="stable")[:2]]
        others = np.concatenate([np.arange(ends[0]), np.arange(ends[3], ends[4])])
        expected = {*best.tolist(), *others[scores[others] > scores[best[1]]].tolist()}
        assert {name for name in row if name >= 0} == expected
        assert row[len(expected) :] == [-1] * (80 - len(expected))


def test_a_list_with_fewer_points_than_are_sure_keeps_nothing_out():
    codes, queries = drawn(SIZES.sum(), 32), drawn(20, 32, seed=2)
    laid_out = Codes.of(codes, np.arange(len(codes), dtype=np.int32), SIZES)
    # One point, none, and 40.
    found = scan(laid_out, queries, np.broadcast_to([2, 1, 0], (20, 3)), sure=4, wanted=41)
    np.testing.assert_array_equal(np.sort(found, axis=1), np.broadcast_to(np.arange(41), (20, 41)))


@pytest.mark.parametrize("number", [1, 3, 32, 100, 1000])
@pytest.mark.parametrize("wanted", [1, 16])
def test_the_nearest_lists_are_chosen(number, wanted):
    centres, queries = drawn(number, 32, seed=3), drawn(60, 32, seed=4)
    laid_out = Codes.of_one_group(centres)
    lists = np.full((60, min(number, 4 * wanted)), -1, np.int32)
    chosen = nearest_lists(laid_out.bytes, laid_out.biases, asked_as(queries), min(wanted, number), lists)
    scores = scores_of(queries, centres)
    for query in range(60):
        those = lists[query, : chosen[query]]
        assert len(set(those.tolist())) == len(those) >= min(wanted, number)
        assert scores[query, those[0]] == scores[query].max()
        # No nearer list is left out.
        assert (np.sort(scores[query])[::-1][: len(those)] == np.sort(scores[query, those])[::-1]).all()


# Everything is recompiled. `scripts/test --everywhere` runs the other tests of this module on such a processor.
@pytest.mark.slow
def test_processors_without_the_instruction_find_the_same(tmp_path):
    script = """
import numpy as np
from tests.index.scanning.test_scanning import SIZES, Codes, drawn, scan
from index.scanning import scan_kernels
assert not any("vpdpbusd" in code for code in scan_kernels.scan_lists.inspect_asm().values())
codes, queries = drawn(SIZES.sum(), 64), drawn(50, 64, seed=2)
laid_out = Codes.of(codes, np.arange(len(codes), dtype=np.int32), SIZES)
print(scan(laid_out, queries, np.broadcast_to(np.arange(len(SIZES)), (50, len(SIZES))), sure=9, wanted=9).tolist())
"""
    codes, queries = drawn(SIZES.sum(), 64), drawn(50, 64, seed=2)
    laid_out = Codes.of(codes, np.arange(len(codes), dtype=np.int32), SIZES)
    here = scan(laid_out, queries, np.broadcast_to(np.arange(len(SIZES)), (50, len(SIZES))), sure=9, wanted=9)
    generic = {"NUMBA_CPU_NAME": "generic", CACHE_VARIABLE: str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **generic}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(here.tolist())
