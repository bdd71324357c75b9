#!/usr/bin/env python3
"""Print the FPR95 of OpenCV's released descriptors, and of ours, on labelled pairs of patches.

VGG is the paper authors' own model (Simonyan14), BGM, LBGM and BinBoost are Trzcinski's; all were learnt on PhotoTour.
DAISY is not learnt.
They are references for tables and tests only.
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from eval.patches import PatchReport, evaluate_patches
from index.errors import CairnError
from learning.patches.phototour import PatchPairs, PatchSet, default_pair_file
from retrieval.descriptors.contract import Both, Descriptor
from retrieval.descriptors.registry import find_descriptor

PATCH = 64  # pixels along a side, as in PhotoTour
# Width of a SIFT keypoint's patch in units of its size: OpenCV's scale factor for its learnt descriptors on such
# keypoints. So a keypoint of a 6.75th of the patch covers the whole patch.
WINDOW = 6.75

_VGG = {"vgg-120": 100, "vgg-80": 101, "vgg-64": 102, "vgg-48": 103}
_BOOST = {"bgm": 100, "lbgm": 200, "binboost-256": 302}
PEERS = ("opencv-sift", "opencv-rootsift", *_VGG, *_BOOST, "daisy")


class Peer:
    """One of OpenCV's descriptors on 64x64 patches, with the interface of all descriptors."""

    patch_size = PATCH
    extent = 1.0

    def __init__(self, name: str) -> None:
        if name not in PEERS:
            raise CairnError(f"There is no peer {name!r}; choose one of {', '.join(PEERS)}.")
        self.name = name
        self.fingerprint = f"OpenCV {cv2.__version__}: {name}"
        self._extractor = _extractor(name)
        self._binary = self._extractor.descriptorType() == cv2.CV_8U
        size = self._extractor.descriptorSize()  # entries, or bytes of packed bits
        self.dim = 8 * size if self._binary else size
        self.bytes = size if self._binary else 4 * size

    def describe(self, patches: NDArray[np.number]) -> NDArray[np.float32]:
        """Describe patches (N, 64, 64) of grey values 0 to 255 as rows (N, D) float32.

        Bits are returned as 0 and 1, so that squared Euclidean distances are Hamming distances.
        """
        middle = cv2.KeyPoint((PATCH - 1) / 2, (PATCH - 1) / 2, PATCH / WINDOW, 0)
        rows = np.empty((len(patches), self.dim), np.float32)
        for number, patch in enumerate(np.round(patches).clip(0, 255).astype(np.uint8)):
            keypoints, row = self._extractor.compute(patch, [middle])
            # OpenCV silently drops keypoints near the border.
            if len(keypoints) != 1:
                raise RuntimeError(f"{self.name} gave {len(keypoints)} rows for patch {number}, not 1")
            rows[number] = np.unpackbits(row[0]) if self._binary else row[0]
        if self.name == "opencv-rootsift":
            rows = np.sqrt(rows / np.maximum(rows.sum(axis=1, keepdims=True), 1e-6))
        return rows

    def describe_both(self, patches: np.ndarray) -> Both:
        """Describe patches; descriptors of patches rotated by 180 degrees are not needed."""
        return self.describe(patches), None


def _extractor(name: str) -> Any:
    opencv: Any = cv2  # missing in the type stubs
    features = opencv.xfeatures2d
    if name in _VGG:  # smoothing 1.4, patches normalised, the keypoint's size and angle unused: always 64x64 pixels
        return features.VGG_create(_VGG[name], 1.4, True, False)
    if name in _BOOST:  # without the angle; the size is still used
        return features.BoostDesc_create(_BOOST[name], False, WINDOW)
    if name == "daisy":
        # The rings reach the patch's border; of radii 10 to 30 and all norms, this is best on boat and fountain.
        return features.DAISY_create(radius=25, norm=features.DAISY_NRM_PARTIAL)
    return opencv.SIFT_create()


def find(name: str) -> Descriptor:
    """Find a descriptor, a peer or ours, by its name or file."""
    return Peer(name) if name in PEERS else find_descriptor(name)


