"""Answers reveal no paths on the server: photos and the collection are given by name only."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

_ADDRESS = re.compile(r"\b(?:sqlite|postgres|mysql|mariadb|oracle|mssql)[\w+.-]*://[^\s'\"]+")
"""An address of a database."""
_PATH = re.compile(r"(?<![\w./\\])(?:/|\\\\|[A-Za-z]:[/\\])(?:[^\s/\\'\"<>]+[/\\])+(?P<last>[^\s/\\'\"<>]*)")
"""A path from a root on, with a folder in it; up to the first space."""


def without_paths(text: str, known: Iterable[tuple[str, str]] = ()) -> str:
    """Shorten the paths in a sentence to their last parts.

    Parameters
    ----------
    text : str
        The sentence.
    known : iterable of (str, str)
        Paths that may be in it, with any characters, and the replacement of each.

    Returns
    -------
    str

    >>> without_paths("/srv/photos/cairn.sqlite is missing: run cairn check '/srv/my photos.cairn'.", [
    ...     ("/srv/my photos.cairn", "my photos.cairn")])
    "cairn.sqlite is missing: run cairn check 'my photos.cairn'."
    """
    for path, name in sorted(known, key=lambda one: len(one[0]), reverse=True):
        if len(path) > 1:  # the root itself is in every path
            text = text.replace(path, name)
    text = _ADDRESS.sub("its address", text)
    return _PATH.sub(lambda found: found["last"] or "a folder", text)


def names_of_places(*places: tuple[Path, str]) -> list[tuple[str, str]]:
    """Spellings of some files and folders in sentences, each with its replacement."""
    return list({str(way): name for path, name in places for way in (path, path.absolute(), path.resolve())}.items())


def failures_by_name(failed: Sequence[dict[str, str]], folders: Iterable[Path]) -> list[dict[str, str]]:
    """Name photos that could not be indexed as if they had been.

    Parameters
    ----------
    failed : sequence of dict
        Each with its path and reason.
    folders : iterable of Path
        That were indexed.

    Returns
    -------
    list of dict
        Each with its name, the path below what was indexed or the file's name, and reason.
    """
    known = {*folders}
    described = []
    for entry in failed:
        path = Path(entry["path"])
        above = next((one for one in reversed(path.parents) if one in known), path.parent)
        name = path.relative_to(above).as_posix()
        described.append({"name": name, "reason": without_paths(entry["reason"], [(entry["path"], name)])})
    return described


def discreet_facts(facts: dict[str, Any], folders: Iterable[Path]) -> dict[str, Any]:
    """Report on a collection as `cairn info` does, without paths; of photos removed for good, only their number."""
    failed = failures_by_name(facts["failed"], folders) if facts["failed"] else []
    return {**facts, "failed": failed, "removed_for_good": len(facts["removed_for_good"])}
