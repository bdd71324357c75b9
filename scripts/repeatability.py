#!/usr/bin/env python3
"""Print the repeatability of detectors on the homography sequences of vgg_affine.

The overlap-error protocol of Mikolajczyk et al., IJCV 2005 (error below 40%), image 1 against images 2 to 6 of each
sequence. The radius of each detector's region is set to three times its detection scale.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from eval.repeatability import Repeatability, repeatability
from index.errors import CairnError
from retrieval.photos.decoding import read_photo
from retrieval.photos.options import ImageOptions
from retrieval.regions.detection import detect_regions
from retrieval.regions.detectors.registry import find_detector
from retrieval.regions.options import RegionOptions

SEQUENCES = ("graf", "boat", "wall", "bikes", "ubc")
_RADIUS = 3.0  # of every detector's region, in units of its detection scale, for a fair comparison

# Functions from grey values, 0 to 255, to ellipses (N, 5), strongest first.
Detect = Callable[[NDArray[np.float32]], NDArray[np.float64]]


def _cairn(name: str) -> Detect:
    def detect(grey: NDArray[np.float32]) -> NDArray[np.float64]:
        ellipses = detect_regions(grey, RegionOptions(detector=name, max_regions=0)).ellipses.astype(np.float64)
        ellipses[:, 2:] *= (find_detector(name).radius / _RADIUS) ** 2
        return ellipses

    return detect


def _opencv_sift(grey: NDArray[np.float32]) -> NDArray[np.float64]:
    """Circles of OpenCV's SIFT with its default settings; a keypoint's size is twice its scale."""
    opencv: Any = cv2  # SIFT is missing in the type stubs
    keypoints = opencv.SIFT_create().detect(np.round(grey).clip(0, 255).astype(np.uint8), None)
    rows = np.array([(*k.pt, k.size / 2, k.response) for k in keypoints]).reshape(-1, 4)
    rows = np.unique(rows, axis=0)  # one region per place and scale, regardless of orientations
    x, y, sigma, _ = rows[np.argsort(-rows[:, 3], kind="stable")].T
    form = (_RADIUS * sigma) ** -2.0
    return np.column_stack([x, y, form, np.zeros_like(form), form])


DETECT: dict[str, Detect] = {
    "hessian-affine": _cairn("hessian-affine"),
    "dog-affine": _cairn("dog-affine"),
    "OpenCV SIFT": _opencv_sift,
}


def _image(folder: Path, number: int) -> NDArray[np.float32]:
    for path in sorted(folder.glob(f"img{number}.*")):
        return read_photo(path, ImageOptions(max_side=0)).grey
    raise CairnError(f"{folder} has no img{number}: it is not a sequence of vgg_affine.")


def measure(folder: Path, regions: int = 0) -> dict[str, list[Repeatability]]:
    """Measure each detector on one sequence, image 1 against the others, by its strongest regions (0: all)."""
    images = [_image(folder, number) for number in range(1, 7)]
    homographies = [np.loadtxt(folder / f"H1to{number}p") for number in range(2, 7)]
    results: dict[str, list[Repeatability]] = {}
    for name, detect in DETECT.items():
        detected = [detect(image)[: regions or None] for image in images]
        results[name] = [
            repeatability(detected[0], other, homography, images[0].shape[:2], image.shape[:2])
            for other, homography, image in zip(detected[1:], homographies, images[1:], strict=True)
        ]
    return results


def _print(results: dict[str, dict[str, list[Repeatability]]]) -> None:
    table = Table(title="Repeatability in % (correspondences)")
    table.add_column("pair")
    for name in DETECT:
        table.add_column(name, justify="right")
    for sequence, measured in results.items():
        for pair in range(5):
            cells = (f"{100 * m[pair].repeatability:.1f} ({m[pair].correspondences:,})" for m in measured.values())
            table.add_row(f"{sequence} 1-{pair + 2}", *cells, end_section=pair == 4)
    means = {
        name: np.mean([(r.repeatability, r.correspondences) for m in results.values() for r in m[name]], axis=0)
        for name in DETECT
    }
    table.add_row("mean", *(f"{100 * part:.1f} ({count:,.0f})" for part, count in means.values()))
    Console().print(table)


def main() -> None:
    """Measure all the sequences and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--datasets", type=Path, default=os.environ.get("CAIRN_DATASETS"), help="CAIRN_DATASETS if unset"
    )
    parser.add_argument("--regions", type=int, default=0, help="only the N strongest regions of each image; 0: all")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    arguments = parser.parse_args()
    try:
        if arguments.datasets is None:
            raise CairnError("Name the folder of the datasets with --datasets, or in CAIRN_DATASETS.")
        root = Path(arguments.datasets) / "matching" / "vgg_affine"
        results = {}
        for sequence in SEQUENCES:
            print(f"{sequence} ...", file=sys.stderr)
            results[sequence] = measure(root / sequence, arguments.regions)
    except CairnError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    if arguments.json:
        rows = {
            sequence: {
                name: [
                    {
                        "pair": f"1-{pair}",
                        "repeatability": round(r.repeatability, 4),
                        "correspondences": r.correspondences,
                        "regions": [r.regions1, r.regions2],
                    }
                    for pair, r in enumerate(pairs, start=2)
                ]
                for name, pairs in measured.items()
            }
            for sequence, measured in results.items()
        }
        print(json.dumps({"max_error": 0.4, "regions": arguments.regions, "sequences": rows}))
    else:
        _print(results)


if __name__ == "__main__":
    main()
