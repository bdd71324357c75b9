#!/usr/bin/env python3
"""Give every reader of files damaged and hostile ones, and tell which are not refused as they should be.

Each input is a mutation of a sound file, and follows from the target's name, the seed and its number alone. It is read
in a process with limits on memory and time. A finding is the end of that process by a signal, a limit that is reached,
any error but a CairnError, or a file that is accepted though what it holds does not fit together.

usage: scripts/fuzz.py [--target NAME]... [--runs N] [--seed S] [--work DIR] [--minutes M]
       scripts/fuzz.py --target NAME --only NUMBER [--seed S]

With --work, findings are kept in DIR (findings.jsonl and the files), and a run that was stopped goes on. With --only,
one input is read in this process, for a debugger or a traceback. Exit code 1 where there is a finding.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TextIO

ROOT = Path(__file__).resolve().parent.parent
# One thread: each takes address space, and small work is slow in several.
LIBRARIES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
for variable in LIBRARIES:
    os.environ.setdefault(variable, "1")
sys.path.insert(0, str(ROOT))

MEMORY = 768 << 20  # bytes of address space beyond what sound files need
GROWTH = 64 << 20  # bytes that may be resident beyond what was before a file is read
CPU_SECONDS = 10.0  # of processor time an input
WALL_SECONDS = 120.0  # an input, where the machine is busy or nothing is done
LONGEST_MESSAGE = 600  # characters, without the paths
_SEEN = 3  # findings of one kind that are told


@dataclass
class Tally:
    """What came of the inputs of a target."""

    inputs: int = 0
    accepted: int = 0
    refused: int = 0
    findings: int = 0
    slowest: float = 0.0  # seconds of processor time that an input took
    growth: int = 0  # bytes that became resident while an input was read, at most
    seconds: float = 0.0
    kinds: dict[str, int] = field(default_factory=dict)  # findings by kind


# ------------------------------------------------------------------------------------------------------- the child


def _work(name: str, seed: int, start: int, stop: int) -> None:
    """Read the inputs of a range, and tell of each on standard output in a line."""
    from tests.support.fuzz_targets import TARGETS, write

    target = TARGETS[name]
    samples = target.samples()
    tell = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # libraries print on it
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for sample in samples:  # so that all is imported, and what sound files need is known
            with _fresh(folder / "sound") as there:
                write(sample, there)
                if target.sign:
                    target.sign(there)
                target.read(there)
        _limit_memory()
        for number in range(start, stop):
            _tell(tell, {"begin": number})
            used = time.process_time()
            with _fresh(folder / "input") as there:
                write_input(name, samples, seed, number, there)
                before = _resident()
                _resident_peak()
                found = outcome(name, there)
                grown = max(_resident_peak() - before, 0)
            if "finding" not in found and grown > GROWTH:
                found = {"finding": f"memory: {grown >> 20} MB"}
            _tell(tell, {"end": number, "seconds": time.process_time() - used, "growth": grown, **found})


def write_input(name: str, samples: list[dict[str, bytes]], seed: int, number: int, folder: Path) -> None:
    """Write an input's files into an empty folder."""
    import numpy as np

    from tests.support.fuzz_targets import TARGETS, draw, write

    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), number])
    write(draw(samples, rng), folder)
    sign = TARGETS[name].sign
    if sign is not None and rng.random() < 0.7:
        try:
            sign(folder)
        except Exception:  # too damaged to be signed
            return


def outcome(name: str, folder: Path) -> dict[str, Any]:
    """Read an input."""
    import numpy as np

    from index.errors import CairnError
    from tests.support.fuzz_targets import TARGETS

    try:
        with np.errstate(all="ignore"):
            TARGETS[name].read(folder)
    except CairnError as error:
        told = str(error).replace(str(folder), "FOLDER")
        if _caused_by_memory(error):
            return {"finding": "memory: an allocation was refused", "detail": told}
        if len(told) > LONGEST_MESSAGE or not told.isprintable():
            return {
                "finding": f"message: {len(told)} characters",
                "detail": told[:300].encode("ascii", "replace").decode(),
            }
        return {"refused": True}
    except BaseException as error:
        frames = _frames(error)
        return {"finding": f"{type(error).__name__} at {frames[-1] if frames else '?'}", "detail": str(error)[:300]}
    return {"accepted": True}


