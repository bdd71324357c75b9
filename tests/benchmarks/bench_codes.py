"""Distances between codes, nanoseconds a pair: Hamming of binary codes beside L2, in one run.

Run as `python -m tests.benchmarks.bench_codes [--number 4096] [--json]`; it never gates. One thread, all pairs of two
sets, the best of several runs. Simonyan14 (section 10.1, an Intel Xeon L5640) has 1.3 ns for 64 bits and 53.5 ns for L2
of 64-D, one pair at a time.
"""

import argparse
import json
import os
import time
from collections.abc import Callable

# Before a library reads it.
os.environ["OMP_NUM_THREADS"] = "1"

import cv2
import faiss
import numpy as np

from index.parallel import one_thread
from index.signatures import hamming, pack

BAR = 1.3
DIM, RUNS = 64, 7


def nanoseconds(function: Callable[[], np.ndarray], pairs: int) -> float:
    """Nanoseconds a pair, in the best of some runs."""
    best = np.inf
    for _ in range(RUNS):
        started = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - started)
    return best / pairs * 1e9


def plain_l2(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Squared distances entry by entry, without a product of matrices."""
    distances = np.empty((len(first), len(second)), np.float32)
    difference = np.empty_like(second)
    for row, result in zip(first, distances, strict=True):
        np.subtract(second, row, out=difference)
        np.einsum("ij,ij->i", difference, difference, out=result)
    return distances


def blas_l2(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Squared distances by a product of matrices."""
    distances = first @ second.T
    distances *= -2
    distances += (first**2).sum(axis=1)[:, None]
    distances += (second**2).sum(axis=1)
    return distances


def measure(number: int) -> dict[str, float]:
    """Nanoseconds a pair by method."""
    rng = np.random.default_rng(0)
    faiss.omp_set_num_threads(1)
    cv2.setNumThreads(1)
    rows = rng.standard_normal((2 * number, DIM)).astype(np.float32)
    first, second = rows[:number], rows[number:]
    few = max(1, number // 16)  # for the slow ones
    pairs = number * number
    results = {}
    for bits in (64, 128, 1024):
        signs = rng.random((2 * number, bits)) < 0.5
        words = pack(signs[:number]), pack(signs[number:])
        taken = few if bits == 1024 else number
        results[f"Hamming, {bits} bits"] = nanoseconds(lambda w=words, n=taken: hamming(w[0][:n], w[1]), taken * number)
    results["L2, 64-D, BLAS"] = nanoseconds(lambda: blas_l2(first, second), pairs)
    results["L2, 64-D, plain NumPy"] = nanoseconds(lambda: plain_l2(first[:few], second), few * number)
    results["L2, 64-D, faiss, a row at a time"] = nanoseconds(
        lambda: np.concatenate([faiss.pairwise_distances(row[None], second) for row in first[:few]]), few * number
    )
    return results


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=4096, help="codes in each of the two sets")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    with one_thread():
        results = measure(arguments.number)
    reference = results["Hamming, 64 bits"]
    if arguments.json:
        rounded = {name: round(value, 3) for name, value in results.items()}
        print(json.dumps({"nanoseconds_a_pair": rounded, "bar": BAR, "passed": reference < BAR}))
        return
    print(f"{'':34}{'ns a pair':>10}{'ratio':>9}")
    for name, value in results.items():
        print(f"{name:34}{value:10.2f}{value / reference:9.1f}")
    print(f"Hamming of 64 bits: {reference:.2f} ns, under {BAR} wanted: {'met' if reference < BAR else 'MISSED'}")


if __name__ == "__main__":
    main()
