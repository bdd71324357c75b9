#!/usr/bin/env python3
"""Print the recall and the mAP of matching by several descriptors, ours and OpenCV's, on the same regions and patches.

Photos with known homographies, the project's own regions; see `eval.matching` for what is measured. All descriptors use
the same measurement regions, cropped at their own patch size: 64x64 for OpenCV's.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
from peers import add_descriptor_options, chosen, find, print_json
from rich.console import Console
from rich.table import Table

from eval.matching import MatchingOptions, MatchingReport, evaluate_matching, find_pairs
from index.errors import CairnError
from retrieval.features.options import FeatureOptions
from retrieval.photos.options import ImageOptions
from retrieval.regions.options import RegionOptions


def mean(values: Sequence[float | None]) -> float:
    """Mean of the available figures; NaN if there are none."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else float("nan")


def _print(results: dict[str, list[MatchingReport]], names: list[str]) -> None:
    table = Table(title="recall / mAP in %, mean over the pairs of a folder")
    table.add_column("descriptor")
    table.add_column("dim", justify="right")
    for folder, reports in results.items():
        table.add_column(f"{folder}\n{len(reports[0].scores)} pairs", justify="right")
    table.add_column("mean over\nfolders", justify="right")
    for name, row in zip(names, zip(*results.values(), strict=True), strict=True):
        figures = [(100 * mean([report.recall]), 100 * mean([report.mean_ap])) for report in row]
        figures.append((float(np.nanmean([r for r, _ in figures])), float(np.nanmean([a for _, a in figures]))))
        table.add_row(name, str(row[0].dim), *(f"{recall:.1f} / {ap:.1f}" for recall, ap in figures))
    Console(width=max(100, 34 + 16 * (len(results) + 1))).print(table)


def main() -> None:
    """Match the pairs of every folder named, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, help="folders with img1, img2, … and H1to2p, …, or 1, 2 and h")
    add_descriptor_options(parser)
    parser.add_argument("--detector", default="dog-affine", help="dog-affine or hessian-affine")
    parser.add_argument("--measurement-scale", type=float, help="measurement region over detected region")
    parser.add_argument("--rotated", action="store_true", help="turn patches to their dominant orientation")
    parser.add_argument("--max-side", type=int, default=1024, help="longer side of the photos as read; 0: as they are")
    parser.add_argument("--regions", type=int, default=8000, help="only the N strongest of each photo; 0: all")
    parser.add_argument("--ratio", action="store_true", help="rank by the ratio of nearest to second nearest")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    arguments = parser.parse_args()
    cv2.setNumThreads(1)
    names = chosen(arguments)
    regions = RegionOptions(detector=arguments.detector, max_regions=arguments.regions)
    results: dict[str, list[MatchingReport]] = {}
    try:
        descriptors = [find(name) for name in names]
        for folder in arguments.folders:
            print(f"{folder} ...", file=sys.stderr, flush=True)
            name = folder.resolve().name
            results[str(folder) if name in results else name] = evaluate_matching(
                find_pairs(folder),
                descriptors,
                features=FeatureOptions(regions, arguments.measurement_scale, not arguments.rotated),
                image=ImageOptions(max_side=arguments.max_side),
                options=MatchingOptions(ratio=arguments.ratio),
            )
    except CairnError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    if arguments.json:
        print_json(results, names, detector=arguments.detector, rotated=arguments.rotated)
    else:
        _print(results, names)


if __name__ == "__main__":
    main()
