"""The command group."""

from pathlib import Path
from typing import Annotated

import typer

from retrieval.commands.console import say
from retrieval.commands.option_groups import grouped
from retrieval.commands.options import ClusterAddress, Folder, Workers, WorkOptions


@grouped
def group(
    *,
    collection: Folder,
    inliers: Annotated[
        int, typer.Option(help="Smallest number of verified matches that links two photos.", min=1)
    ] = 20,
    augment: Annotated[
        bool | None,
        typer.Option(
            "--augment/--no-augment",
            help="Let linked photos borrow features from each other, so that searches find more; later runs continue "
            "to do so. Or remove the borrowed features (default: as in the last run).",
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

    Each photo is searched for in the collection, and photos that are verified by geometry are linked. Photos with
    enough links among each other form a group; a single wrong link does not join two groups. Copies are also recognised
    by what they look like, even if they were turned by 90, 180 or 270 degrees, mirrored or converted. For that, a small
    picture of each photo is made once and stored, as cairn serve does; photos whose files cannot be read at that time
    are compared by their features alone. The groups are stored in the collection, and cairn serve shows them. To
    continue an interrupted run, run the same command again; only photos that were added since the last run are searched
    for. With --cluster, the workers of the cluster do the searches; each holds shards of the collection.

    With --augment, photos borrow from then on those features of linked photos that map into them, and are scored with
    these too. cairn info shows how many bytes that takes, and cairn query --no-augmented searches without them.
    """
    from time import perf_counter

    from retrieval.groups.tables import check_table
    from retrieval.library.cluster import joined

    began = perf_counter()
    if out is not None:
        check_table(out)
    with joined(cluster) as work, run.open(collection, work) as opened:
        result = opened.group(inliers, augment=augment, workers=workers, progress=run.progress)
        if out is not None:
            result.save_table(out)
    summary = {
        **result.to_dict(),
        "out": str(out) if out is not None else None,
        "seconds": round(perf_counter() - began, 3),
    }
    if run.print_json(collection, **summary):
        return
    if not result:
        say(f"{collection}: no two of {result.photos} photos are linked by {inliers} verified matches.")
    else:
        say(
            f"{collection}: {summary['grouped']} of {result.photos} photos in {len(result.groups)} groups, "
            f"{summary['links']} links, {summary['duplicates']} near duplicates in {summary['seconds']:.1f} s."
        )
    if result.augmented is not None:
        say(f"{result.augmented} photos have borrowed features from linked photos again.")
    if out is not None:
        say(f"Table: {out}")
