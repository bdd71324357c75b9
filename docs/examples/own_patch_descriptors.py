"""Describe labelled patches by a method of your own, write the rows, and measure them.

Here a patch is 64 comparisons of blurred pixels, packed into 8 bytes; with --numbers it is 8 x 8 grey values.

usage: python docs/examples/own_patch_descriptors.py PATCHES OUT [--numbers]

PATCHES is a folder in the layout of PhotoTour, or of HPatches. OUT is a file (.npy), or of HPatches a folder.

Then: cairn evaluate patches PATCHES --descriptions OUT --binary
      cairn evaluate hpatches PATCHES --descriptions OUT --binary
"""

import argparse
from pathlib import Path

import cv2
import numpy as np

import cairn

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
        # Sheets of 16 x 16 patches of 64 x 64 pixels; a line of info.txt for each patch that there is.
        number = len((arguments.patches / "info.txt").read_text().splitlines())
        rows = []
        for sheet in sorted(arguments.patches.glob("*.bmp")):
            image = cv2.imread(str(sheet), cv2.IMREAD_GRAYSCALE)
            cut = image.reshape(16, 64, 16, 64).swapaxes(1, 2).reshape(-1, 64, 64)
            rows.append(describe(cut[: number - 256 * len(rows)], arguments.numbers))
        np.save(arguments.out, np.concatenate(rows))
        mine = np.load(arguments.out)
        found = cairn.evaluate_patches(mine, arguments.patches, binary=not arguments.numbers, max_pairs=arguments.pairs)
        print(f"FPR95 {100 * found.fpr95:.2f}% over {len(found.same)} pairs")
        return

    for picture in sorted(arguments.patches.rglob("*.png")):
        # Patches of 65 x 65 pixels, one below the other.
        patches = cv2.imread(str(picture), cv2.IMREAD_GRAYSCALE).reshape(-1, 65, 65)
        path = arguments.out / picture.parent.name / f"{picture.stem}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savetxt(path, describe(patches, arguments.numbers), "%.7g", delimiter=",")
    measured = cairn.evaluate_hpatches(
        arguments.patches,
        descriptions=arguments.out,
        distance="l2" if arguments.numbers else "hamming",
        max_pairs=arguments.pairs,
    )
    for task in ("verification", "matching", "retrieval"):
        print(f"{task}: mAP {100 * getattr(measured, task):.2f}%")


if __name__ == "__main__":
    main()
