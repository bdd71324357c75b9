"""Shared links to albums, for anyone who has the link: each has a token, stored only as a hash, and an expiry date.

They belong to the user: a file in the state folder stores them, never the collection, so that a collection from someone
else opens nothing. A link is for a collection at its path: moved or copied ones have none.
"""

import contextlib
import hmac
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from index.errors import CairnError
from index.files.reading import IrregularFile, open_regular
from index.messages import said
from retrieval.collection.identity import read_identity
from retrieval.collection.locking import await_lock
from retrieval.state.folder import state_folder
from retrieval.state.tokens import chosen_day, hash_token, new_token, stamp_of, write_private

DAYS = 30
"""Days for which a link is valid by default."""
MOST_DAYS = 3660
MOST = 1000
"""Links of one user."""
FILE = "shared.json"
_LARGEST = 1 << 22  # bytes of the file
_PATIENCE = 5.0  # seconds to wait for another process
_ID = 12  # characters of a hash that name a link


class LinkNotFound(CairnError):
    """There is no such link."""

    _kind = "missing"


@dataclass(frozen=True)
class ShareLink:
    """A link to an album."""

    hash: str  # of its token
    collection: str  # path of the collection's folder
    identity: str | None  # of the collection, so that another one at the same path is not shown
    album: int
    created: str  # ISO 8601, UTC
    expires: str  # last day (UTC) on which it is valid, ISO 8601
    by: str | None = None  # name of its creator; None: this machine's user

    @property
    def id(self) -> str:
        """For ending the link; it does not open the album."""
        return self.hash.partition("$")[2][:_ID]

    @property
    def is_over(self) -> bool:
        """Whether its last day has passed."""
        return datetime.now(UTC).date() > date.fromisoformat(self.expires)

    def is_of(self, folder: Path) -> bool:
        """Whether it is of the collection in a folder."""
        return (self.collection, self.identity) == _place(folder)


def last_day(days: int | None = None, expires: str | None = None) -> str:
    """Return the last day of a link, ISO 8601: after some days, or `expires`; raises CairnError if it is invalid."""
    today = datetime.now(UTC).date()
    chosen = None if days is None else max(-1, min(days, MOST_DAYS + 1))
    last = chosen_day(chosen, expires) or today + timedelta(DAYS)
    if last < today:
        raise CairnError("The last day of a link must not have passed: choose a later one.")
    if last > today + timedelta(MOST_DAYS):
        raise CairnError("A link can be valid for {days} days at most: choose an earlier day.", days=MOST_DAYS)
    return last.isoformat()


def share(folder: Path, album: int, expires: str, by: str | None = None) -> tuple[str, ShareLink]:
    """Make a link to an existing album until a day; return its token, which is not stored, and the link."""
    token, hashed = new_token()
    created = datetime.now(UTC).isoformat(timespec="seconds")
    link = ShareLink(hashed, *_place(folder), album, created, expires, by)
    with _changing() as links:
        links[:] = [one for one in links if not one.is_over or one.is_of(folder)]
        if len(links) >= MOST:
            raise CairnError("There are {most} links already: end some that are no longer needed.", most=MOST)
        links.append(link)
    return token, link


def links_of(folder: Path, album: int | None = None) -> list[ShareLink]:
    """List the links to albums of a collection, or to one of them, the newest first."""
    links = [one for one in _read(_file()) if one.is_of(folder) and album in (None, one.album)]
    return sorted(links, key=lambda one: one.created, reverse=True)


def end_link(folder: Path, number: str) -> ShareLink:
    """End a link by its id: from then on it opens nothing."""
    with _changing() as links:
        link = next((one for one in links if one.is_of(folder) and one.id == number), None)
        if link is None:
            raise LinkNotFound("There is no such link: it may have been ended.")
        links.remove(link)
    return link


class KnownLinks:
    """The links of this user, read again when their file changes."""

    def __init__(self) -> None:
        self._stamp: tuple[int, ...] | None = None
        self._links: list[ShareLink] = []

    def find(self, token: str) -> ShareLink | None:
        """The link of a token, which may have expired; None if there is no such link."""
        try:
            file = _file()
        except CairnError:
            return None
        if (stamp := stamp_of(file)) != self._stamp:
            self._stamp, self._links = stamp, _read(file)
        hashed, match = hash_token(token), None
        for one in self._links:
            if hmac.compare_digest(one.hash.encode(), hashed.encode()):
                match = one
        return match


def _place(folder: Path) -> tuple[str, str | None]:
    return str(folder.resolve()), read_identity(folder)


def _file() -> Path:
    return state_folder() / FILE


def _read(file: Path) -> list[ShareLink]:
    """Links of a file; empty if it is missing or damaged: then nothing is shared."""
    with contextlib.suppress(OSError, IrregularFile, ValueError, TypeError, KeyError, RecursionError):
        with open_regular(file) as opened:
            records: list[dict[str, Any]] = json.loads(opened.read(_LARGEST))["links"]
        links = [ShareLink(**one) for one in records]
        for one in links:
            date.fromisoformat(one.expires)
            hash(one)
        return links
    return []


@contextlib.contextmanager
def _changing() -> Iterator[list[ShareLink]]:
    """Yield the links for changes, under a lock, and write them."""
    file = _file()
    lock = file.with_name(f"{file.name}.lock")
    refusal = said("Another process changes the links to albums: try again in a moment.")
    with await_lock(lock, _PATIENCE, refusal):
        links = _read(file)
        yield links
        try:
            write_private(file, json.dumps({"links": [asdict(one) for one in links]}).encode())
        except OSError as error:
            raise CairnError(
                "The links to albums cannot be written ({error}).", error=error.strerror or str(error)
            ) from None
