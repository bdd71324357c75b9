"""The command metadata."""

from pathlib import Path
from typing import Annotated, Any

import typer

from retrieval.commands.console import FAILED, print_json, say
from retrieval.commands.options import CatalogueAddress, Json, Quiet
from retrieval.metadata.fields import FIELDS, WORDS

_LISTED = 20  # rows and warnings that are printed for people


def metadata(
    collection: Annotated[Path, typer.Argument(help="Folder of the collection.")],
    table: Annotated[
        Path | None, typer.Argument(metavar="[FILE.csv]", help="Table to import; its first line names the columns.")
    ] = None,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Read again what the photos' files say; what was imported stays.")
    ] = False,
    photo: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Show what is known of one photo, by its name, or by its file's alone."),
    ] = None,
    name_column: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Column that says which photo a row is about (default: name, path or file)."
        ),
    ] = None,
    mapping: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="FIELD=HEADER",
            help=f"Say what a column is for: {', '.join(WORDS)}; may be repeated.",
        ),
    ] = None,
    delimiter: Annotated[
        str, typer.Option(metavar="CHARACTER", help="What parts the columns: auto, ',', ';' or tab.")
    ] = "auto",
    replace: Annotated[
        bool, typer.Option("--replace", help="Forget what was imported earlier, of all photos.")
    ] = False,
    export: Annotated[
        Path | None,
        typer.Option(metavar="FILE.csv", help="Write what was imported into a new table, which can be imported again."),
    ] = None,
    write_sidecars: Annotated[
        bool,
        typer.Option(
            "--write-sidecars",
            help="Write what was imported or typed in, and albums, into XMP sidecars beside the photos, where other "
            "programs read it; sidecars keep what else they say, and no photo is changed.",
        ),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="End with code 1 if a row was about no photo, or several, or a sidecar was not written."
        ),
    ] = False,
    catalogue: CatalogueAddress = None,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Tell what is known of the photos, or import more from a table.

    Dates, places, cameras, titles, captions, tags and ratings are read from the photos' files, and from XMP sidecars
    and the JSON of Google Takeout beside them, when they are indexed. A table adds to that, and what it says wins: its
    columns of these fields (tags parted by ; or |) are understood by their usual headers in English, German, French,
    Spanish, Italian and Dutch, or by --map; every other one is kept under its own name. cairn query and cairn serve
    filter by all of it.
    """
    from index.errors import CairnError
    from retrieval.catalogue.metadata_store import key_counts
    from retrieval.catalogue.photos import count_indexed
    from retrieval.catalogue.tables.columns import parse_mapping
    from retrieval.catalogue.tables.exporting import export_table
    from retrieval.library.opening import open_named

    strict_for = table is not None or write_sidecars
    if table is None and (replace or mapping or name_column is not None or delimiter != "auto"):
        raise CairnError("--replace, --name-column, --map and --delimiter go with a table to import: give its file.")
    if strict and not strict_for:
        raise CairnError("--strict goes with a table to import, or with --write-sidecars.")
    if photo is not None and (table is not None or refresh or write_sidecars):
        raise CairnError("--photo shows one photo: leave the table, --refresh and --write-sidecars out.")
    if export is not None and (table is not None or refresh or write_sidecars or photo is not None):
        raise CairnError(
            "--export writes a table: leave the table to import, --refresh, --write-sidecars and --photo out."
        )
    for one in mapping or ():
        parse_mapping(one)  # says what is wrong with it, before anything is read
    columns = [(word, header) for word, _, header in (one.partition("=") for one in mapping or ())]
    summary: dict[str, Any] = {"collection": str(collection)}
    lines: list[str] = []
    with open_named(collection, catalogue=catalogue) as made:
        opened = made.opened
        if refresh:
            read = made.refresh_metadata(progress=not (quiet or json))
            summary |= read.to_dict()
            lines.append(f"{read.read} photos read, {read.told} of them with metadata, {read.missing} missing.")
        if table is not None:
            report = made.import_metadata(
                table, name_column=name_column, mapping=columns, delimiter=delimiter, replace=replace
            )
            summary |= report.to_dict()
            lines += _report_import(summary)
        if write_sidecars:
            done = made.write_sidecars(progress=not (quiet or json))
            summary |= {"sidecars": done.to_dict()}
            lines.append(f"{done.written} sidecars written, {done.unchanged} as they were, {done.missing} missing.")
            lines += [f"{one['path']}: {one['reason']}" for one in done.failed[:_LISTED]]
            if len(done.failed) > _LISTED:
                lines.append(f"… and {len(done.failed) - _LISTED} more; --json lists them all.")
        if photo is not None:
            summary |= describe_metadata(opened.catalogue, photo)
            lines += [
                f"{key:<12} {_joined(value)}" for key, value in summary.items() if value not in (None, False, [], {})
            ]
        elif export is not None:
            count, keys = export_table(opened.catalogue, export)
            summary |= {"exported": str(export), "photos": count, "keys": keys}
            lines.append(f"{export}: what was imported for {count} photos, under {keys} keys.")
        elif table is None and not refresh and not write_sidecars:
            counted = opened.catalogue.read(key_counts)
            summary |= {"photos": opened.catalogue.read(count_indexed), "keys": dict(counted)}
            lines += [f"{key:<24} {count:10,} photos" for key, count in counted]
            lines = lines or ["Nothing is known of the photos: cairn metadata --refresh reads their files."]
    if json:
        print_json(summary)
    else:
        for line in lines:
            say(line)
    if strict and (summary.get("unmatched") or summary.get("sidecars", {}).get("failed")):
        raise typer.Exit(FAILED)


def describe_metadata(catalogue: Any, photo: str) -> dict[str, Any]:
    """What is known of one photo, as `--json` reports it; CairnError where there is none of that name."""
    from index.errors import CairnError
    from retrieval.catalogue.metadata_store import metadata_of
    from retrieval.catalogue.photo_lookup import photo_called
    from retrieval.metadata.pages import split_page

    row = photo_called(catalogue, photo)
    if row is None:
        raise CairnError(f"There is no photo {photo!r} in the collection: give its name there, as cairn query does.")
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
    for name, told in (("unmatched", "not imported"), ("warnings", "note")):
        entries = summary[name]
        for entry in entries[:_LISTED]:
            column = entry.get("column") or ""
            what = entry.get("name") or (FIELDS[column].word if column in FIELDS else column)
            lines.append(f"line {entry['line']}, {told}: {f'{what}: ' if what else ''}{entry['reason']}")
        if len(entries) > _LISTED:
            lines.append(f"… and {len(entries) - _LISTED} more; --json lists them all.")
    return lines


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _joined(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{key} = {', '.join(several)}" for key, several in value.items())
    return ", ".join(value) if isinstance(value, list) else str(value)
