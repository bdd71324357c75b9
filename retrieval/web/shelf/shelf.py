"""The shelf: a home folder, and the collections that lie in it."""

import contextlib
import itertools
import json
import os
import re
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from index.arrays import save_bytes
from index.errors import CairnError
from index.files.reading import IrregularFile, read_regular
from retrieval.catalogue.browsing import CoverPhoto, Glance, glance
from retrieval.catalogue.schema import FILE
from retrieval.collection.layout import OPTIONS
from retrieval.library.opening import create
from retrieval.photos.listing import CACHE
from retrieval.web.pool.workers import Refused
from retrieval.web.shelf.names import LONGEST_TITLE, clean_title, folder_name, title_key

HOME = "Cairn"
"""Default folder of collections, in the user's home folder."""
TITLES = "shelf.json"
"""File in the home with the titles and chosen covers of collections."""
BIN = "bin"
"""Folder in the home to which collections are moved instead of being deleted."""

_BINNED = re.compile(r"(?P<name>.+) (?P<moved>\d{4}-\d\d-\d\d \d{6})(?: again)*", re.ASCII | re.DOTALL)
"""Pattern of names of folders in the bin."""
_DAMAGED = (IrregularFile, ValueError, RecursionError)  # what is no JSON


@dataclass(frozen=True)
class Chosen:
    """Titles and covers of collections, by the names of their folders."""

    titles: dict[str, str]
    covers: dict[str, int]  # numbers of photos


@dataclass(frozen=True)
class Card:
    """An entry of the list of collections."""

    name: str  # of its folder
    title: str
    photos: int | None  # None if its catalogue cannot be read
    cover: CoverPhoto | None
    bytes: int  # on disk, without thumbnails
    changed: datetime | None  # UTC


@dataclass(frozen=True)
class DiscardedCollection:
    """A collection in the bin."""

    folder: str  # its name in the bin
    title: str
    name: str  # that its folder had
    moved: datetime | None  # UTC; None if it is not known


