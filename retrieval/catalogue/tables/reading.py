"""The reader of tables (CSV, RFC 4180): in UTF-8, UTF-16 or Windows-1252, with commas, semicolons or tabs."""

import codecs
import contextlib
import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from index.errors import CairnError

LARGEST = 512 << 20
"""Bytes of a table."""

DELIMITERS = {",": ",", ";": ";", "tab": "\t"}
_SAMPLE = 1 << 16  # characters of a table used to find its delimiter


@dataclass(frozen=True)
class CsvFile:
    """A table in a file, which may be read several times."""

    path: Path
    encoding: str  # utf-8-sig, utf-16 or cp1252
    delimiter: str

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """First lines of records, counted from 1, and their cells; blanks before a cell are ignored."""
        with _text(self.path, self.encoding) as text:
            reader = csv.reader(text, delimiter=self.delimiter, strict=True, skipinitialspace=True)
            while True:
                line = reader.line_num + 1
                try:
                    cells = next(reader)
                except StopIteration:
                    return
                except csv.Error as error:
                    raise CairnError(
                        "{path} cannot be read as a table from line {line} on: the quotes do not pair there (a quote "
                        "inside a quoted cell is written twice), or a cell has more than {most} characters.",
                        path=self.path,
                        line=line,
                        most=csv.field_size_limit(),
                    ) from error
                yield line, cells


def open_csv(path: Path, delimiter: str | None = None) -> CsvFile:
    """Detect the encoding of a table, and by default its delimiter: the one that splits the most lines into cells."""
    encoding = _encoding(path)
    if delimiter is None:
        with _text(path, encoding) as text:
            delimiter = _delimiter(text.read(_SAMPLE))
    return CsvFile(path, encoding, delimiter)


def _text(path: Path, encoding: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(_open(path), encoding=encoding, errors="replace", newline="")


def _open(path: Path) -> io.BufferedReader:
    try:
        if not path.is_file():
            raise CairnError("There is no table {path}: give a CSV file.", path=path)
        if path.stat().st_size > LARGEST:
            raise CairnError("{path} has more than {most} MB: split it into parts.", path=path, most=LARGEST >> 20)
        return path.open("rb")
    except OSError as error:
        raise CairnError(
            "{path} cannot be read ({reason}): check the file and its permissions.",
            path=path,
            reason=error.strerror or str(error),
        ) from error


def _encoding(path: Path) -> str:
    """UTF-16 by its byte order mark, as Excel's Unicode text; UTF-8 if all of it is valid; else Windows-1252."""
    with _open(path) as file:
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


def _delimiter(sample: str) -> str:
    """The delimiter that splits the most lines, and the first line into the most cells.

    (`csv.Sniffer` misreads quoted names of unusual characters, and takes seconds if quotes do not pair.)
    """

    def parted(delimiter: str) -> tuple[int, int]:
        reader = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter, skipinitialspace=True)
        lengths: list[int] = []
        with contextlib.suppress(csv.Error):  # a cell is too long, which `CsvFile.records` reports
            lengths.extend(len(cells) for cells in reader)
        return sum(length > 1 for length in lengths), next(iter(lengths), 0)

    # Ties: a comma may be part of a text, a tab or a semicolon hardly.
    best = max(reversed(DELIMITERS.values()), key=parted)
    return best if parted(best)[0] else ","
