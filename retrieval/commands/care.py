"""Commands: remove, compact, retrain."""

from pathlib import Path
from typing import Annotated

import typer

from index.text import printable_name
from retrieval.commands.console import print_json, progress_bars, say
from retrieval.commands.described import FeaturesAgain
from retrieval.commands.options import (
    CatalogueAddress,
    Json,
    Quiet,
    Seed,
    Signature,
    Workers,
    cores,
    vocabulary_sample,
)
from retrieval.commands.progress import INDEXING

Folder = Annotated[Path, typer.Argument(help="Folder of the collection.")]


def remove(
    collection: Folder,
    names: Annotated[list[str] | None, typer.Argument(help="Names of photos in the collection.")] = None,
    missing: Annotated[
        bool, typer.Option("--missing", help="All photos whose files cairn index found gone, and that still are.")
    ] = False,
    folder: Annotated[
        str | None, typer.Option(help="All photos whose names lie in this folder, or in one below it.")
    ] = None,
    for_good: Annotated[
        bool,
        typer.Option("--for-good", help="Keep them out when their folders are indexed again; cairn info lists them."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would be removed, and change nothing.")] = False,
    catalogue: CatalogueAddress = None,
    json: bool = Json,
) -> None:
    """Take photos out of a collection; their files stay where they are.

    They are found no more at once, and their room is given back by cairn compact. A photo whose file stays in a folder
    that is indexed again comes back, with what was imported for it if cairn compact was not run since. With --for-good
    it stays out, also where its file is moved, renamed or edited, until cairn index --again takes it in. Where a name
    is not in the collection, nothing is removed.
    """
    from retrieval.collection.collection import Collection
    from retrieval.indexing.removal import remove_photos

    with Collection.open(collection, catalogue=catalogue) as opened:
        removed = remove_photos(opened, names or [], missing=missing, folder=folder, for_good=for_good, dry_run=dry_run)
        images = opened.catalogue.count()
        back = len(opened.catalogue.missing()) if missing and not dry_run else 0
    if dry_run:
        if json:
            print_json({"collection": str(collection), "would_remove": removed, "for_good": for_good, "images": images})
            return
        for name in removed:
            say(f"would be removed: {printable_name(name)}")
        say(f"{collection}: {len(removed)} of {images} photos would be removed; nothing was changed.")
        return
    if json:
        print_json({"collection": str(collection), "removed": removed, "for_good": for_good, "images": images})
        return
    for name in removed if len(removed) <= 20 else []:
        say(f"removed: {printable_name(name)}")
    if back:
        say(f"{back} photos that were missing are there again, and stay: run cairn index.")
    say(f"{collection}: {len(removed)} removed{' for good' if for_good else ''}, {images} photos left.")


def compact(
    collection: Folder,
    catalogue: CatalogueAddress = None,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Merge what was added bit by bit, and give back the room of what was removed.

    Searches find the same before, during and after it. It may be stopped at any moment, and needs about as much free
    room as the largest part that it writes. Before all else it removes what stopped runs of index and retrain have left
    to go on from.
    """
    from retrieval.collection.collection import Collection
    from retrieval.indexing.compaction import compact as compact_collection

    with Collection.open(collection, catalogue=catalogue) as opened:
        with progress_bars(quiet or json, {"compact": "Compacting (features)"}) as tell:
            report = compact_collection(opened, progress=tell)
        images = opened.catalogue.count()
    if json:
        print_json(
            {
                "collection": str(collection),
                "images": images,
                "removed": report.removed,
                "segments": {"before": report.segments[0], "after": report.segments[1]},
                "bytes": {"before": report.bytes[0], "after": report.bytes[1]},
                "thumbnails": report.thumbnails,
                "seconds": round(report.seconds, 3),
            }
        )
        return
    say(
        f"{collection}: {report.segments[0]} segments are {report.segments[1]} now, {report.removed} removed photos "
        f"are gone; {report.bytes[0] / 1e6:.1f} MB were {report.bytes[1] / 1e6:.1f} MB in {report.seconds:.1f} s."
        if report.segments[0] != report.segments[1] or report.removed or report.bytes[0] != report.bytes[1]
        else f"{collection}: there is nothing to compact."
    )


def retrain(
    collection: Folder,
    words: Annotated[int, typer.Option(help="Visual words; 0: one for 30 features, at most 500,000.", min=0)] = 0,
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Leave out photos that can no longer be read.")
    ] = False,
    signature: Signature = "",
    features: FeaturesAgain = None,
    vocabulary_photos: Annotated[
        str | None,
        typer.Option(metavar="N|all", help="Photos whose features make it (default: as the collection was made)."),
    ] = None,
    kmeans_passes: Annotated[
        int | None,
        typer.Option(help="Passes of k-means that make it (default: as the collection was made).", min=1, max=1000),
    ] = None,
    workers: Workers = 0,
    seed: Seed = 0,
    catalogue: CatalogueAddress = None,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Make a new vocabulary from the photos that the collection holds now.

    Worth it where cairn info says that the vocabulary no longer fits; or with --signature, to give features signatures,
    or others than they have. The photos are read again, unless the collection keeps descriptors. Searches go on with
    the old vocabulary until the new one takes over, at once. An interrupted run is picked up by running the same
    command again.
    """
    from index.hamming.kinds import full_name, parse_signature
    from retrieval.collection.collection import Collection
    from retrieval.indexing.described import use_features_again
    from retrieval.indexing.retraining import RetrainOptions
    from retrieval.indexing.retraining import retrain as retrain_collection

    if signature:
        signature = full_name(parse_signature(signature))
    sample = None if vocabulary_photos is None else vocabulary_sample(vocabulary_photos, None)[0]
    options = RetrainOptions(words, seed, drop_missing, signature, sample, kmeans_passes)
    with Collection.open(collection, catalogue=catalogue) as opened:
        if features is not None:
            use_features_again(opened, features)
        with progress_bars(quiet or json, INDEXING) as tell:
            report = retrain_collection(opened, options, workers=workers or cores(), progress=tell)
        images = opened.catalogue.count()
    if json:
        print_json(
            {
                "collection": str(collection),
                "images": images,
                "words": {"before": report.words[0], "after": report.words[1]},
                "quantisation_error": {"before": round(report.error[0], 6), "after": round(report.error[1], 6)},
                "dropped": report.dropped,
                "augmentation_emptied": report.forgotten,
                "seconds": {step: round(seconds, 3) for step, seconds in report.seconds.items()},
            }
        )
        return
    say(
        f"{collection}: {report.words[1]} words instead of {report.words[0]}; the quantisation error of {images} "
        f"photos is {report.error[1]:.4g}, and was {report.error[0]:.4g}; {report.seconds['total']:.1f} s."
    )
    if report.forgotten:
        say(
            f"What photos borrowed was of the earlier words: run cairn group {collection}, which lets them borrow anew."
        )
    for entry in report.dropped:
        say(f"dropped: {printable_name(entry['name'])}: {entry['reason']}")
