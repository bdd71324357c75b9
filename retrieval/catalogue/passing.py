"""Stored rules of a collection for files to skip in folders: patterns, and folders that were removed for good."""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from fnmatch import fnmatchcase
from glob import escape
from math import inf
from pathlib import Path

from sqlalchemy.orm import Session

from index.errors import CairnError
from index.text import check_storable, shown
from retrieval.catalogue.schema import ImageRow
from retrieval.catalogue.settings import keep_setting, setting_of
from retrieval.photos.listing import root_of
from retrieval.photos.passing import Passing

PASSING_KEY = "cairn.passing"
"""Setting of the catalogue: patterns of `Passing`, JSON."""

SHORTEST, LONGEST = 0.1, 86_400
"""Seconds between the frames of a film."""

_LONGEST = 1000  # characters of a pattern


def passing_of(session: Session) -> Passing:
    """The rules of a collection; the defaults if the stored ones are damaged."""
    try:
        stored = json.loads(setting_of(session, PASSING_KEY) or "{}")
        exclude, include = (tuple(map(str, stored.get(name, ()))) for name in ("exclude", "include"))
        every = float(stored.get("frame_every", 0))
        return Passing(exclude, include, stored.get("films") is True, every if 0 < every < inf else 0)
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        return Passing()


def change_passing(session: Session, exclude: Iterable[str], include: Iterable[str]) -> None:
    """Add patterns to those of a collection: see `Passing.changed`."""
    exclude, include = tuple(exclude), tuple(include)
    for pattern in (*exclude, *include):
        check_storable(pattern)
        if not pattern.strip("/ ") or len(pattern) > _LONGEST:
            raise CairnError(f"A pattern is a name with * and ?, or a path, not {shown(pattern)}.")
    before = passing_of(session)
    after = before.changed(exclude, include)
    if after != before:
        _keep(session, after)


def choose_films(session: Session, films: bool | None, frame_every: float | None) -> None:
    """Choose whether films are taken, and seconds between frames (0: by shots); None: no change. These imply films."""
    if frame_every is not None and not (frame_every == 0 or SHORTEST <= frame_every <= LONGEST):
        raise CairnError(f"Frames are {SHORTEST} to {LONGEST} seconds apart (0: by shots), not {frame_every:g}.")
    before = passing_of(session)
    films = films if films is not None else before.films or frame_every is not None
    every = frame_every if frame_every is not None else before.frame_every
    if (films, every) != (before.films, before.frame_every):
        _keep(session, replace(before, films=films, frame_every=float(every)))


def _keep(session: Session, passing: Passing) -> None:
    keep_setting(session, PASSING_KEY, json.dumps(asdict(passing)))


def exclude_folder(session: Session, folder: str, rows: Iterable[ImageRow]) -> None:
    """Skip a folder from now on, by its name in the collection and photos in it."""
    places = set()
    for row in rows:
        root = root_of(row.path, str(row.name))
        if root is not None and str(row.name).startswith(f"{folder.strip('/')}/"):
            places.add(escape(f"{root}/{folder.strip('/')}"))
    change_passing(session, sorted(places), ())


def take_folders_again(session: Session, paths: Sequence[Path]) -> None:
    """Delete the rules of folders removed for good that contain one of the paths, or lie below one."""
    real_paths = [os.path.realpath(path) for path in paths]
    passing = passing_of(session)
    again = [
        pattern
        for pattern in passing.exclude
        if pattern.startswith("/")
        and any(
            fnmatchcase(f"{path}/", f"{pattern}/*") or pattern.startswith(f"{escape(path)}/") for path in real_paths
        )
    ]
    if again:
        _keep(session, replace(passing, exclude=tuple(one for one in passing.exclude if one not in again)))
