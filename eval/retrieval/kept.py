"""What is kept of runs of retrieval benchmarks, so that one that was stopped goes on: in a work folder one folder a
run, ``NAME-KEY``, by photos, options and vocabulary, with a collection and the answers; and ``vocabularies``, which
runs share. What other code has made is thrown away.
"""

import contextlib
import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eval.retrieval.asking import Answered
from index.arrays import fingerprint, load_array, load_json, save_array, save_bytes, save_json
from index.errors import CairnError
from retrieval.collection.locking import lock_file

WORK = Path("cairn-evaluations")
"""Name of the work folder, where none is named."""
VOCABULARIES = "vocabularies"

_ABOUT = "about.json"
_LOCK = "run.lock"
_ANSWERS = "answers.jsonl"
_RANKINGS = "rankings"
# What a figure may depend on: their sources are what `code_fingerprint` is of.
_ROOMS = ("photos", "regions", "descriptors", "features", "foreign", "matching", "collection", "indexing", "search")


@dataclass(frozen=True)
class RunFiles:
    """Files of a run that is kept."""

    root: Path = WORK  # folder of all runs
    name: str = "retrieval"  # of the run's folder, before its key
    discard: bool = False  # whether the run's folder is removed once the run is done


class RunFolder:
    """The folder of one run, which no other process uses meanwhile."""

    def __init__(self, path: Path, about: dict[str, Any]) -> None:
        self.path = path
        self._about = about

    def note(self, name: str, value: Any) -> None:
        """Note something that is done."""
        self._about[name] = value
        save_json(self.path / _ABOUT, self._about)

    def noted(self, name: str) -> Any:
        """What was noted; None if it was not."""
        return self._about.get(name)

    def answers(self, key: str) -> "Answers":
        """Answers to queries that were asked in one way."""
        return Answers(self.path / "answers" / key[:12])


@contextlib.contextmanager
def run_folder(folder: Path, settings: dict[str, Any]) -> Iterator[RunFolder]:
    """Open the folder of a run: what is there of the same settings, made by the same code, is kept. `settings`: what
    the run depends on, as JSON has it; also written, for people to read.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CairnError(
            "{folder} cannot be made ({reason}): name another folder by {--work}.",
            folder=folder,
            reason=error.strerror or error,
        ) from error
    if not (folder / _ABOUT).is_file() and any(path.name != _LOCK for path in folder.iterdir()):
        raise CairnError("{folder} is not of an evaluation: name another folder by {--work}.", folder=folder)
    with lock_file(folder / _LOCK, f"Another cairn command is at work in {folder}: wait until it has ended."):
        about: dict[str, Any] = {}
        if (folder / _ABOUT).is_file():
            with contextlib.suppress(CairnError):
                found = load_json(folder / _ABOUT)
                about = found if isinstance(found, dict) else {}
        if about.get("code") != code_fingerprint():
            empty(folder)
            about = {"code": code_fingerprint(), "settings": settings}
            save_json(folder / _ABOUT, about)
        yield RunFolder(folder, about)


def empty(folder: Path) -> None:
    """Remove all in the folder of a run but its lock; the notes go last, without which it is not known as one."""
    for path in sorted(folder.iterdir(), key=lambda path: path.name == _ABOUT):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != _LOCK:
            path.unlink()


def discard(*folders: Path) -> None:
    """Remove folders of runs, and those of Cairn's own naming above that are empty then."""
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
        for above in (folder.parent, folder.parent.parent):
            if above.name in (VOCABULARIES, WORK.name):
                with contextlib.suppress(OSError):
                    above.rmdir()


def size_of(folder: Path) -> int:
    """Bytes of all files in a folder."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


class Answers:
    """Answers to queries: a line of JSON each, and the ranking, an array of photo numbers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / _RANKINGS).mkdir(parents=True, exist_ok=True)
        self._known: dict[str, tuple[int, float]] = {}  # number of the ranking's file, and seconds
        self._read()

    def _read(self) -> None:
        path = self._folder / _ANSWERS
        content = path.read_bytes() if path.is_file() else b""
        sound = []
        for line in content.splitlines():
            with contextlib.suppress(ValueError, KeyError, TypeError):
                entry = json.loads(line)
                key, number, seconds = str(entry["query"]), int(entry["ranking"]), float(entry["seconds"])
                if self._is_there(number):
                    self._known[key] = number, seconds
                    sound.append(line + b"\n")
        if b"".join(sound) != content:
            save_bytes(path, b"".join(sound))

    def _file(self, number: int) -> Path:
        return self._folder / _RANKINGS / f"{number:06}.npy"

    def _is_there(self, number: int) -> bool:
        """Whether a ranking is there; a machine that went down may have left a file without contents."""
        file = self._file(number)
        return file.is_file() and file.stat().st_size > 0

    def __contains__(self, key: str) -> bool:
        return key in self._known

    def __len__(self) -> int:
        return len(self._known)

    def add(self, answered: Answered) -> None:
        """Keep an answer: it is there whole, or not at all."""
        number = 1 + max((number for number, _ in self._known.values()), default=-1)
        save_array(self._file(number), answered.ranking)
        line = json.dumps({"query": answered.key, "seconds": round(answered.seconds, 6), "ranking": number})
        with (self._folder / _ANSWERS).open("ab") as file:
            file.write(line.encode() + b"\n")
        self._known[answered.key] = number, round(answered.seconds, 6)

    def read(self, key: str) -> tuple[NDArray[np.uint32], float]:
        """A ranking, and the seconds that it took; raises KeyError if the query was not answered."""
        number, seconds = self._known[key]
        return load_array(self._file(number)), seconds


def key_of(settings: dict[str, Any]) -> str:
    """Fingerprint of what something depends on."""
    return fingerprint({}, settings)


def folder_name(name: str) -> str:
    """A name as part of a folder's: letters, digits, dots, hyphens and underscores, 40 at most."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:40] or "retrieval"


@cache
def code_fingerprint() -> str:
    """Fingerprint of the code that figures may depend on: of the sources that search, and that make a collection."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256()
    # The other packages of eval say what is searched for, and where.
    for folder in (root / "index", *(root / "retrieval" / room for room in _ROOMS), Path(__file__).parent):
        for path in sorted(folder.rglob("*.py")):
            digest.update(f"{path.relative_to(root).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:12]
