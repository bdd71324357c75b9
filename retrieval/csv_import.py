"""Tables of metadata (CSV, RFC 4180): which photo each row is about, and what it says of it."""

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from index.errors import CairnError
from retrieval.catalogue import Catalogue
from retrieval.console import printable_name
from retrieval.dates import read_date
from retrieval.metadata import (
    LONGEST_CAMERA,
    LONGEST_TITLE,
    clean,
    clean_position,
    clean_tags,
)
from retrieval.metadata_store import LONGEST_KEY, LONGEST_VALUE, SINGLE, TAG, column_key
from retrieval.photo_lookup import PhotoLookup

LARGEST = 512 << 20
"""Bytes of a table."""

DELIMITERS = {",": ",", ";": ";", "tab": "\t"}
_LISTED = 300  # characters of a list of columns in a message
_NAMES = ("name", "path", "file", "filename", "file name")  # columns that say which photo a row is about
_MOST_COLUMNS = 1000


@dataclass(frozen=True)
class TableOptions:
    """How a table is read."""

    name_column: str | None = None  # the column that says which photo; None: name, path or file
    delimiter: str = "auto"  # ",", ";", "tab", or auto: the one that makes most columns of the first line

    def __post_init__(self) -> None:
        if self.delimiter not in ("auto", *DELIMITERS):
            raise CairnError(f"{self.delimiter!r} is no delimiter: choose one of auto, {', '.join(DELIMITERS)}.")


@dataclass(frozen=True)
class Row:
    """A row of a table."""

    line: int  # on which it begins, counted from 1
    name: str  # which photo
    values: dict[str, tuple[str, ...]]  # by key, clean; no key without a value


@dataclass
class Table:
    """What a table says."""

    rows: list[Row] = field(default_factory=list)
    unmatched: list[dict[str, str | int]] = field(default_factory=list)  # line, name, reason: rows that say of nothing
    warnings: list[dict[str, str | int]] = field(default_factory=list)  # line, column, reason: what was left out
    notes: list[str] = field(default_factory=list)  # sentences


@dataclass(frozen=True)
class ImportReport:
    """What an import did."""

    rows: int
    matched: int  # rows
    photos: int  # which these rows are about
    unmatched: list[dict[str, str | int]]
    warnings: list[dict[str, str | int]]
    notes: list[str]


def import_table(
    catalogue: Catalogue, path: Path, options: TableOptions | None = None, *, replace: bool = False
) -> ImportReport:
    """Import a table into a catalogue: all of it, or nothing where it cannot be read.

    Of several rows about one photo, later values win, and tags count together.

    Parameters
    ----------
    catalogue : Catalogue
        Of the collection.
    path : Path
        The table.
    options : TableOptions, optional
        How it is read.
    replace : bool
        Forget what was imported earlier, of all photos.

    Returns
    -------
    ImportReport

    Raises
    ------
    CairnError
        The table cannot be read, or names no photos; with `replace`, none of them is in the collection.
    """
    table = read_table(path, options)
    photos = PhotoLookup(catalogue.places())
    values: dict[int, dict[str, tuple[str, ...]]] = {}
    lines: dict[int, int] = {}
    unmatched, warnings = list(table.unmatched), list(table.warnings)
    matched = 0
    for row in table.rows:
        found = photos.find(row.name)
        if isinstance(found, str):
            unmatched.append({"line": row.line, "name": _shown(row.name), "reason": found})
            continue
        matched += 1
        known = values.setdefault(found, {})
        if found in lines:
            reason = f"line {lines[found]} is about the same photo"
            warnings.append({"line": row.line, "column": "", "reason": reason})
        lines[found] = row.line
        tags = clean_tags((*known.get(TAG, ()), *row.values.get(TAG, ())))
        known.update(row.values | ({TAG: tags} if tags else {}))
    if replace and not matched:
        reason = f" (line {unmatched[0]['line']}: {unmatched[0]['reason']})" if unmatched else ""
        raise CairnError(
            f"No row of {path} is about a photo of the collection{reason}: nothing was imported, and "
            "nothing forgotten; check its names, or give --name-column."
        )
    catalogue.import_values({number: one for number, one in values.items() if one}, replace=replace)
    unmatched.sort(key=lambda one: one["line"])
    warnings.sort(key=lambda one: one["line"])
    rows = len(table.rows) + len(table.unmatched)
    return ImportReport(rows, matched, len(values), unmatched, warnings, table.notes)