def _caused_by_memory(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return False


def _frames(error: BaseException) -> list[str]:
    """Where in the project an error came from, the innermost last."""
    found, trace = [], error.__traceback__
    while trace is not None:
        path = Path(trace.tb_frame.f_code.co_filename)
        if path.is_relative_to(ROOT):
            found.append(f"{path.relative_to(ROOT)}:{trace.tb_frame.f_code.co_name}")
        trace = trace.tb_next
    return found


def _tell(pipe: TextIO, line: dict[str, Any]) -> None:
    pipe.write(json.dumps(line) + "\n")
    pipe.flush()


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _resident() -> int:
    """Bytes that are resident."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _resident_peak() -> int:
    """Most bytes that were resident since the last call."""
    status = Path("/proc/self/status").read_text()
    peak = int(status.split("VmHWM:")[1].split()[0]) * 1024
    Path("/proc/self/clear_refs").write_text("5")
    return peak


class _fresh:
    """An empty folder, for a while."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> Path:
        self.folder.mkdir()
        return self.folder

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


# ------------------------------------------------------------------------------------------------------ the parent


def child_command(name: str, seed: int, start: int, stop: int) -> list[str]:
    """Give the command that reads the inputs of a range."""
    command = [sys.executable, __file__, "--child", "--target", name, "--seed", str(seed)]
    return [*command, "--start", str(start), "--runs", str(stop)]


def fuzz(name: str, seed: int, start: int, stop: int, deadline: float = float("inf")) -> Iterator[dict[str, Any]]:
    """Read the inputs of a range in processes of their own; a process that ends before its work is done is replaced.

    Yields
    ------
    dict
        For each input its number, and what came of it: ``accepted``, ``refused`` or ``finding``.
    """
    while start < stop and time.monotonic() < deadline:
        command = child_command(name, seed, start, stop)
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT) as child:
            begun = -1
            for line in _lines(child):
                if "begin" in line:
                    begun = line["begin"]
                elif "end" in line:
                    start = line["end"] + 1
                    yield line
                    if time.monotonic() > deadline:
                        child.kill()
                        return
                else:  # it reached a limit of time
                    child.kill()
                    start = begun + 1
                    yield {"end": begun, "finding": line["limit"]}
                    break
            code = child.wait()
        if start <= begun:
            how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            yield {"end": begun, "finding": f"crash: {how}"}
            start = begun + 1
        elif begun < 0:
            raise SystemExit(f"The samples of {name} are not read as they should be: exit code {code}.")


def _lines(child: subprocess.Popen[bytes]) -> Iterator[dict[str, Any]]:
    """Lines of a child, and at last {"limit": …} where an input takes too long."""
    assert child.stdout is not None
    descriptor, rest = child.stdout.fileno(), b""
    since, used = time.monotonic(), _cpu(child.pid)
    while True:
        if select.select([descriptor], [], [], 1.0)[0]:
            read = os.read(descriptor, 1 << 16)
            if not read:
                return
            *lines, rest = (rest + read).split(b"\n")
            for line in lines:
                yield json.loads(line)
            since, used = time.monotonic(), _cpu(child.pid)
        elif _cpu(child.pid) - used > CPU_SECONDS:
            yield {"limit": f"hang: {CPU_SECONDS:g} s of processor time"}
        elif time.monotonic() - since > WALL_SECONDS:
            yield {"limit": f"hang: {WALL_SECONDS:g} s"}


def _cpu(process: int) -> float:
    """Seconds of processor time that a process has used."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _keep(work: Path, name: str, seed: int, found: dict[str, Any]) -> None:
    """Write a finding, and the files that it takes."""
    from tests.support.fuzz_targets import TARGETS

    folder = work / "findings" / f"{name}-{seed}-{found['end']}"
    if not folder.exists():
        folder.mkdir(parents=True)
        write_input(name, TARGETS[name].samples(), seed, found["end"], folder)
    with (work / "findings.jsonl").open("a") as file:
        file.write(json.dumps({"target": name, "seed": seed, **found}) + "\n")


def run(name: str, seed: int, runs: int, work: Path | None, deadline: float) -> Tally:
    """Read inputs of a target, and tell what came of them; with a folder, go on where the last run stopped."""
    kept = work / f"{name}-{seed}.json" if work else None
    tally = Tally(**json.loads(kept.read_text())) if kept and kept.is_file() else Tally()
    began = time.monotonic() - tally.seconds
    for found in fuzz(name, seed, tally.inputs, runs, deadline):
        tally.inputs = found["end"] + 1
        tally.accepted += "accepted" in found
        tally.refused += "refused" in found
        tally.slowest = max(tally.slowest, found.get("seconds", 0.0))
        tally.growth = max(tally.growth, found.get("growth", 0))
        tally.seconds = time.monotonic() - began
        if "finding" in found:
            tally.findings += 1
            kind = found["finding"]
            tally.kinds[kind] = tally.kinds.get(kind, 0) + 1
            if tally.kinds[kind] <= _SEEN:
                print(f"{name} {found['end']}: {kind} {found.get('detail', '')}", file=sys.stderr)
                if work:
                    _keep(work, name, seed, found)
        if kept and (tally.inputs % 100 == 0 or "finding" in found):
            kept.write_text(json.dumps(asdict(tally)))
    if kept:
        kept.write_text(json.dumps(asdict(tally)))
    return tally


def main() -> int:
    """Read the command line."""
    from tests.support.fuzz_targets import TARGETS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", action="append", choices=sorted(TARGETS), help="which reader; all if left out")
    parser.add_argument("--runs", type=int, default=1000, help="inputs a target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=Path, help="folder in which findings and progress are kept")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop each target after so long")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="read this input alone, in this process")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--start", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    names = arguments.target or list(TARGETS)
    if arguments.child:
        _work(names[0], arguments.seed, arguments.start, arguments.runs)
        return 0
    if arguments.only is not None:
        with tempfile.TemporaryDirectory() as folder:
            write_input(names[0], TARGETS[names[0]].samples(), arguments.seed, arguments.only, Path(folder))
            TARGETS[names[0]].read(Path(folder))
        return 0
    if arguments.work:
        arguments.work.mkdir(parents=True, exist_ok=True)
    found = False
    for name in names:
        if not TARGETS[name].samples():
            continue
        deadline = time.monotonic() + 60 * arguments.minutes
        tally = run(name, arguments.seed, arguments.runs, arguments.work, deadline)
        print(json.dumps({"target": name, **asdict(tally)}), flush=True)
        found |= tally.findings > 0
    return int(found)


if __name__ == "__main__":
    sys.exit(main())
