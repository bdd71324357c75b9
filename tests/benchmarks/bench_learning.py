"""How long it takes to learn pooling regions from 400,000 pairs and the full pool of 4,650 rings: ψ and one run of RDA.

Run as `python -m tests.benchmarks.bench_learning [--workers 2] [--json]`; it never gates. ψ is measured on some
thousand pairs of 64x64 patches, read, resampled and written as in learning, with all workers at once. What they gave
is repeated on disk to the full number of pairs (half of them matches), from which RDA then learns weights in full, at
each of the default μ₁, with the means and the objective over all pairs; the slowest counts. Memory is what the largest
process had resident at its most, blocks mapped from the disk included, times the processes where there are several.
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
from joblib.externals.loky import get_reusable_executor

from index.arrays import load_array, save_array
from learning.convex import ring_distances
from learning.convex.candidates import candidate_pool
from learning.convex.ring_distances import RingDistances, write_ring_distances
from learning.convex.ring_selection import RankedPairs, SelectionOptions, learn_weights
from learning.patches.phototour import PATCH, PatchSet, write_bitmaps, write_info
from learning.patches.rows import BlockRows
from retrieval.descriptors.pooling import ChannelOptions
from tests.support.learning.learnt_models import textures

BAR_MINUTES, BAR_GB = 90.0, 12.0
POINTS = 2048  # of two patches each
GAMMA = 0.1  # in the units of `learning.convex.ring_selection.WeightUnits`


def resident_gb(whose: int) -> float:
    """Most memory that this process, or any that it started, has had resident."""
    kilobytes = resource.getrusage(whose).ru_maxrss  # bytes on macOS
    return kilobytes * 1024 / 1e9


def labelled_patches(folder: Path) -> PatchSet:
    """Textures, and the same with much noise, side by side."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    plain = textures(POINTS, PATCH, sigma=3, low=60, high=190)
    noisy = plain + rng.normal(0, 25, plain.shape)
    patches = np.stack([plain, noisy], axis=1).reshape(-1, PATCH, PATCH).clip(0, 255).astype(np.uint8)
    write_bitmaps(folder, patches)
    write_info(folder, np.arange(2 * POINTS) // 2, np.zeros(2 * POINTS, np.int64))
    return PatchSet.open(folder)


def time_distances(folder: Path, workers: int, sample: int) -> tuple[float, list[np.ndarray]]:
    """Seconds of all workers together for a pair; and blocks of ψ, of matches and of others."""
    source = labelled_patches(folder / "patches")
    distances = RingDistances(candidate_pool(), ChannelOptions())
    rng = np.random.default_rng(1)
    points = np.arange(sample) % POINTS
    blocks, seconds = [], 0.0
    # Workers are started, and have their libraries, before the clock starts: once in an hour, that is nothing.
    ring_distances.BLOCK = 8
    few = np.arange(8 * workers)
    write_ring_distances(source, few, few, folder / "warm", distances, workers=workers)
    ring_distances.BLOCK = sample // workers
    for kind, other in (("matches", points), ("others", (points + rng.integers(1, POINTS, sample)) % POINTS)):
        started = time.perf_counter()
        found = write_ring_distances(source, 2 * points, 2 * other + 1, folder / kind, distances, workers=workers)
        seconds += time.perf_counter() - started
        blocks.append(np.concatenate(found))
    return seconds / (2 * sample), blocks


def repeated(block: np.ndarray, pairs: int, folder: Path) -> BlockRows:
    """Rows on disk, as many as wanted, in blocks as learning has them."""
    folder.mkdir()
    full = np.tile(block, (-(-4096 // len(block)), 1))[:4096]
    paths = [folder / f"{number:06d}.npy" for number in range(-(-pairs // len(full)))]
    for number, path in enumerate(paths):
        save_array(path, full[: pairs - number * len(full)])
    return BlockRows([load_array(path, mmap=True) for path in paths])


def main() -> None:
    """Measure, extrapolate and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=400_000, help="training pairs, half of them matches")
    parser.add_argument("--workers", type=int, default=2, help="processes, one a core")
    parser.add_argument("--sample", type=int, default=1024, help="matches, and others, whose ψ is measured")
    parser.add_argument("--scratch", type=Path, help="folder for 4 GB of rows; the system's otherwise")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    options = SelectionOptions()

    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        folder = Path(scratch)
        pair_seconds, blocks = time_distances(folder, arguments.workers, arguments.sample)
        get_reusable_executor().shutdown(wait=True)  # only processes that have ended are counted
        worker_gb = resident_gb(resource.RUSAGE_CHILDREN if arguments.workers > 1 else resource.RUSAGE_SELF)
        half = arguments.pairs // 2
        matches, others = (
            repeated(block, half, folder / name) for block, name in zip(blocks, ("near", "far"), strict=True)
        )
        train = RankedPairs(matches, others)
        started = time.perf_counter()
        means = train.positive.mean(), train.negative.mean()
        mean_seconds = time.perf_counter() - started
        runs = {}
        for mu in options.mus:
            started = time.perf_counter()
            weights = learn_weights(train, means, mu, GAMMA, options).weights
            runs[mu] = (time.perf_counter() - started, int(np.count_nonzero(weights)))
        slowest = max(seconds for seconds, _ in runs.values())
        rda_seconds = mean_seconds + slowest
        disk_gb = sum(path.stat().st_size for path in folder.rglob("*.npy")) / 1e9

    facts = {
        "pairs": arguments.pairs,
        "workers": arguments.workers,
        "ms_a_pair": round(1e3 * pair_seconds, 3),
        "psi_minutes": round(pair_seconds * arguments.pairs / 60, 1),
        "iterations": options.iterations,
        "means_seconds": round(mean_seconds, 1),
        "runs": [{"mu": mu, "seconds": round(seconds, 1), "rings": rings} for mu, (seconds, rings) in runs.items()],
        "rda_minutes": round(rda_seconds / 60, 2),
        "minutes": round((pair_seconds * arguments.pairs + rda_seconds) / 60, 1),
        "bar_minutes": BAR_MINUTES,
        "memory_gb": round(max(resident_gb(resource.RUSAGE_SELF), arguments.workers * worker_gb), 2),
        "bar_gb": BAR_GB,
        "disk_gb": round(disk_gb, 1),
    }
    facts["passed"] = facts["minutes"] < BAR_MINUTES and facts["memory_gb"] < BAR_GB
    if arguments.json:
        print(json.dumps(facts))
        return
    print(f"ψ: {facts['ms_a_pair']} ms a pair with {arguments.workers} workers, {facts['psi_minutes']} minutes in all")
    print(f"means over all pairs: {facts['means_seconds']} s")
    for run in facts["runs"]:
        print(
            f"RDA, {options.iterations} iterations, μ₁ {run['mu']}: {run['seconds']} s, {run['rings']} rings selected"
        )
    print(f"{arguments.pairs:,} pairs: {facts['minutes']} minutes, under {BAR_MINUTES:.0f} wanted;", end=" ")
    print(
        f"{facts['memory_gb']} GB of memory at most, under {BAR_GB:.0f} wanted; {facts['disk_gb']} GB of disk:", end=" "
    )
    print("met" if facts["passed"] else "MISSED")


if __name__ == "__main__":
    main()
