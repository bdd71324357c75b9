#!/usr/bin/env python3
"""Measure learnt descriptors against designed and released ones on labelled patches.

Builds labelled patches from the photos that CAIRN_DATASETS points to, learns on some sequences and scenes, and tests
on the others. Two trainings, three tests each, so that every sequence and scene is tested with models not learnt from
it. Takes half an hour the first time, with --papers three hours on a core; results in the work folder are reused.
Further arguments go to cairn learn descriptor; use a separate work folder for each choice of them.
"""

import argparse
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from peers import PEERS, find

from eval.patches import evaluate_patches
from learning.measures.roc import fpr95

ROOT = Path(__file__).resolve().parent.parent
# Points of two photos; a wide pair sees a point from directions at least 60 degrees apart.
SCENES = {"castle": ("castle_*", 0), "fountain": ("fountain_*", 0)}
WIDE = {"castle-wide": ("castle_*", 60), "fountain-wide": ("fountain_*", 60)}
PLANAR = ("graf", "boat", "wall", "bikes", "ubc")


@dataclass(frozen=True)
class TableSplit:
    """Training and test sets: each test is the pairs of some sets together."""

    name: str
    train: tuple[str, ...]
    tests: dict[str, tuple[str, ...]]


SPLITS = (
    TableSplit(
        "A",
        ("boat", "wall", "fountain"),
        {"graf": ("graf",), "bikes, ubc": ("bikes", "ubc"), "castle wide": ("castle-wide",)},
    ),
    TableSplit(
        "B",
        ("graf", "bikes", "ubc", "castle"),
        {"boat": ("boat",), "wall": ("wall",), "fountain wide": ("fountain-wide",)},
    ),
)
# Name in the table: arguments of cairn learn descriptor, or source and arguments of compression.
LEARNT: dict[str, list[str]] = {
    "whitening <= 128": ["--stage", "whitening", "--dim", "128"],
    "whitening <= 80": ["--stage", "whitening", "--dim", "80"],
    "whitening <= 48": ["--stage", "whitening", "--dim", "48"],
    "whitening <= 32": ["--stage", "whitening", "--dim", "32"],
    "sift whitening <= 80": ["--stage", "whitening", "--base", "sift", "--dim", "80"],
    "pooling <= 640": ["--stage", "pooling", "--max-pooled-dim", "640"],
    "pooling <= 384": ["--stage", "pooling", "--max-pooled-dim", "384"],
    "projection <= 80": ["--stage", "both", "--dim", "80"],
    "projection <= 64": ["--stage", "both", "--dim", "64"],
    "projection <= 48": ["--stage", "both", "--dim", "48"],
    "projection <= 32": ["--stage", "both", "--dim", "32"],
    "rootsift-proj <= 80": ["--base", "rootsift", "--stage", "projection", "--dim", "80"],
    "sift-proj <= 80": ["--base", "sift", "--stage", "projection", "--dim", "80"],
    "rootsift-proj": ["--base", "rootsift", "--stage", "projection", "--dim", "128"],
    "sift-proj": ["--base", "sift", "--stage", "projection", "--dim", "128"],
}
COMPRESSED: dict[str, tuple[str, list[str]]] = {
    "binary 128 bits (of whitening <= 80)": ("whitening <= 80", ["--bits", "128"]),
    "binary 1024 bits (of whitening <= 80)": ("whitening <= 80", ["--bits", "1024"]),
    "product 64 bits (of whitening <= 80)": ("whitening <= 80", ["--product", "64"]),
    "binary 64 bits (of <= 48)": ("projection <= 48", ["--bits", "64"]),
    "binary 128 bits (of <= 64)": ("projection <= 64", ["--bits", "128"]),
    "binary 1024 bits (of <= 80)": ("projection <= 80", ["--bits", "1024"]),
    "frame 128 bits (of <= 64)": ("projection <= 64", ["--bits", "128", "--method", "frame"]),
    "frame 1024 bits (of <= 80)": ("projection <= 80", ["--bits", "1024", "--method", "frame"]),
    "LSH 128 bits (of <= 64)": ("projection <= 64", ["--bits", "128", "--method", "lsh"]),
    "product 64 bits (of <= 64)": ("projection <= 64", ["--product", "64"]),
    "product 1024 bits (of <= 80)": ("projection <= 80", ["--product", "1024"]),
}
# Of Powell's method: an evaluation of the area takes seconds.
QUICK = ["--powell-pairs", "4000", "--evaluations", "200"]
# Arguments of cairn learn blocks, and of cairn learn boosted with the row that provides weak learners, if any.
BLOCKS: dict[str, list[str]] = {
    "T1b-S2-17": ["--blocks", "T1b-S2-17"],
    "T3h-S4-25": ["--blocks", "T3h-S4-25"],
    "T3h-S2-17": ["--blocks", "T3h-S2-17"],
    "T3j-S2-17": ["--blocks", "T3j-S2-17"],
    "T3h, LPP (non-parametric)": ["--preset", "non-parametric"],
    "T3h-S4-25, PCA (composite)": ["--blocks", "T3h-S4-25", "--embedding", "pca", "--dim", "30"],
    "T3h-S4-25, PCA 64 (composite)": ["--blocks", "T3h-S4-25", "--embedding", "pca", "--dim", "64"],
}
BOOSTED: dict[str, tuple[str | None, list[str]]] = {
    "BGM-512": (None, ["--kind", "bgm", "--learners", "512"]),
    "BGM-256": ("BGM-512", ["--kind", "bgm", "--learners", "256"]),
    "L-BGM-64": ("BGM-512", ["--kind", "lbgm", "--dim", "64"]),
    "BGM-PCA-64": ("BGM-512", ["--kind", "bgm-pca", "--dim", "64"]),
    "L-BGM-Diag-64": ("BGM-512", ["--kind", "lbgm-diag", "--dim", "64"]),
}


