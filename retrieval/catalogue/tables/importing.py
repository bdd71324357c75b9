"""Import of tables of metadata (CSV, RFC 4180): the photo of each row, and its values."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from index.errors import CairnError
from index.messages import Message, said
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.metadata_store import TAG, folded_key, import_values
from retrieval.catalogue.photo_lookup import PhotoLookup
from retrieval.catalogue.tables.cells import Survey, read_degrees
from retrieval.catalogue.tables.columns import Columns, may_say_photo, understand_columns
from retrieval.catalogue.tables.reading import DELIMITERS, open_csv
from retrieval.metadata.dates import date_orders, read_date
from retrieval.metadata.fields import FIELDS
from retrieval.metadata.text import LONGEST_KEY, LONGEST_VALUE, clean, clean_position, clean_tags

_MOST_COLUMNS = 1000
_PLACE = ("latitude", "longitude")
_LONGEST_SHOWN = 200  # characters of a name or a cell in a report


@dataclass(frozen=True)
class TableOptions:
    """How a table is read."""

    name_column: str | None = None  # the column that names the photo; None: name, path, file and the like
    delimiter: str = "auto"  # ",", ";", "tab", or auto: the one that splits the most lines into cells
    mapping: tuple[tuple[str, str], ...] = ()  # keys of fields and the headers of their columns, which take precedence
    plain: tuple[str, ...] = ()  # headers of columns to store as text, without interpretation

    def __post_init__(self) -> None:
        if self.delimiter not in ("auto", *DELIMITERS):
            raise CairnError(f"{self.delimiter!r} is not a delimiter: choose one of auto, {', '.join(DELIMITERS)}.")


@dataclass(frozen=True)
class TableRow:
    """A row of a table."""

    line: int  # of its beginning, counted from 1
    name: str  # of the photo
    values: dict[str, tuple[str, ...]]  # by key, clean; no key without a value


@dataclass
class ImportedTable:
    """Contents of a table."""

    columns: Columns
    rows: list[TableRow] = field(default_factory=list)
    unmatched: list[dict[str, str | int]] = field(default_factory=list)  # line, name, reason: rows without a photo
    warnings: list[dict[str, str | int]] = field(default_factory=list)  # line, column, reason: suspect values
    notes: list[str | Message] = field(default_factory=list)  # sentences


@dataclass(frozen=True)
class ImportReport:
    """What an import did."""

    rows: int
    matched: int  # rows
    photos: int  # photos of these rows
    unmatched: list[dict[str, str | int]]
    warnings: list[dict[str, str | int]]
    notes: list[str | Message]
    # "photo": the column of the photos' names; "understood": [{"column", "as"}], with the keys of the catalogue;
    # "kept": columns stored as text; "warnings": sentences.
    columns: dict[str, Any] = field(default_factory=dict)


def import_table(
    catalogue: Catalogue,
    path: Path,
    options: TableOptions | None = None,
    *,
    replace: bool = False,
    dry_run: bool = False,
) -> ImportReport:
    """Import a table into a catalogue: all of it, or nothing if it cannot be read.

    If several rows are about one photo, later values win, and tags are combined. `replace` deletes the earlier imported
    values of all photos; it needs a photo of the collection in the table.
    """
    photos = PhotoLookup(list(catalogue.places()), near=(path.parent,))
    table = read_table(path, options, photos)
    values: dict[int, dict[str, tuple[str, ...]]] = {}
    lines: dict[int, int] = {}
    unmatched, warnings = list(table.unmatched), list(table.warnings)
    matched = 0
    for row in table.rows:
        photo = photos.find(row.name)
        if isinstance(photo, str):
            unmatched.append({"line": row.line, "name": clean(row.name, _LONGEST_SHOWN), "reason": photo})
            continue
        matched += 1
        known = values.setdefault(photo, {})
        if photo in lines:
            reason = f"line {lines[photo]} is about the same photo"
            warnings.append({"line": row.line, "column": "", "reason": reason})
        lines[photo] = row.line
        tags = clean_tags((*known.get(TAG, ()), *row.values.get(TAG, ())))
        known.update(row.values | ({TAG: tags} if tags else {}))
        # A valid value replaces an invalid one of an earlier row or table, which was stored as text.
        for key, label in table.columns.refused.items():
            if key in row.values and folded_key(label) not in table.columns.keys:
                known[folded_key(label)] = ()
    if replace and not matched:
        why: str | Message = ""
        if unmatched:
            first = unmatched[0]
            why = Message(said(" (line {line}: {reason})"), line=first["line"], reason=Message(str(first["reason"])))
        raise CairnError(
            "No row of {path} names a photo of the collection{reason}: nothing was imported or removed; check its "
            "names, or give {--name-column}.",
            path=path,
            reason=why,
        )
    if unmatched and not matched:
        table.notes.append(
            Message(
                "No row of {path} names a photo of the collection: check the names in its column {column}, or choose "
                "another column with {--name-column}.",
                path=path,
                column=repr(table.columns.report["photo"]),
            )
        )
    nonempty = {number: one for number, one in values.items() if one}
    if not dry_run:
        catalogue.write(import_values, nonempty, replace=replace, labels=table.columns.labels)
    unmatched.sort(key=lambda one: one["line"])
    warnings.sort(key=lambda one: one["line"])
    rows = len(table.rows) + len(table.unmatched)
    return ImportReport(rows, matched, len(values), unmatched, warnings, table.notes, table.columns.report)


def read_table(path: Path, options: TableOptions | None = None, photos: PhotoLookup | None = None) -> ImportedTable:
    """Read a table whose first line names its columns.

    `columns.understand_columns` decides the meanings of columns; unknown columns are stored under their own names.
    Empty cells are skipped. The photos of the collection, if passed, help to find the column that names them.
    """
    options = options or TableOptions()
    file = open_csv(path, DELIMITERS.get(options.delimiter))
    # Read twice: the meaning of a column may depend on all its cells.
    table = ImportedTable(_columns(path, file.records(), options, photos))
    _read_rows(file.records(), table)
    if file.encoding == "cp1252":
        table.notes.append(
            Message("{path} is not UTF-8: it was read as Windows-1252. Look at its letters beyond ASCII.", path=path)
        )
    return table


def _columns(
    path: Path, records: Iterator[tuple[int, list[str]]], options: TableOptions, photos: PhotoLookup | None
) -> Columns:
    names = [clean(name, LONGEST_KEY) for name in next(records, (1, []))[1][:_MOST_COLUMNS]]
    is_photo = None if photos is None else lambda name: not isinstance(photos.find(name), str)
    surveys = [Survey(is_photo=is_photo if may_say_photo(name) else None) for name in names]
    for _, cells in records:
        for survey, cell in zip(surveys, cells, strict=False):
            if cell:
                survey.add(cell)
    return understand_columns(path, names, surveys, options.name_column, options.mapping, options.plain)


def _read_rows(records: Iterator[tuple[int, list[str]]], table: ImportedTable) -> None:
    header = next(records, (1, []))[1]
    which = table.columns.photo
    for line, cells in records:
        if not any(cells):
            continue
        name = cells[which].strip() if which < len(cells) else ""
        if any(cells[len(header) :]):
            reason = f"the row has {len(cells)} cells, and the first line {len(header)}"
            table.unmatched.append({"line": line, "name": clean(name, _LONGEST_SHOWN), "reason": reason})
        elif not name:
            table.unmatched.append({"line": line, "name": "", "reason": "the row names no photo"})
        else:
            texts: dict[str, list[str]] = {}
            for key, cell in zip(table.columns.keys, cells, strict=False):
                if key and cell.strip():
                    texts.setdefault(key, []).append(cell)
            table.rows.append(TableRow(line, name, _understood(texts, line, table)))


def _understood(texts: dict[str, list[str]], line: int, table: ImportedTable) -> dict[str, tuple[str, ...]]:
    """Values as stored; invalid ones are stored as text, with a warning for each."""

    def warn(key: str, reason: str) -> None:
        table.warnings.append({"line": line, "column": table.columns.labels.get(key, key), "reason": reason})

    def refuse(reason: str, *keys: str) -> None:
        cells = ", ".join(cell for key in keys for cell in texts.get(key, [""]))
        labels = " and ".join(repr(table.columns.refused[key]) for key in keys if key in texts)
        warn(keys[0], f"{clean(cells, _LONGEST_SHOWN)!r} is {reason}; kept as text under {labels}")
        refused.extend((key, texts[key][0]) for key in keys if key in texts)

    refused: list[tuple[str, str]] = []
    values: dict[str, tuple[str, ...]] = {}
    for key, cells in texts.items():
        if key == TAG:
            values[key] = clean_tags(tag for cell in cells for tag in cell.replace("|", ";").split(";"))
        elif key == "taken":
            date = read_date(cells[0], table.columns.day_first)
            if date is None:
                refuse(_no_date(cells[0]), key)
            else:
                values[key] = (date,)
        elif key in _PLACE:
            continue  # both together, below
        elif key in FIELDS and not FIELDS[key].kind.longest:
            value = FIELDS[key].kind.read(cells[0])
            if value is None:
                refuse(f"not {FIELDS[key].kind.wanted}", key)
            else:
                values[key] = FIELDS[key].kind.write(value)
        else:
            longest = FIELDS[key].kind.longest if key in FIELDS else LONGEST_VALUE
            values[key] = tuple(clean(cell, longest) for cell in cells)
            if any(len(cell) > longest for cell in cells):
                warn(key, f"the value is cut off after {longest} characters")
    place = {key: next(iter(texts.get(key, ())), "") for key in _PLACE}
    if any(place.values()):
        latitude, longitude = clean_position(*(read_degrees(cell, key) for key, cell in place.items()))
        if latitude is None:
            refuse("no place in degrees north and east", *place)
        else:
            values["latitude"], values["longitude"] = (str(latitude),), (str(longitude),)
    for key, cell in refused:
        kept_as = folded_key(table.columns.refused[key])
        values[kept_as] = (*values.get(kept_as, ()), clean(cell, LONGEST_VALUE))
        table.columns.labels.setdefault(kept_as, table.columns.refused[key])
    return {key: kept for key, several in values.items() if (kept := tuple(one for one in several if one))}


def _no_date(text: str) -> str:
    orders = date_orders(text)
    if orders is None or None in orders:
        return "no date"
    return f"not clear: write {orders[0]} if the day is first, {orders[1]} if the month is"
