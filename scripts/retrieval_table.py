#!/usr/bin/env python3
"""Measure searches in one table: sets, descriptors, words, engines, expansions, and turns of the query.

On the sets in CAIRN_DATASETS; "hard" is landmarks with each box shrunk to half its width and height, among the photos
of paintings and matching. Own words are trained on the searched photos, independent ones on the photos of --words-of.
Next to each mAP: the median processor time of a query, and the bytes per feature read by such a search. Queries are
photos of the collection if possible, else files. Describing a query at other turns and assigning its words is done once
for all engines, and charged to each that uses it.

Results in the work folder are reused: photos are described once, collections made once, and a stopped run can be
resumed. --only selects measurements to run; the table holds all available ones. Figures of other code versions are
marked †; --again repeats them.
"""

import argparse
import itertools
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from eval.tables.retrieval import Measurement, MeasurementResult, markdown, measure, read_result
from eval.tables.sets import HARD, PhotoSet, RetrievalSet, find_photos, find_set
from index.errors import CairnError
from index.hamming.kinds import DEFAULT as DEFAULT_SIGNATURE
from retrieval.collection.options import CollectionOptions
from retrieval.commands.console import progress_bars
from retrieval.commands.options import cores
from retrieval.features.options import FeatureOptions
from retrieval.library.progress import INDEXING
from retrieval.regions.options import RegionOptions
from retrieval.search.engines.registry import ENGINES, EXPANSIONS, VerifiedPhotos, find_engine

OWN, INDEPENDENT = "own", "independent"
FIELDS = ("set", "descriptor", "words", "engine", "expand", "turns")
DEFAULT_ENGINES = ("tf-idf", "signatures", "asmk", "tf-idf-sp", "signatures-sp", "asmk-sp")
# A row of the table: descriptor, words, engine, expansion.
Row = tuple[str, str, str, str]
# By set and turns: a cell for each seed.
Columns = dict[tuple[str, int], list[Measurement]]


def datasets() -> Path:
    """Find the folder of the sets."""
    root = os.environ.get("CAIRN_DATASETS")
    if not root:
        raise CairnError("Set CAIRN_DATASETS to the folder of photos.")
    return Path(root)


def find_sets(names: Sequence[str] | None) -> list[RetrievalSet]:
    """Find sets of CAIRN_DATASETS by name."""
    return [find_set(datasets(), name) for name in dict.fromkeys(names or ["landmarks", "paintings"])]


def tell(line: str) -> None:
    """Print a line of progress."""
    print(line, file=sys.stderr, flush=True)


def plan(arguments: argparse.Namespace) -> dict[Row, Columns]:
    """Lay out the table, in the order of measuring."""
    features = FeatureOptions(
        RegionOptions(detector=arguments.detector), arguments.measurement_scale, not arguments.rotated
    )
    sets = find_sets(arguments.set or ["landmarks", "paintings", HARD])
    # Source of the words; None: the set itself.
    origins: dict[str, PhotoSet | None] = {}
    for kind in dict.fromkeys(arguments.vocabulary or [OWN, INDEPENDENT]):
        origins[kind] = None if kind == OWN else find_photos(datasets(), arguments.words_of)
    engines = dict.fromkeys(arguments.engine or DEFAULT_ENGINES)
    table: dict[Row, Columns] = {}
    for (kind, origin), descriptor in itertools.product(origins.items(), arguments.descriptor or ["rootsift", "cairn"]):
        label, _, name = descriptor.rpartition("=")
        options = CollectionOptions(
            descriptor=name, words=arguments.words, features=features, signature=arguments.signature
        )
        for engine, expand in itertools.product(engines, dict.fromkeys(arguments.expand or EXPANSIONS)):
            entry = find_engine(engine)
            wordless = entry.verified is VerifiedPhotos.ALL  # words hardly matter
            if (expand != "none" and not entry.expands) or (wordless and kind == INDEPENDENT):
                continue
            seeds = range(1 if wordless else arguments.seeds)
            columns = table.setdefault((label or name, kind, engine, expand), {})
            for photos, turns in itertools.product(sets, dict.fromkeys(arguments.turns or [1, 8])):
                columns[photos.name, turns] = [
                    Measurement(
                        photos, origin or photos, replace(options, seed=seed), engine, turns, expand, arguments.files
                    )
                    for seed in seeds
                ]
    return table


