"""How well the print clock orders and dates impressions of blocks whose ages are known.

Run as `python -m tests.benchmarks.bench_print_clock`; it never gates. Blocks are drawn and age by rules, a press and a
camera are simulated (`tests/support/printed_blocks.py`), and registration starts as in `bench_impressions`. Of each
block some impressions, drawn by chance, count as dated.
"""

from __future__ import annotations

import argparse
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from index.parallel import one_thread
from retrieval.impressions.clock import (
    LineReadings,
    calibrate_years,
    earlier_probabilities,
    interval,
    read_lines,
    sample_clock,
)
from tests.benchmarks.bench_impressions import align_shots
from tests.support.printed_blocks import age_states, cut_block, impression

KINDS = {"breaks": (1.0, 0.01), "widths": (0.1, 0.015)}
"""Clock, and what a year adds: breaks, and pixels by which all lines are thinner."""
YEARS = 60
STATED = (0.5, 0.7, 0.9, 0.99, 1.01)
DRAWS = 8
"""How often dated impressions are drawn, of each number of them."""


def read_block(seed: int, count: int, clock: str) -> tuple[NDArray[np.float64], LineReadings]:
    """Print a block at some ages, photograph the impressions, and read their lines: ages (N,), and what is read."""
    rng = np.random.default_rng((seed, 9))
    ages = np.sort(rng.uniform(0, YEARS, count))
    states = age_states(cut_block(seed), seed, ages, *KINDS[clock])
    order = rng.permutation(count)  # the reference is of any age
    shots = [impression(states[place], 100 * seed + place) for place in order]
    aligned = [one for one in align_shots(shots, rng)[1] if one is not None]
    assert len(aligned) == count
    with one_thread():
        region = np.logical_and.reduce([one.region for one in aligned])
        return ages[order], read_lines([one.ink for one in aligned], region)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--impressions", type=int, default=8, help="of each block")
    parser.add_argument("--seed", type=int, default=2000, help="of the first block")
    parser.add_argument("--clock", choices=list(KINDS), default="breaks")
    arguments = parser.parse_args()
    clock, count = arguments.clock, arguments.impressions
    correlations, pairs, ranks = [], [], []
    dates: dict[int, list[tuple[float, float, bool]]] = {}
    for seed in range(arguments.seed, arguments.seed + arguments.blocks):
        ages, readings = read_block(seed, count, clock)
        shown, samples = sample_clock(readings, clock)
        earlier = earlier_probabilities(samples)
        correlations.append(float(spearmanr(ages, earlier.sum(axis=0))[0]))
        print(
            f"{seed}: rank correlation {correlations[-1]:.3f}, clock of rising age", shown[np.argsort(ages)], flush=True
        )
        for one, other in zip(*np.triu_indices(count, 1), strict=True):
            first, second = (one, other) if earlier[one, other] >= 0.5 else (other, one)
            pairs.append((earlier[first, second], ages[first] < ages[second]))
        low, high = interval(samples.argsort(axis=1).argsort(axis=1).astype(np.float64))
        places = ages.argsort().argsort()
        ranks.extend((places >= low) & (places <= high))
        rng = np.random.default_rng((seed, 10))
        for known in range(2, count - 1):
            for _ in range(DRAWS):
                dated = set(rng.choice(count, known, replace=False).tolist())
                years = calibrate_years(
                    shown, samples, [float(age) if place in dated else None for place, age in enumerate(ages)]
                )
                if years is None:
                    continue
                low, high = interval(years)
                dates.setdefault(known, []).extend(
                    (
                        abs(float(np.median(years[:, place])) - age),
                        high[place] - low[place],
                        low[place] <= age <= high[place],
                    )
                    for place, age in enumerate(ages)
                    if place not in dated
                )
    print(f"rank correlation: mean {np.mean(correlations):.3f}, least {min(correlations):.3f}")
    print(f"true place within the interval of 90%: {np.mean(ranks):.1%}")
    stated, true = np.array(pairs).T
    for low, high in pairwise(STATED):
        some = (stated >= low) & (stated < high)
        if some.any():
            print(
                f"stated {low:.2f} to {min(high, 1):.2f}: {some.sum()} pairs, mean {stated[some].mean():.3f}, "
                f"true {true[some].mean():.3f}"
            )
    for known, found in dates.items():
        errors, widths, held = np.array(found).T
        print(
            f"{known} dated: error median {np.median(errors):.1f}, 90% below {np.quantile(errors, 0.9):.1f} years; "
            f"interval {np.median(widths):.0f} years wide, holds {held.mean():.1%}"
        )


if __name__ == "__main__":
    main()
