"""Rank photos by a method of your own, here histograms of colours, write the ranking, and score it.

usage: python docs/examples/score_a_ranking.py IMAGES GROUND_TRUTH RANKING.csv

Then: cairn evaluate ranking RANKING.csv --gt GROUND_TRUTH --images IMAGES --report page.html
"""

import argparse
import csv
from pathlib import Path

import cv2
import numpy as np

from eval.rankings.files import read_rankings
from eval.rankings.ground_truth import read_truth_of_rankings
from eval.rankings.scoring import score_rankings


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

    truth = read_truth_of_rankings(arguments.ground_truth)
    stems = {path.stem: path for path in paths}
    with arguments.ranking.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["query", "rank", "photo"])
        for query in {one.name: one for queries in truth.protocols.values() for one in queries}.values():
            photo = cv2.imread(str(stems[query.stem]))
            x0, y0, x1, y1 = (max(0, round(side)) for side in query.box)
            similarity = database @ describe(photo[y0:y1, x0:x1])
            for rank, number in enumerate(np.argsort(-similarity, kind="stable"), start=1):
                table.writerow([query.name, rank, paths[number].name])

    report = score_rankings(read_rankings(arguments.ranking), truth, map(str, paths))
    for protocol, scores in report.protocols.items():
        print(f"mAP {report.mean(protocol):.4f} over {len(scores)} queries {protocol}".rstrip())


if __name__ == "__main__":
    main()
