"""Files of rankings: a table (CSV), a folder of text files as the Oxford benchmark's `compute_ap` takes, or JSON."""

import csv
import io
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from index.arrays import load_json, save_bytes
from index.errors import CairnError
from index.text import printable, shown
from retrieval.catalogue.tables.reading import CsvFile, open_csv

HEADER = ("query", "rank", "photo", "score")
"""Columns of a table of rankings; the score is for people, the rank decides."""

TABLES = (".csv", ".tsv", ".tab")
TEXTS = (".txt", ".lst", ".dat")
_LARGEST_TEXT = 512 << 20  # bytes
_SIGNED = re.compile(r"[+-]?\d{1,15}")


@dataclass
class Rankings:
    """Rankings as a file has them.

    Attributes
    ----------
    photos : dict of str to list of str
        By the query's name as it is written: the photos' names as they are written, the best first.
    source : str
        The file or folder, for messages.
    notes : list of str
        What a reader of the scores should know of the file, a sentence each.
    """

    photos: dict[str, list[str]]
    source: str
    notes: list[str] = field(default_factory=list)


def read_rankings(path: Path) -> Rankings:
    """Read rankings, by the kind of file.

    Parameters
    ----------
    path : Path
        A table with the columns query, rank and photo (in this order where it has no header; commas, semicolons or
        tabs; its rows in any order); a folder of ``NAME.txt`` with one photo a line, the best first, or one such file;
        or a JSON object of lists of photos by query.

    Raises
    ------
    CairnError
        There is no such file, it is of another form, or it has no ranking. The message names the line.
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
    return _read_table(path)


def write_rankings(
    path: Path, rankings: Mapping[str, Sequence[str]], scores: Mapping[str, Sequence[float]] | None = None
) -> None:
    """Write a table of rankings that `read_rankings` reads, so that it is there whole or not at all.

    Parameters
    ----------
    path : Path
        Ends with .csv; replaced where it exists.
    rankings : mapping of str to sequence of str
        By query: photos, the best first. Ranks count from 1.
    scores : mapping of str to sequence of float, optional
        Of the same photos.

    Raises
    ------
    CairnError
        See `check_table`.
    """
    check_table(path)
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER if scores is not None else HEADER[:3])
    for query, photos in rankings.items():
        if scores is None:
            writer.writerows((query, rank, photo) for rank, photo in enumerate(photos, start=1))
        else:
            of = zip(photos, scores[query], strict=True)
            writer.writerows((query, rank, photo, f"{score:.9g}") for rank, (photo, score) in enumerate(of, start=1))
    save_bytes(Path(path), printable(text.getvalue()).encode())


def check_table(path: Path) -> None:
    """Raise a CairnError where no table can be written to a path: before the work that it is to keep."""
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
    """The lines of a text file that are not blank."""
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
            raise CairnError(f"{wanted}: what it says of the query {shown(query)} is none.")
    return Rankings({query: list(map(sys.intern, photos)) for query, photos in value.items()}, str(path))


def _is_table(path: Path) -> bool:
    """Whether a text file is a table of three columns and more, and no list of names."""
    with_cells = (cells for _, cells in open_csv(path).records() if any(map(str.strip, cells)))
    first = next(with_cells, [])
    return len(first) >= 3 and _SIGNED.fullmatch(next(with_cells, first)[1].strip()) is not None


def _read_table(path: Path) -> Rankings:
    ranked: dict[str, dict[int, str]] = {}
    for line, query, rank, photo in _rows(open_csv(path)):
        of_query = ranked.setdefault(sys.intern(query), {})
        if rank in of_query:
            raise CairnError(
                f"{path}, line {line}: the query {shown(query)} has two photos of rank {rank}, {shown(of_query[rank])} "
                f"and {shown(photo)}: give each a rank of its own."
            )
        of_query[rank] = sys.intern(photo)
    if not ranked:
        raise CairnError(f"{path} has no ranking: it needs rows of query, rank and photo.")
    notes = []
    gaps = [query for query, photos in ranked.items() if max(photos) - min(photos) >= len(photos)]
    if gaps:
        notes.append(
            f"The ranks of {len(gaps)} queries, such as {shown(gaps[0])}, have gaps: their photos were taken in order, "
            "as if nothing were missing."
        )
    photos = {query: [of_query[rank] for rank in sorted(of_query)] for query, of_query in ranked.items()}
    return Rankings(photos, str(path), notes)


def _rows(table: CsvFile) -> Iterator[tuple[int, str, int, str]]:
    """Line, query, rank and photo of each row."""
    places: tuple[int, int, int] | None = None
    for line, cells in table.records():
        if not any(cell.strip() for cell in cells):
            continue
        if places is None:
            named = _header(cells)
            places = named or (0, 1, 2)
            if named:
                continue
            if not any(_SIGNED.fullmatch(cell.strip()) for cell in cells[1:2]):
                raise CairnError(
                    f"{table.path} is no table of rankings: its columns are query, rank and photo, in this order where "
                    f"it has no header, and its first line is {shown(table.delimiter.join(cells))}."
                )
        if len(cells) <= max(places):
            raise CairnError(f"{table.path}, line {line}: the row is too short; it needs a query, a rank and a photo.")
        query, rank, photo = (cells[place].strip() for place in places)
        if not query or not photo:
            raise CairnError(f"{table.path}, line {line}: the {'photo' if query else 'query'} is missing.")
        if not _SIGNED.fullmatch(rank):
            raise CairnError(f"{table.path}, line {line}: the rank {shown(rank)} is no whole number.")
        yield line, query, int(rank), photo


def _header(cells: Sequence[str]) -> tuple[int, int, int] | None:
    """Places of query, rank and photo where the cells name them."""
    names = [cell.strip().casefold() for cell in cells]
    if not all(names.count(name) == 1 for name in HEADER[:3]):
        return None
    query, rank, photo = (names.index(name) for name in HEADER[:3])
    return query, rank, photo
