"""Files of rankings: a table (CSV), a folder of text files as for the Oxford benchmark's `compute_ap`, or JSON."""

import re
import sys
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from eval.protocols.google_landmarks import is_retrieval, read_retrieved
from index.arrays import load_json, save_rows
from index.errors import CairnError
from index.text import shown
from retrieval.catalogue.tables.reading import CsvFile, open_csv

HEADER = ("query", "rank", "photo")
"""Required columns of a table of rankings."""
PROTOCOL, DISTRACTOR = "protocol", "distractor"
"""Optional columns: the protocol of the ranking, and whether the photo is a distractor."""

TEXTS = (".txt", ".lst", ".dat")
_LARGEST_TEXT = 512 << 20  # bytes
_YES = ("1", "yes", "true", "x")
_SIGNED = re.compile(r"[+-]?\d{1,15}")


@dataclass
class Rankings:
    """Rankings read from a file."""

    # by the query's name: the photos' names, best first, as written in the file
    photos: dict[str, list[str]]
    source: str  # the file or folder, for messages
    # notes on the file for readers of the scores, a sentence each
    notes: list[str] = field(default_factory=list)
    # the same for rankings of a single protocol, by its name
    protocols: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    # names of photos that are not in the ground truth, even if it has such a name
    distractors: set[str] = field(default_factory=set)


def read_rankings(path: Path) -> Rankings:
    """Read rankings: a table of query, rank and photo (rows in any order; in this order without a header), perhaps with
    `PROTOCOL` and `DISTRACTOR`; a folder of ``NAME.txt`` with a photo a line, best first, or one such file; a table of
    id and images in the format of Google Landmarks; or a JSON object of lists by query. Errors name the line.
    """
    path = Path(path)
    if path.is_dir():
        return _read_folder(path)
    suffix = path.suffix.lower()
    if not path.exists():
        raise CairnError(f"There is no file or folder of rankings {path}: check the name.")
    if suffix == ".json":
        return _read_json(path)
    if suffix in TEXTS and not _is_table(path):
        return Rankings({path.stem: _read_text(path)}, str(path))
    if suffix == ".csv" and path.is_file() and is_retrieval(path):
        return _read_landmarks(path)
    return _read_table(path)


def write_rankings(path: Path, rankings: Rankings) -> None:
    """Write a table of rankings for `read_rankings`, atomically."""
    check_table(path)
    save_rows(path, _table_rows(rankings))


def _table_rows(rankings: Rankings) -> Iterator[list[object]]:
    has_protocol, has_distractor = bool(rankings.protocols), bool(rankings.distractors)
    yield [*[PROTOCOL] * has_protocol, *HEADER, *[DISTRACTOR] * has_distractor]
    for protocol, queries in {**({"": rankings.photos} if rankings.photos else {}), **rankings.protocols}.items():
        for query, photos in queries.items():
            for rank, photo in enumerate(photos, start=1):
                marked = [int(photo in rankings.distractors)] * has_distractor
                yield [*[protocol] * has_protocol, query, rank, photo, *marked]


def check_table(path: Path) -> None:
    """Raise a CairnError if no table can be written to a path; called before the work."""
    path = Path(path)
    if path.suffix.lower() != ".csv":
        raise CairnError(f"{path.name} is no name for a table: let it end with .csv.")
    if not path.parent.is_dir():
        raise CairnError(f"The folder {path.parent} does not exist: make it first, or choose another.")
    if path.is_dir():
        raise CairnError(f"{path} is a folder: choose another name for the table.")


def _read_folder(folder: Path) -> Rankings:
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() == ".txt" and not path.name.startswith("."))
    if not files:
        raise CairnError(f"The folder {folder} holds no rankings: there is no NAME.txt in it, one for each query.")
    return Rankings({path.stem: _read_text(path) for path in files}, str(folder))


def _read_text(path: Path) -> list[str]:
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_TEXT:
            raise CairnError(f"{path} is no text file of a ranking, or has more than {_LARGEST_TEXT >> 20} MB.")
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise CairnError(f"{path} is not text in UTF-8: a ranking has the name of one photo a line.") from None
    except OSError as error:
        raise CairnError(f"{path} cannot be read ({error.strerror or error}): check the file and its rights.") from None
    return [sys.intern(line) for line in map(str.strip, text.splitlines()) if line]


def _read_json(path: Path) -> Rankings:
    value = load_json(path)
    wanted = f'{path} must be an object of lists of names, such as {{"QUERY": ["PHOTO", …]}}'
    if not isinstance(value, dict) or not value:
        raise CairnError(f"{wanted}, with one query at least.")
    for query, photos in value.items():
        if not isinstance(photos, list) or not all(isinstance(photo, str) for photo in photos):
            raise CairnError(f"{wanted}: the query {shown(query)} has something else.")
    return Rankings({query: list(map(sys.intern, photos)) for query, photos in value.items()}, str(path))


