#!/usr/bin/env python3
"""Measure the ranks of mined matches among the features of many photos, by several descriptors.

A search compares a feature with those of all photos, and a visual word covers some dozens of them. So a match need not
be the nearest neighbour, but few others should be nearer. Features of held-out image pairs are compared with patches
drawn from all photos of a file of matches. The table has the share of features whose match has fewer than 1, 5, 50 and
500 nearer patches, in the mean over image pairs: by each descriptor as it is, and with rows centred and normalised to
unit length.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eval.tables.retrieval import markdown
from index.errors import CairnError
from index.parallel import one_thread
from learning.latent.anchors import draw_features
from learning.latent.described_patches import Described, describe_mined
from learning.mining.matches import MinedMatches
from retrieval.descriptors.learnt import centred
from retrieval.descriptors.registry import find_descriptor

RANKS = (1, 5, 50, 500)


def draw(matches: MinedMatches, number: int, others: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Draw features of held-out image pairs, and the patches for comparison, ascending."""
    rng = np.random.default_rng(seed)
    features = draw_features(matches, matches.pair_split(seed=seed)[1], number, rng)
    drawn = rng.permutation(len(matches.patches))[:others].astype(np.int32)
    positives = [matches.positives(x) for x in features.tolist()]
    return features, np.unique(np.concatenate([drawn, *positives]))


def nearer(matches: MinedMatches, features: NDArray[np.int64], own: Described, all_: Described) -> NDArray[np.int64]:
    """Count for each feature (F,) the other patches nearer than its nearest positive."""
    rows = all_.rows.astype(np.float32)
    lengths = np.einsum("ij,ij->i", rows, rows)
    counts = []
    for x in features.tolist():
        with one_thread():
            distances = lengths - 2 * (rows @ own.take(matches.reference[[x]])[0])
        right = all_.places(matches.positives(x))
        least = distances[right].min()
        distances[right] = np.inf
        left_out = np.isin(all_.numbers, np.append(matches.ambiguous(x), matches.reference[x]))
        counts.append(np.count_nonzero(distances[~left_out] < least))
    return np.array(counts)


def shares(matches: MinedMatches, features: NDArray[np.int64], counts: NDArray[np.int64]) -> list[str]:
    """Percent of the features with fewer nearer patches than each of `RANKS`, in the mean over image pairs."""
    of = matches.pair[features]
    return [f"{100 * np.mean([(counts[of == pair] < rank).mean() for pair in np.unique(of)]):.1f}" for rank in RANKS]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("matches", type=Path, help="file that cairn mine wrote")
    parser.add_argument("--descriptor", action="append", required=True, help="name or file; may be repeated")
    parser.add_argument("--features", type=int, default=4_000, help="that are asked for [4,000]")
    parser.add_argument("--patches", type=int, default=20_000, help="that they are compared with, at least [20,000]")
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn [0]")
    arguments = parser.parse_args()
    try:
        matches = MinedMatches.open(arguments.matches)
        features, others = draw(matches, arguments.features, arguments.patches, arguments.seed)
        references = np.unique(matches.reference[features])
        table = []
        for name in arguments.descriptor:
            descriptor = find_descriptor(name)
            own, all_ = (describe_mined(matches, patches, descriptor.describe) for patches in (references, others))
            table.append([name, str(descriptor.dim), *shares(matches, features, nearer(matches, features, own, all_))])
            mean = all_.rows.mean(axis=0, dtype=np.float32)
            own, all_ = (
                Described(one.numbers, centred(one.rows.astype(np.float32), mean).astype(np.float16))
                for one in (own, all_)
            )
            counts = nearer(matches, features, own, all_)
            table.append([f"{name}, centred, unit length", str(descriptor.dim), *shares(matches, features, counts)])
    except CairnError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    print(f"{len(features):,} features, {len(others):,} patches, extent {matches.extent:g}\n")
    print(markdown(["descriptor", "dimensions", *(f"fewer than {rank} nearer" for rank in RANKS)], table))


if __name__ == "__main__":
    main()
