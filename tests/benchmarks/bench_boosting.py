"""How long it takes to boost 512 weak learners on 200,000 pairs, and to learn their similarity.

Run as `python -m tests.benchmarks.bench_boosting [--workers 2] [--json]`; it never gates. Three parts are measured with
the default options, and multiplied. Candidates' responses are evaluated on some thousand pairs of 64x64 patches, read
and resampled as in learning; their number of pairs and the draws multiply that. These levels, repeated to the full
number of pairs, are what some rounds of AdaBoost are timed on: a round's time does not depend on which it is. An epoch
of the similarity's descent is timed on all pairs, of random answers; the most epochs there can be multiply it. Memory
is what was resident at its most. Where other programs run next to it, compare the processor's minutes: the cores' sum.
"""

import argparse
import json
import os
import resource
import tempfile
import time
from pathlib import Path

# Before a library reads it.
os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np

from learning.boosting.descriptor import BoostingOptions
from learning.boosting.metric import PairResponses, learn_metric
from learning.boosting.search import Boosting
from learning.boosting.weak_learners import PairLevels, PairList, draw_candidates, pair_levels
from learning.patches.phototour import PATCH, PatchSet, write_bitmaps, write_info
from retrieval.descriptors.learnt import LearntDescriptor
from retrieval.descriptors.registry import find_descriptor
from tests.support.learning.learnt_models import boosted, textures

BAR_MINUTES, BAR_GB = 120.0, 8.0
POINTS = 1024  # of two patches each


class Clock:
    """Seconds that have passed, and that processors worked."""

    def __init__(self) -> None:
        self._began = time.perf_counter(), time.process_time()

    def read(self) -> np.ndarray:
        """Give both, (2,) float64."""
        return np.array([time.perf_counter() - self._began[0], time.process_time() - self._began[1]])


def resident_gb() -> float:
    """Most memory that this process has had resident."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9  # kilobytes on Linux


def labelled_pairs(folder: Path, number: int) -> PairList:
    """Textures, and the same with much noise; half of the pairs match."""
    rng = np.random.default_rng(0)
    plain = textures(POINTS, PATCH, sigma=3, low=60, high=190)
    noisy = plain + rng.normal(0, 25, plain.shape)
    patches = np.stack([plain, noisy], axis=1).reshape(-1, PATCH, PATCH).clip(0, 255).astype(np.uint8)
    write_bitmaps(folder, patches)
    write_info(folder, np.arange(2 * POINTS) // 2, np.zeros(2 * POINTS, np.int64))
    point = rng.integers(0, POINTS, number)
    match = np.arange(number) % 2 == 0
    other = np.where(match, point, (point + rng.integers(1, POINTS, number)) % POINTS)
    return PairList([PatchSet.open(folder)], np.zeros(number, np.int32), 2 * point, 2 * other + 1, match)


def main() -> None:
    """Measure, extrapolate and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=200_000, help="training pairs, half of them matches")
    parser.add_argument("--workers", type=int, default=2, help="threads, one a core")
    parser.add_argument("--sample", type=int, default=2048, help="pairs on which candidates are evaluated")
    parser.add_argument("--rounds", type=int, default=8, help="rounds of AdaBoost that are timed")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    options = BoostingOptions()
    rng = np.random.default_rng(0)

    with tempfile.TemporaryDirectory() as scratch:
        pairs = labelled_pairs(Path(scratch), arguments.sample)
        candidates = draw_candidates(pairs, options.responses, options.candidates, rng)
        clock = Clock()
        levels = pair_levels(pairs, candidates, options.responses, workers=arguments.workers)
        pair_seconds = clock.read() / len(pairs)

    copies = -(-arguments.pairs // len(pairs))
    full = PairLevels(*(np.tile(part, copies)[:, : arguments.pairs] for part in (levels.lower, levels.upper)))
    # A few labels are wrong, so that weights do not gather on a few pairs that come back in every copy.
    match = np.tile(pairs.match, copies)[: arguments.pairs] ^ (rng.uniform(size=arguments.pairs) < 0.05)
    boosting = Boosting(match, options.search, rng, arguments.workers)
    clock = Clock()
    found = [boosting.add(full) for _ in range(arguments.rounds)]
    round_seconds = clock.read() / len(found)
    del full, levels

    answers = rng.choice(np.array([-1, 1], np.int8), (2 * arguments.pairs, options.learners))
    rows = np.arange(arguments.pairs)
    train = PairResponses(answers, rows, rows + arguments.pairs, match)
    tenth = slice(arguments.pairs // 10)
    held = PairResponses(answers, rows[tenth], rows[tenth] + arguments.pairs, match[tenth])
    weights = np.full(options.learners, 0.1)
    clock = Clock()
    # Two validations and one epoch between them.
    learn_metric(train, held, weights, options.dim, type(options.metric)(epochs=1), rng)
    epoch_seconds = clock.read()

    parts = {
        "candidates_minutes": pair_seconds * arguments.pairs * options.draws / 60,
        "rounds_minutes": round_seconds * options.learners / 60,
        "similarity_minutes": epoch_seconds * options.metric.epochs / 60,
    }
    patches = textures(1024, 31)
    speeds = {}
    for name, descriptor in {
        "sift": find_descriptor("sift"),
        **{kind: LearntDescriptor(boosted(kind)) for kind in ("bgm", "lbgm")},
    }.items():
        descriptor.describe(patches[:64])
        started = time.perf_counter()
        descriptor.describe(patches)
        speeds[name] = round(1e3 * (time.perf_counter() - started) / len(patches), 3)
    facts = {
        "pairs": arguments.pairs,
        "learners": options.learners,
        "candidates": options.candidates.number,
        "draws": options.draws,
        "workers": arguments.workers,
        "ms_a_pair": round(1e3 * pair_seconds[0], 3),
        "seconds_a_round": round(round_seconds[0], 3),
        "seconds_an_epoch": round(epoch_seconds[0], 2),
        **{name: round(minutes[0], 1) for name, minutes in parts.items()},
        "minutes": round(sum(minutes[0] for minutes in parts.values()), 1),
        "processor_minutes": round(sum(minutes[1] for minutes in parts.values()), 1),
        "bar_minutes": BAR_MINUTES,
        "memory_gb": round(resident_gb(), 2),
        "bar_gb": BAR_GB,
        "ms_a_patch": speeds,
    }
    facts["passed"] = facts["minutes"] < BAR_MINUTES and facts["memory_gb"] < BAR_GB
    if arguments.json:
        print(json.dumps(facts))
        return
    print(
        f"candidates: {facts['ms_a_pair']} ms a pair for {facts['candidates']:,} with {arguments.workers} workers, "
        f"{facts['candidates_minutes']} minutes for {facts['draws']} draws"
    )
    print(f"AdaBoost: {facts['seconds_a_round']} s a weak learner, {facts['rounds_minutes']} minutes for 512")
    print(
        f"similarity: {facts['seconds_an_epoch']} s an epoch, {facts['similarity_minutes']} minutes for "
        f"{options.metric.epochs}"
    )
    print(f"describing: {', '.join(f'{name} {speed} ms a patch' for name, speed in speeds.items())}, one thread")
    print(f"{arguments.pairs:,} pairs: {facts['minutes']} minutes, under {BAR_MINUTES:.0f} wanted", end=" ")
    print(f"({facts['processor_minutes']} of all processors together);", end=" ")
    print(f"{facts['memory_gb']} GB of memory at most, under {BAR_GB:.0f} wanted:", end=" ")
    print("met" if facts["passed"] else "MISSED")


if __name__ == "__main__":
    main()
