"""Commands: remove, compact, retrain."""

from pathlib import Path
from typing import Annotated, Any

import typer

from index.text import printable_name
from retrieval.commands.console import say
from retrieval.commands.described import FeaturesAgain
from retrieval.commands.option_groups import OptionsOf, grouped
from retrieval.commands.options import Folder, ReadOptions, Workers, WorkOptions
from retrieval.indexing.retrain_options import RetrainOptions


@grouped
def remove(
    *,
    collection: Folder,
    names: Annotated[list[str] | None, typer.Argument(help="Names of photos in the collection.")] = None,
    missing: Annotated[
        bool,
        typer.Option(
            "--missing", help="Remove all photos whose files were missing when cairn index last looked, and still are."
        ),
    ] = False,
    gone: Annotated[
        list[Path] | None,
        typer.Option(
            "--gone",
            metavar="FOLDER",
            help="With --missing, confirm that this folder is gone for good, and not only on a drive that is not "
            "connected; may be repeated.",
            show_default=False,
        ),
    ] = None,
    folder: Annotated[
        str | None, typer.Option(help="Remove all photos whose names are in this folder or in one below it.")
    ] = None,
    for_good: Annotated[
        bool,
        typer.Option("--for-good", help="Do not add them again when their folders are indexed; cairn info lists them."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would be removed, and change nothing.")] = False,
    run: ReadOptions,
) -> None:
    """Take photos out of a collection; their files stay where they are.

    Searches stop finding them at once; cairn compact frees their space. A photo whose file is in a folder that is
    indexed again comes back, with its imported metadata if cairn compact was not run in between. With --for-good it
    stays out, even if its file is moved, renamed or edited, until cairn index --again adds it. If a name is not in the
    collection, nothing is removed.
    """
    from retrieval.catalogue.photos import missing_photos

    with run.open(collection) as opened:
        report = opened.remove(
            names or (), missing=missing, gone=gone or (), folder=folder, for_good=for_good, dry_run=dry_run
        )
        back = len(opened.opened.catalogue.read(missing_photos)) if missing and not dry_run else 0
    if run.print_json(collection, **report.to_dict()):
        return
    removed, images = report.names, report.images
    if dry_run:
        for name in removed:
            say(f"would be removed: {printable_name(name)}")
        say(f"{collection}: {len(removed)} of {images} photos would be removed; nothing was changed.")
        return
    for name in removed if len(removed) <= 20 else []:
        say(f"removed: {printable_name(name)}")
    if back:
        say(f"{back} photos that were missing have been found again, and stay: run cairn index.")
    say(f"{collection}: {len(removed)} removed{' for good' if for_good else ''}, {images} photos left.")


@grouped
def compact(
    collection: Folder,
    run: WorkOptions,
) -> None:
    """Merge what was added bit by bit, and free the space of what was removed.

    Searches give the same results before, during and after it. It may be stopped at any time, and needs about as much
    free space as the largest part that it writes. It first removes the unfinished work of interrupted runs of cairn
    index and cairn retrain, which then cannot be continued.
    """
    with run.open(collection) as opened:
        report = opened.compact(progress=run.progress)
    if run.print_json(collection, **report.to_dict()):
        return
    segments, size = report.segments, report.bytes
    say(
        f"{collection}: {segments['before']} segments are {segments['after']} now, {report.removed} removed photos "
        f"are gone; {size['before'] / 1e6:.1f} MB were {size['after'] / 1e6:.1f} MB in {report.seconds:.1f} s."
        if segments["before"] != segments["after"] or report.removed or size["before"] != size["after"]
        else f"{collection}: there is nothing to compact."
    )


@grouped
@grouped
def retrain(
    *,
    collection: Folder,
    options: Annotated[dict[str, Any], OptionsOf(RetrainOptions)],
    features: FeaturesAgain = None,
    workers: Workers = 0,
    run: WorkOptions,
) -> None:
    """Compute a new vocabulary from the photos that are in the collection now.

    Use it when cairn info says that the vocabulary no longer fits, with --signature to add or change signatures of
    features, or with --descriptor to describe all photos with another descriptor. The photos are read again, unless the
    collection holds descriptors and these do not change. Searches use the old vocabulary and descriptor until the new
    ones replace them, all at once. To continue an interrupted run, run the same command again.
    """
    with run.open(collection) as opened:
        report = opened.retrain(**options, features=features, workers=workers, progress=run.progress)
    if run.print_json(collection, **report.to_dict()):
        return
    changed, error = report.words, report.quantisation_error
    say(
        f"{collection}: {changed['after']} words instead of {changed['before']}; the quantisation error of "
        f"{report.images} photos is {error['after']:.4g}, and was {error['before']:.4g}; "
        f"{report.seconds['total']:.1f} s."
    )
    if report.augmentation_emptied:
        say(
            f"Features that photos had borrowed belonged to the earlier vocabulary: run cairn group {collection} to "
            "let photos borrow again."
        )
    for entry in report.dropped:
        say(f"dropped: {printable_name(entry['name'])}: {entry['reason']}")
