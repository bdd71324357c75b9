#!/usr/bin/env python3
"""Measure learnt similarities beside tf-idf: the shape of Yan13's table II and Fig. 4.

On the sets that CAIRN_DATASETS points to, each with its own vocabulary and with the other set's. Several random splits,
of which the mean and the sample standard deviation are printed; see `eval.tables.similarity` for what is learnt from
what. What is in the work folder already is not done again.

usage: PYTHONPATH=. scripts/similarity_table.py [--set NAME]... [--neighbours K]... [--splits 3]
           [--descriptor NAME|FILE] [--seed 0] [--work FOLDER] [--plot fig4.png] [--workers N]
"""

import argparse
import itertools
import sys
from pathlib import Path

import numpy as np
from retrieval_table import find_sets, tell

from eval.plots import check_plot
from eval.tables.retrieval import Cell, markdown, percent
from eval.tables.similarity import ENGINES, UNSEEN, UNSEEN_BEFORE, Scores, SimilarityTable
from index.errors import CairnError
from learning.reports.figures import new_figure
from learning.similarity.options import SimilarityOptions
from retrieval.collection.options import CollectionOptions
from retrieval.commands.options import cores

PHOTOS = (0, 2, 3, 5, 10, 1_000_000)  # bounds of how many photos of an object are learnt from
# Of a set and a vocabulary: tf-idf, and by k what was learnt from each split.
Row = tuple[Scores, dict[int, list[Scores]]]


def mean(scores: dict[str, float], names: set[str] | None = None) -> float:
    """Mean average precision over all queries, or some."""
    return float(np.mean([score for name, score in scores.items() if names is None or name in names]))


def print_table(rows: dict[str, Row], way: str) -> None:
    """Print mAP of one way of searching: a row a set and vocabulary, a column a k."""
    neighbours = list(next(iter(rows.values()))[1])
    table = []
    for label, (plain, learnt) in rows.items():
        figures = []
        for scores in learnt.values():
            before = [mean(one.get(UNSEEN_BEFORE, {}) if way == UNSEEN else plain[way]) for one in scores]
            means = [mean(one.get(way, {})) for one in scores]
            gain = 100 * np.mean([after / first - 1 for after, first in zip(means, before, strict=True)])
            figures.append(f"{percent(means)} ({gain:+.1f}%)")
        table.append([label, percent(before if way == UNSEEN else before[:1]), *figures])
    print(f"\n{way}:\n")
    print(markdown(["mAP, %", "tf-idf", *(f"k = {k}" for k in neighbours)], table))


def print_by_photos(rows: dict[str, Row], photos: dict[str, list[dict[str, int]]]) -> None:
    """Print what is gained by how many photos of a query's object were learnt from: what the paper's Fig. 2 shows."""
    table = []
    for label, (plain, learnt) in rows.items():
        for low, high in itertools.pairwise(PHOTOS):
            of = [{name for name, count in one.items() if low <= count < high} for one in photos[label]]
            if not any(of):
                continue
            before = np.mean([plain["tf-idf"][name] for names in of for name in names])
            figures = []
            for scores in learnt.values():
                after = [one["tf-idf"][name] for one, names in zip(scores, of, strict=True) for name in names]
                figures.append(f"{100 * np.mean(after):.1f} ({100 * (np.mean(after) / before - 1):+.1f}%)")
            span = f"{low}" if high == low + 1 else f"{low} to {high - 1}" if high < PHOTOS[-1] else f"{low} and more"
            table.append([label, span, f"{np.mean([len(names) for names in of]):.0f}", f"{100 * before:.1f}", *figures])
    neighbours = list(next(iter(rows.values()))[1])
    print("\ntf-idf, by the photos of a query's object that were learnt from, mean over the splits:\n")
    print(markdown(["mAP, %", "photos", "queries", "tf-idf", *(f"k = {k}" for k in neighbours)], table))


def plot(rows: dict[str, Row], path: Path) -> None:
    """Draw mAP against k (Fig. 4), a panel for each way of searching."""
    figure = new_figure(4.2 * len(ENGINES), 3.6)
    for place, way in enumerate(ENGINES, start=1):
        axes = figure.add_subplot(1, len(ENGINES), place)
        for number, (label, (plain, learnt)) in enumerate(rows.items()):
            means = np.array([[100 * mean(one[way]) for one in scores] for scores in learnt.values()])
            spread = means.std(axis=1, ddof=1) if means.shape[1] > 1 else None
            axes.errorbar(list(learnt), means.mean(axis=1), spread, marker="o", color=f"C{number}", label=label)
            axes.axhline(100 * mean(plain[way]), color=f"C{number}", linestyle="--", linewidth=1)
        axes.set(title=way, xlabel="neighbours, k (dashed: tf-idf)", ylabel="mAP, %", xticks=list(learnt))
        axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--set", action="append", help="folder of CAIRN_DATASETS; may be repeated [landmarks, paintings]"
    )
    parser.add_argument("--neighbours", type=int, action="append", help="k; may be repeated [0, 1, 2, 3]")
    parser.add_argument("--splits", type=int, default=3, help="random splits, of the seeds 0, 1, … N-1 [3]")
    parser.add_argument("--descriptor", default="rootsift", metavar="NAME|FILE")
    parser.add_argument("--seed", type=int, default=0, help="of the vocabulary")
    parser.add_argument("--work", type=Path, default=Path("cairn-retrieval"), help="folder of all that is kept")
    parser.add_argument("--plot", type=Path, help="draw mAP against k: .png, .pdf or .svg")
    parser.add_argument("--workers", type=int, default=0, help="processes; 0: one a core")
    arguments = parser.parse_args()
    workers = arguments.workers or cores()
    rows: dict[str, Row] = {}
    photos_of: dict[str, list[dict[str, int]]] = {}
    try:
        if arguments.plot is not None:
            check_plot(arguments.plot)
        sets = find_sets(arguments.set)
        options = CollectionOptions(descriptor=arguments.descriptor, seed=arguments.seed, signature="none")
        for photos in sets:
            for origin in sorted(sets, key=lambda one: one != photos):
                cell = Cell(photos, origin, options, "tf-idf", 1)
                measured = SimilarityTable(cell, arguments.work, workers, tell)
                label = f"{photos.name}, {'own' if cell.own else 'independent'} words"
                learnt = {
                    k: [
                        measured.learnt(SimilarityOptions(neighbours=k), seed, f"k{k}")
                        for seed in range(arguments.splits)
                    ]
                    for k in arguments.neighbours or (0, 1, 2, 3)
                }
                rows[label] = measured.baseline(), learnt
                photos_of[label] = [measured.training_photos(seed) for seed in range(arguments.splits)]
    except CairnError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    for way in (*ENGINES, UNSEEN):
        print_table(rows, way)
    print_by_photos(rows, photos_of)
    if arguments.plot is not None:
        plot(rows, arguments.plot)


if __name__ == "__main__":
    main()
