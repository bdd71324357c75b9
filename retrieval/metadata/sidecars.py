"""Files beside a photo that say what is known of it: XMP sidecars, and the JSON of Google Takeout."""

import contextlib
import datetime
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from index.errors import CairnError
from index.files.reading import read_regular
from retrieval.metadata.combining import Said
from retrieval.metadata.fields import SOURCES
from retrieval.metadata.xmp import LARGEST, read_xmp

_TAKEOUT_NAME = 46  # characters of the name of Takeout's JSON, without its ending
_NUMBERED = re.compile(r"(.+)(\(\d+\))(\.[^.]+)")  # a second file of a name, such as photo(1).jpg
_MOST_PEOPLE = 200


def sidecars_of(path: Path) -> list[Path]:
    """Where the XMP sidecar of a photo may lie, the one that counts more first: photo.jpg.xmp, then photo.xmp."""
    return [path.with_name(name) for name in _xmp_names(path.name)]


def _xmp_names(photo: str) -> list[str]:
    names = (photo, photo.rpartition(".")[0] or photo)
    return [f"{name}{ending}" for name in names for ending in (".xmp", ".XMP")]


def _takeout_names(photo: str) -> list[str]:
    """Names of Takeout's JSON of a photo: photo.jpg.json, or the like with a longer name that may be cut off."""
    numbered = _NUMBERED.fullmatch(photo)
    name, number = (f"{numbered[1]}{numbered[3]}", numbered[2]) if numbered else (photo, "")
    longer = [f"{name}.supplemental-metadata", name]
    return [f"{one[:_TAKEOUT_NAME]}{number}.json" for one in longer]


class ChangeTimes:
    """When files of photos, and those beside them, were changed last; folders are listed once, one after the other."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._names: frozenset[str] = frozenset()  # of files in it that may say something of a photo

    def of(self, photo: Path, status: os.stat_result) -> int:
        """The latest change time (st_ctime) of a photo's file and of what lies beside it, nanoseconds.

        Programs that keep the time of a file when they edit its metadata cannot keep this one.
        """
        if photo.parent != self._folder:
            self._folder, self._names = photo.parent, frozenset()
            with contextlib.suppress(OSError):
                beside = (name for name in os.listdir(photo.parent) if name.lower().endswith((".xmp", ".json")))  # noqa: PTH208 (names alone)
                self._names = frozenset(beside)
        latest = status.st_ctime_ns
        for name in (*_xmp_names(photo.name), *_takeout_names(photo.name)) if self._names else ():
            if name in self._names:
                with contextlib.suppress(OSError):
                    latest = max(latest, photo.with_name(name).lstat().st_ctime_ns)
        return latest


def read_sidecars(path: Path) -> list[Said]:
    """What the XMP sidecars of a photo say, the one that counts more first."""
    return [read_xmp(data) for data in _contents(sidecars_of(path))]


def read_takeout(path: Path) -> list[Said]:
    """What Google Takeout's JSON beside a photo says."""
    return [_said(data) for data in _contents([path.with_name(name) for name in _takeout_names(path.name)])]


def _contents(files: list[Path]) -> Iterator[bytes]:
    """Contents of files that are there; never those of a link, which may lead anywhere."""
    seen = set()
    for file in files:
        try:
            status = file.lstat()
            if file.is_symlink() or status.st_size > LARGEST or (status.st_dev, status.st_ino) in seen:
                continue
            seen.add((status.st_dev, status.st_ino))  # on some drives a name is the same in upper and lower case
            yield read_regular(file)
        except (OSError, ValueError, CairnError):
            continue


def _said(data: bytes) -> Said:
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    found: dict[str, list[str]] = {}
    for source in SOURCES:
        space, _, keys = source.partition(":")
        if space == "takeout":
            texts = [_text(one) for one in _values(told, keys.split("."))]
            found[source] = [text for text in texts if text]
    return found


def _values(told: Any, keys: list[str]) -> list[Any]:
    """What stands under keys within each other; under a list, of each of its items."""
    if isinstance(told, list):
        return [one for item in told[:_MOST_PEOPLE] for one in _values(item, keys)]
    if not keys:
        return [told]
    return _values(told[keys[0]], keys[1:]) if isinstance(told, dict) and keys[0] in told else []


def _text(value: Any) -> str:
    """A value as text; the day of a moment, as its time is that of Greenwich."""
    if isinstance(value, dict):
        try:
            moment = datetime.datetime.fromtimestamp(int(value["timestamp"]), datetime.UTC)
        except (KeyError, TypeError, ValueError, OverflowError, OSError):
            return ""
        return moment.date().isoformat()
    if isinstance(value, bool):
        return "yes" if value else ""
    return str(value) if isinstance(value, str | int | float) else ""
