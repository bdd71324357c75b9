"""The log of links: what each photo of a collection was verified with, kept so that no photo is asked with twice.

Lines of JSON: first what the log was made with, then one a photo. It is only ever appended to, so that a process that
is killed loses at most the line that it was writing.
"""

import json
import math
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from index.errors import CairnError

FORMAT = 2  # 1: links of an earlier verification, some of them wrong


class Link(NamedTuple):
    """Two photos that are verified with each other."""

    asked: int  # image number
    found: int  # image number
    inliers: int
    transform: tuple[float, ...]  # six: affine map (2, 3) from the asked photo to the found one, by rows, in units of
    # their longer sides with the corner of the top-left pixel at (0, 0)

    @property
    def pair(self) -> tuple[int, int]:
        """The two image numbers, ascending."""
        return min(self.asked, self.found), max(self.asked, self.found)


class LinkLog:
    """An open log, or none at all, which knows nothing and keeps nothing. Made by `open_log`.

    Parameters
    ----------
    file : BinaryIO, optional
        Behind its first line.
    """

    def __init__(self, file: BinaryIO | None) -> None:
        self._file = file

    def read(self) -> Iterator[tuple[int, list[Link]]]:
        """Give each photo that was asked with, and its links; to be read to the end before anything is written.

        A line that a killed process left unfinished, or that is damaged, is cut off with all that follows it.
        """
        while self._file is not None:
            start = self._file.tell()
            line = self._file.readline()
            if not line:
                return
            entry = _entry(line)
            if entry is None:
                self._file.truncate(start)
                return
            yield entry

    def write(self, number: int, found: list[Link]) -> None:
        """Append what a photo was verified with."""
        if self._file is not None:
            self._file.write(_summed([number, [[link.found, link.inliers, *link.transform] for link in found]]))
            self._file.flush()


@contextmanager
def open_log(path: Path | None, vocabulary: str, min_inliers: int) -> Iterator[LinkLog]:
    """Open a log for one process alone.

    Parameters
    ----------
    path : Path, optional
        Its file, which is begun anew where it is of another vocabulary, leaves out links that are asked for, or is no
        log; None: nothing is kept.
    vocabulary : str
        Fingerprint of the vocabulary that the photos' words are of.
    min_inliers : int
        Fewest inliers of the links that are asked for.

    Raises
    ------
    CairnError
        Another process has it open.
    """
    if path is None:
        yield LinkLog(None)
        return
    with path.open("a+b") as file:
        _lock(file, path)
        file.seek(0)
        if not _fits(file.readline(), vocabulary, min_inliers):
            file.truncate(0)
            head = {"format": FORMAT, "vocabulary": vocabulary, "inliers": min_inliers}
            file.write(_line({**head, "sum": _sum(_line(head))}))
            file.flush()
        yield LinkLog(file)


def check_log(path: Path) -> tuple[int, int]:
    """Look through a log whose lines may still be appended to.

    Returns
    -------
    damaged : int
        Number of the first line, from 1, that is not what was written; 0 where there is none. What a killed process
        left unfinished at the end is no damage.
    unsummed : int
        Lines of an earlier version, which have no checksum.
    """
    unsummed = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                # Unfinished; unless it is whole but for the end, which is another byte then.
                return (number if _is_summed(line[:-1] + b"\n") else 0), unsummed
            sound = _is_summed(line)
            if sound is False:
                return number, unsummed
            unsummed += sound is None
    return 0, unsummed


def cut_log(path: Path, line: int) -> None:
    """Cut a log off before a line: what was logged there is asked for again."""
    with path.open("r+b") as file:
        for _ in range(line - 1):
            file.readline()
        file.truncate(file.tell())


def _fits(line: bytes, vocabulary: str, min_inliers: int) -> bool:
    """Whether the log that begins with this line has all that is asked for."""
    try:
        head = json.loads(line)
        fits = (head["format"], head["vocabulary"]) == (FORMAT, vocabulary) and head["inliers"] <= min_inliers
        fits = fits and _is_summed(line) is not False
    except (ValueError, TypeError, KeyError, RecursionError):
        return False
    return bool(fits) and line.endswith(b"\n")


def _entry(line: bytes) -> tuple[int, list[Link]] | None:
    """What a line says; None where it says nothing."""
    try:
        number, found, *_ = json.loads(line)
        links = [_link(number, *entry) for entry in found]
    except (ValueError, TypeError, OverflowError, RecursionError):
        return None
    whole = line.endswith(b"\n") and _is_summed(line) is not False
    return (number, links) if whole and _is_number(number) else None


def _link(number: int, other: int, inliers: int, *transform: float) -> Link:
    """A link of a line; ValueError or TypeError where it is none."""
    values = tuple(float(value) for value in transform)
    if not (_is_number(number) and _is_number(other) and _is_number(inliers)) or len(values) != 6:
        raise ValueError("a link has the numbers of two photos, inliers and six values")
    if not all(map(math.isfinite, values)):
        raise ValueError("a map has what is no number")
    return Link(number, other, inliers, values)


def _is_number(value: object) -> bool:
    """Whether a value is a whole number that a catalogue can have."""
    return type(value) is int and 0 <= value < 1 << 63


def _line(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def _sum(line: bytes) -> str:
    """Checksum of a line without one."""
    return f"{zlib.crc32(line):08x}"


def _summed(entry: list[Any]) -> bytes:
    """A line of an entry and its checksum."""
    return _line([*entry, _sum(_line(entry))])


def _is_summed(line: bytes) -> bool | None:
    """Whether a line is, byte for byte, what was written with its checksum; None where it is whole and has none."""
    try:
        value = json.loads(line)
        if isinstance(value, dict):
            claimed = value.pop("sum", None)
            if claimed is None and set(value) == {"format", "vocabulary", "inliers"}:
                return None
            return line == _line({**value, "sum": claimed}) and claimed == _sum(_line(value))
        if len(value) == 2:
            return None
        return line == _summed(value[:2])
    except (ValueError, TypeError, RecursionError):
        return False


def _lock(file: BinaryIO, path: Path) -> None:
    """Keep other processes from writing a log."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise CairnError(f"Another process is looking for links in {path.parent}: wait until it has ended.") from None
    except OSError:
        pass  # a file system without locks
