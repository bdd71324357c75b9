#!/usr/bin/env python3
"""Measure descriptors by retrieval, with a set's own vocabulary and with an independent one.

In the shape of Simonyan14's Table 4, on the sets that CAIRN_DATASETS points to. The independent vocabulary is made from
the other set's photos. Each figure is the mean over several seeds of the vocabulary, with their sample standard
deviation; the engine raw, which is slow, is measured with the first seed and the set's own vocabulary alone. What is in
the work folder already is not done again, so that a run that was stopped goes on.

usage: PYTHONPATH=. scripts/retrieval_table.py [--descriptor LABEL=NAME|FILE]... [--set NAME]... [--engine NAME]...
           [--vocabulary own|independent]... [--seeds 3] [--words N] [--detector NAME] [--measurement-scale S]
           [--rotated] [--turns 8] [--per-object] [--work FOLDER] [--workers N]
"""

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from eval.tables.retrieval import Cell, Result, markdown, measure, percent
from eval.tables.sets import RetrievalSet
from index.errors import CairnError
from retrieval.collection.options import CollectionOptions
from retrieval.commands.options import cores
from retrieval.features.options import FeatureOptions
from retrieval.regions.options import RegionOptions
from retrieval.search.engines.registry import ENGINES, Verified, find_engine

OWN, INDEPENDENT = "own", "independent"
# A column of the table: set, where the vocabulary is from, engine.
Column = tuple[str, str, str]
# A row: by column, the results of the seeds.
Row = dict[Column, list[Result]]


def find_sets(names: list[str] | None) -> list[RetrievalSet]:
    """Find sets of CAIRN_DATASETS by name."""
    root = os.environ.get("CAIRN_DATASETS")
    if not root:
        raise CairnError("Set CAIRN_DATASETS to the folder of photos.")
    return [RetrievalSet.find(Path(root) / name) for name in dict.fromkeys(names or ["landmarks", "paintings"])]


def tell(line: str) -> None:
    """Print what is being done."""
    print(line, file=sys.stderr, flush=True)


def plan(
    sets: list[RetrievalSet], options: CollectionOptions, engines: list[str], origins: list[str], seeds: int, turns: int
) -> dict[Column, list[Cell]]:
    """Lay out one descriptor's row: by column, a cell for each seed."""
    cells: dict[Column, list[Cell]] = {}
    for photos in sets:
        for origin in sorted(sets, key=lambda one: one != photos):  # the set itself first
            kind = OWN if origin == photos else INDEPENDENT
            for engine in engines:
                wordless = find_engine(engine).verified is Verified.ALL  # words decide next to nothing
                if kind not in origins or (wordless and kind == INDEPENDENT):
                    continue
                seeded = [replace(options, seed=seed) for seed in range(1 if wordless else seeds)]
                column = cells.setdefault((photos.name, kind, engine), [])
                column += [Cell(photos, origin, one, engine, turns) for one in seeded]
    return cells


def over_sets(row: Row, kind: str, engine: str) -> list[float]:
    """Mean of the sets' mAP, for each seed."""
    columns = [results for column, results in row.items() if column[1:] == (kind, engine)]
    return [float(np.mean([result.mean for result in results])) for results in zip(*columns, strict=True)]


def print_table(table: dict[str, Row]) -> None:
    """Print mAP: a row a descriptor, a column a set, a vocabulary and an engine; then the means over the sets."""
    columns = list(next(iter(table.values())))
    several = len({column[0] for column in columns}) > 1
    means = list(dict.fromkeys(column[1:] for column in columns)) if several else []
    head = ["mAP, %", *(f"{name}, {kind} words, {engine}" for name, kind, engine in columns)]
    head += [f"mean, {kind} words, {engine}" for kind, engine in means]
    rows = []
    for label, row in table.items():
        figures = [percent([result.mean for result in row[column]]) for column in columns]
        rows.append([label, *figures, *(percent(over_sets(row, *of)) for of in means)])
    print(markdown(head, rows))


def print_objects(table: dict[str, Row]) -> None:
    """Print mAP by object, a table for each column of the large one; in brackets, the gain over the first row."""
    first = next(iter(table.values()))
    for column in first:
        rows = []
        for name, scores in first[column][0].by_object().items():
            # The seeds' results hold the same queries each.
            means = [100 * np.mean([result.by_object()[name] for result in row[column]]) for row in table.values()]
            others = [f"{mean:.1f} ({mean - means[0]:+.1f})" for mean in means[1:]]
            rows.append([name, str(len(scores)), f"{means[0]:.1f}", *others])
        print(f"\n{column[0]}, {column[1]} words, {column[2]}:\n")
        print(markdown(["mAP, %", "queries", *table], rows))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--descriptor", action="append", metavar="LABEL=NAME|FILE", help="may be repeated [rootSIFT=rootsift]"
    )
    parser.add_argument(
        "--set", action="append", help="folder of CAIRN_DATASETS; may be repeated [landmarks, paintings]"
    )
    parser.add_argument("--engine", action="append", choices=ENGINES, help="may be repeated [tf-idf, tf-idf-sp]")
    parser.add_argument("--vocabulary", action="append", choices=(OWN, INDEPENDENT), help="may be repeated [both]")
    parser.add_argument("--seeds", type=int, default=3, help="vocabularies are made with the seeds 0, 1, … N-1 [3]")
    parser.add_argument("--words", type=int, default=0, help="size of vocabularies; 0: one word for 30 features")
    parser.add_argument("--detector", default="dog-affine", help="dog-affine or hessian-affine")
    parser.add_argument("--measurement-scale", type=float, help="measurement region over detected region")
    parser.add_argument("--rotated", action="store_true", help="turn patches to their dominant orientation")
    parser.add_argument("--turns", type=int, default=8, help="turns at which a query is tried [8]")
    parser.add_argument("--per-object", action="store_true", help="print mAP by object too")
    parser.add_argument("--work", type=Path, default=Path("cairn-retrieval"), help="folder of all that is kept")
    parser.add_argument("--workers", type=int, default=0, help="processes; 0: one a core")
    arguments = parser.parse_args()
    if arguments.seeds < 1:
        parser.error("--seeds: one at least.")
    features = FeatureOptions(
        RegionOptions(detector=arguments.detector), arguments.measurement_scale, not arguments.rotated
    )
    try:
        sets = find_sets(arguments.set)
        rows: dict[str, dict[Column, list[Cell]]] = {}
        for given in arguments.descriptor or ["rootSIFT=rootsift"]:
            label, _, name = given.rpartition("=")
            options = CollectionOptions(descriptor=name, words=arguments.words, features=features)
            rows[label or name] = plan(
                sets,
                options,
                list(dict.fromkeys(arguments.engine or ["tf-idf", "tf-idf-sp"])),
                arguments.vocabulary or [OWN, INDEPENDENT],
                arguments.seeds,
                arguments.turns,
            )
        cells = [cell for row in rows.values() for column in row.values() for cell in column]
        if not cells:
            raise CairnError("There is nothing to measure: an independent vocabulary takes two sets, and raw has none.")
        results = iter(measure(cells, arguments.work, workers=arguments.workers or cores(), tell=tell))
    except CairnError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    table = {
        label: {column: [next(results) for _ in cells] for column, cells in row.items()} for label, row in rows.items()
    }
    print_table(table)
    if arguments.per_object:
        print_objects(table)


if __name__ == "__main__":
    main()