class Shelf:
    """The collections that lie in a home folder. Any thread may use it.

    A collection is a folder right in the home with the options of one; a link to such a folder counts too. Only listed
    names are joined to the path of the home. The home is created when something is written to it.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self._lock = threading.Lock()  # of what is changed
        self._seen: dict[str, tuple[tuple[int, ...], Glance | None, int]] = {}

    def names(self) -> list[str]:
        """Names of the folders that are collections, in order; raises CairnError if the home cannot be read."""
        try:
            with os.scandir(self.home) as entries:
                return sorted(one.name for one in entries if _is_collection(one))
        except FileNotFoundError:
            return []
        except OSError as error:
            reason = error.strerror or error
            raise CairnError(
                "{home} cannot be read ({reason}): check its drive and permissions.", home=self.home, reason=reason
            ) from None

    def find(self, name: str) -> Path:
        """Return the folder of a collection; raises Refused if there is no collection of this name."""
        if name not in self.names():
            raise no_collection()
        return self.home / name

    def title(self, name: str) -> str:
        """The title of a collection, by default the name of its folder."""
        return _title(self._chosen().titles.get(name), name)

    def cards(self) -> list[Card]:
        """The list of all collections, the last changed first."""
        chosen = self._chosen()
        cards = [self._card(name, chosen) for name in self.names()]
        oldest = datetime.min.replace(tzinfo=UTC)
        return sorted(cards, key=lambda one: (one.changed or oldest, one.title), reverse=True)

    def card(self, name: str) -> Card:
        """A collection as shown; raises Refused if there is no collection of this name."""
        self.find(name)
        return self._card(name, self._chosen())

    def make(self, title: str, **options: Any) -> str:
        """Make a collection without photos, with options of `cairn.create`; return the name of its folder.

        Raises CairnError if another has this title, or it is invalid.
        """
        title = clean_title(title)
        made = None
        try:
            with self._changing() as chosen:
                self._refuse_taken(title, chosen.titles)
                names = [*(path.name for path in self.home.iterdir()), BIN]
                name = folder_name(title, names)
                folder = self.home / name
                folder.mkdir()  # another command may have created it since: then it must not be removed here
                made = folder
                create(folder, **options).close()
                chosen.titles[name] = title
                chosen.covers.pop(name, None)  # of one that was of this name
        except CairnError:
            if made is not None:
                shutil.rmtree(made, ignore_errors=True)
            raise
        return name

    def rename(self, name: str, title: str) -> str:
        """Change the title of a collection, and return it as stored; its folder and address stay."""
        title = clean_title(title)
        with self._changing() as chosen:
            self.find(name)
            self._refuse_taken(title, chosen.titles, name)
            chosen.titles[name] = title
        return title

    def choose_cover(self, name: str, number: int) -> None:
        """Make a photo the cover of a collection, as long as it exists."""
        with self._changing() as chosen:
            cover = glance(self.find(name) / FILE, number).cover
            if cover is None or cover.number != number:
                raise Refused("There is no such photo in this collection: it may have been removed.", "missing")
            chosen.covers[name] = number

    def discard(self, name: str) -> Path:
        """Move a collection to the bin, and return its folder there. It contains no photos but uploaded ones."""
        with self._changing():
            folder = self.find(name)
            bin_ = self.home / BIN
            bin_.mkdir(exist_ok=True)
            moved = bin_ / f"{name} {datetime.now(UTC):%Y-%m-%d %H%M%S}"
            while os.path.lexists(moved):
                moved = moved.with_name(f"{moved.name} again")
            folder.rename(moved)
        # It is done. On a full disk the title stays written, without a collection.
        with contextlib.suppress(CairnError), self._changing() as chosen:
            chosen.titles[f"{BIN}/{moved.name}"] = _title(chosen.titles.pop(name, None), name)
            chosen.covers.pop(name, None)
        self._seen.pop(name, None)
        return moved

    def binned(self) -> list[DiscardedCollection]:
        """Contents of the bin, the last moved first."""
        titles = self._chosen().titles
        found = []
        with contextlib.suppress(OSError), os.scandir(self.home / BIN) as entries:
            for entry in filter(_is_collection, entries):
                when = _BINNED.fullmatch(entry.name)
                moved = None
                with contextlib.suppress(ValueError, TypeError):
                    moved = datetime.strptime(f"{when['moved'] if when else ''} +0000", "%Y-%m-%d %H%M%S %z")
                name = when["name"] if when else entry.name
                found.append(
                    DiscardedCollection(entry.name, _title(titles.get(f"{BIN}/{entry.name}"), name), name, moved)
                )
        oldest = datetime.min.replace(tzinfo=UTC)
        return sorted(found, key=lambda one: (one.moved or oldest, one.folder), reverse=True)

    def put_back(self, folder: str) -> str:
        """Restore a collection from the bin, and return its name: name and title are the earlier ones, unless now
        taken.
        """
        with self._changing() as chosen:
            one = next((one for one in self.binned() if one.folder == folder), None)
            if one is None:
                raise Refused("This collection is no longer in the bin.", "missing")
            names = {path.name.casefold() for path in self.home.iterdir()} | {BIN}
            name = one.name if one.name.casefold() not in names else folder_name(one.title, [*names])
            title = next(title for title in _numbered(one.title) if not self._is_taken(title, chosen.titles))
            (self.home / BIN / folder).rename(self.home / name)
            chosen.titles.pop(f"{BIN}/{folder}", None)
            chosen.titles[name] = title
        return name

    def _card(self, name: str, chosen: Chosen) -> Card:
        folder, title, wanted = self.home / name, _title(chosen.titles.get(name), name), chosen.covers.get(name)
        changed, stamp = _stamp(folder)
        stamp += () if wanted is None else (wanted,)
        known = self._seen.get(name)
        if known is None or known[0] != stamp:
            found = None
            with contextlib.suppress(CairnError):
                found = glance(folder / FILE, wanted)
            known = self._seen[name] = stamp, found, _bytes(folder)
        _, seen, size = known
        if seen is None:
            return Card(name, title, None, None, size, changed)
        return Card(name, title, seen.photos, seen.cover, size, changed)

    def _chosen(self) -> Chosen:
        """Titles and covers; empty if their file cannot be read."""
        with contextlib.suppress(OSError, *_DAMAGED):
            return self._read_chosen()
        return Chosen({}, {})

    def _read_chosen(self) -> Chosen:
        """Titles and covers; empty if their file is missing. Raises OSError if it cannot be read, one of `_DAMAGED` if
        it is damaged.
        """
        titles: dict[str, str] = {}
        covers: dict[str, int] = {}
        with contextlib.suppress(FileNotFoundError):
            record = json.loads(read_regular(self.home / TITLES))
            if isinstance(record, dict) and isinstance(found := record.get("titles"), dict):
                titles = {str(name): title for name, title in found.items() if isinstance(title, str)}
            if isinstance(record, dict) and isinstance(found := record.get("covers"), dict):
                covers = {name: one for name, one in found.items() if type(one) is int and 0 <= one < 1 << 63}
        return Chosen(titles, covers)

    @contextlib.contextmanager
    def _changing(self) -> Iterator[Chosen]:
        """Change the home, and write titles and covers at the end of the block."""
        with self._lock:
            try:
                self.home.mkdir(parents=True, exist_ok=True)
                # An unreadable file must not be overwritten, nor one that may be repaired by hand.
                try:
                    before = self._read_chosen()
                except _DAMAGED:
                    stamp = f"{datetime.now(UTC):%Y%m%d-%H%M%S}"
                    (self.home / TITLES).rename(self.home / f"{TITLES}.damaged-{stamp}")
                    before = Chosen({}, {})
                chosen = Chosen(dict(before.titles), dict(before.covers))
                yield chosen
                if chosen != before:
                    record: dict[str, Any] = {"titles": dict(sorted(chosen.titles.items()))}
                    if chosen.covers:
                        record["covers"] = dict(sorted(chosen.covers.items()))
                    save_bytes(self.home / TITLES, json.dumps(record, ensure_ascii=False, indent=1).encode())
            except OSError as error:
                reason = error.strerror or error
                raise CairnError(
                    "{home} cannot be written ({reason}): check its disk and permissions.",
                    home=self.home,
                    reason=reason,
                ) from None

    def _refuse_taken(self, title: str, titles: dict[str, str], but: str = "") -> None:
        """Refuse a title that another collection has."""
        if self._is_taken(title, titles, but):
            raise Refused("There is a collection of this name already: choose another name.", "request")

    def _is_taken(self, title: str, titles: dict[str, str], but: str = "") -> bool:
        key = title_key(title)
        return any(title_key(_title(titles.get(name), name)) == key for name in self.names() if name != but)


def _numbered(title: str) -> Iterator[str]:
    """A title, and others like it."""
    yield title
    for number in itertools.count(2):
        end = f" ({number})"
        yield title[: LONGEST_TITLE - len(end)] + end


def no_collection() -> Refused:
    """Error for an unknown or hidden name."""
    return Refused("There is no such collection: it may have been moved to the bin.", "missing")


def _is_collection(entry: "os.DirEntry[str]") -> bool:
    """Whether an entry of the home is a collection: a folder, or a link to one, with the options of one."""
    if entry.name.startswith(".") or entry.name == BIN:
        return False
    with contextlib.suppress(OSError, UnicodeError):
        entry.name.encode()  # what is no text cannot stand in an address
        return entry.is_dir() and os.path.isfile(os.path.join(entry.path, OPTIONS))  # noqa: PTH113, PTH118
    return False


def _title(title: str | None, name: str) -> str:
    """The stored title of a collection if it is valid, else the name of its folder."""
    with contextlib.suppress(CairnError):
        return clean_title(title or "")
    with contextlib.suppress(CairnError):
        return clean_title(name.removesuffix(".cairn")[:LONGEST_TITLE])
    return name


def _stamp(folder: Path) -> tuple[datetime | None, tuple[int, ...]]:
    """Time of the last change of a collection, and a value that differs after each change."""
    stamp: list[int] = []
    for file in (FILE, f"{FILE}-wal"):
        with contextlib.suppress(OSError):
            status = (folder / file).stat()
            stamp += [status.st_mtime_ns, status.st_size]
    changed = max(stamp[::2], default=None)
    return (None if changed is None else datetime.fromtimestamp(changed / 1e9, UTC)), tuple(stamp)


def _bytes(folder: Path) -> int:
    """Size of the files of a collection in bytes, without thumbnails, which may be deleted at any time."""
    size, folders = 0, [str(folder)]
    while folders:
        with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name != CACHE:
                            folders.append(entry.path)
                    else:
                        size += entry.stat(follow_symlinks=False).st_size
    return size
