"""The log of links: what each photo of a collection was verified with, kept so that no photo is asked with twice.

Lines of JSON: first what the log was made with, then one a photo. It is only ever appended to, so that a process that
is killed loses at most the line that it was writing.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from index.errors import CairnError

FORMAT = 1


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
            self._file.write(_line([number, [[link.found, link.inliers, *link.transform] for link in found]]))
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
            file.write(_line({"format": FORMAT, "vocabulary": vocabulary, "inliers": min_inliers}))
            file.flush()
        yield LinkLog(file)


def _fits(line: bytes, vocabulary: str, min_inliers: int) -> bool:
    """Whether the log that begins with this line has all that is asked for."""
    try:
        head = json.loads(line)
        fits = (head["format"], head["vocabulary"]) == (FORMAT, vocabulary) and head["inliers"] <= min_inliers
    except (ValueError, TypeError, KeyError):
        return False
    return bool(fits) and line.endswith(b"\n")


def _entry(line: bytes) -> tuple[int, list[Link]] | None:
    """What a line says; None where it says nothing."""
    try:
        number, found = json.loads(line)
        links = [
            Link(int(number), int(other), int(inliers), tuple(map(float, transform)))
            for other, inliers, *transform in found
        ]
    except (ValueError, TypeError):
        return None
    whole = line.endswith(b"\n") and all(len(link.transform) == 6 for link in links)
    return (int(number), links) if whole else None


def _line(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


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
