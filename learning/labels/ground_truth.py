"""Ground truth in the layout of Oxford5K and Paris6K: four small text files to a query."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from index.errors import CairnError
from index.files.reading import read_regular
from index.text import shown

# Only Oxford5K's query files write `oxc1_all_souls_000013` for the photo `all_souls_000013`.
_PUBLISHED_PREFIX = "oxc1_"
_LABELS = ("good", "ok", "junk")


@dataclass(frozen=True)
class GroundTruthQuery:
    """One query and its answers. Photos are identified by their stems: file names without extension."""

    name: str  # name of the query, such as ``all_souls_1``
    stem: str  # the query's photo
    box: tuple[float, float, float, float]  # x0, y0, x1, y1 in pixels of the query's photo, with x0 < x1 and y0 < y1
    # photos that show the object clearly, and photos that show more than a quarter of it: the positives
    good: frozenset[str]
    ok: frozenset[str]
    junk: frozenset[str]  # ignored photos

    @property
    def positives(self) -> frozenset[str]:
        """Return the positives: good and ok."""
        return self.good | self.ok


def read_ground_truth(folder: Path) -> list[GroundTruthQuery]:
    """Read every query of a folder by name: ``NAME_query.txt``, one line ``stem x0 y0 x1 y1``, and ``NAME_good.txt``,
    ``NAME_ok.txt`` and ``NAME_junk.txt``, one stem a line; blank lines are skipped.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise CairnError(f"There is no ground-truth folder {str(folder)!r}; check the name.")
    parts: dict[str, set[str]] = {}
    for path in folder.iterdir():
        match = re.fullmatch(r"(.+)_(query|good|ok|junk)\.txt", path.name, re.DOTALL)
        if match:
            parts.setdefault(match[1], set()).add(match[2])
    if not parts:
        raise CairnError(f"The folder {str(folder)!r} holds no ground truth: there is no NAME_query.txt in it.")
    for name, files in sorted(parts.items()):
        for part in ("query", *_LABELS):
            if part not in files:
                raise CairnError(f"The ground truth lacks the file {str(folder / f'{name}_{part}.txt')!r}.")
    return [_read_query(folder, name) for name in sorted(parts)]


def missing_photos(queries: Iterable[GroundTruthQuery], stems: Iterable[str]) -> list[str]:
    """List, sorted, the good, ok and junk photos of queries that are not in `stems`; a benchmark must report them."""
    listed: set[str] = set()
    for query in queries:
        listed |= query.positives | query.junk
    return sorted(listed - set(stems))


def _read_query(folder: Path, name: str) -> GroundTruthQuery:
    stem, box = _read_query_line(folder / f"{name}_query.txt")
    labels: dict[str, frozenset[str]] = {}
    owner: dict[str, str] = {}
    for label in _LABELS:
        path = folder / f"{name}_{label}.txt"
        lines = _read_lines(path)
        for number, listed in lines:
            # A photo that is both positive and junk has no defined score.
            if owner.setdefault(listed, label) != label:
                raise CairnError(
                    f"{path}, line {number}: {shown(listed)} is listed as {owner[listed]} too; keep one of them."
                )
        labels[label] = frozenset(listed for _, listed in lines)
    return GroundTruthQuery(name, stem, box, **labels)


def _read_query_line(path: Path) -> tuple[str, tuple[float, float, float, float]]:
    lines = _read_lines(path)
    if not lines:
        raise CairnError(f"{path}, line 1: the file is empty; it should say: stem x0 y0 x1 y1.")
    if len(lines) > 1:
        raise CairnError(f"{path}, line {lines[1][0]}: a query is one line, and this is a second one.")
    number, line = lines[0]
    words = line.rsplit(maxsplit=4)  # a stem may hold spaces
    try:
        x0, y0, x1, y1 = (float(word) for word in words[1:])
    except ValueError:
        raise CairnError(f"{path}, line {number}: expected 'stem x0 y0 x1 y1', found {shown(line)}.") from None
    x0, x1 = sorted((x0, x1))
    y0, y1 = sorted((y0, y1))
    if not all(map(math.isfinite, (x0, y0, x1, y1))) or x0 == x1 or y0 == y1:
        raise CairnError(f"{path}, line {number}: the box in {shown(line)} has no area.")
    return words[0].removeprefix(_PUBLISHED_PREFIX), (x0, y0, x1, y1)


def _read_lines(path: Path) -> Sequence[tuple[int, str]]:
    try:
        content = read_regular(path)
    except OSError as error:
        raise CairnError(f"The ground-truth file {str(path)!r} cannot be read: {error.strerror}.") from None
    lines = []
    for number, raw in enumerate(content.split(b"\n"), start=1):
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        except UnicodeDecodeError:
            raise CairnError(f"{path}, line {number}: this is not text in UTF-8.") from None
        if any(ord(character) < 32 and character != "\t" for character in line):
            raise CairnError(f"{path}, line {number}: there are control characters in {shown(line)}.")
        if line:
            lines.append((number, line))
    return lines
