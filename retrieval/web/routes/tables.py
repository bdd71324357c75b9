"""Routes of tables of metadata: previewed first, then imported."""

import itertools
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field, StringConstraints
from starlette.concurrency import run_in_threadpool

from index.errors import CairnError, DatabaseError
from index.messages import Message
from retrieval.catalogue.tables.importing import ImportReport, TableOptions, import_table
from retrieval.catalogue.tables.reading import DELIMITERS, open_csv
from retrieval.metadata.fields import FIELDS, WORDS
from retrieval.metadata.text import LONGEST_KEY, clean
from retrieval.web.access.rights import WRITING
from retrieval.web.problems import ProblemError
from retrieval.web.service import service_of
from retrieval.web.uploads import form_of

router = APIRouter(prefix="/api/tables", tags=["photos"])

SAMPLE = 8  # rows that are shown
_SHOWN = 100  # most rows without a photo, and invalid values, that are reported
_LONGEST_CELL = 200  # characters
_MOST_COLUMNS = 200
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
        return await run_in_threadpool(_report, service, form.photos[0], form.names[0], options_sent, dry_run)


def _report(service: Any, path: Path, name: str, wanted: HowToImport, dry_run: bool) -> TableReport:
    """Read a table, and import it unless it is only previewed."""
    named = [header for header, means in wanted.columns.items() if means == "photo"]
    options = TableOptions(
        named[0] if named else None,
        wanted.delimiter,
        tuple((WORDS[means], header) for header, means in wanted.columns.items() if means in WORDS),
        tuple(header for header, means in wanted.columns.items() if means == "text"),
    )

    def said(sentence: str | Message) -> str:
        return Message.of(sentence).sentence(lambda place: _ON_PAGE.get(place, place)).replace(str(path), name)

    try:
        report = import_table(service.collection.catalogue, path, options, replace=wanted.replace, dry_run=dry_run)
        header, *sample = itertools.islice(_cells(path, wanted.delimiter), SAMPLE + 1)
    except DatabaseError:
        raise
    except CairnError as error:
        raise ProblemError(422, said(error.message)) from None
    return TableReport(
        imported=not dry_run,
        rows=report.rows,
        matched=report.matched,
        photos=report.photos,
        columns=_columns(header, report),
        sample=sample,
        unmatched=[
            TableLine(line=int(one["line"]), what=str(one["name"]), reason=str(one["reason"]))
            for one in report.unmatched[:_SHOWN]
        ],
        warnings=[
            TableLine(line=int(one["line"]), what=str(one["column"]), reason=str(one["reason"]))
            for one in report.warnings[:_SHOWN]
        ],
        notes=[said(one) for one in (*report.columns["warnings"], *report.notes)],
    )


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