def _is_table(path: Path) -> bool:
    """Whether a text file is a table of at least three columns, not a list of names."""
    with_cells = (cells for _, cells in open_csv(path).records() if any(map(str.strip, cells)))
    first = next(with_cells, [])
    second = next(with_cells, first)
    return len(first) >= 3 and len(second) >= 3 and _SIGNED.fullmatch(second[1].strip()) is not None


@dataclass
class _Ranked:
    """The rows of one ranking, in the order of the file."""

    ranks: "array[int]" = field(default_factory=lambda: array("q"))
    photos: list[str] = field(default_factory=list)

    def sorted(self, query: str, path: Path) -> list[str]:
        order = sorted(range(len(self.ranks)), key=self.ranks.__getitem__)
        for one, other in pairwise(order):
            if self.ranks[one] == self.ranks[other]:
                raise CairnError(
                    f"{path}: the query {shown(query)} has two photos of rank {self.ranks[one]}, "
                    f"{shown(self.photos[one])} and {shown(self.photos[other])}: give each a rank of its own."
                )
        return [self.photos[place] for place in order]

    @property
    def has_gaps(self) -> bool:
        return max(self.ranks) - min(self.ranks) >= len(self.ranks)


def _read_landmarks(path: Path) -> Rankings:
    """Predictions in the format of the Google Landmarks challenges."""
    predictions = read_retrieved(path)
    return Rankings({query: list(map(sys.intern, photos)) for query, photos in predictions.items()}, str(path))


def _read_table(path: Path) -> Rankings:
    ranked: dict[tuple[str, str], _Ranked] = {}
    read = Rankings({}, str(path))
    for protocol, query, rank, photo, is_distractor in _rows(open_csv(path)):
        rows = ranked.get((protocol, query)) or ranked.setdefault((protocol, query), _Ranked())
        rows.ranks.append(rank)
        rows.photos.append(sys.intern(photo))
        if is_distractor:
            read.distractors.add(photo)
    if not ranked:
        raise CairnError(f"{path} has no ranking: it needs rows of query, rank and photo.")
    for (protocol, query), rows in ranked.items():
        of = read.protocols.setdefault(protocol, {}) if protocol else read.photos
        of[query] = rows.sorted(query, path)
    gaps = [query for (_, query), rows in ranked.items() if rows.has_gaps]
    if gaps:
        read.notes.append(
            f"The ranks of {len(gaps)} queries, such as {shown(gaps[0])}, have gaps: their photos were taken in order, "
            "as if nothing were missing."
        )
    return read


def _rows(table: CsvFile) -> Iterator[tuple[str, str, int, str, bool]]:
    """Protocol, query, rank and photo of the non-blank rows, and whether the photo is a distractor."""
    places: dict[str, int] | None = None
    for line, cells in table.records():
        if not "".join(cells).strip():
            continue
        if places is None:
            columns = _header(cells)
            places = columns or {name: place for place, name in enumerate(HEADER)}
            if columns:
                continue
            if len(cells) < 2 or not _SIGNED.fullmatch(cells[1].strip()):
                raise CairnError(
                    f"{table.path} is no table of rankings: its columns are query, rank and photo, in this order where "
                    f"it has no header, and its first line is {shown(table.delimiter.join(cells))}."
                )
        if len(cells) <= max(places.values()):
            raise CairnError(f"{table.path}, line {line}: the row is too short; it needs a query, a rank and a photo.")
        query, rank, photo = (cells[places[name]].strip() for name in HEADER)
        if not query or not photo:
            raise CairnError(f"{table.path}, line {line}: the {'photo' if query else 'query'} is missing.")
        if not (rank.isdecimal() and rank.isascii() and len(rank) < 16) and not _SIGNED.fullmatch(rank):
            raise CairnError(f"{table.path}, line {line}: the rank {shown(rank)} is no whole number.")
        protocol = cells[places[PROTOCOL]].strip() if PROTOCOL in places else ""
        marked = DISTRACTOR in places and cells[places[DISTRACTOR]].strip().casefold() in _YES
        yield protocol, query, int(rank), photo, marked


def _header(cells: Sequence[str]) -> dict[str, int] | None:
    """Indices of the columns, if the cells are a header."""
    names = [cell.strip().casefold() for cell in cells]
    if not all(names.count(name) == 1 for name in HEADER):
        return None
    return {name: names.index(name) for name in (*HEADER, PROTOCOL, DISTRACTOR) if name in names}
