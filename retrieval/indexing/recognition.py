"""Recognise files of photos that a collection has under another path, or that were removed for good."""

import os
from collections.abc import Collection as Collection_
from collections.abc import Mapping
from dataclasses import replace

from index.text import printable
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.changes import PhotoMove
from retrieval.catalogue.exclusions import Exclusions, include_photos, move_exclusions
from retrieval.catalogue.photos import Known, KnownPhotos
from retrieval.catalogue.schema import INDEXED
from retrieval.indexing.report import FoundFile, IndexReport
from retrieval.metadata.pages import file_of
from retrieval.photos.listing import is_one_file, leads_elsewhere


def without_links(
    known: KnownPhotos, files: list[FoundFile], report: IndexReport
) -> tuple[list[FoundFile], list[PhotoMove]]:
    """Drop files that are indexed, or listed, under another path: symbolic and hard links; paths without links stay."""
    there: dict[str, list[tuple[str, Known]]] = {}
    for path, before in known.of_contents({file.key for file in files}):
        there.setdefault(before.sha256 or "", []).append((path, before))
    taken: dict[str, list[FoundFile]] = {}
    moves: dict[int, PhotoMove] = {}
    for file in sorted(files, key=lambda file: leads_elsewhere(file.path)):
        own = [(path, before) for path, before in there.get(file.key, ()) if path != str(file.path)]
        of = next(((path, before) for path, before in own if is_one_file(path, file.path)), None)
        twin = next((one for one in taken.get(file.key, ()) if is_one_file(one.path, file.path)), None)
        if of is None and twin is None:
            taken.setdefault(file.key, []).append(file)
            continue
        path = of[0] if of is not None else str(twin.path) if twin is not None else ""
        if of is not None and leads_elsewhere(path) and not leads_elsewhere(file.path) and of[1].number not in moves:
            moves[of[1].number] = PhotoMove(of[1].number, str(file.path), file.name, file.size, file.mtime_ns)
        else:
            report.places.append({"path": printable(str(file.path)), "photo": printable(path)})
    paths = {file.path for some in taken.values() for file in some}
    return [file for file in files if file.path in paths], list(moves.values())


def recognise(
    known: KnownPhotos, files: list[FoundFile], seen: Collection_[str]
) -> tuple[list[FoundFile], list[PhotoMove]]:
    """Recognise moved photos by content; return the new photos, and the moves."""
    wanted = {file.key for file in files}
    changed = {str(file.path) for file in files}
    # Photos whose file is gone, or is now another photo.
    displaced: dict[str, list[Known]] = {}
    for path, before in known.of_contents(wanted):
        if before.sha256 is not None and (path in changed or (path not in seen and has_gone(path))):
            displaced.setdefault(before.sha256, []).append(before)
    new, moves = [], []
    for file in files:
        if displaced.get(file.key):
            number = displaced[file.key].pop(0).number
            moves.append(PhotoMove(number, str(file.path), file.name, file.size, file.mtime_ns))
        else:
            new.append(file)
    return new, moves


def leave_out(
    catalogue: Catalogue,
    exclusions: Exclusions,
    files: list[FoundFile],
    known: Mapping[str, Known],
    report: IndexReport,
) -> list[FoundFile]:
    """Drop photos that were removed for good; if one has moved, store its new place."""
    remaining, moved = [], {}
    for file in files:
        matching = exclusions.matching(str(file.path), file.key)
        before = known.get(str(file.path))
        if before is not None and before.state == INDEXED:  # another photo was put at that path, and edited
            matching = [one for one in matching if one.sha256 == file.key]
        if not matching:
            remaining.append(file)
            continue
        # Preferably the photo that was at this path, if it has this content.
        same = next((one for one in matching if (one.path, one.sha256) == (str(file.path), file.key)), matching[0])
        report.keep_out(str(file.path), same.reason(str(file.path), file.key))
        for one in matching:
            if (
                one.sha256 == file.key
                and one.number not in moved
                and (one.path == str(file.path) or has_gone(one.path))
            ):
                moved[one.number] = one._replace(path=str(file.path), size=file.size, mtime_ns=file.mtime_ns)
                break
    if moved:
        catalogue.write(move_exclusions, list(moved.values()))
    return remaining


def take_again(
    catalogue: Catalogue, exclusions: Exclusions, files: list[FoundFile], held: list[tuple[str, str]]
) -> list[FoundFile]:
    """Note which photos each file takes off the list of exclusions once it is done.

    If several files match a photo, the last one takes it off, so that an interrupted run can be finished. A file at its
    old path keeps its old name. Photos added by an interrupted run are among `held` paths and contents: they leave the
    list at once if no file matches them.
    """
    done_with: dict[int, int] = {}  # by number: the place of the last file that matches
    for place, file in enumerate(files):
        matching = exclusions.matching(str(file.path), file.key)
        done_with.update((one.number, place) for one in matching)
        if file.name == file.path.name and str(file.path) in {one.path for one in matching}:
            files[place] = replace(file, name=matching[0].name)
    for number, place in done_with.items():
        files[place] = replace(files[place], taken_again=(*files[place].taken_again, number))
    there = {
        one.number
        for path, key in held
        for one in exclusions.matching(path, key)
        if (one.path, one.sha256) == (path, key)
    }
    if there := there - done_with.keys():
        catalogue.write(include_photos, sorted(there))
    return files


def has_gone(path: str) -> bool:
    """Whether there is certainly no file at a path; False if the path cannot be examined."""
    try:
        os.lstat(file_of(path))
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False
