"""Stored state of retrieval benchmarks for resuming. The work folder has one folder a run, ``NAME-KEY``, by photos,
options and vocabulary, with a collection and the answers; and ``vocabularies``, which runs share. State of other code
versions is deleted.
"""

import contextlib
import hashlib
import json
import re
import shutil
from collections.abc import Iterator
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
"""Default name of the work folder."""
VOCABULARIES = "vocabularies"

_ABOUT = "about.json"
_LOCK = "run.lock"
_ANSWERS = "answers.jsonl"
_RANKINGS = "rankings"
# Packages that figures may depend on: `code_fingerprint` hashes their sources.
_ROOMS = ("photos", "regions", "descriptors", "features", "foreign", "matching", "collection", "indexing", "search")


class RunFolder:
    """The locked folder of one run."""

    def __init__(self, path: Path, about: dict[str, Any]) -> None:
        self.path = path
        self._about = about

    def note(self, name: str, value: Any) -> None:
        """Record a finished step."""
        self._about[name] = value
        save_json(self.path / _ABOUT, self._about)

    def noted(self, name: str) -> Any:
        """A recorded value; None if there is no record."""
        return self._about.get(name)

    def answers(self, key: str) -> "Answers":
        """Answers to queries with one search setting."""
        return Answers(self.path / "answers" / key[:12])


@contextlib.contextmanager
def run_folder(folder: Path, settings: dict[str, Any]) -> Iterator[RunFolder]:
    """Open the folder of a run: state is kept for the same code and `settings`, everything that the run depends on."""
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
                state = load_json(folder / _ABOUT)
                about = state if isinstance(state, dict) else {}
        if about.get("code") != code_fingerprint():
            empty(folder)
            about = {"code": code_fingerprint(), "settings": settings}
            save_json(folder / _ABOUT, about)
        yield RunFolder(folder, about)


def empty(folder: Path) -> None:
    """Remove everything in the folder of a run except its lock; the notes are removed last, as they identify it."""
    for path in sorted(folder.iterdir(), key=lambda path: path.name == _ABOUT):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != _LOCK:
            path.unlink()


def discard(*folders: Path) -> None:
    """Remove folders of runs, and then empty parent folders named by Cairn."""
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
        """Whether a ranking exists; a crashed machine may have left an empty file."""
        file = self._file(number)
        return file.is_file() and file.stat().st_size > 0

    def __contains__(self, key: str) -> bool:
        return key in self._known

    def __len__(self) -> int:
        return len(self._known)

    def add(self, answered: Answered) -> None:
        """Store an answer atomically."""
        number = 1 + max((number for number, _ in self._known.values()), default=-1)
        save_array(self._file(number), answered.ranking)
        line = json.dumps({"query": answered.key, "seconds": round(answered.seconds, 6), "ranking": number})
        with (self._folder / _ANSWERS).open("ab") as file:
            file.write(line.encode() + b"\n")
        self._known[answered.key] = number, round(answered.seconds, 6)

    def read(self, key: str) -> tuple[NDArray[np.uint32], float]:
        """A ranking and its seconds; raises KeyError if the query has no answer."""
        number, seconds = self._known[key]
        return load_array(self._file(number)), seconds


def key_of(settings: dict[str, Any]) -> str:
    """Fingerprint of settings."""
    return fingerprint({}, settings)


def folder_name(name: str) -> str:
    """A name for use in a folder's name: letters, digits, dots, hyphens and underscores, at most 40."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:40] or "retrieval"


@cache
def code_fingerprint() -> str:
    """Fingerprint of the code that figures may depend on: the sources of indexing and searching."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256()
    # The other packages of eval only define queries and data.
    for folder in (root / "index", *(root / "retrieval" / room for room in _ROOMS), Path(__file__).parent):
        for path in sorted(folder.rglob("*.py")):
            digest.update(f"{path.relative_to(root).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:12]