def add_descriptor_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose descriptors: see `chosen`."""
    parser.add_argument("--descriptor", action="append", default=[], help="ours, by name or file; may be repeated")
    parser.add_argument("--peer", action="append", default=[], choices=PEERS, help="only these peers; may be repeated")
    parser.add_argument("--no-peers", action="store_true", help="measure the descriptors of --descriptor alone")


def chosen(arguments: argparse.Namespace) -> list[str]:
    """Names of the chosen descriptors; all peers, and SIFT and rootSIFT of ours, by default."""
    names = [] if arguments.no_peers else list(arguments.peer or PEERS)
    return names + (arguments.descriptor or ["sift", "rootsift"])


def print_json(results: Mapping[str, Sequence[Any]], names: Sequence[str], **about: object) -> None:
    """Print the reports of each folder, of the descriptors of these names, as one JSON object."""
    sets = {
        folder: [report.as_json() | {"descriptor": name} for name, report in zip(names, reports, strict=True)]
        for folder, reports in results.items()
    }
    print(json.dumps({**about, "sets": sets}))


def describe(name: str, patches: NDArray[np.number]) -> NDArray[np.float32]:
    """Describe patches (N, 64, 64) uint8 by one of `PEERS`, as rows (N, D) float32; see `Peer.describe`."""
    return Peer(name).describe(patches)


def some_pairs(pairs: PatchPairs, each: int, seed: int = 0) -> PatchPairs:
    """Draw at most `each` matching and `each` other pairs, keeping the order."""
    rng = np.random.default_rng(seed)
    chosen_rows = []
    for kind in (True, False):
        rows = np.flatnonzero(pairs.match == kind)
        chosen_rows.append(rng.permutation(rows)[:each] if each else rows)
    rows = np.sort(np.concatenate(chosen_rows))
    return PatchPairs(pairs.first[rows], pairs.second[rows], pairs.match[rows])


def measure(
    folder: Path, names: list[str], each: int, seed: int = 0, tell: Callable[[str], None] = lambda line: None
) -> list[PatchReport]:
    """Measure descriptors, peers and ours, on the test pairs of a folder."""
    patches = PatchSet.open(folder)
    pairs = some_pairs(patches.pairs(default_pair_file(patches)), each, seed)
    reports = []
    for name in names:
        report = evaluate_patches(patches, find(name), pairs)
        reports.append(report)
        tell(f"{folder.name}  {name}: FPR95 {100 * report.fpr95:.2f}%, {report.ms_per_patch:.3f} ms a patch")
    return reports


def _print(results: dict[str, list[PatchReport]], names: list[str]) -> None:
    table = Table(title="FPR95 in %")
    for column in ("descriptor", "dim", "bytes"):
        table.add_column(column, justify="left" if column == "descriptor" else "right")
    for folder, reports in results.items():
        table.add_column(f"{folder}\n{reports[0].pairs:,} pairs", justify="right")
    for column in ("mean", "ms/patch"):
        table.add_column(column, justify="right")
    for name, row in zip(names, zip(*results.values(), strict=True), strict=True):
        figures = [f"{100 * report.fpr95:.2f}" for report in row]
        mean = 100 * np.mean([report.fpr95 for report in row])
        slowest = np.mean([report.ms_per_patch for report in row])
        table.add_row(name, str(row[0].dim), str(row[0].bytes), *figures, f"{mean:.2f}", f"{slowest:.3f}")
    Console(width=max(100, 24 + 14 * (len(results) + 4))).print(table)


def main() -> None:
    """Measure on every folder named, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, help="folders in the layout of PhotoTour, with a test part")
    add_descriptor_options(parser)
    parser.add_argument("--pairs", type=int, default=3000, help="matching, and other, pairs of a folder; 0: all")
    parser.add_argument("--seed", type=int, default=0, help="seed of the pairs drawn")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    arguments = parser.parse_args()
    cv2.setNumThreads(1)
    names = chosen(arguments)
    try:
        results = {}
        for folder in arguments.folders:
            results[folder.name] = measure(
                folder, names, arguments.pairs, arguments.seed, lambda line: print(line, file=sys.stderr, flush=True)
            )
    except CairnError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    if arguments.json:
        print_json(results, names, pairs=arguments.pairs, seed=arguments.seed)
    else:
        _print(results, names)


if __name__ == "__main__":
    main()
