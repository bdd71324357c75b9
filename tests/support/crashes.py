"""Commands killed, or with failing writes, at any moment: their leftovers, and recovery by the next run.

A victim is forked from a process that has imported everything, so that a try takes a second. That process has no
threads (scripts/crashes.py), which would be lost in a fork. Where strace is installed, it ends the victim at an exact
system call, or makes that call fail.
"""

import ctypes
import hashlib
import importlib
import io
import json
import mmap
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from retrieval.catalogue.failures import failures_in
from retrieval.catalogue.metadata_store import import_values, metadata_of
from retrieval.catalogue.photos import all_indexed, missing_photos, names_in_order, photo_of_name
from retrieval.collection.collection import Collection
from retrieval.collection.options import CollectionOptions
from retrieval.indexing.adding import index_photos
from retrieval.indexing.compaction import compact
from retrieval.indexing.removal import remove_photos
from retrieval.indexing.retrain_options import RetrainOptions
from retrieval.indexing.retraining import retrain
from retrieval.integrity.backup import back_up
from retrieval.integrity.check import check_collection
from retrieval.library.compiled import compile_all
from retrieval.photos.options import ImageOptions
from retrieval.photos.thumbnails import thumbnail
from retrieval.search.options import SearchOptions
from retrieval.search.query import QuerySource, quantise_views, turns_of
from retrieval.search.searcher import Searcher
from retrieval.search.views import DescribedView

OPERATIONS = ("create", "index", "remove", "compact", "retrain", "describe", "backup")
KILLED_SOON, KILLED = "killed at a time", "killed at a call"
FAILED_ONCE, FAILED_ON = "one call fails", "all calls fail from one on"
ERRORS = ("ENOSPC", "EIO")
# System calls that change files. A machine may lack some of them (?).
CALLS = ",".join(
    f"?{name}"
    for name in (
        *("write", "pwrite64", "writev", "pwritev", "ftruncate", "fallocate", "fsync", "fdatasync"),
        *(
            "rename",
            "renameat",
            "renameat2",
            "mkdir",
            "mkdirat",
            "unlink",
            "unlinkat",
            "rmdir",
            "link",
            "copy_file_range",
        ),
    )
)
SIDE = 120  # pixels of a photo
_WHOLE = np.array([0, 0, 1, 0.75])  # a photo, in units of its longer side
_OPTIONS = CollectionOptions(words=40, iterations=2, batch=2, image=ImageOptions(max_side=SIDE), signature="none")
_PATIENCE = 1800.0  # seconds for a victim to end on a busy machine
_PR_SET_PTRACER, _ANY = 0x59616D61, ctypes.c_ulong(-1)


@dataclass(frozen=True)
class Try:
    """A disturbance of one run of a command."""

    operation: str
    way: str
    place: float  # from 0 to 1: how far through the run, or through its calls
    error: str = ""  # of calls that fail


@dataclass
class Outcome:
    """Outcome of a try."""

    code: int  # exit code; -9: killed
    call: str = ""  # the system call hit, with its path
    findings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Call:
    """A system call of a run."""

    name: str
    before: dict[str, int]  # number of earlier calls of each name
    text: str