def chosen(table: dict[Row, Columns], only: Sequence[str]) -> list[Measurement]:
    """The cells selected by FIELD=VALUE,VALUE, grouped by collection; raises CairnError for unknown fields."""
    wanted = {}
    for one in only:
        field, _, values = one.partition("=")
        if field not in FIELDS:
            raise CairnError(f"--only {one}: choose by {', '.join(FIELDS)}.")
        wanted[field] = values.split(",")
    selection = []
    for (descriptor, words, engine, expand), columns in table.items():
        for place, ((name, turns), cells) in enumerate(columns.items()):
            this = dict(zip(FIELDS, (name, descriptor, words, engine, expand, str(turns)), strict=True))
            if all(this[field] in some for field, some in wanted.items()):
                selection.append(((words, descriptor, place), cells))
    order = {key: place for place, key in enumerate(dict.fromkeys(key for key, _ in selection))}
    return [cell for _, cells in sorted(selection, key=lambda one: order[one[0]]) for cell in cells]


def figures(cells: Sequence[Measurement], work: Path) -> tuple[str, str, str]:
    """Return mAP, milliseconds a query and bytes a feature of the seeds of a cell, as far as measured."""
    results = [(cell, read_result(cell, work)) for cell in cells]
    whole = [result for cell, result in results if result.is_of(cell)]
    if len(whole) < len(cells):
        return "–", "–", ""
    means = [result.mean for result in whole]
    spread = f" ± {np.std(means, ddof=1):.4f}" if len(means) > 1 else ""
    mark = "†" if any(result.is_stale for result in whole) else ""
    milliseconds = 1000 * float(np.mean([result.seconds for result in whole]))
    return f"{np.mean(means):.4f}{spread}{mark}", f"{milliseconds:.0f}", f"{whole[0].about['bytes_a_feature']:.1f}"


def print_table(table: dict[Row, Columns], work: Path) -> None:
    """Print a row for each search method, with the figures of each set by number of turns."""
    keys = list(next(iter(table.values())))
    sets, turns = list(dict.fromkeys(name for name, _ in keys)), list(dict.fromkeys(count for _, count in keys))
    at = " / ".join(map(str, turns))
    titles = [title for name in sets for title in (f"{name}: mAP", "CPU ms", "bytes")]
    print(f"By the number of turns: {at}.\n")
    rows = []
    for row, columns in table.items():
        cells = []
        for name in sets:
            values = [figures(columns[name, count], work) for count in turns]
            mean, cpu = (" / ".join(one[place] for one in values) for place in (0, 1))
            cells += [mean, cpu, next((one[2] for one in values if one[2]), "")]
        rows.append([*row, *cells])
    print(markdown(["descriptor", "words", "engine", "expansion", *titles], rows))


def print_objects(table: dict[Row, Columns], work: Path) -> None:
    """Print mAP by object, a table for each set and number of turns; in brackets, the gain over the first row."""
    for column in next(iter(table.values())):
        results: dict[str, list[MeasurementResult]] = {}
        for row, columns in table.items():
            seeds = [read_result(cell, work) for cell in columns[column]]
            if all(result.is_of(cell) for cell, result in zip(columns[column], seeds, strict=True)):
                results[", ".join(row)] = seeds
        if not results:
            continue
        rows = []
        first = next(iter(results.values()))
        for name, scores in first[0].by_object().items():
            # All seeds have the same queries.
            means = [100 * np.mean([result.by_object()[name] for result in seeds]) for seeds in results.values()]
            others = [f"{mean:.1f} ({mean - means[0]:+.1f})" for mean in means[1:]]
            rows.append([name, str(len(scores)), f"{means[0]:.1f}", *others])
        print(f"\n{column[0]}, turns: {column[1]}\n")
        print(markdown(["mAP, %", "queries", *results], rows))


