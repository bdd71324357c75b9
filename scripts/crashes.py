#!/usr/bin/env python3
"""Kill commands that change a collection, and make their writes fail, at random moments; report data loss.

Afterwards the collection must open and be intact, with all committed data; searches must work, and repeating the
command must give the result of an undisturbed run, to the last bit. A failing write must end the command with one
sentence and exit code 2. strace hits exact system calls; without it, processes are killed at random times, and no
writes fail.

With --work, tries are recorded in DIR (tries.jsonl), and a stopped campaign is resumed. Exit code 1 if there is a
finding.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# Threads do not survive a fork, and small work is slow in several.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
sys.path.insert(0, str(ROOT))


def main() -> int:
    """Run the campaign."""
    from tests.support import crashes

    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--kills", type=int, default=100, help="processes to kill")
    parser.add_argument("--failures", type=int, default=100, help="writes to let fail")
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn")
    parser.add_argument("--operation", action="append", choices=crashes.OPERATIONS, help="only this; may be repeated")
    parser.add_argument("--only", type=int, help="one try alone, by its number")
    parser.add_argument("--work", type=Path, help="folder in which the campaign is kept")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    operations = tuple(options.operation or crashes.OPERATIONS)
    traced = shutil.which("strace") is not None
    if not traced:
        print(
            "strace is not installed: processes are killed at moments of time only, and no writes fail.",
            file=sys.stderr,
        )
    numbers = range(options.kills + (options.failures if traced else 0))
    if options.only is not None:
        numbers = range(options.only, options.only + 1)

    log = options.work / "tries.jsonl" if options.work and options.only is None else None
    done = _read(log, options.seed, options.kills, operations) if log else {}
    scenes: dict[str, crashes.Scene] = {}
    with tempfile.TemporaryDirectory() as place:
        for number in numbers:
            if number in done:
                continue
            one = crashes.choose(options.seed, number, options.kills, operations)
            if one.operation not in scenes:
                scenes[one.operation] = crashes.Scene(Path(place) / one.operation, one.operation)
            outcome = scenes[one.operation].attempt(one)
            done[number] = crashes.record(number, one, outcome)
            if log:
                with log.open("a") as file:
                    file.write(json.dumps(done[number]) + "\n")
            for finding in outcome.findings:
                print(f"{number}: {one.operation}, {one.way} {outcome.call} {one.error}: {finding}", file=sys.stderr)
    tries = [done[number] for number in numbers]
    summary = _summary(tries)
    if options.json:
        print(json.dumps(summary))
    else:
        for operation, counts in summary["operations"].items():
            print(f"{operation:8} " + ", ".join(f"{count} {what}" for what, count in counts.items()))
        print(f"{summary['killed']} killed, {summary['failed']} with failing writes, {summary['findings']} findings")
    return 1 if summary["findings"] else 0


def _read(log: Path, seed: int, kills: int, operations: tuple[str, ...]) -> dict[int, dict[str, Any]]:
    """The tries of a stopped campaign; empty if its settings differ."""
    log.parent.mkdir(parents=True, exist_ok=True)
    plan = {"seed": seed, "kills": kills, "operations": list(operations)}
    lines = log.read_text().splitlines() if log.exists() else []
    if not lines or json.loads(lines[0]) != plan:
        log.write_text(json.dumps(plan) + "\n")
        return {}
    tries = [json.loads(line) for line in lines[1:] if line.endswith("}")]
    return {one["number"]: one for one in tries}


def _summary(tries: list[dict[str, Any]]) -> dict[str, Any]:
    operations: dict[str, dict[str, int]] = {}
    for one in tries:
        counts = operations.setdefault(one["operation"], {"killed": 0, "refused": 0, "completed": 0, "findings": 0})
        counts[{0: "completed", 2: "refused"}.get(one["code"], "killed")] += 1
        counts["findings"] += bool(one["findings"])
    killing = [one for one in tries if not one["error"]]
    return {
        "killed": len(killing),
        "failed": len(tries) - len(killing),
        "findings": sum(bool(one["findings"]) for one in tries),
        "operations": operations,
    }


if __name__ == "__main__":
    sys.exit(main())
