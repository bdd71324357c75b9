"""The command group."""

from pathlib import Path
from typing import Annotated

import typer

from retrieval.commands.console import print_json, say
from retrieval.commands.option_groups import grouped
from retrieval.commands.options import ClusterAddress, Workers, WorkOptions


@grouped
def group(
    *,
    collection: Annotated[Path, typer.Argument(help="Folder of the collection.")],
    inliers: Annotated[int, typer.Option(help="Fewest verified matches that link two photos.", min=1)] = 20,
    augment: Annotated[
        bool | None,
        typer.Option(
            "--augment/--no-augment",
            help="Let linked photos borrow features of each other, so that more is found with one of them; later runs "
            "keep it up. Or remove what they borrow (default: as the last run).",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write a table (CSV) of the groups: group, name, path, duplicate_of, kind, similar_to."),
    ] = None,
    workers: Workers = 0,
    cluster: ClusterAddress = None,
    run: WorkOptions,
) -> None:
    """Find groups of photos that show the same object or landmark, and near duplicates among them.

    Each photo is searched for in the collection, and photos that geometry verifies are linked. Photos that are
    linked with enough of each other are a group: one wrong link joins none. Copies are known by their looks too,
    when they were turned by 90, 180 or 270 degrees, mirrored or converted: for that, a small picture of each photo
    is made once and kept, as cairn serve does; photos whose files cannot be read at that time are compared by their
    features alone. The groups are kept in the collection, for cairn serve to show. An interrupted run is picked up
    by running the same command again; only photos that were added since the last run are searched for. With --cluster
    the searches are done by its workers, each of which holds shards of the collection.

    With --augment, photos are scored from then on with features of those they are linked with, as far as these map
    into them: cairn info tells how many bytes that takes, and cairn query --no-augmented goes without.
    """
    from time import perf_counter

    from retrieval.groups.groups import check_table
    from retrieval.library.cluster import joined
    from retrieval.library.opening import open_named

    began = perf_counter()
    if out is not None:
        check_table(out)
    with joined(cluster) as work, open_named(collection, catalogue=run.catalogue, cluster=work) as opened:
        found = opened.group(inliers, augment=augment, workers=workers, progress=run.progress)
        if out is not None:
            found.save_table(out)
    summary = {
        "collection": str(collection),
        **found.to_dict(),
        "out": str(out) if out is not None else None,
        "seconds": round(perf_counter() - began, 3),
    }
    if run.json:
        print_json(summary)
        return
    if not found:
        say(f"{collection}: no two of {found.photos} photos are linked by {inliers} verified matches.")
    else:
        say(
            f"{collection}: {summary['grouped']} of {found.photos} photos in {len(found.groups)} groups, "
            f"{summary['links']} links, {summary['duplicates']} near duplicates in {summary['seconds']:.1f} s."
        )
    if found.augmented is not None:
        say(f"{found.augmented} photos have borrowed anew from those they are linked with.")
    if out is not None:
        say(f"Table: {out}")