def print_json(table: dict[Row, Columns], work: Path) -> None:
    """Print a line of JSON for each measured cell."""
    for row, columns in table.items():
        for cell in (cell for cells in columns.values() for cell in cells):
            result = read_result(cell, work)
            if result.is_of(cell):
                labels = {"label": row[0], "words": row[1], "stale": result.is_stale}
                print(json.dumps({**labels, **result.about, "scores": result.scores}))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--descriptor", action="append", metavar="LABEL=NAME|FILE", help="may be repeated [rootsift, cairn]"
    )
    parser.add_argument(
        "--set", action="append", help=f"folder of CAIRN_DATASETS; may be repeated [landmarks, paintings, {HARD}]"
    )
    parser.add_argument("--engine", action="append", choices=ENGINES, help="may be repeated [all but raw]")
    parser.add_argument("--expand", action="append", choices=EXPANSIONS, help="may be repeated [all]")
    parser.add_argument("--turns", action="append", type=int, help="turns of a query; may be repeated [1, 8]")
    parser.add_argument("--vocabulary", action="append", choices=(OWN, INDEPENDENT), help="may be repeated [both]")
    parser.add_argument("--words-of", default="unlabelled", help="photos of independent words [unlabelled]")
    parser.add_argument("--words", type=int, default=0, help="size of vocabularies; 0: one word for 30 features")
    parser.add_argument("--seeds", type=int, default=1, help="vocabularies are made with the seeds 0, 1, … N-1 [1]")
    parser.add_argument("--files", action="store_true", help="ask with files that the collection does not know")
    parser.add_argument(
        "--only", action="append", default=[], metavar="FIELD=VALUE", help=f"measure these now: {', '.join(FIELDS)}"
    )
    parser.add_argument("--again", action="store_true", help="measure results of other code again")
    parser.add_argument("--detector", default="dog-affine", help="dog-affine or hessian-affine")
    parser.add_argument("--measurement-scale", type=float, help="measurement region over detected region")
    parser.add_argument("--rotated", action="store_true", help="turn patches to their dominant orientation")
    parser.add_argument("--signature", default=DEFAULT_SIGNATURE, help=f"of features [{DEFAULT_SIGNATURE}]")
    parser.add_argument("--per-object", action="store_true", help="print mAP by object too")
    parser.add_argument("--json", action="store_true", help="print a JSON object for each cell instead of the table")
    parser.add_argument("--work", type=Path, default=Path("cairn-retrieval"), help="folder of all that is kept")
    parser.add_argument("--workers", type=int, default=0, help="processes; 0: one a core")
    arguments = parser.parse_args()
    if arguments.seeds < 1:
        parser.error("--seeds: one at least.")
    try:
        table = plan(arguments)
        cells = chosen(table, arguments.only)
        if not cells:
            raise CairnError("There is nothing to measure: raw has no independent words, and cannot be expanded.")
        with progress_bars(False, {**INDEXING, "queries": "Queries"}) as progress:
            workers = arguments.workers or cores()
            measure(cells, arguments.work, workers=workers, again=arguments.again, progress=progress)
    except CairnError as error:
        tell(str(error))
        sys.exit(2)
    except KeyboardInterrupt:
        tell("Stopped; the same command goes on.")
        sys.exit(130)
    if arguments.json:
        print_json(table, arguments.work)
        return
    print_table(table, arguments.work)
    if arguments.per_object:
        print_objects(table, arguments.work)


if __name__ == "__main__":
    main()
