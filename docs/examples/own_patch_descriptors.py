"""Describe labelled patches by a method of your own, write the rows, and measure them.

Here a patch is 64 comparisons of blurred pixels, packed into 8 bytes; with --numbers it is 8 x 8 grey values.

usage: python docs/examples/own_patch_descriptors.py PATCHES OUT [--numbers]

PATCHES is a folder in the layout of PhotoTour, or of HPatches. OUT is a file (.npy), or of HPatches a folder.

Then: cairn evaluate patches PATCHES --descriptions OUT --binary
      cairn evaluate hpatches PATCHES --descriptions OUT --binary
"""

import argparse
from functools import partial
from pathlib import Path

import cv2
import numpy as np

from eval.descriptions import read_descriptions
from eval.hpatches.options import HPatchesChoices
from eval.hpatches.release import IMAGES, find_sequences
from eval.hpatches.rows import read_sequences
from eval.hpatches.run import evaluate_hpatches
from eval.patches import evaluate_patches
from learning.patches.phototour import PatchSet

PLACES = np.random.default_rng(0).integers(0, 64, (2, 64))  # two of 8 x 8 pixels for each bit


def describe(patches: np.ndarray, numbers: bool) -> np.ndarray:
    """Rows (N, D) of patches (N, S, S) uint8: put your own method here, a network for example."""
    small = np.stack([cv2.resize(patch, (8, 8), interpolation=cv2.INTER_AREA) for patch in patches])
    values = small.reshape(len(small), 64).astype(np.float32)
    if not numbers:
        return np.packbits(values[:, PLACES[0]] < values[:, PLACES[1]], axis=1)
    values -= values.mean(axis=1, keepdims=True)
    return values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-6)


def main() -> None:
    """Describe all patches of the set in their order, and print what the rows are worth."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patches", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--numbers", action="store_true")
    parser.add_argument("--pairs", type=int, default=0, help="measure on so many pairs at most")
    arguments = parser.parse_args()

    if (arguments.patches / "info.txt").is_file():
        patches = PatchSet.open(arguments.patches)
        parts = np.array_split(np.arange(len(patches)), len(patches) // 1024 + 1)
        rows = np.concatenate([describe(patches.read(part), arguments.numbers) for part in parts])
        np.save(arguments.out, rows)
        mine = read_descriptions(arguments.out, binary=not arguments.numbers)
        report = evaluate_patches(patches, mine, max_pairs=arguments.pairs)
        print(f"FPR95 {100 * report.fpr95:.2f}% over {report.pairs} pairs")
        return

    for name, sequence in find_sequences(arguments.patches).items():
        (arguments.out / name).mkdir(parents=True, exist_ok=True)
        for image in IMAGES:
            rows = describe(sequence.read(image), arguments.numbers)
            np.savetxt(arguments.out / name / f"{image}.csv", rows, "%.7g", delimiter=",")
    reading = partial(read_sequences, arguments.out, distance="l2" if arguments.numbers else "hamming")
    found = evaluate_hpatches(arguments.patches, reading, HPatchesChoices(max_pairs=arguments.pairs))
    told = found.as_json()
    for task in ("verification", "matching", "retrieval"):
        print(f"{task}: mAP {100 * told[task]['mAP']:.2f}%")


if __name__ == "__main__":
    main()
