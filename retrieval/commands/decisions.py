"""Commands: edit, album, hide, reject."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from index.errors import CairnError
from index.text import printable_name
from retrieval.commands.console import first_of, say
from retrieval.commands.option_groups import grouped
from retrieval.commands.options import Folder, ReadOptions
from retrieval.metadata.kinds import MOST_STARS

if TYPE_CHECKING:
    from retrieval.library.reports import Album

_LISTED = 20  # names that are printed for people

Names = Annotated[list[str], typer.Argument(metavar="PHOTO...", help="Names of photos in the collection.")]

album = typer.Typer(help="Make, change and share albums.", no_args_is_help=True)


@dataclass(frozen=True)
class Changes:
    """New values of photos, as options of the command line."""

    title: Annotated[str | None, typer.Option(help='New title; "": the title in their files.')] = None
    caption: Annotated[str | None, typer.Option(help='New caption; "": the caption in their files.')] = None
    taken: Annotated[
        str | None,
        typer.Option(
            metavar="DATE",
            help='Date on which they were taken: 1923, 1923-05 or 1923-05-17; "": the date in their files.',
        ),
    ] = None
    tag: Annotated[list[str] | None, typer.Option(help="Add this tag; may be repeated.")] = None
    remove_tag: Annotated[
        list[str] | None, typer.Option(help="Remove this tag, unless it is in the photo's file; may be repeated.")
    ] = None
    rating: Annotated[
        int | None, typer.Option(help="Stars, 1 to 5; 0: the rating in their files.", min=0, max=MOST_STARS)
    ] = None
    favourite: Annotated[
        bool | None, typer.Option("--favourite/--no-favourite", help="Mark them as favourites, or no longer.")
    ] = None


@grouped
def edit(collection: Folder, photos: Names, changes: Changes, run: ReadOptions) -> None:
    """Change titles, captions, dates, tags and stars of photos.

    Changes are stored in the collection and take precedence over the photos' files, which are not changed: see cairn
    metadata --write-sidecars. If a name is not in the collection, nothing is changed.
    """
    if changes == Changes():
        raise CairnError(
            "Say what to change: --title, --caption, --taken, --tag, --remove-tag, --rating or --favourite."
        )
    values = vars(changes).copy()
    values |= {"add_tags": values.pop("tag") or (), "remove_tags": values.pop("remove_tag") or ()}
    with run.open(collection) as opened:
        done = opened.edit(photos, **values)
    if run.print_json(collection, changed=done.changed, kept=done.kept):
        return
    say(f"{collection}: {done.changed} photos changed.")
    if done.kept:
        say(f"{done.kept} photos keep a tag that is in their files.")


@album.command("list")
@grouped
def list_albums(
    *,
    collection: Folder,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Album whose photos are listed.")] = None,
    run: ReadOptions,
) -> None:
    """List the albums, the newest first; or the photos of one, in its order."""
    with run.open(collection) as opened:
        if name is not None:
            return _tell_names(run, collection, f"in the album {name}", opened.album_photos(name))
        albums = opened.albums()
    if run.print_json(collection, albums=[one.to_dict() for one in albums]):
        return
    for one in albums:
        say(f"{one.photos:8,} photos  {one.name}")
    if not albums:
        say(f"{collection}: there are no albums.")


Name = Annotated[str, typer.Argument(help="Name of the album; case does not matter.")]


@album.command("add")
@grouped
def add_to_album(collection: Folder, name: Name, photos: Names, run: ReadOptions) -> None:
    """Add photos to the end of an album, which is created if it does not exist."""
    with run.open(collection) as opened:
        _tell_album(run, collection, opened.add_to_album(name, photos))


@album.command("remove")
@grouped
def remove_from_album(collection: Folder, name: Name, photos: Names, run: ReadOptions) -> None:
    """Remove photos from an album; they stay in the collection."""
    with run.open(collection) as opened:
        _tell_album(run, collection, opened.remove_from_album(name, photos))


@album.command("arrange")
@grouped
def arrange_album(
    *,
    collection: Folder,
    name: Name,
    photos: Annotated[
        list[str] | None, typer.Argument(metavar="[PHOTO...]", help="Names of photos of the album to move.")
    ] = None,
    before: Annotated[
        str | None, typer.Option(metavar="PHOTO", help="Move them before this photo (default: to the end).")
    ] = None,
    order: Annotated[str | None, typer.Option(metavar="ORDER", help="Sort all photos by name or taken.")] = None,
    cover: Annotated[str | None, typer.Option(metavar="PHOTO", help="The photo that stands for the album.")] = None,
    run: ReadOptions,
) -> None:
    """Sort an album, move photos in it, or choose its cover."""
    if not photos and order is None and cover is None:
        raise CairnError("Say what to change: name photos to move, or give {--order} or {--cover}.")
    with run.open(collection) as opened:
        arranged = opened.arrange_album(name, photos or (), before=before, order=order, cover=cover)
        _tell_album(run, collection, arranged)


@album.command("rename")
@grouped
def rename_album(
    collection: Folder,
    name: Name,
    new_name: Annotated[str, typer.Argument(help="Its new name.")],
    run: ReadOptions,
) -> None:
    """Rename an album."""
    with run.open(collection) as opened:
        _tell_album(run, collection, opened.rename_album(name, new_name))


@album.command("delete")
@grouped
def delete_album(collection: Folder, name: Name, run: ReadOptions) -> None:
    """Delete an album; its photos stay in the collection."""
    with run.open(collection) as opened:
        _tell_album(run, collection, opened.delete_album(name))


@album.command("share")
@grouped
def share_album(
    *,
    collection: Folder,
    name: Name,
    expires: Annotated[
        str | None,
        typer.Option(metavar="YYYY-MM-DD", help="Last day (UTC) on which the link works.", show_default=False),
    ] = None,
    days: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="N", help="The same, as a number of days from today (default: 30).", show_default=False
        ),
    ] = None,
    run: ReadOptions,
) -> None:
    """Make a link that shows the photos of an album, at viewing size, to everyone who has it; it is printed only now.

    Append it to the address of the server that you run for the collection; with cairn open, to that address and
    /c/NAME. Only a server with a password file answers other people; those who use the link need no password.
    """
    with run.open(collection) as opened:
        shared = opened.share_album(name, days=days, expires=expires)
    if run.print_json(collection, link=shared.to_dict()):
        return
    ending = f"cairn album unshare {collection} {shared.id}"
    print(f"{shared.album} is shared until {shared.expires}; {ending} ends that.", file=sys.stderr)
    print(shared.path)


@album.command("shared")
@grouped
def shared_albums(collection: Folder, run: ReadOptions) -> None:
    """List the links to albums, the newest first."""
    with run.open(collection) as opened:
        links = opened.shared_albums()
    if run.print_json(collection, links=[one.to_dict() for one in links]):
        return
    for one in links:
        say(f"{one.id}  {'was ' if one.over else ''}until {one.expires}  {one.album or 'an album that was deleted'}")
    if not links:
        say(f"{collection}: no album is shared.")


@album.command("unshare")
@grouped
def end_shared_album(
    collection: Folder,
    link: Annotated[str, typer.Argument(help="The link, as cairn album shared lists it.")],
    run: ReadOptions,
) -> None:
    """Disable a link to an album: from now on it shows nothing."""
    with run.open(collection) as opened:
        ended = opened.end_shared_album(link)
    if not run.print_json(collection, link=ended.to_dict()):
        say(f"{ended.album or 'An album that was deleted'} is no longer shared by this link.")


@grouped
def hide(
    *,
    collection: Folder,
    photos: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PHOTO...]", help="Names of photos in the collection; without any, the hidden photos are listed."
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Show them again.")] = False,
    run: ReadOptions,
) -> None:
    """Hide photos from lists and search results, or show them again; they stay in the collection."""
    if show and not photos:
        raise CairnError("--show needs names of photos; without it, the hidden photos are listed.")
    with run.open(collection) as opened:
        if not photos:
            _tell_names(run, collection, "hidden", [one.name for one in opened.photos({"hidden": True})])
        elif show:
            _tell_names(run, collection, "shown again", opened.show(photos))
        else:
            _tell_names(run, collection, "hidden now", opened.hide(photos))


@grouped
def reject(
    *,
    collection: Folder,
    query: Annotated[str, typer.Argument(help="The query photo: a name in the collection, or a file.")],
    photos: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PHOTO...]",
            help="Names of photos that do not match the query; without any, the "
            "photos that were rejected for it are listed.",
        ),
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Undo this: the photos match after all.")] = False,
    run: ReadOptions,
) -> None:
    """Mark photos as wrong results for a query photo: later searches with it leave them out.

    Such pairs are also left out of groups and links, and of what is learnt from the collection.
    """
    if undo and not photos:
        raise CairnError("--undo needs names of photos; without it, the rejected photos are listed.")
    with run.open(collection) as opened:
        if not photos:
            _tell_names(run, collection, "no match", opened.rejected(query))
        elif undo:
            _tell_names(run, collection, "a match again", opened.accept(query, photos))
        else:
            _tell_names(run, collection, "no match from now on", opened.reject(query, photos))


def _tell_album(run: ReadOptions, collection: Path, one: "Album") -> None:
    if not run.print_json(collection, album=one.to_dict()):
        say(f"{one.name}: {one.photos} photos.")


def _tell_names(run: ReadOptions, collection: Path, what: str, names: list[str]) -> None:
    if not run.print_json(collection, photos=names):
        say(f"{collection}: {len(names)} photos are {what}.")
        for line in first_of([f"  {printable_name(name)}" for name in names], _LISTED, "  "):
            say(line)
