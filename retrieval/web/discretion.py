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
    """Shorten the paths in a sentence to their last parts; `known` paths, with any characters, by their replacements.

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
    """Replace the paths of photos that could not be indexed by the names that they would have."""
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