class Scene:
    """A collection before a command, and after an undisturbed run.

    Parameters
    ----------
    folder : Path
        Of its own.
    operation : str
        One of `OPERATIONS`.
    """

    def __init__(self, folder: Path, operation: str) -> None:
        self.folder = folder
        self.operation = operation
        self.photos, self.place, self.kept = folder / "photos", folder / "c.cairn", folder / "before"
        self.source = folder / "source.cairn"  # source of a backup; then `place` is the backup
        self.photos.mkdir(parents=True)
        self.command, self.queries = [""], []
        compile_all()  # once, and not in each child
        in_child(self._prepare)
        self.command = self._command()
        self.queries = in_child(self._describe)
        if operation == "create":
            self.before: dict[str, Any] = {}
        else:
            self.place.rename(self.kept)
            self.set_up()
            self.before = self.inspect()
        self.set_up()
        for module in in_child(self._modules):
            with suppress(ImportError):
                importlib.import_module(module)
        self.set_up()
        start = time.perf_counter()
        code, error = self.run()
        self.seconds = time.perf_counter() - start
        if code:
            raise RuntimeError(f"{operation} does not work where nothing disturbs it: {error}")
        self.after = self.inspect()
        self.calls = self._calls() if shutil.which("strace") else []

    def set_up(self) -> None:
        """Restore the collection to its state before the command."""
        shutil.rmtree(self.place, ignore_errors=True)
        if self.kept.exists():
            shutil.copytree(self.kept, self.place)

    def run(self, disturb: Callable[[int], None] | None = None) -> tuple[int, str]:
        """Run the command; return its exit code, negative if a signal ended it, and its standard error.

        Parameters
        ----------
        disturb : callable, optional
            Called with the process's number before it begins, and may return before it has ended.
        """
        errors = _Told()
        begin, go = os.pipe()
        child = os.fork()
        if child == 0:
            _be_a_command(self.command, errors, begin, go)
        os.close(begin)
        try:
            if disturb is not None:
                disturb(child)
        finally:
            os.close(go)  # it reads the end of the pipe, and begins
        if disturb is not None and hasattr(disturb, "later"):
            disturb.later(child)
        code = _wait(child)
        return code, errors.read()

    def inspect(self) -> dict[str, Any]:
        """The visible state of the collection; empty if it does not exist yet."""
        return dict(in_child(self._inspect))

    def attempt(self, one: Try) -> Outcome:
        """Disturb one run, inspect the leftovers, and run the command again."""
        self.set_up()
        disturbance = _Disturbance(self, one)
        code, error = self.run(disturbance)
        disturbance.end()
        outcome = Outcome(code, disturbance.call)
        found = outcome.findings
        killed = one.way in (KILLED_SOON, KILLED)
        if code == 0:
            if self.inspect() != self.after:
                found.append("it says that it is done, and is not")
        elif code == 2 and not killed:
            if not re.fullmatch(r"cairn: [^\n]+[.…]\n", error):
                found.append(f"not one sentence: {error[-300:]!r}")
        elif code != -signal.SIGKILL or not killed:
            found.append(f"exit code {code}: {error[-300:]!r}")
        left: dict[str, Any] = {}
        try:
            left = self.inspect()
            found += judge(self.operation, self.before, left, self.after)
        except RuntimeError as error_of_child:
            found.append(f"it cannot be searched: {str(error_of_child).strip().splitlines()[-1]}")
        code, error = self.run()
        # Removed photos cannot be removed again.
        if code and not (self.operation == "remove" and code == 2 and left.get("images") == self.after["images"]):
            found.append(f"the same command again ends with {code}: {error[-300:]!r}")
        again = self.inspect()
        if again != self.after:
            found.append(f"the same command again does not complete it: {differences(again, self.after)}")
        found += [f"{name} is left behind" for name in self._leftovers()]
        return outcome

    def _leftovers(self) -> list[str]:
        if self.operation == "remove":
            return []  # it does not hold the lock, so it cleans up nothing; the next command does
        names = [path.relative_to(self.place).as_posix() for path in self.place.rglob("*")]
        return [name for name in names if re.search(r"\.tmp$|\.writing$|^staging|^retrain|-journal$", name)]

    def _prepare(self) -> None:
        for number in range(7):
            draw_photo(self.photos / f"p{number}.png", number)
        if self.operation == "create":
            return
        with Collection.create(self.place, _OPTIONS) as collection:
            index_photos(collection, [self.photos])
            collection.catalogue.write(import_values, {2: {"place": ["Ghent"]}})
            if self.operation in ("compact", "retrain", "describe"):
                row = collection.catalogue.read(photo_of_name, "p1.png")
                thumbnail(self.photos / "p1.png", row.sha256 if row else None, 128, self.place / "cache")
                remove_photos(collection, ["p1.png"])
                (self.photos / "p1.png").unlink()
        if self.operation == "backup":
            self.place.rename(self.source)
            with Collection.open(self.source) as collection:
                back_up(collection, self.place)
                for number in (7, 8, 9):
                    draw_photo(self.photos / f"p{number}.png", number)
                index_photos(collection, [self.photos])
                remove_photos(collection, ["p1.png"])
                compact(collection)
                retrain(collection, RetrainOptions(words=30))
        if self.operation == "index":
            draw_photo(self.photos / "p0.png", 10)
            (self.photos / "p3.png").rename(self.photos / "moved.png")
            (self.photos / "p5.png").unlink()
            (self.photos / "damaged.png").write_bytes(b"no photo")
            for number in (7, 8, 9):
                draw_photo(self.photos / f"p{number}.png", number)

    def _command(self) -> list[str]:
        if self.operation == "backup":
            return ["cairn", "backup", str(self.source), str(self.place), "--json"]
        arguments = {
            "create": [
                str(self.photos),
                "--words",
                "40",
                "--max-side",
                str(SIDE),
                "--workers",
                "1",
                "--descriptor",
                "cairn",
            ],
            "index": [str(self.photos), "--workers", "1"],
            "remove": ["p1.png", "p4.png", "p6.png"],
            "compact": [],
            "retrain": ["--words", "30", "--workers", "1"],
            "describe": ["--descriptor", "sift", "--words", "30", "--workers", "1"],
        }[self.operation]
        name = {"create": "index", "describe": "retrain"}.get(self.operation, self.operation)
        return ["cairn", name, str(self.place), *arguments, "--json"]

    def _modules(self) -> list[str]:
        """Modules imported by the command and the inspection, loaded before the victims are forked."""
        _main(self.command)
        self._inspect()
        return sorted(sys.modules)

    def _describe(self) -> list[list[DescribedView]]:
        if self.operation == "create":
            self.run()
        with Collection.open(self.place) as collection:
            names = [path for path in sorted(self.photos.iterdir()) if path.name in ("p2.png", "p4.png")]
            extractor, image = collection.extractor, collection.options.image
            sources = [QuerySource(extractor, image, path, None) for path in names]
            return [[source.describe(turn) for turn in turns_of(extractor, 2).tolist()] for source in sources]

    def _inspect(self) -> dict[str, Any]:
        if not (self.place / "collection.toml").is_file():
            return {}
        report = check_collection(self.place)
        damaged = [str(one) for one in report.damaged]
        with Collection.open(self.place) as collection:
            missing = sorted(str(row.name) for row in collection.catalogue.read(missing_photos))
            failures = sorted((one.path, one.reason) for one in collection.catalogue.read(failures_in))
            state: dict[str, Any] = {"damaged": damaged, "missing": missing, "failures": failures}
            state |= {"images": {}, "rankings": []}
            if not collection.has_vocabulary:
                return state
            state["vocabulary"] = collection.vocabulary.fingerprint
            for row in collection.catalogue.read(all_indexed):
                features = collection.index.images.features(row.number)
                kept = collection.catalogue.read(metadata_of, [row.number])[row.number]
                facts = [row.path, row.sha256, row.size, row.mtime_ns, row.width, row.height, row.features]
                digest = hashlib.sha256(repr([*facts, row.quantisation_error, kept]).encode())
                for array in (features.words.astype(np.uint32), *features.columns.values()):
                    digest.update(np.ascontiguousarray(array).tobytes())
                state["images"][str(row.name)] = digest.hexdigest()
            searcher = Searcher(collection, SearchOptions(expand="average"))
            for described in self.queries:
                signed = searcher.options.signed
                views = quantise_views(described, collection.vocabulary, 1, collection.signatures, signed)
                hits = searcher.search(views, region=_WHOLE).hits
                names = collection.catalogue.read(names_in_order, [hit.number for hit in hits])
                answer = [(name, hit.score, hit.verification.inliers) for name, hit in zip(names, hits, strict=True)]
                nothing = sorted(one for one in answer if one[1:] == (0.0, 0))
                state["rankings"].append([one for one in answer if one[1:] != (0.0, 0)] + nothing)
            if self.operation == "compact":
                state["segments"] = len(collection.segments)
        return dict(json.loads(json.dumps(state)))

    def _calls(self) -> list[Call]:
        """The calls of an undisturbed run that change the collection."""
        self.set_up()
        trace = self.folder / "trace"
        tracer = _Tracer(trace, [])
        self.run(tracer)
        tracer.end()
        lines = trace.read_text(errors="replace").splitlines()
        # Those of the first thread, which does all the work: strace counts per thread.
        first = lines[0].split()[0]
        counts: dict[str, int] = {}
        calls = []
        for line in lines:
            match = re.match(rf"{first} +(\w+)\(", line)
            if match:
                if str(self.place) in line:
                    text = line.partition(" ")[2].replace(str(self.place), "C").strip()
                    calls.append(Call(match[1], dict(counts), text[:160]))
                counts[match[1]] = counts.get(match[1], 0) + 1
        return calls


