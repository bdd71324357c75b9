"""What whole processes cost from the first second on, with functions compiled before and without.

Run as `python -m tests.benchmarks.bench_first_second --photos DIR`; it never gates. Figures are processor time, of
children too, over that of a process that imports NumPy, OpenCV and SQLAlchemy, which no command can spare (L), and over
that of one that runs OpenCV's SIFT on the first photo (R, OpenCV's import included). Both are measured next to each
command; the median of its runs is told. Functions are kept in a folder of this run, which is empty at first, so that
the first commands compile what they need. `--functions` tells what each module of compiled functions takes to compile,
and to load once that was done.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from index.files.names import CACHE_VARIABLE
from retrieval.library.compiled import COMPILED
from tests.support.paths import ROOT

PHOTOS = 22
LIBRARIES = "import numpy, cv2, sqlalchemy"
SIFT = "import cv2, sys; cv2.SIFT_create().detectAndCompute(cv2.imread(sys.argv[1], cv2.IMREAD_GRAYSCALE), None)"
LOAD = (
    "import importlib, sys, time, index.kernels.compiling; before = time.process_time(); "
    "importlib.import_module(sys.argv[1]); print(time.process_time() - before)"
)


def seconds(*arguments: object, said: list[str] | None = None, **environment: str) -> float:
    """Processor time of a Python process and its children; what it prints is added to a list."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if said is not None:
        said.append(done.stdout)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(photos: Sequence[Path], runs: int) -> dict[str, Any]:
    """Each command's seconds, and its ratios to both peers."""
    with tempfile.TemporaryDirectory(prefix="cairn-bench-") as temporary:
        scratch = Path(temporary)
        kept = {CACHE_VARIABLE: str(scratch / "kept")}
        query = ("-m", "cairn", "query", scratch / "first.cairn", photos[0])
        commands = [
            ("first index", 1, ("-m", "cairn", "index", scratch / "first.cairn", *photos, "--workers", 1)),
            ("first query", 1, query),
            ("index", 1, ("-m", "cairn", "index", scratch / "second.cairn", *photos, "--workers", 1)),
            ("query", runs, query),
            ("info", runs, ("-m", "cairn", "info", scratch / "first.cairn")),
        ]
        facts = {}
        for name, times, command in commands:
            rows = []
            for _ in range(times):
                peers = seconds("-c", LIBRARIES), seconds("-c", SIFT, photos[0])
                taken = seconds(*command, **kept)
                rows.append((taken, taken / peers[0], taken / peers[1]))
            facts[name] = dict(zip(("seconds", "L", "R"), map(statistics.median, zip(*rows, strict=True)), strict=True))
        return facts


def functions() -> dict[str, Any]:
    """Seconds that each module of compiled functions takes to compile, and to load."""
    facts = {}
    with tempfile.TemporaryDirectory(prefix="cairn-bench-") as kept:
        for module in COMPILED:
            said: list[str] = []
            for _ in range(2):
                seconds("-c", LOAD, module, said=said, **{CACHE_VARIABLE: kept})
            facts[module] = dict(zip(("compiled", "loaded"), map(float, said), strict=True))
    return facts


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=Path, required=True, help=f"a folder of photos; {PHOTOS} of them are indexed")
    parser.add_argument("--runs", type=int, default=5, help="runs of commands that compile nothing")
    parser.add_argument("--functions", action="store_true", help="tell of each module of compiled functions instead")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    photos = sorted(arguments.photos.resolve().glob("*.jpg"))[:PHOTOS]
    facts = functions() if arguments.functions else measure(photos, arguments.runs)
    if arguments.json:
        print(json.dumps(facts))
        return
    for name, figures in facts.items():
        print(f"{name}: {', '.join(f'{figure} {value:.2f}' for figure, value in figures.items())}")


if __name__ == "__main__":
    main()
