#!/usr/bin/env python3
"""Fuzz all file readers with damaged and hostile files, and report those not refused properly.

Each input is a mutation of a valid file, drawn by Hypothesis, and is read in a process with limits on memory and time.
A finding is the end of that process by a signal, an exceeded limit, any error except a CairnError, or an accepted file
with inconsistent contents. Errors are shrunk to the simplest input.

The files of each finding are stored in a separate folder in DIR/findings. With --read, such a folder is read in this
process, for a debugger or a traceback. Exit code 1 if there is a finding.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# One thread: each takes address space, and small work is slow in several.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
sys.path.insert(0, str(ROOT))

MEMORY = 768 << 20  # bytes of address space beyond the needs of valid files
GROWTH = 64 << 20  # largest growth of resident memory while a file is read, in bytes
CPU_SECONDS = 10.0  # of processor time an input
WALL_SECONDS = 120.0  # of wall-clock time an input, if the machine is busy or the process waits
LONGEST_MESSAGE = 600  # characters, without the paths
BATCH = 500  # inputs of a process
_LIMITS = {signal.SIGPROF: f"hang: {CPU_SECONDS:g} s of processor time", signal.SIGALRM: f"hang: {WALL_SECONDS:g} s"}


# ------------------------------------------------------------------------------------------------------- the child


def read_inputs(name: str, seed: int, runs: int, folder: Path) -> None:
    """Read inputs of a target; the folder holds the files of the last one. Raises AssertionError for a finding."""
    import hypothesis

    from tests.support.fuzz_targets import TARGETS
    from tests.support.fuzzing import Input, inputs

    samples = TARGETS[name].samples()
    for sample in samples:  # so that everything is imported, and the needs of valid files are known
        write_input(name, sample, False, folder)
        TARGETS[name].read(folder)
    limit_memory()

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=runs,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        verbosity=hypothesis.Verbosity.quiet,
    )
    @hypothesis.given(inputs(samples), hypothesis.strategies.sampled_from((True, True, False)))
    def read(sample: Input, sign: bool) -> None:
        write_input(name, sample, sign, folder)
        limit_time(CPU_SECONDS, WALL_SECONDS)
        before = _resident("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")
        finding = finding_of(name, folder)
        grown = _resident("VmHWM") - before
        limit_time(0, 0)
        assert finding is None, finding
        assert grown <= GROWTH, f"memory: {grown >> 20} MB"

    read()


def write_input(name: str, sample: dict[str, bytes], sign: bool, folder: Path) -> None:
    """Write an input's files, removing others, with valid checksums if it is signed."""
    from tests.support.fuzz_targets import TARGETS, write

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write(sample, folder)
    signed = TARGETS[name].sign
    if sign and signed is not None:
        try:
            signed(folder)
        except Exception:  # too damaged to be signed
            return


def finding_of(name: str, folder: Path) -> str | None:
    """Read an input; return what is wrong with the outcome, or None."""
    import numpy as np

    from index.errors import CairnError
    from tests.support.fuzz_targets import TARGETS

    try:
        with np.errstate(all="ignore"):
            TARGETS[name].read(folder)
    except CairnError as error:
        message = str(error).replace(str(folder), "FOLDER")
        if _caused_by_memory(error):
            return f"memory: an allocation was refused: {message[:300]}"
        if len(message) > LONGEST_MESSAGE or not message.isprintable():
            return f"message: {len(message)} characters: {message[:300]!a}"
    except Exception as error:
        return f"{type(error).__name__} at {_place(error)}: {str(error)[:300]!a}"
    return None


def _caused_by_memory(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, MemoryError):
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return error is not None


def _place(error: BaseException) -> str:
    """Place of an error in the project."""
    place, trace = "?", error.__traceback__
    while trace is not None:
        path = Path(trace.tb_frame.f_code.co_filename)
        if path.is_relative_to(ROOT):
            place = f"{path.relative_to(ROOT)}:{trace.tb_frame.f_code.co_name}"
        trace = trace.tb_next
    return place


def limit_time(cpu: float, wall: float) -> None:
    """End this process by a signal after some seconds of processor or wall-clock time; 0 for never."""
    signal.setitimer(signal.ITIMER_PROF, cpu)
    signal.setitimer(signal.ITIMER_REAL, wall)


def limit_memory() -> None:
    """Bound the address space of this process from now on."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _resident(what: str) -> int:
    """Resident bytes (VmRSS), or their peak since the last reset (VmHWM)."""
    return int(Path("/proc/self/status").read_text().split(f"{what}:")[1].split()[0]) * 1024


# ------------------------------------------------------------------------------------------------------ the parent


def child_command(name: str, seed: int, runs: int, folder: Path) -> list[str]:
    """Return the command that reads inputs of a target."""
    command = [sys.executable, __file__, "--child", "--target", name, "--seed", str(seed)]
    return [*command, "--runs", str(runs), "--work", str(folder)]


def fuzz(name: str, seed: int, runs: int, work: Path, deadline: float = float("inf")) -> Iterator[tuple[str, Path]]:
    """Read inputs of a target in subprocesses with a seed each; yields findings and their folders."""
    for number, start in enumerate(range(0, runs, BATCH)):
        folder = work / f"{name}-{seed + number}"
        command = child_command(name, seed + number, min(BATCH, runs - start), folder)
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=ROOT)
        if done.returncode == 0:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            target_folder = work / "findings" / folder.name
            shutil.rmtree(target_folder, ignore_errors=True)
            target_folder.parent.mkdir(parents=True, exist_ok=True)
            if folder.is_dir():
                folder.rename(target_folder)
            yield _ending(done.returncode, done.stderr.decode(errors="replace")), target_folder
        if time.monotonic() > deadline:
            return


def _ending(code: int, output: str) -> str:
    """Description of a process's exit code."""
    if code < 0:
        return _LIMITS.get(signal.Signals(-code), f"crash: {signal.Signals(-code).name}")
    lines = [line for line in output.splitlines() if line.startswith("AssertionError: ")]
    return lines[-1].removeprefix("AssertionError: ") if lines else f"crash: exit code {code}: {output[-500:]}"


def main() -> int:
    """Read the command line."""
    from tests.support.fuzz_targets import TARGETS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", action="append", choices=sorted(TARGETS), help="which reader; all if left out")
    parser.add_argument("--runs", type=int, default=1000, help="inputs a target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=Path, help="folder in which findings are kept; a new one if left out")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop each target after so long")
    parser.add_argument("--read", type=Path, metavar="FOLDER", help="read the files of a finding in this process")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    names = arguments.target or list(TARGETS)
    if arguments.read is not None:
        TARGETS[names[0]].read(arguments.read)
        return 0
    if arguments.child:
        read_inputs(names[0], arguments.seed, arguments.runs, arguments.work)
        return 0
    work = arguments.work or Path(tempfile.mkdtemp(prefix="cairn-fuzz-"))
    count = 0
    for name in names:
        if not TARGETS[name].samples():
            continue
        began = time.monotonic()
        for finding, folder in fuzz(name, arguments.seed, arguments.runs, work, began + 60 * arguments.minutes):
            count += 1
            print(f"{name}: {finding}\n  scripts/fuzz.py --target {name} --read {folder}", flush=True)
        print(f"{name}: done in {time.monotonic() - began:.0f} s", flush=True)
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