def judge(operation: str, before: dict[str, Any], left: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Problems of a collection after a disturbed command.

    Parameters
    ----------
    operation : str
        The command.
    before, left, after : dict
        Results of `Scene.inspect` before it, afterwards, and after an undisturbed run.
    """
    if not left:
        return [] if operation == "create" else ["the collection is gone"]
    found = [f"damaged: {what}" for what in left["damaged"]]
    images, old, new = left["images"], before.get("images", {}), after["images"]
    for name, digest in images.items():
        if digest not in (old.get(name), new.get(name)):
            found.append(f"{name} is neither what it was nor what it should be")
    if operation in ("create", "index"):
        # Existing items are unchanged or updated; moved ones have either name.
        lost = [name for name in old if name not in images and name in new]
        moved = {name for name in old if name not in new}
        arrived = {name for name in new if name not in old} & images.keys()
        lost += [name for name in moved if name not in images and not arrived]
        found += [f"{name} is lost" for name in lost]
    elif all((images, left["rankings"]) != (whole["images"], whole["rankings"]) for whole in (before, after)):
        found.append("it is neither what it was nor what it should be")
    return found


def differences(one: dict[str, Any], other: dict[str, Any]) -> str:
    """Differences of two states, in short."""
    keys = sorted(key for key in {*one, *other} if one.get(key) != other.get(key))
    return ", ".join(f"{key}: {one.get(key)!r:.300} instead of {other.get(key)!r:.300}" for key in keys)


def draw_photo(path: Path, number: int) -> None:
    """Draw the photo of a number, which overlaps with those of the next numbers."""
    canvas = Image.new("L", (SIDE, SIDE * 3 // 4), 128)
    pen = ImageDraw.Draw(canvas)
    for seed in (number // 3, 1000 + number):
        rng = np.random.default_rng(seed)
        for _ in range(14):
            x, y, w, h = (int(value) for value in rng.integers(0, [100, 70, 30, 25]))
            (pen.ellipse if rng.random() < 0.5 else pen.rectangle)([x, y, x + w + 4, y + h + 4], int(rng.integers(256)))
    canvas.filter(ImageFilter.GaussianBlur(0.7)).save(path)


class _Told(io.TextIOBase):
    """A child's standard error, in shared memory, as writes may fail there."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 1 << 20)

    def write(self, text: str) -> int:
        self._memory.write(text.encode())
        return len(text)

    def read(self, size: int | None = -1) -> str:
        return self._memory[:].rstrip(b"\0").decode()


class _Tracer:
    """Attaches strace to a process before it begins."""

    def __init__(self, trace: Path, injection: list[str]) -> None:
        self._command = ["strace", "-f", "-y", "-s", "8", "-o", str(trace), "-e", f"trace={CALLS}", *injection]
        self._process: subprocess.Popen[str] | None = None

    def __call__(self, child: int) -> None:
        self._process = subprocess.Popen([*self._command, "-p", str(child)], stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        line = self._process.stderr.readline()
        if "attached" not in line:
            os.kill(child, signal.SIGKILL)
            raise RuntimeError(f"strace cannot attach: {line}")

    def end(self) -> None:
        """Wait until it has written all."""
        if self._process is not None:
            self._process.communicate(timeout=_PATIENCE)


class _Disturbance:
    """The disturbance of a victim."""

    def __init__(self, scene: Scene, one: Try) -> None:
        self.one = one
        self.delay = one.place * scene.seconds * 1.1
        self.call = ""
        self._tracer: _Tracer | None = None
        if one.way != KILLED_SOON:
            call = scene.calls[min(int(one.place * len(scene.calls)), len(scene.calls) - 1)]
            self.call = call.text
            what = "signal=KILL" if one.way == KILLED else f"error={one.error}"
            if one.way == FAILED_ON:
                names = [name.lstrip("?") for name in CALLS.split(",")]
                wishes = [f"?{name}:{what}:when={call.before.get(name, 0) + 1}+" for name in names]
            else:
                wishes = [f"{call.name}:{what}:when={call.before.get(call.name, 0) + 1}"]
            self._tracer = _Tracer(scene.folder / "trace", [f"--inject={wish}" for wish in wishes])

    def __call__(self, child: int) -> None:
        if self._tracer is not None:
            self._tracer(child)

    def later(self, child: int) -> None:
        if self.one.way == KILLED_SOON:
            time.sleep(self.delay)
            os.kill(child, signal.SIGKILL)  # it has not been reaped, so its number is not reused

    def end(self) -> None:
        if self._tracer is not None:
            self._tracer.end()


def in_child(work: Callable[[], Any]) -> Any:
    """Call a function in a subprocess, which leaves no open database here; return its pickled result."""
    import pickle

    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            try:
                result = (True, work())
            except BaseException:
                result = (False, traceback.format_exc())
            with os.fdopen(writer, "wb") as file:
                pickle.dump(result, file)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        contents = file.read()
    _wait(child)
    good, value = pickle.loads(contents)
    if not good:
        raise RuntimeError(value)
    return value


def _be_a_command(arguments: list[str], errors: _Told, begin: int, go: int) -> None:
    """Wait for the signal, run a command in this process and end it."""
    code = 1
    try:
        os.close(go)
        with suppress(OSError, AttributeError):  # if only an ancestor may trace a process
            ctypes.CDLL(None).prctl(_PR_SET_PTRACER, _ANY, 0, 0, 0)
        sys.stderr = errors
        os.read(begin, 1)
        code = _main(arguments)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _main(arguments: list[str]) -> int:
    """Run a command in this process; return its exit code."""
    from cairn import main

    sys.stdout, sys.argv = io.StringIO(), arguments
    try:
        main()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return 0


def _wait(child: int) -> int:
    """Wait for a process, and return its exit code as `subprocess` does."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise RuntimeError("a command does not end")


def choose(seed: int, number: int, kills: int, operations: tuple[str, ...]) -> Try:
    """The try of a number: first kills, then failures; determined by seed and number."""
    rng = np.random.default_rng([seed, number])
    operation = operations[number % len(operations)]
    traced = shutil.which("strace") is not None
    if number < kills:
        way = KILLED if traced and rng.random() < 0.7 else KILLED_SOON
        return Try(operation, way, float(rng.random()))
    way = FAILED_ONCE if rng.random() < 0.6 else FAILED_ON
    return Try(operation, way, float(rng.random()), ERRORS[int(rng.integers(2))])


def record(number: int, one: Try, outcome: Outcome) -> dict[str, Any]:
    """A line of the campaign's log."""
    return {"number": number, **asdict(one), **asdict(outcome)}
