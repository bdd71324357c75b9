"""Look up photos of a catalogue by number, by name, or by path to see whether they have changed."""

import re
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from index.errors import CairnError
from index.text import printable
from retrieval.catalogue.database import CHUNK, chunks
from retrieval.catalogue.schema import FAILED, INDEXED, REMOVED, ImageRow, SegmentRow, path_hash_of

_NONE = np.iinfo(np.int64).min  # for an unknown number
_SEEN = 4096  # cached rows, or a few more: some megabytes
_SHA256, _SHA256S = re.compile("[0-9a-f]{64}"), re.compile("[0-9a-f]*")
_NO_SHA256 = 64 * "0"
_ROW = np.dtype(
    [
        *((name, np.int64) for name in ("number", "hash", "size", "mtime_ns")),
        ("sha256", np.uint8, 32),
        *((name, np.bool_) for name in ("has_sha256", "indexed", "missing")),
    ]
)


class Known(NamedTuple):
    """Facts that show whether a photo is unchanged since it was indexed, or failed."""

    number: int
    state: str
    size: int | None
    mtime_ns: int | None
    sha256: str | None
    missing: bool = False  # its file was missing at the last run


class KnownPhotos(Mapping[str, Known]):
    """Facts of photos by path, of one moment, in about 90 bytes for each.

    Photos are looked up by 64-bit hashes of their paths (`rows`: see `known_photos`). The paths themselves are read in
    parts, on demand; for photos that have moved since, these are the new ones. `odd` has contents that are no SHA-256.
    """

    def __init__(
        self, rows: NDArray[np.void], odd: Mapping[int, str], paths_of: Callable[[Sequence[int]], Mapping[int, str]]
    ) -> None:
        self._rows, self._odd, self._paths_of = rows, odd, paths_of
        # If several photos have one path, an indexed one counts before a failed one, then the last.
        self._order = np.lexsort((rows["number"], rows["indexed"], rows["hash"]))
        self._hashes = rows["hash"][self._order]
        is_last = np.ones(len(rows), bool)
        is_last[:-1] = self._hashes[1:] != self._hashes[:-1]
        self._counting = np.sort(self._order[is_last])

    def __len__(self) -> int:
        return len(self._counting)

    def __getitem__(self, path: str) -> Known:
        wanted = path_hash_of(path)
        place = int(np.searchsorted(self._hashes, wanted, "right")) - 1
        if place < 0 or self._hashes[place] != wanted:
            raise KeyError(path)
        return self._known(self._rows[self._order[place]])

    def __iter__(self) -> Iterator[str]:
        return (path for path, _ in self._at(self._counting))

    def of_contents(self, contents: Collection[str]) -> Iterator[tuple[str, Known]]:
        """Paths and facts of the indexed photos with one of some contents (SHA-256)."""
        begins = [int(content[:16], 16) for content in contents if _SHA256.fullmatch(content)]
        wanted = np.array(begins, np.uint64)
        firsts = np.ascontiguousarray(self._rows["sha256"][:, :8]).view(">u8")[:, 0] if begins else np.zeros(0, ">u8")
        among = self._counting[np.isin(firsts[self._counting], wanted)] if begins else self._counting[:0]
        for path, known in self._at(among):
            if known.state == INDEXED and known.sha256 in contents:
                yield path, known

    def without(self, paths: Collection[str]) -> Iterator[tuple[str, Known]]:
        """Paths and facts of all photos except some."""
        hashes = np.fromiter((path_hash_of(path) for path in paths), np.int64, len(paths))
        for path, known in self._at(self._counting[~np.isin(self._rows["hash"][self._counting], hashes)]):
            if path not in paths:
                yield path, known

    def _at(self, places: NDArray[np.intp]) -> Iterator[tuple[str, Known]]:
        """Paths and facts of the photos in some rows, if they still exist."""
        for start in range(0, len(places), CHUNK):
            rows = self._rows[places[start : start + CHUNK]]
            paths = self._paths_of(rows["number"].tolist())
            yield from ((paths[int(row["number"])], self._known(row)) for row in rows if int(row["number"]) in paths)

    def _known(self, row: np.void) -> Known:
        number, size, mtime_ns = (int(row[name]) for name in ("number", "size", "mtime_ns"))
        content = row["sha256"].tobytes().hex() if row["has_sha256"] else self._odd.get(number)
        return Known(
            number,
            INDEXED if row["indexed"] else FAILED,
            None if size == _NONE else size,
            None if mtime_ns == _NONE else mtime_ns,
            content,
            bool(row["missing"]),
        )