def main() -> None:
    """Build, learn, test, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, default=Path("cairn-patches"), help="folder of sets and descriptors")
    parser.add_argument("--sets", type=Path, help="folder of sets, built where they are missing [WORK/sets]")
    parser.add_argument("--only", action="append", help="only this row of the table; may be repeated")
    parser.add_argument("--papers", action="store_true", help="rows of building blocks and boosting instead")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    parser.add_argument("learning", nargs="*", help="further arguments of cairn learn descriptor")
    arguments = parser.parse_args()
    photos = os.environ.get("CAIRN_DATASETS")
    if not photos:
        sys.exit("Set CAIRN_DATASETS to the folder of photos.")
    sets, models = arguments.sets or arguments.work / "sets", arguments.work / "models"
    for folder in (sets, models):
        folder.mkdir(parents=True, exist_ok=True)
    learnt = [*BLOCKS, *BOOSTED] if arguments.papers else [*LEARNT, *COMPRESSED]
    wanted = arguments.only or ["sift", "rootsift", *PEERS, *learnt]
    build(Path(photos), sets)
    table: dict[str, dict[str, float]] = {}
    dims: dict[str, list[str]] = {}
    for split in SPLITS:
        for name in wanted:
            is_learnt = name in {**LEARNT, **COMPRESSED, **BLOCKS, **BOOSTED}
            descriptor = find(str(learn(name, split, sets, models, arguments.learning)) if is_learnt else name)
            dims.setdefault(name, []).append(f"{descriptor.dim}")
            for test, folders in split.tests.items():
                reports = [evaluate_patches(sets / folder, descriptor, "test") for folder in folders]
                distances = np.concatenate([report.distances for report in reports])
                match = np.concatenate([report.match for report in reports])
                table.setdefault(name, {})[test] = 100 * fpr95(distances, match)
                print(f"{split.name} {name} {test} {table[name][test]:.2f}", file=sys.stderr, flush=True)
    if arguments.json:
        print(json.dumps({"fpr95": table, "dims": dims}, indent=2))
        return
    tests = [test for split in SPLITS for test in split.tests]
    print(f"| descriptor | dimensions | {' | '.join(tests)} | mean |")
    print(f"|---|---|{'---|' * (len(tests) + 1)}")
    for name, row in table.items():
        figures = " | ".join(f"{row[test]:.2f}" for test in tests)
        size = " / ".join(dict.fromkeys(dims[name]))
        print(f"| {name} | {size} | {figures} | {np.mean([row[test] for test in tests]):.2f} |")


def build(photos: Path, sets: Path) -> None:
    """Build the sets that are missing."""
    matching = photos / "matching"
    for name in PLANAR:
        if not (sets / name).exists():
            cairn("patches", "build", sets / name, matching / "vgg_affine" / name)
    for name, (pattern, angle) in {**SCENES, **WIDE}.items():
        if not (sets / name).exists():
            sizes = ["--train", 0, "--validation", 0] if angle else []
            source = [matching / "strecha_points.npz", "--photos", photos / "landmarks" / "images"]
            cairn("patches", "build", sets / name, *source, "--images", pattern, "--min-angle", angle, *sizes)


def learn(name: str, split: TableSplit, sets: Path, models: Path, extra: list[str]) -> Path:
    """Learn or compress a descriptor, if it is missing; return its file."""
    file = models / f"{split.name} {name}.npz".replace("<=", "le").replace(",", "").replace(" ", "-")
    if file.exists():
        return file
    if name in COMPRESSED:
        parent, options = COMPRESSED[name]
        cairn("compress", learn(parent, split, sets, models, extra), "--out", file, *options)
        return file
    sources = [sets / one for one in split.train]
    if name in BLOCKS:
        # Rows of the same blocks share the parameter search, which is most of the work.
        work = ["--work", models / f"{split.name}-{BLOCKS[name][1]}-work"]
        cairn("learn", "blocks", *sources, "--out", file, *work, *QUICK, *BLOCKS[name], *extra)
    elif name in BOOSTED:
        weak, options = BOOSTED[name]
        weak_arguments = ["--from", learn(weak, split, sets, models, extra)] if weak else []
        cairn("learn", "boosted", *sources, "--out", file, *weak_arguments, *options, *extra)
    else:
        work = ["--work", models / f"{split.name}-work"]
        cairn("learn", "descriptor", *sources, "--out", file, *work, *LEARNT[name], *extra)
    return file


def cairn(*arguments: object) -> None:
    """Run a command of Cairn."""
    subprocess.run([sys.executable, str(ROOT / "cairn.py"), *map(str, arguments)], check=True, stdout=sys.stderr)


if __name__ == "__main__":
    main()
