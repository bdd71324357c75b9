"""Files with metadata next to a photo: XMP sidecars, and the JSON of Google Takeout."""

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
from retrieval.metadata.combining import SourceTexts
from retrieval.metadata.fields import SOURCES
from retrieval.metadata.xmp import LARGEST, read_xmp

_TAKEOUT_NAME = 46  # characters of the name of Takeout's JSON, without its ending
_NUMBERED = re.compile(r"(.+)(\(\d+\))(\.[^.]+)")  # a second file of a name, such as photo(1).jpg
_MOST_PEOPLE = 200


def sidecars_of(path: Path) -> list[Path]:
    """Possible paths of the XMP sidecar of a photo, by precedence: photo.jpg.xmp, then photo.xmp."""
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
    """Change times of files of photos and of their sidecars.

    Each folder is listed once, if photos come folder by folder, or by name: folders above the current one are cached.
    """

    def __init__(self) -> None:
        self._names: dict[Path, frozenset[str]] = {}  # by folder: names of files that may be sidecars

    def of(self, photo: Path, status: os.stat_result) -> int:
        """The latest change time (st_ctime) of a photo's file and its sidecars, nanoseconds.

        Programs that preserve the modification time when they edit metadata cannot preserve this one.
        """
        folder, latest = photo.parent, status.st_ctime_ns
        if folder not in self._names:
            self._names = {one: names for one, names in self._names.items() if one in folder.parents}
            self._names[folder] = _sidecar_names(folder)
        names = self._names[folder]
        for name in (*_xmp_names(photo.name), *_takeout_names(photo.name)) if names else ():
            if name in names:
                with contextlib.suppress(OSError):
                    latest = max(latest, (folder / name).lstat().st_ctime_ns)
        return latest


def _sidecar_names(folder: Path) -> frozenset[str]:
    with contextlib.suppress(OSError):
        return frozenset(name for name in os.listdir(folder) if name.lower().endswith((".xmp", ".json")))  # noqa: PTH208 (names alone)
    return frozenset()


def read_sidecars(path: Path) -> list[SourceTexts]:
    """Metadata of the XMP sidecars of a photo, by precedence."""
    return [read_xmp(data) for data in _contents(sidecars_of(path))]


def read_takeout(path: Path) -> list[SourceTexts]:
    """Metadata of Google Takeout's JSON next to a photo."""
    return [_takeout_texts(data) for data in _contents([path.with_name(name) for name in _takeout_names(path.name)])]


def _contents(files: list[Path]) -> Iterator[bytes]:
    """Contents of existing files; never of a link, which may lead anywhere."""
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


def _takeout_texts(data: bytes) -> SourceTexts:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    values: dict[str, list[str]] = {}
    for source in SOURCES:
        space, _, keys = source.partition(":")
        if space == "takeout":
            texts = [_text(one) for one in _values(document, keys.split("."))]
            values[source] = [text for text in texts if text]
    return values


def _values(node: Any, keys: list[str]) -> list[Any]:
    """Values under nested keys; for a list, of each of its items."""
    if isinstance(node, list):
        return [one for item in node[:_MOST_PEOPLE] for one in _values(item, keys)]
    if not keys:
        return [node]
    return _values(node[keys[0]], keys[1:]) if isinstance(node, dict) and keys[0] in node else []


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