def known_photos(session: Session, paths_of: Callable[[Sequence[int]], Mapping[int, str]]) -> KnownPhotos:
    """Facts of each path that is indexed or failed; if both, as a file was damaged later, those of the indexed photo.

    `paths_of` returns, for numbers of photos, the paths of those that still exist.
    """
    wanted = ImageRow.state != REMOVED
    columns = (ImageRow.number, ImageRow.path_hash, ImageRow.state == INDEXED, ImageRow.missing_since.is_not(None))
    query = (
        sa.select(*columns, ImageRow.size, ImageRow.mtime_ns, ImageRow.sha256).where(wanted).order_by(ImageRow.number)
    )
    rows = np.zeros(max(count_indexed(session), 0), _ROW)
    odd: dict[int, str] = {}
    done = 0
    try:
        for part in session.execute(query.execution_options(yield_per=CHUNK)).partitions():
            numbers, hashes, indexed, missing, sizes, times, contents = zip(*part, strict=True)
            if done + len(part) > len(rows):
                rows = np.concatenate([rows[:done], np.zeros(len(part) + done // 8, _ROW)])
            some = rows[done : done + len(part)]
            some["number"], some["hash"], some["indexed"], some["missing"] = numbers, hashes, indexed, missing
            some["size"] = [_NONE if size is None else size for size in sizes]
            some["mtime_ns"] = [_NONE if time is None else time for time in times]
            some["sha256"], some["has_sha256"] = _packed(contents)
            odd |= {
                number: one
                for number, one, is_sound in zip(numbers, contents, some["has_sha256"].tolist(), strict=True)
                if one is not None and not is_sound
            }
            done += len(part)
    except (TypeError, ValueError, OverflowError) as error:
        raise CairnError("The catalogue holds what no photo has ({error}): run {cairn check}.", error=error) from error
    return KnownPhotos(rows[:done], odd, paths_of)


def _packed(contents: Sequence[str | None]) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """The bytes (n, 32) of contents, and which of them are a SHA-256; zeros for others."""
    is_there = np.array([one is not None for one in contents], bool)
    joined = "".join(_NO_SHA256 if one is None else one for one in contents)
    # All at once if all are well-formed, else one by one.
    if any(one is not None and len(one) != 64 for one in contents) or not _SHA256S.fullmatch(joined):
        is_there = np.array([one is not None and bool(_SHA256.fullmatch(one)) for one in contents], bool)
        joined = "".join(one if ok and one else _NO_SHA256 for one, ok in zip(contents, is_there, strict=True))
    return np.frombuffer(bytes.fromhex(joined), np.uint8).reshape(-1, 32), is_there


class KnownContents(Container[str | None]):
    """Set of the contents (SHA-256) of photos, 32 bytes each, (n,) S32, and of `odd` ones that are no SHA-256."""

    def __init__(self, contents: NDArray[np.bytes_], odd: Collection[str]) -> None:
        self._contents, self._odd = np.sort(contents), odd

    def __contains__(self, content: object) -> bool:
        if not isinstance(content, str) or not _SHA256.fullmatch(content):
            return content in self._odd
        wanted = np.array(bytes.fromhex(content), "S32")
        place = int(np.searchsorted(self._contents, wanted))
        return place < len(self._contents) and bool(self._contents[place] == wanted)


class SeenPhotos:
    """Thread-safe cache of rows of indexed photos."""

    def __init__(self) -> None:
        self._seen: tuple[int | None, dict[int, ImageRow]] = None, {}  # the revision, and the rows as of it

    def rows_at(self, revision: int) -> dict[int, ImageRow]:
        """The cached rows of a revision of the catalogue, by number; callers add rows.

        Rows of earlier revisions are dropped, and all rows from time to time, to limit the size.
        """
        at, rows = self._seen
        if at != revision or len(rows) > _SEEN:
            rows = {}
            self._seen = revision, rows
        return rows


def known_contents(session: Session) -> KnownContents:
    """The SHA-256 of all photos that are indexed or failed."""
    query = sa.select(ImageRow.sha256).where(ImageRow.state != REMOVED, ImageRow.sha256.is_not(None))
    parts: list[NDArray[np.bytes_]] = []
    odd: set[str] = set()
    for part in session.scalars(query.execution_options(yield_per=CHUNK)).partitions():
        packed, is_sound = _packed(part)
        odd.update(str(one) for one, ok in zip(part, is_sound.tolist(), strict=True) if not ok)
        parts.append(packed[is_sound].reshape(-1).view("S32"))
    return KnownContents(np.concatenate(parts) if parts else np.zeros(0, "S32"), odd)


def all_indexed(session: Session) -> list[ImageRow]:
    """All indexed photos by ascending number."""
    return list(session.scalars(sa.select(ImageRow).where(ImageRow.state == INDEXED).order_by(ImageRow.number)))


def rows_of(session: Session, numbers: Sequence[int], *, indexed: bool = True) -> list[ImageRow]:
    """Indexed photos or those of any state, in the order of the numbers; raises KeyError if one is missing."""
    query = sa.select(ImageRow).where(ImageRow.state == INDEXED) if indexed else sa.select(ImageRow)
    rows: dict[int, ImageRow] = {}
    for chunk in chunks([int(number) for number in numbers]):
        rows.update((row.number, row) for row in session.scalars(query.where(ImageRow.number.in_(chunk))))
    return [rows[int(number)] for number in numbers]


def indexed_among(session: Session, numbers: Sequence[int]) -> list[int]:
    """Those of some photos that are indexed, in the order of the numbers."""
    there = _values_of(session, ImageRow.state, numbers, ImageRow.state == INDEXED)
    return [number for number in dict.fromkeys(numbers) if number in there]


def names_of(session: Session, numbers: Sequence[int]) -> dict[int, str]:
    """The names of those of some photos that are indexed."""
    return _values_of(session, ImageRow.name, numbers, ImageRow.state == INDEXED)


def kept_in_segments(session: Session, numbers: Sequence[int]) -> set[int]:
    """Those of some photos, removed or not, that a segment has."""
    return set(_values_of(session, ImageRow.path, numbers, ImageRow.segment_id.is_not(None)))


def names_in_order(session: Session, numbers: Sequence[int]) -> list[str]:
    """The names of indexed photos, in the order of the numbers; raises KeyError if one is not indexed."""
    by_number = names_of(session, numbers)
    return [by_number[int(number)] for number in numbers]


def paths_of(session: Session, numbers: Sequence[int]) -> dict[int, str]:
    """The paths of those of some photos that are indexed or failed."""
    return _values_of(session, ImageRow.path, numbers, ImageRow.state != REMOVED)


def _values_of(
    session: Session, column: Any, numbers: Sequence[int], condition: sa.ColumnElement[bool]
) -> dict[int, str]:
    """A column's values for those of some photos that fulfil a condition."""
    query = sa.select(ImageRow.number, column).where(condition)
    values: dict[int, str] = {}
    for chunk in chunks([int(number) for number in numbers]):
        values.update((number, value) for number, value in session.execute(query.where(ImageRow.number.in_(chunk))))
    return values


def places_of_photos(session: Session, first: int) -> list[tuple[int, str, str]]:
    """Number, name and path of indexed photos, by ascending number: one part, from a number on."""
    query = sa.select(ImageRow.number, ImageRow.name, ImageRow.path)
    query = query.where(ImageRow.state == INDEXED, ImageRow.number >= first).order_by(ImageRow.number).limit(CHUNK)
    return [(number, name or "", path) for number, name, path in session.execute(query)]


def indexed_folders(session: Session) -> list[Path]:
    """Folders that were indexed: the parts of paths before the names."""
    length = sa.func.length(ImageRow.path) - sa.func.length(ImageRow.name)
    root, end = sa.func.substr(ImageRow.path, 1, length), sa.func.substr(ImageRow.path, length)
    query = sa.select(root).where(end == sa.literal("/") + ImageRow.name).group_by(root)
    return sorted(Path(folder) for folder in session.scalars(query))


def contents_of_photos(session: Session) -> list[tuple[int, str | None]]:
    """Number and SHA-256 of the content of all indexed photos, by ascending number."""
    query = sa.select(ImageRow.number, ImageRow.sha256).where(ImageRow.state == INDEXED).order_by(ImageRow.number)
    return [(number, sha256) for number, sha256 in session.execute(query.execution_options(yield_per=CHUNK))]


def dates_added(session: Session, paths: Sequence[str]) -> dict[str, str]:
    """When the indexed photos of some paths were added (ISO 8601, UTC), by path, if known."""
    dates: dict[str, str] = {}
    for chunk in chunks(paths):
        query = sa.select(ImageRow.path, ImageRow.date_added).where(
            ImageRow.path_hash.in_([path_hash_of(path) for path in chunk]),
            ImageRow.state == INDEXED,
            ImageRow.date_added.is_not(None),
        )
        dates.update((path, str(date)) for path, date in session.execute(query))
    return dates


def first_and_last_added(session: Session) -> tuple[str, str] | None:
    """When the first and the last of the indexed photos were added; None if unknown for all."""
    # Separate queries, each at one end of an index; only indexed photos have names.
    ends = [sa.select(one(ImageRow.date_added)).where(ImageRow.name.is_not(None)) for one in (sa.func.min, sa.func.max)]
    first, last = session.execute(sa.select(*(one.scalar_subquery() for one in ends))).one()
    return None if first is None else (str(first), str(last))


def numbers_of_names(session: Session, names: Sequence[str]) -> dict[str, int]:
    """The numbers of those of some names that indexed photos have."""
    numbers: dict[str, int] = {}
    for chunk in chunks([name for name in names if printable(name) == name]):
        query = sa.select(ImageRow.name, ImageRow.number).where(ImageRow.name.in_(chunk))
        numbers.update((str(name), number) for name, number in session.execute(query))
    return numbers


def photo_of_name(session: Session, name: str) -> ImageRow | None:
    """The indexed photo of a name, or None."""
    if printable(name) != name:
        return None  # no such name is stored, and databases reject it
    return session.scalars(sa.select(ImageRow).where(ImageRow.name == name)).one_or_none()


def photo_of_content(session: Session, sha256: str) -> ImageRow | None:
    """The first indexed photo of a content, by the SHA-256 of its file, or None."""
    wanted = (ImageRow.sha256 == sha256, ImageRow.state == INDEXED)
    return session.scalars(sa.select(ImageRow).where(*wanted).order_by(ImageRow.number).limit(1)).one_or_none()


def rows_of_content(session: Session, sha256: str) -> list[ImageRow]:
    """Indexed photos of a content, by ascending number."""
    wanted = (ImageRow.sha256 == sha256, ImageRow.state == INDEXED)
    return list(session.scalars(sa.select(ImageRow).where(*wanted).order_by(ImageRow.number)))


def missing_photos(session: Session) -> list[ImageRow]:
    """Indexed photos whose files were missing at the last run, by ascending number."""
    wanted = (ImageRow.state == INDEXED, ImageRow.missing_since.is_not(None))
    # Sorted here: with ORDER BY a database would read all photos, and few are missing.
    return sorted(session.scalars(sa.select(ImageRow).where(*wanted)), key=lambda row: row.number)


def names_without_features(session: Session) -> list[str]:
    """Names of indexed photos without features, in order."""
    wanted = (ImageRow.state == INDEXED, ImageRow.features == 0)
    numbers = session.scalars(sa.select(ImageRow.number).where(*wanted)).all()  # from a covering index
    return sorted(names_of(session, numbers).values())


def counts_of_photos(session: Session) -> dict[str, int]:
    """Numbers of photos that are `indexed`, `failed` and `removed`, and `features` of indexed ones, by segments."""
    in_segments = sa.select(sa.func.sum(SegmentRow.images), sa.func.sum(SegmentRow.features))
    photos, features = (int(one or 0) for one in session.execute(in_segments).one())
    # Only indexed photos have names.
    columns = (ImageRow.state, sa.func.count(), sa.func.sum(ImageRow.features))
    others = sa.select(*columns).where(ImageRow.name.is_(None)).group_by(ImageRow.state)
    by_state = {state: (int(count), int(lost or 0)) for state, count, lost in session.execute(others)}
    failed, removed = by_state.get(FAILED, (0, 0)), by_state.get(REMOVED, (0, 0))
    return {
        INDEXED: photos - removed[0],
        FAILED: failed[0],
        REMOVED: removed[0],
        "features": features - removed[1],
    }


def count_indexed(session: Session) -> int:
    """Number of indexed photos: see `counts_of_photos`."""
    return counts_of_photos(session)[INDEXED]
