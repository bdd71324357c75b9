#!/usr/bin/env python3
"""Measure the gain of learning over rootSIFT in searches for held-out scenes.

The scenes of all sets are assigned to folds. For each fold a descriptor is learnt from the photos of all other scenes,
without labels, and the queries of its own scenes search all photos of their set. The table has mAP over all queries,
and the difference from rootSIFT as the mean over scenes with its standard error, which shows whether a method is
better; figures on training photos are biased.

The sets are in the folder of CAIRN_DATASETS: those of retrieval_table.py, including "hard" and "solid". Results in the
work folder are reused, so a stopped run can be resumed. With --fold only some folds are measured; each takes about as
long as learning from their photos and indexing all sets once.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from eval.tables.cross_validation import Recipe, RecipeMeasure, cross_validate
from eval.tables.folds import Fold, find_scenes, make_folds, queries_of
from eval.tables.retrieval import Measurement, markdown
from eval.tables.sets import HARD, SOLID, RetrievalSet, find_set
from index.errors import CairnError
from learning.convex.stages import STAGES
from learning.latent.descriptor import UnlabelledOptions
from learning.library.from_photos import STEPS, usual_geometry
from learning.mining.mining import GEOMETRIES, MiningOptions
from retrieval.collection.options import CollectionOptions
from retrieval.commands.console import progress_bars
from retrieval.commands.options import cores
from retrieval.descriptors.learnt import BASES
from retrieval.features.options import FeatureOptions
from retrieval.library.progress import INDEXING
from retrieval.photos.listing import list_photos
from retrieval.regions.options import RegionOptions
from retrieval.search.engines.registry import ENGINES

DEFAULT_RECIPES = ("white=rootsift:whitening",)
UNLABELLED = "unlabelled"
SHARED = ("immpairs_0007", "immpairs_0008")  # unlabelled photos of a place in landmarks


def find_sets(names: Sequence[str] | None) -> tuple[Path, list[RetrievalSet]]:
    """Find the folder of the sets, and sets by name."""
    root = os.environ.get("CAIRN_DATASETS")
    if not root:
        raise CairnError("Set CAIRN_DATASETS to the folder of photos.")
    default = ["landmarks", "paintings", HARD, SOLID]
    return Path(root), [find_set(Path(root), name) for name in dict.fromkeys(names or default)]


def recipe(text: str, seed: int) -> Recipe:
    """Read LABEL=BASE:STAGE:GEOMETRY."""
    label, learnt_base, way = text.partition("=")
    base, _, rest = way.partition(":")
    stage, _, geometry = rest.partition(":")
    stage = stage or "both"
    geometry = geometry or usual_geometry(stage)
    if not learnt_base or base not in BASES or stage not in STAGES or geometry not in GEOMETRIES:
        known = [", ".join(names) for names in (BASES, STAGES, GEOMETRIES)]
        raise CairnError(f"--learn {text}: give LABEL=BASE:STAGE:GEOMETRY, of {'; '.join(known)}.")
    learning = UnlabelledOptions(base=base, stage=stage, seed=seed)
    return Recipe(label, learning, MiningOptions(geometry=geometry, seed=seed))


def choose_folds(arguments: argparse.Namespace, root: Path, sets: Sequence[RetrievalSet]) -> list[Fold]:
    """Assign the scenes to folds, and choose the folds to measure."""
    always: list[Path] = []
    if arguments.with_unlabelled:
        always = [path for _, path in list_photos([root / UNLABELLED]) if path.stem not in SHARED]
    folds = make_folds(find_scenes(sets), arguments.folds, arguments.seed, always)
    wanted = range(arguments.folds) if arguments.fold is None else sorted(set(arguments.fold))
    if not all(0 <= number < arguments.folds for number in wanted):
        raise CairnError(f"--fold: choose from 0 to {arguments.folds - 1}.")
    return [folds[number] for number in wanted]


def print_folds(folds: Sequence[Fold], sets: Sequence[RetrievalSet]) -> None:
    """Print the number of training photos of each fold, and of its queries in each set."""
    rows = [
        [
            str(fold.number),
            str(len(fold.training)),
            str(len(fold.tested)),
            *(str(len(queries_of(fold.tested, one))) for one in sets),
        ]
        for fold in folds
    ]
    print(markdown(["fold", "photos to learn from", "scenes", *(f"queries of {one.name}" for one in sets)], rows))


def print_table(measured: Sequence[RecipeMeasure]) -> None:
    """Print a row for each recipe and engine: a difference for each set, and their mean."""
    sets = list(dict.fromkeys(one.photos for one in measured))
    rows = []
    for label, engine in dict.fromkeys((one.recipe, one.engine) for one in measured):
        of = {one.photos: one for one in measured if (one.recipe, one.engine) == (label, engine)}
        cells = [cell_text(of[name]) if name in of else "–" for name in sets]
        means = [one.difference.mean for one in of.values()]
        errors = [one.difference.error for one in of.values()]
        # The means of sets are treated as independent, which hard and landmarks are not.
        whole = f"{100 * np.mean(means):+.2f} ± {100 * np.sqrt(np.square(errors).sum()) / len(errors):.2f}"
        rows.append([label, engine, *cells, whole])
    print(markdown(["learnt", "engine", *(f"{name}: mAP, difference" for name in sets), "mean of sets"], rows))
    for one in measured:
        lost = ", ".join(f"{name} {100 * value:+.1f}" for name, value in one.difference.worst)
        if lost:
            print(f"\n{one.recipe}, {one.engine}, {one.photos} loses most by {lost}")


def cell_text(one: RecipeMeasure) -> str:
    """Format mAP without and with learning in percent, and the mean difference over scenes with its standard error."""
    difference = one.difference
    return (
        f"{100 * one.reference:.1f} → {100 * one.learnt:.1f}, {100 * difference.mean:+.2f} ± "
        f"{100 * difference.error:.2f} ({difference.scenes} scenes)"
    )


def main() -> None:
    """Learn, measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--set", action="append", help=f"may be repeated [landmarks, paintings, {HARD}, {SOLID}]")
    parser.add_argument(
        "--learn",
        action="append",
        metavar="LABEL=BASE:STAGE:GEOMETRY",
        help=f"may be repeated [{', '.join(DEFAULT_RECIPES)}]",
    )
    parser.add_argument("--engine", action="append", choices=ENGINES, help="may be repeated [tf-idf, tf-idf-sp]")
    parser.add_argument("--folds", type=int, default=5, help="into how many parts the scenes are dealt out [5]")
    parser.add_argument("--fold", type=int, action="append", help="measure this one alone, counted from 0")
    parser.add_argument(
        "--with-unlabelled", action="store_true", help="learn from all unlabelled photos too that show no tested scene"
    )
    parser.add_argument("--max-features", type=int, default=0, help="of a photo that is searched, at most; 0: all [0]")
    parser.add_argument("--turns", type=int, default=8, help="turns of a query [8]")
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn [0]")
    parser.add_argument("--list", action="store_true", help="print the folds, and stop")
    parser.add_argument("--json", action="store_true", help="print a JSON object for each figure instead of the table")
    parser.add_argument("--work", type=Path, default=Path("cairn-folds"), help="folder of all that is kept")
    parser.add_argument("--workers", type=int, default=0, help="processes; 0: one a core")
    arguments = parser.parse_args()
    try:
        root, sets = find_sets(arguments.set)
        folds = choose_folds(arguments, root, sets)
        if arguments.list:
            print_folds(folds, sets)
            return
        recipes = [recipe(text, arguments.seed) for text in arguments.learn or DEFAULT_RECIPES]
        features = FeatureOptions(RegionOptions(max_features=arguments.max_features))
        options = CollectionOptions(
            descriptor="rootsift", words=0, seed=arguments.seed, features=features, signature="none"
        )
        engines = dict.fromkeys(arguments.engine or ["tf-idf", "tf-idf-sp"])
        cells = [Measurement(photos, photos, options, engine, arguments.turns) for photos in sets for engine in engines]
        with progress_bars(False, {**INDEXING, **STEPS, "queries": "Queries"}) as progress:
            workers = arguments.workers or cores()
            measured = cross_validate(recipes, folds, cells, arguments.work, workers=workers, progress=progress)
    except CairnError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("Stopped; the same command goes on.", file=sys.stderr)
        sys.exit(130)
    if arguments.json:
        for one in measured:
            known = one.difference.error if np.isfinite(one.difference.error) else None  # of several scenes
            print(json.dumps({**asdict(one), "difference": {**asdict(one.difference), "error": known}}))
        return
    print_table(measured)


if __name__ == "__main__":
    main()
