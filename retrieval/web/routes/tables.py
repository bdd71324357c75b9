"""Routes of tables of metadata: previewed first, then imported."""

import itertools
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field, StringConstraints
from starlette.concurrency import run_in_threadpool

from index.errors import CairnError, DatabaseError
from index.messages import Message, said
from retrieval.catalogue.tables.importing import ImportReport, TableOptions, import_table
from retrieval.catalogue.tables.reading import DELIMITERS, open_csv
from retrieval.metadata.fields import FIELDS, WORDS
from retrieval.metadata.text import LONGEST_KEY, clean
from retrieval.web.access.rights import WRITING
from retrieval.web.languages import ENGLISH
from retrieval.web.problems import ProblemError
from retrieval.web.reasons import in_language, reason_in
from retrieval.web.rendering import language_of
from retrieval.web.service import service_of
from retrieval.web.uploads import form_of

router = APIRouter(prefix="/api/tables", tags=["photos"])

SAMPLE = 8  # rows that are shown
_SHOWN = 100  # most rows without a photo, and invalid values, that are reported
_LONGEST_CELL = 200  # characters
_MOST_COLUMNS = 200
_WORDS = (
    *(said("date"), said("camera"), said("latitude"), said("longitude"), said("title"), said("tags")),
    *(said("caption"), said("rating"), said("favourite")),
)
"""What sentences call the fields."""

_ON_PAGE = {"--map": "the columns below", "--name-column": "the column with the photo", "--delimiter": "the separator"}
"""What the page calls options of the command line."""

Meaning: Any = Literal["photo", *WORDS, "text"]
Header = Annotated[str, StringConstraints(max_length=1000)]


class HowToImport(BaseModel):
    """How to read a table."""

    columns: dict[Header, Meaning] = Field({}, description="By header, what its column says; others are understood.")
    delimiter: Literal["auto", ",", ";", "tab"] = "auto"
    replace: bool = Field(False, description="Forget what was imported or typed in earlier, of all photos.")


class TableColumn(BaseModel):
    """A column of a table."""

    header: str
    means: Meaning = Field(description="photo: the photo of each row; text: imported as text.")


class TableLine(BaseModel):
    """A row without a photo, or an invalid value."""

    line: int
    what: str = Field(description="The photo it names, or the column.")
    reason: str
    said: str = Field(description="The reason in the visitor's language.")


class TableReport(BaseModel):
    """Contents of a table for the photos, or the result of its import."""

    imported: bool
    rows: int
    matched: int = Field(description="Rows that match photos of the collection.")
    photos: int = Field(description="Photos that they are about.")
    columns: list[TableColumn]
    sample: list[list[str]] = Field(description="The cells of the first rows.")
    unmatched: list[TableLine] = Field(description=f"The first {_SHOWN} rows that are about no photo.")
    warnings: list[TableLine] = Field(description=f"The first {_SHOWN} values that make no sense.")
    notes: list[str] = Field(description="Sentences.")
    said: list[str] = Field(description="The notes in the visitor's language.")


_FORM = form_of(
    {
        "table": {"type": "string", "format": "binary", "description": "A CSV file."},
        "request": HowToImport,
    },
    required=["table"],
)


@router.post("/preview", dependencies=WRITING, openapi_extra=_FORM)
async def preview_table(request: Request) -> TableReport:
    """Report how a table is understood and which photos it names, without changing anything."""
    return await _read(request, dry_run=True)


@router.post("/import", dependencies=WRITING, openapi_extra=_FORM)
async def import_a_table(request: Request) -> TableReport:
    """Import a table of metadata, which takes precedence over the photos' files."""
    answer = await _read(request, dry_run=False)
    service_of(request).wrote()
    return answer


async def _read(request: Request, *, dry_run: bool) -> TableReport:
    service = service_of(request)
    async with service.forms.receive(request) as form:
        if len(form.photos) != 1:
            raise ProblemError(400, "Send one table, as the field table of the form.")
        options_sent = HowToImport.model_validate_json(form.fields.get("request") or "{}")
        language = language_of(request)
        return await run_in_threadpool(_report, service, form.photos[0], form.names[0], options_sent, dry_run, language)


def _report(service: Any, path: Path, name: str, wanted: HowToImport, dry_run: bool, language: str) -> TableReport:
    """Read a table, and import it unless it is only previewed."""
    named = [header for header, means in wanted.columns.items() if means == "photo"]
    options = TableOptions(
        named[0] if named else None,
        wanted.delimiter,
        tuple((WORDS[means], header) for header, means in wanted.columns.items() if means in WORDS),
        tuple(header for header, means in wanted.columns.items() if means == "text"),
    )

    try:
        report = import_table(service.collection.catalogue, path, options, replace=wanted.replace, dry_run=dry_run)
        header, *sample = itertools.islice(_cells(path, wanted.delimiter), SAMPLE + 1)
    except DatabaseError:
        raise
    except CairnError as error:
        raise ProblemError(422, _of_upload(error.message, path, name), naming=_on_page) from None
    notes = [_of_upload(Message.of(one), path, name) for one in (*report.columns["warnings"], *report.notes)]
    return TableReport(
        imported=not dry_run,
        rows=report.rows,
        matched=report.matched,
        photos=report.photos,
        columns=_columns(header, report),
        sample=sample,
        unmatched=[_line(one, "name", language) for one in report.unmatched[:_SHOWN]],
        warnings=[_line(one, "column", language) for one in report.warnings[:_SHOWN]],
        notes=[in_language(one, ENGLISH, _on_page) for one in notes],
        said=[in_language(one, language, _on_page) for one in notes],
    )


def _of_upload(message: Message, path: Path, name: str) -> Message:
    """A message with the table's own name and translatable names of fields."""
    values = {key: Message(value) if value in _WORDS else value for key, value in message.values.items()}
    return Message(message.text, **{key: name if value == path else value for key, value in values.items()})


def _on_page(place: str) -> str:
    return _ON_PAGE.get(place, place)


def _line(row: dict[str, str | int], what: str, language: str) -> TableLine:
    reason = str(row["reason"])
    return TableLine(line=int(row["line"]), what=str(row[what]), reason=reason, said=reason_in(reason, language))


def _cells(path: Path, delimiter: str) -> Any:
    """The cells of a table as they are shown, row by row."""
    for _, cells in open_csv(path, DELIMITERS.get(delimiter)).records():
        if any(cells):
            yield [clean(cell, _LONGEST_CELL) for cell in cells[:_MOST_COLUMNS]]


def _columns(header: list[str], report: ImportReport) -> list[TableColumn]:
    """The field that each column is read as."""
    means: dict[str, Any] = {one["column"]: FIELDS[one["as"]].word for one in report.columns["understood"]}
    means[report.columns["photo"]] = "photo"
    names = [clean(name, LONGEST_KEY) for name in header]
    return [TableColumn(header=name, means=means.get(name, "text")) for name in names]
