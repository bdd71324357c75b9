"""Manifests of published sets, a JSON file for each in ``data/sets/``.

A manifest lists the addresses of a set's files, with mirrors in the order in which they are tried, and the files that
must exist after unpacking. An unconfirmed size or hash is null. Sizes and hashes belong to one address: a mirror may
have repacked the files.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from index.errors import CairnError
from index.text import one_of

FOLDER = Path(__file__).parents[2] / "data" / "sets"
"""The manifests that come with Cairn."""

_HASH = {"sha256": re.compile("[0-9a-f]{64}"), "md5": re.compile("[0-9a-f]{32}")}
_PLACE = re.compile(r"(?!.*\.\.)[\w.-]+(/[\w.-]+)*")  # a path below a folder


@dataclass(frozen=True)
class Address:
    """Address of a file."""

    url: str
    bytes: int | None  # exact, if known
    sha256: str | None
    md5: str | None

    @property
    def hash(self) -> str | None:
        """The hash in pooch's format, preferably SHA-256; None if unknown."""
        if self.sha256 is not None:
            return f"sha256:{self.sha256}"
        return f"md5:{self.md5}" if self.md5 is not None else None


@dataclass(frozen=True)
class Download:
    """A file of a set."""

    file: str  # its name
    into: str  # target folder in the set's home
    brings: str  # its part of the layout: images, ground_truth, patches or sequences
    about_bytes: int | None  # approximate size, for people
    # most unpacked bytes of an archive; None if it is no archive
    unpacked_limit: int | None
    strip: bool  # whether to strip the top folder of the archive
    parts: int  # volumes of a RAR archive, ``{part}`` in its name and addresses; 1 for any other file
    addresses: tuple[Address, ...]

    def volumes(self) -> list[tuple[str, tuple[Address, ...]]]:
        """Name and addresses of each volume."""
        if self.parts == 1:
            return [(self.file, self.addresses)]
        return [
            (
                self.file.format(part=part),
                tuple(Address(one.url.format(part=part), None, None, None) for one in self.addresses),
            )
            for part in range(1, self.parts + 1)
        ]


@dataclass(frozen=True)
class Need:
    """Parts of another set that a set needs."""

    set: str
    parts: tuple[str, ...]


@dataclass(frozen=True)
class Manifest:
    """Manifest of a set; see the module."""

    name: str
    title: str
    page: str
    licence: str
    citation: str
    home: str  # folder of a download below the root
    needs: tuple[Need, ...]
    # required contents: numbers of ``images``, files of ``ground_truth``, ``queries``, ``sequences``, ``patches`` and
    # names of ``pair_files``
    layout: dict[str, Any]
    downloads: tuple[Download, ...]

    @property
    def about_bytes(self) -> int:
        """Approximate size of the download, as far as known."""
        return sum(one.about_bytes or 0 for one in self.downloads)


def read_manifest(name: str, folder: Path | None = None) -> Manifest:
    """Read the manifest of a set."""
    from eval.sets.layouts import NAMES

    if name not in NAMES:
        raise CairnError(f"There is no set {name!r}: choose {one_of(NAMES)}.")
    path = FOLDER / f"{name}.json"
    if folder is not None and not folder.is_dir():
        raise CairnError(f"There is no folder {folder} of manifests; check the name.")
    if folder is not None and (folder / f"{name}.json").is_file():
        path = folder / f"{name}.json"
    try:
        read = _manifest(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise CairnError(f"The manifest {path} cannot be used: {type(error).__name__} {error}.") from error
    if read.name != name:
        raise CairnError(f"The manifest {path} is of {read.name!r}: name it after its set.")
    return read


def _manifest(read: dict[str, Any]) -> Manifest:
    needs = tuple(Need(one["set"], tuple(one["parts"])) for one in read["needs"])
    texts = {key: str(read[key]) for key in ("name", "title", "page", "licence", "citation")}
    downloads = tuple(_download(one) for entry in read["downloads"] for one in _each(entry))
    return Manifest(**texts, home=_place(read["home"]), needs=needs, layout=dict(read["layout"]), downloads=downloads)


def _each(read: dict[str, Any]) -> list[dict[str, Any]]:
    """Expand an entry of numbered archives, ``each``: the first and the last number of ``{part}``."""
    if "each" not in read:
        return [read]
    first, last = map(int, read["each"])
    if not 0 <= first <= last < 10_000:
        raise ValueError(f"{read['each']} are no numbers of archives")
    return [
        {
            **read,
            "file": read["file"].format(part=part),
            "addresses": [{**one, "url": one["url"].format(part=part)} for one in read["addresses"]],
        }
        for part in range(first, last + 1)
    ]


def _download(read: dict[str, Any]) -> Download:
    parts = int(read.get("parts", 1))
    limit, about = read["unpacked_limit"], read["about_bytes"]
    name = _place(read["file"].format(part=1) if parts > 1 else read["file"])
    if "/" in name or not read["addresses"]:
        raise ValueError(f"{name} is no name of a file, or it has no address")
    return Download(
        file=read["file"],
        into=_place(read["into"]),
        brings=str(read["brings"]),
        about_bytes=int(about) if about is not None else None,
        unpacked_limit=int(limit) if limit is not None else None,
        strip=bool(read.get("strip", False)),
        parts=parts,
        addresses=tuple(_address(one) for one in read["addresses"]),
    )


def _address(read: dict[str, Any]) -> Address:
    size = read.get("bytes")
    hashes = {kind: read.get(kind) for kind in _HASH}
    for kind, value in hashes.items():
        if value is not None and not _HASH[kind].fullmatch(value):
            raise ValueError(f"{value!r} is no {kind}")
    place = urlsplit(read["url"])
    if place.scheme not in ("http", "https", "ftp") or not place.hostname:
        raise ValueError(f"{read['url']!r} is no address")
    return Address(read["url"], int(size) if size is not None else None, **hashes)


def _place(text: str) -> str:
    if not _PLACE.fullmatch(text):
        raise ValueError(f"{text!r} is no place below a folder")
    return text
