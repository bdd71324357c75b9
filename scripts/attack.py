#!/usr/bin/env python3
"""Attack Cairn with hostile collections, photos and requests, and report failures.

Collections and job queues are corrupted at random, and commands are run on them (catalogues, segments, queues). Each
must end, with exit code 0 or 1, or 2 and one sentence; none may crash, execute code, or touch files outside the
collection. Hostile photos are indexed among good ones (index), and uploaded by one visitor of a server while another
views pictures, which must stay fast (uploads). Every route is requested by each role, with valid and invalid requests
(routes). Resources are bounded, and everything stays on this machine.

A finding is printed with its case, which --part NAME --only NUMBER repeats. Exit code 1 if there is a finding.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Threads do not survive a fork, and small work is slow in several.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"
sys.path.insert(0, str(ROOT))

# Imports of the commands, once for all of them.
MODULES = ("cairn", "faiss", "numba", "cv2", "scipy.sparse", "sqlalchemy.orm", "alembic", "PIL.Image", "skimage.io")


def main() -> int:
    """Run the campaign."""
    from tests.support import attacks
    from tests.support.busy_server import index_attack, upload_attack

    cases = tuple(attacks.TAMPERING)
    campaigns: dict[str, Callable[[Path, Path, int, int], tuple[list[str], dict[str, float]]]]
    campaigns = {"index": index_attack, "uploads": upload_attack, "routes": _ask_all_routes}
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--part", action="append", choices=(*cases, *campaigns), help="only this; may be repeated")
    parser.add_argument("--count", type=int, help="cases of each part (default: 500, of queues and photos 100)")
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn")
    parser.add_argument("--minutes", type=float, default=60.0, help="after which no more is begun")
    parser.add_argument("--only", type=int, help="one case alone, by its number")
    options = parser.parse_args()
    end, count = time.monotonic() + options.minutes * 60, 0
    with tempfile.TemporaryDirectory() as place:
        os.environ["CAIRN_STATE"] = str(Path(place) / "state")
        world = attacks.World.make(Path(place) / "world", _index)
        for module in MODULES:
            importlib.import_module(module)
        for part in options.part or (*cases, *campaigns):
            if part in campaigns:
                findings, figures = campaigns[part](world.other, Path(place) / part, options.count or 100, options.seed)
                count += len(findings)
                printed = ", ".join(f"{name} {figure:.3g}" for name, figure in figures.items())
                print("\n".join([*(f"{part}: {one}" for one in findings), f"{part}: {printed}"]), flush=True)
                continue
            numbers = (
                range(options.count or (100 if part == "queues" else 500)) if options.only is None else [options.only]
            )
            tried = 0
            for number in numbers:
                if time.monotonic() > end:
                    break
                done, findings = attacks.attack(part, number, options.seed, world)
                tried += 1
                if options.only is not None:
                    print("\n".join(done))
                for finding in findings:
                    count += 1
                    print(f"{part} {number}: {finding}\n    {'; '.join(done)}", flush=True)
            print(f"{part}: {tried} cases", flush=True)
    print(f"{count} findings")
    return 1 if count else 0


def _ask_all_routes(*_: object) -> tuple[list[str], dict[str, float]]:
    """Send ten thousand requests to a server, of every route and every role."""
    tests = [sys.executable, "-m", "pytest", "-q", "-n", "0", "tests/retrieval/web/test_hostile_requests.py"]
    ran = subprocess.run(tests, cwd=ROOT, capture_output=True, text=True)
    return ([ran.stdout[-2000:]] if ran.returncode else []), {"requests": 10_000}


def _index(collection: Path, photos: Path) -> None:
    """Index photos in two segments, one with reclaimable space."""
    from tests.support.attacks import run

    index = ["index", str(collection), "--workers", "1", "--words", "200"]
    first, last = sorted(photos.iterdir())[0], sorted(photos.iterdir())[-1]
    for command in (
        [*index, str(first)],
        [*index, str(photos)],
        ["remove", str(collection), "--for-good", last.name],
        ["group", str(collection)],
    ):
        ended = run(command, photos.parent)
        if ended.code:
            raise RuntimeError(ended.err)
    (photos.parent / "err.txt").unlink()


if __name__ == "__main__":
    sys.exit(main())
