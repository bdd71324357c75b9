"""The command metadata."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from retrieval.commands.console import FAILED, first_of, print_json, say
from retrieval.commands.option_groups import grouped
from retrieval.commands.options import Folder, WorkOptions
from retrieval.metadata.fields import FIELDS, WORDS

_LISTED = 20  # rows and warnings that are printed for people


@dataclass(frozen=True)
class TableToImport:
    """How a table is read, as options of the command line."""

    name_column: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column that names the photo of each row (default: name, path or file)."),
    ] = None
    mapping: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="FIELD=HEADER",
            help=f"Assign a column to a field: {', '.join(WORDS)}; may be repeated.",
        ),
    ] = None
    delimiter: Annotated[
        str, typer.Option(metavar="CHARACTER", help="Separator of the columns: auto, ',', ';' or tab.")
    ] = "auto"
    replace: Annotated[
        bool, typer.Option("--replace", help="First remove everything that was imported earlier, for all photos.")
    ] = False


@dataclass(frozen=True)
class MetadataFiles:
    """Output of metadata, as options of the command line."""

    export: Annotated[
        Path | None,
        typer.Option(metavar="FILE.csv", help="Write all imported values to a new table, which can be imported again."),
    ] = None
    write_sidecars: Annotated[
        bool,
        typer.Option(
            "--write-sidecars",
            help="Write imported and typed-in values, and albums, to XMP sidecars next to the photos, where other "
            "programs can read them. Other content of the sidecars stays, and no photo is changed.",
        ),
    ] = False
    below: Annotated[
        list[Path] | None,
        typer.Option(
            "--below",
            metavar="FOLDER",
            help="With --write-sidecars, write only in this folder, whatever links to other places it contains; may be "
            "repeated.",
            show_default=False,
        ),
    ] = None
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Exit with code 1 if a row matched no photo, or several, or if a sidecar could not be written.",
        ),
    ] = False


@grouped
def metadata(
    *,
    collection: Folder,
    table: Annotated[
        Path | None, typer.Argument(metavar="[FILE.csv]", help="Table to import; its first line names the columns.")
    ] = None,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Read the metadata of the photos' files again; imported values stay.")
    ] = False,
    photo: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Show what is known about one photo, by its name in the collection or its file name alone.",
        ),
    ] = None,
    reading: TableToImport,
    files: MetadataFiles,
    run: WorkOptions,
) -> None:
    """Show what is known about photos, or import more from a table.

    When photos are indexed, dates, places, cameras, titles, captions, tags and ratings are read from their files, and
    from XMP sidecars and the JSON files of Google Takeout next to them. A table adds to that, and takes precedence.
    Columns for these fields (tags separated by ; or |) are recognised by their usual headers in English, German,
    French, Spanish, Italian and Dutch, or by --map; every other column is stored under its own name. cairn query and
    cairn serve can filter by all of it.
    """
    from retrieval.library.collection import Collection

    changes = table is not None or refresh or files.write_sidecars
    _check(table, photo, reading, files, changes=changes)
    summary: dict[str, Any] = {"collection": str(collection)}
    lines: list[str] = []
    with run.open(collection) as opened:
        if refresh:
            read = opened.refresh_metadata(progress=run.progress)
            summary |= read.to_dict()
            lines.append(
                f"{read.read} photos read, {read.with_metadata} of them with metadata, {read.missing} missing."
            )
        if table is not None:
            columns = [(word, header) for word, _, header in (one.partition("=") for one in reading.mapping or ())]
            summary |= opened.import_metadata(table, **{**vars(reading), "mapping": columns}).to_dict()
            lines += _report_import(summary)
        if files.write_sidecars:
            if files.below is not None:
                opened = Collection(replace(opened.opened, below=tuple(files.below)))
            done = opened.write_sidecars(progress=run.progress)
            summary |= {"sidecars": done.to_dict()}
            lines.append(f"{done.written} sidecars written, {done.unchanged} as they were, {done.missing} missing.")
            lines += first_of([f"{one['path']}: {one['reason']}" for one in done.failed], _LISTED)
        if not changes:
            lines += _tell(opened.opened.catalogue, photo, files.export, summary)
    if run.json:
        print_json(summary)
    else:
        for line in lines:
            say(line)
    if files.strict and (summary.get("unmatched") or summary.get("sidecars", {}).get("failed")):
        raise typer.Exit(FAILED)


def _check(
    table: Path | None, photo: str | None, reading: TableToImport, files: MetadataFiles, *, changes: bool
) -> None:
    from index.errors import CairnError
    from retrieval.catalogue.tables.columns import parse_mapping

    if table is None and reading != TableToImport():
        raise CairnError("--replace, --name-column, --map and --delimiter need a table to import: name its file.")
    if files.strict and table is None and not files.write_sidecars:
        raise CairnError("--strict needs a table to import, or --write-sidecars.")
    if files.below is not None and not files.write_sidecars:
        raise CairnError("--below needs --write-sidecars.")
    if photo is not None and changes:
        raise CairnError("--photo shows one photo: leave the table, --refresh and --write-sidecars out.")
    if files.export is not None and (changes or photo is not None):
        raise CairnError(
            "--export writes a table: leave the table to import, --refresh, --write-sidecars and --photo out."
        )
    for one in reading.mapping or ():
        parse_mapping(one)  # raises an error before anything is read


def _tell(catalogue: Any, photo: str | None, export: Path | None, summary: dict[str, Any]) -> list[str]:
    """Add the metadata of a photo or of all photos, or the export, to a summary; print it for people."""
    from retrieval.catalogue.metadata_store import key_counts
    from retrieval.catalogue.photos import count_indexed
    from retrieval.catalogue.tables.exporting import export_table

    if photo is not None:
        summary |= describe_metadata(catalogue, photo)
        return [f"{key:<12} {_joined(value)}" for key, value in summary.items() if value not in (None, False, [], {})]
    if export is not None:
        count, keys = export_table(catalogue, export)
        summary |= {"exported": str(export), "photos": count, "keys": keys}
        return [f"{export}: what was imported for {count} photos, under {keys} keys."]
    counted = catalogue.read(key_counts)
    summary |= {"photos": catalogue.read(count_indexed), "keys": dict(counted)}
    lines = [f"{key:<24} {count:10,} photos" for key, count in counted]
    return lines or ["Nothing is known of the photos: cairn metadata --refresh reads their files."]


def describe_metadata(catalogue: Any, photo: str) -> dict[str, Any]:
    """Metadata of one photo, as `--json` reports it; raises CairnError if there is no photo of that name."""
    from index.errors import CairnError
    from retrieval.catalogue.metadata_store import metadata_of
    from retrieval.catalogue.photo_lookup import photo_called
    from retrieval.metadata.pages import split_page

    row = photo_called(catalogue, photo)
    if row is None:
        raise CairnError(
            f"There is no photo {photo!r} in the collection: give its name in the collection, as cairn query shows it."
        )
    known = catalogue.read(metadata_of, [row.number])[row.number]
    file, page = split_page(row.path)
    return {
        "photo": row.name,
        "path": str(file),
        **{row.name: _plain(getattr(known, row.name)) for row in FIELDS.values()},
        "other": {key: list(values) for key, values in known.others.items()},
        "imported": sorted(known.imported),
        "date_added": row.date_added,
        "page": page,
    }


def _report_import(summary: dict[str, Any]) -> list[str]:
    from retrieval.catalogue.tables.columns import column_sentences

    lines = [*summary["notes"], *column_sentences(summary["columns"])]
    lines.append(f"{summary['rows']} rows, {summary['matched']} of them about {summary['photos']} photos.")
    for name, label in (("unmatched", "not imported"), ("warnings", "note")):
        lines += first_of([_report_entry(entry, label) for entry in summary[name]], _LISTED)
    return lines


def _report_entry(entry: dict[str, Any], label: str) -> str:
    column = entry.get("column") or ""
    what = entry.get("name") or (FIELDS[column].word if column in FIELDS else column)
    return f"line {entry['line']}, {label}: {f'{what}: ' if what else ''}{entry['reason']}"


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _joined(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{key} = {', '.join(several)}" for key, several in value.items())
    return ", ".join(value) if isinstance(value, list) else str(value)
