"""Rank photos by a method of your own, here histograms of colours, write the ranking, and score it.

The ground truth is a folder in the layout of Oxford5K.

usage: python docs/examples/score_a_ranking.py IMAGES GROUND_TRUTH RANKING.csv

Then: cairn evaluate ranking RANKING.csv --gt GROUND_TRUTH --images IMAGES --report page.html
"""

import argparse
import csv
from pathlib import Path

import cv2
import numpy as np

import cairn


def describe(photo: np.ndarray) -> np.ndarray:
    """Histogram of the colours of a photo (H, W, 3) uint8, as a row (512,) of length 1: put your own method here."""
    histogram = cv2.calcHist([photo], [0, 1, 2], None, [8, 8, 8], [0, 256] * 3).ravel()
    return np.sqrt(histogram / histogram.sum())


def main() -> None:
    """Write each query's ranking as rows of query, rank and photo, and print the score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", type=Path)
    parser.add_argument("ground_truth", type=Path)
    parser.add_argument("ranking", type=Path)
    arguments = parser.parse_args()

    paths, rows = [], []
    for path in sorted(arguments.images.rglob("*")):
        photo = cv2.imread(str(path)) if path.is_file() else None
        if photo is not None:
            paths.append(path)
            rows.append(describe(photo))
    database = np.stack(rows)

    stems = {path.stem: path for path in paths}
    with arguments.ranking.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["query", "rank", "photo"])
        for asked in sorted(arguments.ground_truth.glob("*_query.txt")):
            name, *box = asked.read_text(encoding="utf-8").split()
            photo = cv2.imread(str(stems[name.removeprefix("oxc1_")]))  # so they begin in Oxford5K
            x0, y0, x1, y1 = (max(0, round(float(side))) for side in box)
            similarity = database @ describe(photo[y0:y1, x0:x1])
            for rank, number in enumerate(np.argsort(-similarity, kind="stable"), start=1):
                table.writerow([asked.name.removesuffix("_query.txt"), rank, paths[number].name])

    found = cairn.evaluate_retrieval(arguments.ranking, arguments.ground_truth)
    print(f"mAP {found.mean_ap:.4f} over {len(found.ap)} queries")


if __name__ == "__main__":
    main()
