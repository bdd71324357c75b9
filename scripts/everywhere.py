#!/usr/bin/env python3
"""Check that results do not depend on a processor's rounding: the same work with other linear algebra, compilers and
threads.

In each environment a small collection is indexed, with three features to a word, and searched by every engine. The
results of each step must be the same to the bit; scores to six digits. The active kernels of linear algebra are read
back and printed: a named one runs only if the processor has its instructions. Without --quick, the tests that are
sensitive to rounding also run in each environment, and so does `cairn demo`: with equal numbers of photos and groups,
and mAP within 0.005.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
# Instruction sets with special code in NumPy, if the processor has them.
_OF_NUMPY: list[str] = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])


def _is_avx512(name: str) -> bool:
    return "AVX512" in name or name == "X86_V4"


ENVIRONMENTS: dict[str, dict[str, str]] = {
    "as it is": {},
    **{
        f"linear algebra for {kernel}": {"OPENBLAS_CORETYPE": kernel}
        for kernel in ("Nehalem", "Sandybridge", "Haswell", "Zen", "SkylakeX")
    },
    "NumPy without AVX-512": {"NPY_DISABLE_CPU_FEATURES": " ".join(name for name in _OF_NUMPY if _is_avx512(name))},
    "NumPy as on an old processor": {"NPY_DISABLE_CPU_FEATURES": " ".join(_OF_NUMPY)},
    **{
        f"{number} threads": dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), number)
        for number in ("1", "2", "4")
    },
    "compiled for any processor": {"NUMBA_CPU_NAME": "generic"},
}
QUICK = ("as it is", "linear algebra for Nehalem", "linear algebra for Haswell", "4 threads")
SENSITIVE = (
    "tests/index/kernels",
    "tests/index/hamming",
    "tests/index/scanning",
    "tests/index/test_neighbours.py",
    "tests/learning/latent",
    "tests/retrieval/indexing/test_retraining.py",
    "tests/retrieval/matching",
    "tests/retrieval/search/engines/test_signatures.py",
    "tests/retrieval/search/test_searcher.py",
    "tests/whole/test_rankings.py",
)
SAME_MAP = 0.005
ENGINES = ("tf-idf-sp", "signatures-sp", "asmk-sp", "raw")
_CANNOT = (-4, 132)  # exit codes of a process after an illegal instruction


def main() -> None:
    """Print a table with a row for each environment; exit with 1 if results differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few environments, and no tests")
    parser.add_argument("--digest", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.digest:
        print(json.dumps(digest()))
        return
    wrong = 0
    expected: dict[str, Any] = {}
    demo: dict[str, Any] = {}
    print("| environment | kernels of linear algebra | the same | tests | demo |\n|---|---|---|---|---|")
    for name in QUICK if arguments.quick else ENVIRONMENTS:
        variables = os.environ | ENVIRONMENTS[name]
        ran = subprocess.run(
            [sys.executable, "-m", "scripts.everywhere", "--digest"], cwd=ROOT, env=variables, stdout=subprocess.PIPE
        )
        if ran.returncode in _CANNOT:
            print(f"| {name} | this processor cannot | | | |", flush=True)
            continue
        result = json.loads(ran.stdout) if ran.returncode == 0 else {"kernels": ["failed"]}
        kernels = ", ".join(result.pop("kernels"))
        expected = expected or result
        others = [step for step in expected if not same(result.get(step), expected[step])]
        cells = [f"not {', '.join(others)}" if others else "yes"]
        if not arguments.quick:
            failed, closing = run_tests(variables)
            demonstration = run_demo(variables)
            demo = demo or demonstration
            alike = len(demonstration) == 3 and are_near(demonstration, demo)
            cells += [closing, f"{'as before' if alike else 'not as before'}: {json.dumps(demonstration)}"]
            wrong += failed + (not alike)
        wrong += bool(others)
        print(f"| {name} | {kernels} | {' | '.join(cells)} |", flush=True)
    sys.exit(min(wrong, 1))


def run_tests(variables: dict[str, str]) -> tuple[bool, str]:
    """Run the tests sensitive to rounding; return whether some failed, and the closing line."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow and not benchmark", "-p", "no:cacheprovider"]
    ran = subprocess.run([*command, "-n", "2", *SENSITIVE], cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True)
    return ran.returncode != 0, ran.stdout.strip().rsplit("\n", 1)[-1].strip("= ")


def run_demo(variables: dict[str, str]) -> dict[str, Any]:
    """Run the demonstration and group its photos; return the available figures."""
    with tempfile.TemporaryDirectory() as scratch:
        figures = cairn(variables, "demo", "--out", scratch)
        groups = cairn(variables, "group", str(Path(scratch) / "demo.cairn"))
    return {name: value for name, value in (figures | groups).items() if name in ("mAP", "groups", "grouped")}


def cairn(variables: dict[str, str], *arguments: str) -> dict[str, Any]:
    """Run a command; return the printed object, or an empty one if it failed."""
    command = [sys.executable, "-m", "cairn", *arguments, "--quiet", "--json"]
    ran = subprocess.run(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE)
    return dict(json.loads(ran.stdout)) if ran.returncode == 0 else {}


def are_near(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two demonstrations have the same groups, and similar figures of each engine."""
    groups = all(one[name] == other[name] for name in ("groups", "grouped"))
    return groups and all(abs(one["mAP"][engine] - other["mAP"][engine]) <= SAME_MAP for engine in one["mAP"])


def same(one: Any, other: Any) -> bool:
    """Whether two results are equal, except for the last of six digits of scores."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) < 1.5e-6
    return bool(one == other)


def digest() -> dict[str, Any]:
    """Index a few photos and search them; return a checksum of each step, and the active kernels of linear algebra."""
    from threadpoolctl import threadpool_info

    from eval.demo import synthetic
    from retrieval.collection.collection import Collection
    from retrieval.collection.options import CollectionOptions
    from retrieval.indexing.adding import index_photos
    from retrieval.photos.options import ImageOptions

    synthetic._OBJECTS = tuple(entry for entry in synthetic._OBJECTS if entry[0] in ("coffee", "coins"))
    steps: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        demo = synthetic.build_demo_collection(Path(scratch) / "photos", views=3, distractors=1)
        steps["photos"] = checksum(path.read_bytes() for path in sorted(demo.images.iterdir()))
        # A word has three features: many coincide with their word's centre, on no side of it. From 2,000 words on,
        # they are looked for by codes.
        options = CollectionOptions(
            keep_descriptors=True, signature="hamming-64", words=2_300, image=ImageOptions(max_side=500)
        )
        with Collection.create(Path(scratch) / "c.cairn", options) as collection:
            index_photos(collection, [demo.images], workers=1)
            images = collection.index.images
            numbers = collection.index.image_numbers.tolist()
            features = [images.features(number) for number in numbers]
            for name in sorted(features[0].columns):
                steps[name] = checksum(one.columns[name].tobytes() for one in features)
            steps["vocabulary"] = checksum([collection.vocabulary.centres.tobytes()])
            steps["words"] = checksum(np.asarray(one.words).tobytes() for one in features)
            steps["signatures"] = checksum(np.ascontiguousarray(images.signatures(one)).tobytes() for one in numbers)
            steps |= {engine: answers(collection, demo.images, engine) for engine in ENGINES}
    kernels = [info.get("architecture", "") for info in threadpool_info() if info["user_api"] == "blas"]
    return {"kernels": sorted(set(kernels)), **steps}


def answers(collection: Any, photos: Path, engine: str) -> list[list[Any]]:
    """Photos found with the first view of each object, by its file: names, scores of six digits, inliers."""
    from retrieval.catalogue.photos import names_in_order
    from retrieval.search.options import SearchOptions
    from retrieval.search.query import QuerySource, extract_query
    from retrieval.search.searcher import Searcher

    options = SearchOptions(engine=engine, turns=1)
    rows: list[list[Any]] = []
    for photo in sorted(photos.glob("*_001.jpg")):
        source = QuerySource(collection.extractor, collection.options.image, photo, None)
        query = extract_query(collection, source, signed=options.signed)
        hits = Searcher(collection, options).search(query.views).hits
        names = collection.catalogue.read(names_in_order, [hit.number for hit in hits])
        rows += [[name, float(hit.score), hit.verification.inliers] for name, hit in zip(names, hits, strict=True)]
    return rows


def checksum(parts: Iterable[bytes]) -> str:
    """SHA-256 of concatenated parts."""
    total = hashlib.sha256()
    for part in parts:
        total.update(part)
    return total.hexdigest()[:16]


if __name__ == "__main__":
    main()