def read_table(path: Path, options: TableOptions | None = None) -> Table:
    """Read a table whose first line names its columns.

    The columns title, taken (or date), camera, latitude, longitude and tags (or keywords) are understood, every other
    one is kept under its own name. An empty cell says nothing.

    Raises
    ------
    CairnError
        It cannot be read as a table, no column says which photos the rows are about, or two are the same.
    """
    options = options or TableOptions()
    table = Table()
    encoding = _encoding(path)
    if encoding == "cp1252":
        table.notes.append(f"{path} is not UTF-8: it was read as Windows-1252. Look at its letters beyond ASCII.")
    with _readable(path) as raw:
        text = io.TextIOWrapper(raw, encoding=encoding, errors="replace", newline="")
        sample = text.readline(1 << 20)
        text.seek(0)
        delimiter = DELIMITERS.get(options.delimiter) or _sniff(sample)
        records = _records(path, text, delimiter)
        header = next(records, (1, []))[1]
        names = [clean(name, LONGEST_KEY) for name in header[:_MOST_COLUMNS]]
        which = _name_column(path, names, options.name_column)
        keys = _keys(path, names, which)
        for line, cells in records:
            if not any(cells):
                continue
            name = cells[which].strip() if which < len(cells) else ""
            if any(cells[len(header) :]):
                reason = f"the row has {len(cells)} cells, and the first line {len(header)}"
                table.unmatched.append({"line": line, "name": _shown(name), "reason": reason})
            elif not name:
                table.unmatched.append({"line": line, "name": "", "reason": "the row names no photo"})
            else:
                texts: dict[str, list[str]] = {}
                for key, cell in zip(keys, cells, strict=False):
                    if key and cell.strip():
                        texts.setdefault(key, []).append(cell)
                table.rows.append(Row(line, name, _understood(texts, line, table.warnings)))
    return table


def _readable(path: Path) -> io.BufferedReader:
    try:
        if not path.is_file():
            raise CairnError(f"There is no table {path}: give a CSV file.")
        if path.stat().st_size > LARGEST:
            raise CairnError(f"{path} has more than {LARGEST >> 20} MB: import it in parts.")
        return path.open("rb")
    except OSError as error:
        raise CairnError(
            f"{path} cannot be read ({error.strerror or error}): check the file and its rights."
        ) from error


def _encoding(path: Path) -> str:
    """UTF-16 where it begins so, as what Excel calls Unicode text does; UTF-8 if all of it is; else Windows-1252."""
    with _readable(path) as file:
        if file.peek(2)[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "utf-16"
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            while piece := file.read(1 << 20):
                decoder.decode(piece)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "cp1252"
    return "utf-8-sig"


def _sniff(line: str) -> str:
    """The delimiter that makes the most cells of a line, outside of quotes."""
    return max(DELIMITERS.values(), key=re.sub('"[^"]*"', "", line).count)


def _records(path: Path, text: io.TextIOWrapper, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Lines on which records begin, and their cells."""
    reader = csv.reader(text, delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise CairnError(
                f"{path} is no table from line {line} on ({_shown(str(error))}): check the quotes there; "
                "nothing was imported."
            ) from error
        yield line, cells


def _name_column(path: Path, names: Sequence[str], wanted: str | None) -> int:
    there = [name.casefold() for name in names]
    candidates = _NAMES if wanted is None else (clean(wanted, LONGEST_KEY).casefold(),)
    for candidate in candidates:
        if candidate in there:
            return there.index(candidate)
    listed = ", ".join(repr(printable_name(name)) for name in names[:20]) or "none"
    listed = listed if len(listed) <= _LISTED else f"{listed[:_LISTED]}…"
    if wanted is not None:
        raise CairnError(f"{path} has no column {wanted!r}; its columns are {listed}.")
    raise CairnError(
        f"No column of {path} says which photo a row is about; its columns are {listed}: call one name, path or file, "
        "or give --name-column."
    )


def _keys(path: Path, names: Sequence[str], which: int) -> list[str]:
    """The key of each column; "" for that of the photos' names, and for those without a name."""
    keys = ["" if place == which else column_key(name) for place, name in enumerate(names)]
    for key in SINGLE:
        if keys.count(key) > 1:
            raise CairnError(f"{path} has {keys.count(key)} columns for {key}: leave one.")
    return keys


def _understood(
    texts: dict[str, list[str]], line: int, warnings: list[dict[str, str | int]]
) -> dict[str, tuple[str, ...]]:
    """Values as they are kept; a warning for each that makes no sense."""

    def warn(column: str, reason: str) -> None:
        warnings.append({"line": line, "column": column, "reason": reason})

    values: dict[str, tuple[str, ...]] = {}
    for key, cells in texts.items():
        if key == TAG:
            values[key] = clean_tags(tag for cell in cells for tag in cell.replace("|", ";").split(";"))
        elif key == "taken":
            date = read_date(cells[0])
            if date is None:
                warn(key, f"{_shown(cells[0])!r} is no date")
            else:
                values[key] = (date,)
        elif key not in ("latitude", "longitude"):
            longest = {"title": LONGEST_TITLE, "camera": LONGEST_CAMERA}.get(key, LONGEST_VALUE)
            values[key] = tuple(clean(cell, longest) for cell in cells)
            if any(len(cell) > longest for cell in cells):
                warn(key, f"the value is cut off after {longest} characters")
    given = [next(iter(texts.get(key, ())), "") for key in ("latitude", "longitude")]
    if any(given):
        latitude, longitude = clean_position(*map(_number, given))
        if latitude is None:
            warn("latitude", f"{_shown(', '.join(given))!r} is no place in degrees north and east")
        else:
            values["latitude"], values["longitude"] = (str(latitude),), (str(longitude),)
    return {key: kept for key, several in values.items() if (kept := tuple(one for one in several if one))}


def _number(text: str) -> float | None:
    """A number, with a point or a comma."""
    try:
        return float(text.strip().replace(",", "."))
    except ValueError:
        return None


def _shown(text: str) -> str:
    return clean(text, 200)
